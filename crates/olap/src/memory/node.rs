//! A node: its way to the memory of all, and the places that it has been given.

use std::ops::Range;

use manxdb_fabric::{Address, Fabric, Grants, Operation, OperationOutcome, ServerId, WORD, turn};

use super::pipe::Pipe;
use super::region::{AT_A_TIME, NodeRegion};
use crate::error::OlapError;
use crate::traffic::Traffic;

/// Turns of waiting between two looks at whether those who are late live.
const LOOK_EVERY: u32 = 256;

/// What a node says of its rows: all are written,
const WRITTEN: u64 = 1;
/// or will never be.
const GIVEN_UP: u64 = 2;

/// A node of a query.
#[derive(Debug)]
pub struct Node<F> {
    pub(super) pipe: Pipe<F>,
    pub(super) region: NodeRegion,
    pub(super) me: u16,
    /// At each node, places that are this one's and that it has not used.
    stock: Vec<Range<u64>>,
}

impl<F: Fabric> Node<F> {
    /// A node by its number, which is that of its memory too. All nodes have registered the same
    /// room, which nobody has used.
    ///
    /// # Errors
    /// The fabric promises too little, or a node's memory is not there or too small.
    pub fn new(fabric: F, region: NodeRegion, me: u16) -> Result<Self, OlapError> {
        let needed = Grants {
            complete_means_visible: true,
            atomic_among_clients: true,
            ..Grants::default()
        };
        let granted = fabric.grants().include(needed);
        granted.map_err(|missing| OlapError::Fabric(missing.to_string()))?;
        if me >= region.nodes() {
            let nodes = region.nodes();
            return Err(OlapError::NodeRegion(format!(
                "node {me} of {nodes}, from 0 on"
            )));
        }
        for node in 0..region.nodes() {
            let registered = fabric.registered(ServerId(node)).unwrap_or(0);
            if registered < region.bytes() {
                return Err(OlapError::NodeRegion(format!(
                    "node {node} has registered {registered} bytes of {}",
                    region.bytes()
                )));
            }
        }
        Ok(Self {
            pipe: Pipe::new(fabric, me),
            region,
            me,
            stock: vec![0..0; usize::from(region.nodes())],
        })
    }

    /// How memory is laid out.
    pub(crate) fn region(&self) -> NodeRegion {
        self.region
    }

    /// A place at a node that nobody else writes.
    ///
    /// # Errors
    /// The node has none left.
    pub(super) fn place(&mut self, node: u16) -> Result<Address, OlapError> {
        let (pieces, at) = (self.region.pieces(), NodeRegion::counter(node));
        let Some(stock) = self.stock.get_mut(usize::from(node)) else {
            return Err(OlapError::Gone(node)); // unreachable: callers count to `nodes`
        };
        if stock.is_empty() {
            let delta = AT_A_TIME;
            let found = self.pipe.ask(vec![Operation::FetchAdd { at, delta }])?;
            let Some(OperationOutcome::Word(first)) = found.first() else {
                return Err(astray(node));
            };
            *stock = *first..first.saturating_add(AT_A_TIME).min(pieces);
        }
        match stock.next() {
            Some(number) => Ok(self.region.piece(node, number)),
            None => Err(OlapError::Full { node, pieces }),
        }
    }

    /// Writes rows, says so to all, and waits until all have written theirs. A node that cannot
    /// says that too, so that nobody waits for it. Returns what was sent by the time that this
    /// node waited: how often it looks after the others is up to them, not to the query.
    ///
    /// # Errors
    /// A node is gone or has given up; or `write` says so.
    pub(crate) fn exchange(
        &mut self,
        write: impl FnOnce(&mut Self) -> Result<(), OlapError>,
    ) -> Result<Traffic, OlapError> {
        let before = self.pipe.sent();
        let written = write(self).and_then(|()| self.pipe.drain());
        let said = self.say(if written.is_ok() { WRITTEN } else { GIVEN_UP });
        written.and(said)?;
        let sent = self.pipe.sent().since(before);
        let mut turns = 0;
        loop {
            let late = self.late()?;
            if late.is_empty() {
                return Ok(sent);
            }
            turn(&mut turns);
            if turns.is_multiple_of(LOOK_EVERY) {
                for node in late {
                    self.look_after(node)?;
                }
            }
        }
    }

    /// Says to all what has become of this node's rows, as far as they can be reached.
    fn say(&mut self, what: u64) -> Result<(), OlapError> {
        let mut said = Ok(());
        for node in 0..self.region.nodes() {
            let at = NodeRegion::end(node, self.me);
            let bytes = what.to_le_bytes().to_vec();
            let told = self.pipe.ask(vec![Operation::Write { at, bytes }]);
            said = said.and(told.map(|_| ()));
        }
        said
    }

    /// Who has not written everything.
    fn late(&mut self) -> Result<Vec<u16>, OlapError> {
        let ends = NodeRegion::end(self.me, 0);
        let said = self.read(ends, u64::from(self.region.nodes()) * WORD)?;
        let (words, _) = said.as_chunks::<8>();
        let mut late = Vec::new();
        for (node, word) in (0..).zip(words) {
            match u64::from_le_bytes(*word) {
                0 => late.push(node),
                WRITTEN => {}
                _ => return Err(OlapError::GivenUp(node)),
            }
        }
        Ok(late)
    }

    /// Fails if a node is gone that has not said that it has written everything.
    fn look_after(&mut self, node: u16) -> Result<(), OlapError> {
        let seen = self.read(NodeRegion::counter(node), WORD);
        match seen {
            // It may have said so, and ended, since it was late.
            Err(error) if self.late()?.contains(&node) => Err(error),
            _ => Ok(()),
        }
    }

    pub(super) fn read(&mut self, at: Address, bytes: u64) -> Result<Vec<u8>, OlapError> {
        let outcomes = self.pipe.ask(vec![Operation::Read { at, bytes }])?;
        match outcomes.into_iter().next() {
            Some(OperationOutcome::Read(copy)) => Ok(copy),
            _ => Err(astray(at.server.0)),
        }
    }
}

/// A carrier answered something that was not asked.
pub(super) fn astray(node: u16) -> OlapError {
    let what = "an answer to another question".to_owned();
    OlapError::Nonsense { node, what }
}
