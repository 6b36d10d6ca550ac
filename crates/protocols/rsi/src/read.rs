//! Reads a record as a snapshot sees it.

use manxdb_core::check::ensure;
use std::mem;

use manxdb_fabric::{Address, Operation, OperationOutcome};

use crate::abort::Abort;
use crate::block::{Block, Layout, Torn, Version};
use crate::directory::RecordAddress;
use crate::machine::{Machine, Step, assert_all_answered, only};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::overflow::Older;
use crate::vector::Snapshot;
use crate::version::{Head, Stamp};

/// What was read of a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Seen {
    /// Where it is,
    pub at: Address,
    /// and how it lies there.
    pub layout: Layout,
    /// The version that the snapshot sees.
    pub stamp: Stamp,
    /// All of it that the next version leaves: who writes the record writes it whole.
    pub(crate) block: Block,
    /// The version, where it has left the record.
    pub(crate) older: Option<Box<Older>>,
    /// The transaction that held it, and may have died since; none: nobody did, or a transaction
    /// that the snapshot admits, which means the same.
    pub holder: Option<Stamp>,
    /// The word that it had, with which it is locked.
    pub(crate) head: Head,
    /// Nobody else knows of the place yet, so that it needs no lock.
    pub(crate) is_own: bool,
}

impl Seen {
    /// A record that nobody has written, at a place which nobody knows of but the caller and whose
    /// memory is all zero: for records that are found by where they are, such as a log's.
    #[must_use]
    pub fn fresh(at: Address, layout: Layout) -> Self {
        Self {
            at,
            layout,
            stamp: Stamp::NOTHING,
            block: Block::unwritten(layout),
            older: None,
            holder: None,
            head: Head::Free(Stamp::NOTHING),
            is_own: true,
        }
    }

    /// Its value; none: there is no record.
    #[must_use]
    pub fn value(&self) -> Option<&[u8]> {
        match &self.older {
            Some(older) => (!older.label.is_deleted).then_some(&older.value),
            None => self.block.value(self.stamp),
        }
    }

    /// Whether the snapshot sees the newest version. If not, the record cannot be written.
    #[must_use]
    pub fn is_newest(&self) -> bool {
        self.stamp == self.block.newest()
    }

    /// The head of the record while nobody has written it since the version that was read. A lock
    /// that was nobody's is as good as none: under it nothing changes. One that was somebody's is
    /// expected to be let go.
    pub(crate) fn head(&self) -> Head {
        match self.head {
            Head::Locked(_) if self.holder.is_none() && self.is_newest() => self.head,
            _ => self.free(),
        }
    }

    /// Its head without a lock.
    pub(crate) fn free(&self) -> Head {
        Head::Free(self.stamp)
    }
}

/// Copies that are torn before we give up: whoever writes has died, or is very slow.
const TORN_MAX: u32 = 24;
/// The same where nobody writes: the memory is damaged, or of something else.
const DAMAGED_MAX: u32 = 4 * TORN_MAX;
/// Versions that have left a record and are looked at for one that the snapshot admits.
const OLDER_MAX: u32 = 256;

/// Which version of a record is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Take {
    /// The newest that the snapshot admits.
    Admitted,
    /// The same, or the oldest that is left if it admits none: of what only ever grows.
    OrOldest,
    /// The same, and what was there before anybody wrote does not count, nor before it was deleted
    /// last: then it was another record.
    Written,
    /// The newest, whatever the snapshot admits.
    Newest,
}

/// What a copy says to a snapshot.
enum Said {
    /// What was looked for.
    Seen(Seen),
    /// Its oldest value may be, which a front does not have.
    NotInFront,
    /// It may have left the record, to this place.
    Left(Seen, RecordAddress),
}

/// Reads a block until a copy of it is whole: its front, and all of it if that is not enough.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Read {
    at: Address,
    layout: Layout,
    /// Its front has turned out not to be enough.
    is_all: bool,
    /// The record's, which must be under this one; none: whatever record it is.
    key: Option<Vec<u8>>,
    snapshot: Snapshot,
    take: Take,
    torn: u32,
    trail: Option<Trail>,
    #[cfg(feature = "mutants")]
    pub(crate) mutant: Option<Mutant>,
}

/// A look at versions that have left a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Trail {
    /// The record, of which nothing is admitted.
    seen: Box<Seen>,
    /// Where it looks.
    place: RecordAddress,
    /// How many it has looked at.
    count: u32,
}

impl Read {
    pub(crate) fn new(at: Address, layout: Layout, snapshot: Snapshot) -> Self {
        Self {
            at,
            layout,
            is_all: false,
            key: None,
            snapshot,
            take: Take::Admitted,
            torn: 0,
            trail: None,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// The same of another version.
    pub(crate) fn taking(mut self, take: Take) -> Self {
        self.take = take;
        self
    }

    /// The same, if it is the record under a key.
    pub(crate) fn under(mut self, key: &[u8]) -> Self {
        self.key = Some(key.to_vec());
        self
    }

    fn operation(&self) -> Operation {
        let bytes = if self.is_all {
            self.layout.bytes()
        } else {
            self.layout.front()
        };
        Operation::Read {
            at: self.at,
            bytes: bytes as u64,
        }
    }

    /// What a copy says to the snapshot. A lock is no matter: until its owner publishes, no
    /// snapshot admits what it has written.
    fn parse(&self, bytes: Vec<u8>) -> Result<Result<Said, Abort>, Torn> {
        let (head, block) = Block::parse(self.layout, bytes)?;
        if self.key.as_ref().is_some_and(|key| *key != block.key()) {
            return Ok(Err(Abort::Elsewhere(self.at)));
        }
        let admits = |stamp: Stamp| {
            let counts = self.take != Take::Written || stamp != Stamp::NOTHING;
            self.take == Take::Newest || counts && self.snapshot.admits(stamp)
        };
        let version = match (block.visible(admits), self.take) {
            (Ok(None), Take::OrOldest | Take::Written) => block.oldest(),
            (Ok(Some(Version { value: None, .. })), Take::Written) => block.reborn(),
            (version, _) => version,
        };
        let version = match version {
            Err(Torn) if block.is_front() => return Ok(Ok(Said::NotInFront)),
            version => version?,
        };
        let stamp = version.map(|version| version.stamp);
        let holder = match head {
            Head::Locked(holder) if !self.snapshot.admits(holder) => Some(holder),
            _ => None,
        };
        let left = block.older();
        let seen = Seen {
            at: self.at,
            layout: self.layout,
            stamp: stamp.unwrap_or(Stamp::NEVER),
            block,
            older: None,
            holder,
            head,
            is_own: false,
        };
        Ok(match (stamp, left) {
            (Some(_), _) => Ok(Said::Seen(seen)),
            (None, Some(place)) => Ok(Said::Left(seen, place)),
            (None, None) => Err(Abort::SnapshotTooOld(self.at)),
        })
    }

    /// Looks at a version that has left the record.
    fn follow(&mut self, trail: Trail) -> Step<Result<Seen, Abort>> {
        if trail.count >= OLDER_MAX {
            return Step::Done(Err(Abort::SnapshotTooOld(self.at)));
        }
        let read = Older::read(self.layout, trail.place);
        self.trail = Some(trail);
        Step::Post(vec![read])
    }

    /// What is there: the version that is sought, or one that is newer, or of another record.
    fn followed(&mut self, trail: Trail, copy: &[u8]) -> Step<Result<Seen, Abort>> {
        let Trail { seen, count, .. } = trail;
        let own = |older: &Older| {
            #[cfg(feature = "mutants")]
            if self.mutant == Some(Mutant::TakesAnothersVersion) {
                return true;
            }
            older.record.address() == self.at
        };
        match Older::parse(copy).filter(own) {
            Some(older) if self.snapshot.admits(older.label.stamp) => {
                let stamp = older.label.stamp;
                Step::Done(Ok(Seen {
                    stamp,
                    older: Some(Box::new(older)),
                    ..*seen
                }))
            }
            Some(Older {
                before: Some(place),
                ..
            }) => self.follow(Trail {
                seen,
                place,
                count: count + 1,
            }),
            // It has gone, or whoever links to it is still writing it.
            _ => Step::Done(Err(Abort::SnapshotTooOld(self.at))),
        }
    }
}

impl Machine for Read {
    type Output = Result<Seen, Abort>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        self.hear(only(outcomes))
    }

    fn check(&self) -> Result<(), String> {
        let longest = self.layout.key_max();
        ensure(
            self.key.as_ref().is_none_or(|key| key.len() <= longest),
            || format!("keys of this layout have at most {longest} bytes"),
        )?;
        ensure(self.torn <= DAMAGED_MAX + 1, || {
            format!("it was read {} times though it was torn", self.torn)
        })?;
        let Some(trail) = &self.trail else {
            return Ok(());
        };
        ensure(self.layout.has_overflow(), || {
            "versions leave only records whose layout says so".to_owned()
        })?;
        ensure(trail.seen.at == self.at && trail.count < OLDER_MAX, || {
            format!(
                "after {} versions of {} it is at {}",
                trail.count, self.at, trail.seen.at
            )
        })
    }
}

impl Read {
    /// The record that is read.
    pub(crate) fn at(&self) -> Address {
        self.at
    }

    /// Goes on with what has come of its one operation; with nothing at the beginning.
    fn hear(&mut self, outcome: Option<OperationOutcome>) -> Step<Result<Seen, Abort>> {
        let bytes = match outcome {
            None => return Step::Post(vec![self.operation()]),
            Some(OperationOutcome::Failed(fault)) => return Step::Done(Err(Abort::Fault(fault))),
            Some(OperationOutcome::Read(bytes)) => bytes,
            Some(other) => {
                assert!(
                    matches!(other, OperationOutcome::Read(_)),
                    "a read is answered by a copy: {other:?}"
                );
                Vec::new()
            }
        };
        if let Some(trail) = self.trail.take() {
            return self.followed(trail, &bytes);
        }
        let head = bytes.first_chunk().map(|word| u64::from_le_bytes(*word));
        match self.parse(bytes) {
            Ok(Ok(Said::Seen(seen))) => Step::Done(Ok(seen)),
            Ok(Ok(Said::NotInFront)) => {
                self.is_all = true;
                Step::Post(vec![self.operation()])
            }
            Ok(Ok(Said::Left(seen, place))) => self.follow(Trail {
                seen: Box::new(seen),
                place,
                count: 0,
            }),
            Ok(Err(abort)) => Step::Done(Err(abort)),
            Err(Torn) => {
                self.torn += 1;
                if let Some(Head::Locked(holder)) = head.map(Head::of_word)
                    && self.torn > TORN_MAX
                {
                    return Step::Done(Err(Abort::Held(self.at, holder)));
                }
                if self.torn > DAMAGED_MAX {
                    return Step::Done(Err(Abort::Damaged(self.at)));
                }
                Step::Backoff(vec![self.operation()], self.torn)
            }
        }
    }
}

/// Several records at once: each is read until its copy is whole.
#[derive(Debug, Clone)]
pub struct ReadAll {
    reads: Vec<Read>,
    seen: Vec<Option<Seen>>,
    /// Which of them were asked for last.
    asked: Vec<usize>,
}

impl ReadAll {
    pub(crate) fn new(reads: Vec<Read>) -> Self {
        Self {
            seen: vec![None; reads.len()],
            asked: Vec::new(),
            reads,
        }
    }

    fn begin(&mut self) -> Step<Result<Vec<Seen>, Abort>> {
        if self.reads.is_empty() {
            return Step::Done(Ok(Vec::new()));
        }
        self.asked = (0..self.reads.len()).collect();
        Step::Post(self.reads.iter().map(Read::operation).collect())
    }
}

impl Machine for ReadAll {
    type Output = Result<Vec<Seen>, Abort>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        if outcomes.is_empty() {
            return self.begin();
        }
        assert_all_answered(&outcomes, self.asked.len());
        let (mut operations, mut again) = (Vec::new(), 0);
        let mut asked = Vec::new();
        for (number, outcome) in mem::take(&mut self.asked).into_iter().zip(outcomes) {
            let read = self.reads.get_mut(number).zip(self.seen.get_mut(number));
            let Some((read, seen)) = read else {
                continue;
            };
            let next = match read.hear(Some(outcome)) {
                Step::Done(Err(abort)) => return Step::Done(Err(abort)),
                Step::Done(Ok(found)) => {
                    *seen = Some(found);
                    continue;
                }
                Step::Post(next) => next,
                Step::Backoff(next, times) => {
                    again = again.max(times);
                    next
                }
            };
            operations.extend(next);
            asked.push(number);
        }
        self.asked = asked;
        match (operations.is_empty(), again) {
            (true, _) => {
                let seen: Vec<Seen> = mem::take(&mut self.seen).into_iter().flatten().collect();
                assert_eq!(seen.len(), self.reads.len(), "every record was read");
                Step::Done(Ok(seen))
            }
            (false, 0) => Step::Post(operations),
            (false, times) => Step::Backoff(operations, times),
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.asked.is_empty() {
            return Ok(()); // it is not begun, or done
        }
        ensure(self.reads.len() == self.seen.len(), || {
            "each record has a place for what was seen of it".to_owned()
        })?;
        let mut pairs = self.asked.windows(2);
        ensure(pairs.all(|pair| pair[0] < pair[1]), || {
            "records are asked for in their order, each once".to_owned()
        })?;
        let is_missing = |number: &usize| self.seen.get(*number).is_some_and(Option::is_none);
        ensure(self.asked.iter().all(is_missing), || {
            "what was seen is not asked for again".to_owned()
        })?;
        self.reads.iter().try_for_each(Machine::check)
    }
}

#[cfg(test)]
#[allow(clippy::panic)]
mod tests {
    use manxdb_fabric::{ServerId, WORD_LENGTH};

    use super::*;
    use crate::version::ThreadId;

    const AT: Address = Address {
        server: ServerId(0),
        offset: 64,
    };

    /// Reads a record of three versions as a snapshot sees it that has so many of its writer's
    /// transactions; also what was asked for.
    fn read(sequence: u64) -> (Result<Option<Vec<u8>>, Abort>, Vec<usize>) {
        let layout = Layout::new(2, 100).unwrap();
        let write = |block: Block, number: u8| {
            let (thread, sequence) = (ThreadId::FIRST, u64::from(number));
            block.with(Stamp { thread, sequence }, Some(&[number; 9]))
        };
        let block = [1, 2, 3].into_iter().fold(Block::empty(layout, 0), write);
        let mut memory = Head::Free(block.newest()).word().to_le_bytes().to_vec();
        memory.extend(block.into_body());
        let snapshot = Snapshot::of_numbers(vec![sequence]);
        let (mut work, mut asked) = (Read::new(AT, layout, snapshot), Vec::new());
        let mut outcomes = Vec::new();
        loop {
            match work.step(outcomes) {
                Step::Done(seen) => {
                    return (seen.map(|seen| seen.value().map(<[u8]>::to_vec)), asked);
                }
                Step::Post(operations) => {
                    let [Operation::Read { at: AT, bytes }] = operations[..] else {
                        panic!("{operations:?}");
                    };
                    let bytes = usize::try_from(bytes).unwrap();
                    asked.push(bytes);
                    outcomes = vec![OperationOutcome::Read(memory[..bytes].to_vec())];
                }
                Step::Backoff(..) => panic!("nobody writes"),
            }
        }
    }

    #[test]
    fn the_oldest_value_is_moved_for_those_who_need_it() {
        let all = Layout::new(2, 100).unwrap().bytes();
        let front = all - 100_usize.next_multiple_of(WORD_LENGTH);
        assert_eq!(read(3), (Ok(Some(vec![3; 9])), vec![front]));
        assert_eq!(read(2), (Ok(Some(vec![2; 9])), vec![front, all]));
        assert_eq!(read(1), (Err(Abort::SnapshotTooOld(AT)), vec![front]));
    }
}
