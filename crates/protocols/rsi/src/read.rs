//! Reads a record as a snapshot sees it.

use manxdb_fabric::{Address, Operation, Outcome};

use crate::block::{Block, Layout, Torn};
use crate::commit::Abort;
use crate::vector::Snapshot;
use crate::version::{Head, Stamp};
use crate::work::{Step, Work};

/// What was read of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Seen {
    /// Where it is,
    pub at: Address,
    /// and how it lies there.
    pub layout: Layout,
    /// The version that the snapshot sees.
    pub stamp: Stamp,
    /// Its value; none: there is no record.
    pub value: Option<Vec<u8>>,
    /// All of it: who writes the record writes it whole.
    pub(crate) block: Block,
}

impl Seen {
    /// Whether the snapshot sees the newest version. If not, the record cannot be written.
    #[must_use]
    pub fn is_newest(&self) -> bool {
        self.stamp == self.block.newest()
    }

    /// The head of the record while nobody has written it since.
    pub(crate) fn head(&self) -> Head {
        Head::Free(self.stamp)
    }
}

/// Copies that are torn before we give up: whoever writes has died, or is very slow.
const TORN_MAX: u32 = 24;

/// Reads a block until a copy of it is whole.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Read {
    at: Address,
    layout: Layout,
    /// The record's, which must be under this one; none: whatever record it is.
    key: Option<Vec<u8>>,
    snapshot: Snapshot,
    torn: u32,
}

impl Read {
    pub(crate) fn new(at: Address, layout: Layout, snapshot: Snapshot) -> Self {
        Self {
            at,
            layout,
            key: None,
            snapshot,
            torn: 0,
        }
    }

    /// The same, if it is the record under a key.
    pub(crate) fn under(mut self, key: &[u8]) -> Self {
        self.key = Some(key.to_vec());
        self
    }

    fn operation(&self) -> Operation {
        Operation::Read {
            at: self.at,
            bytes: self.layout.bytes() as u64,
        }
    }

    /// What a copy says to the snapshot. A lock is no matter: until its owner publishes, no
    /// snapshot admits what it has written.
    fn parse(&self, bytes: &[u8]) -> Result<Result<Seen, Abort>, Torn> {
        let (_, block) = Block::parse(self.layout, bytes)?;
        if self.key.as_ref().is_some_and(|key| *key != block.key) {
            return Ok(Err(Abort::Elsewhere(self.at)));
        }
        let Some(version) = block.visible(|stamp| self.snapshot.admits(stamp))? else {
            return Ok(Err(Abort::SnapshotTooOld(self.at)));
        };
        Ok(Ok(Seen {
            at: self.at,
            layout: self.layout,
            stamp: version.stamp,
            value: version.value.map(<[u8]>::to_vec),
            block,
        }))
    }
}

impl Work for Read {
    type Output = Result<Seen, Abort>;

    fn step(&mut self, outcomes: Vec<Outcome>) -> Step<Self::Output> {
        let bytes = match outcomes.into_iter().next() {
            None => return Step::Ask(vec![self.operation()]),
            Some(Outcome::Failed(fault)) => return Step::Done(Err(Abort::Fault(fault))),
            Some(Outcome::Read(bytes)) => bytes,
            Some(_) => Vec::new(), // no carrier answers a read otherwise
        };
        match self.parse(&bytes) {
            Ok(read) => Step::Done(read),
            Err(Torn) => {
                self.torn += 1;
                let head = bytes.first_chunk().map(|word| u64::from_le_bytes(*word));
                if let Some(Head::Locked { owner, .. }) = head.map(Head::of_word)
                    && self.torn > TORN_MAX
                {
                    return Step::Done(Err(Abort::Held(self.at, owner)));
                }
                Step::Again(vec![self.operation()], self.torn)
            }
        }
    }
}
