//! A thread's transactions, one at a time.

use manxdb_fabric::Address;

use crate::abort::Abort;
use crate::add::{Add, FreeSpace};
use crate::begin::Begin;
use crate::block::Layout;
use crate::change::Change;
use crate::commit::{Commit, Committed};
use crate::directory::Table;
use crate::durable_positions::{Await, DurablePositions, Ring};
use crate::find::{Absence, Find, LookupResult};
use crate::log::Log;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::overflow::Overflow;
use crate::read::{Read, ReadAll, Take};
use crate::tree::locate::{Locate, Seek};
use crate::tree::scan::{Scan, Span};
use crate::tree::{Hint, Tree};
use crate::vector::{Snapshot, Vector};
use crate::version::{Stamp, ThreadId};

/// What a transaction promises about what it has read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Isolation {
    /// Nothing more than that it was there when the transaction began: write skew is possible
    /// (the paper's level).
    #[default]
    Snapshot,
    /// That it is still there when the transaction commits.
    Serializable,
}

/// A thread that runs transactions. The program reads with the snapshot that it began with, and
/// commits what it has read and what is to be written; it runs one transaction at a time.
///
/// When a commit meets a fault, nobody knows how far it came: locks may be left, and whether it is
/// committed only its recovery decides. The session is over then, and refuses all that follows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Session {
    thread: ThreadId,
    vector: Vector,
    /// Transactions of this thread that are installed.
    sequence: u64,
    /// All that it has ever seen.
    seen: Snapshot,
    /// Where it logs what it installs; nowhere: its transactions do not survive it.
    log: Option<Log>,
    /// Where it reads how far the log archiver is; none: nobody writes logs to disk.
    kept: Option<DurablePositions>,
    /// Its way round its log.
    ring: Option<Ring>,
    /// Where it keeps versions that it pushes out of records; nowhere: they are gone.
    overflow: Option<Overflow>,
    /// It has a commit of which it has not heard the end, or never will.
    is_committing: bool,
    /// A defect to plant.
    #[cfg(feature = "mutants")]
    pub mutant: Option<Mutant>,
}

impl Session {
    /// A thread that has committed so many transactions before; none if the vector has no line
    /// for it.
    #[must_use]
    pub fn new(thread: ThreadId, vector: Vector, sequence: u64) -> Option<Self> {
        if thread.number() >= vector.threads() {
            return None;
        }
        let mut seen = Snapshot::empty(vector.threads());
        seen.add(Stamp { thread, sequence });
        Some(Self {
            thread,
            vector,
            sequence,
            seen,
            log: None,
            kept: None,
            ring: None,
            overflow: None,
            is_committing: false,
            #[cfg(feature = "mutants")]
            mutant: None,
        })
    }

    /// The same with a log.
    #[must_use]
    pub fn with_log(mut self, log: Log) -> Self {
        self.log = Some(log);
        self
    }

    /// The same where a log archiver writes what is logged to disk: nothing is logged over what it has not
    /// written. None: the session's log is no ring ([`Log::RING_MIN`]), or nothing is said there of
    /// its thread.
    #[must_use]
    pub fn with_durable_positions(mut self, kept: DurablePositions) -> Option<Self> {
        self.ring = Some(Ring::new(kept, self.log.as_ref()?, self.thread)?);
        self.kept = Some(kept);
        Some(self)
    }

    /// The same with an overflow area.
    #[must_use]
    pub fn with_overflow(mut self, overflow: Overflow) -> Self {
        self.overflow = Some(overflow);
        self
    }

    /// Whose session it is.
    #[must_use]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Threads that there are.
    pub(crate) fn threads(&self) -> u16 {
        self.vector.threads()
    }

    /// All that it has ever seen, its own commits included.
    #[must_use]
    pub fn seen(&self) -> &Snapshot {
        &self.seen
    }

    /// Waits until all that it has seen, its own commits included, is synced to disk: then an answer
    /// may be given that nothing takes back. None: nobody writes logs to disk.
    #[must_use]
    pub fn wait(&self) -> Option<Await> {
        let wait = Await::new(self.kept?, self.seen.clone());
        #[cfg(feature = "mutants")]
        let wait = {
            let mut wait = wait;
            wait.only = (self.mutant == Some(Mutant::WaitsForItselfAlone)).then_some(self.thread);
            wait
        };
        Some(wait)
    }

    /// Takes a snapshot; [`Session::saw`] is to hear of it.
    ///
    /// # Errors
    /// [`Abort::Over`].
    pub fn begin(&self) -> Result<Begin, Abort> {
        self.goes_on()?;
        assert_eq!(
            self.seen.numbers().len(),
            usize::from(self.vector.threads()),
            "a session has seen something of each thread"
        );
        Ok(Begin::new(self.vector, self.seen.clone()))
    }

    fn goes_on(&self) -> Result<(), Abort> {
        if self.is_committing {
            Err(Abort::Over(self.thread))
        } else {
            Ok(())
        }
    }

    /// A transaction has begun with this snapshot.
    pub fn saw(&mut self, snapshot: &Snapshot) {
        self.seen.join(snapshot);
    }

    /// Reads a record.
    #[must_use]
    pub fn read(&self, snapshot: &Snapshot, at: Address, layout: Layout) -> Read {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::ReadsTheNewest) {
            return Read::new(at, layout, Snapshot::of_everything(self.vector.threads()));
        }
        #[cfg_attr(not(feature = "mutants"), expect(unused_mut))]
        let mut read = Read::new(at, layout, snapshot.clone());
        #[cfg(feature = "mutants")]
        {
            read.mutant = self.mutant;
        }
        read
    }

    /// Reads the newest version of a record, whatever this session has seen.
    pub(crate) fn read_newest(&self, at: Address, layout: Layout) -> Read {
        Read::new(at, layout, self.seen.clone()).taking(Take::Newest)
    }

    /// Reads several records at once.
    #[must_use]
    pub fn read_all(&self, snapshot: &Snapshot, places: &[(Address, Layout)]) -> ReadAll {
        let read = |(at, layout): &(Address, Layout)| self.read(snapshot, *at, *layout);
        ReadAll::new(places.iter().map(read).collect())
    }

    /// Finds the record under a key.
    ///
    /// # Errors
    /// [`Abort::KeyTooLong`].
    pub fn find(&self, snapshot: &Snapshot, table: &Table, key: &[u8]) -> Result<Find, Abort> {
        let find = Find::new(table.clone(), key, snapshot.clone());
        #[cfg(feature = "mutants")]
        let find = find.map(|mut find| {
            find.mutant = self.mutant;
            find
        });
        find
    }

    /// Finds the leaf of a tree that a key belongs to.
    #[must_use]
    pub fn locate(
        &self,
        snapshot: &Snapshot,
        tree: Tree,
        seek: Seek,
        hint: Option<Hint>,
    ) -> Locate {
        Locate::new(tree, seek, hint, snapshot.clone())
    }

    /// Finds what a tree has between two keys.
    #[must_use]
    pub fn scan(&self, snapshot: &Snapshot, tree: Tree, span: Span, hint: Option<Hint>) -> Scan {
        Scan::new(tree, span, hint, snapshot.clone())
    }

    /// Adds a record that nobody has written yet under a key that was looked for, unless somebody
    /// else does so. It is no part of the transaction, which goes on to write it.
    #[must_use]
    pub fn add(&self, snapshot: &Snapshot, absence: Absence, room: FreeSpace) -> Add {
        #[cfg_attr(not(feature = "mutants"), expect(unused_mut))]
        let mut add = Add::new(absence, room, snapshot.clone());
        #[cfg(feature = "mutants")]
        {
            add.mutant = self.mutant;
        }
        add
    }

    /// Commits changes to records that the transaction has read; `reads` are the others, which
    /// count only when it is to be serializable. [`Session::ended`] is to hear what comes of it.
    ///
    /// # Errors
    /// A record is changed that has a newer version than the one which was read, or of which a
    /// version was read that this session has not seen; a value does not fit, a record is changed
    /// twice, or [`Abort::Over`]. Nothing was done.
    pub fn commit(
        &mut self,
        reads: &[LookupResult],
        changes: Vec<Change>,
        isolation: Isolation,
    ) -> Result<Commit, Abort> {
        self.goes_on()?;
        let stamp = self.holder();
        if stamp.sequence > Stamp::SEQUENCE_MAX {
            return Err(Abort::Exhausted(self.thread));
        }
        self.has_seen(&changes)?;
        let mut seen = self.seen.clone();
        seen.add(stamp);
        let reads = match isolation {
            Isolation::Snapshot => &[],
            Isolation::Serializable => reads,
        };
        #[cfg(feature = "mutants")]
        let reads = match self.mutant {
            Some(Mutant::NeverValidates) => &[],
            _ => reads,
        };
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::ForgetsWhatWasSeen) {
            seen = Snapshot::empty(self.vector.threads());
        }
        let commit = Commit::new(
            stamp,
            (self.vector, &seen),
            (self.log.as_ref(), self.overflow.as_mut()),
            reads,
            changes,
        );
        let need = self.ring.and_then(|ring| ring.needs(stamp));
        #[cfg(feature = "mutants")]
        let need = need.filter(|_| self.mutant != Some(Mutant::OverwritesTheUnwritten));
        let commit = commit.map(|commit| commit.behind(need));
        #[cfg(feature = "mutants")]
        let commit = commit.map(|mut commit| {
            commit.mutant = self.mutant;
            commit
        });
        assert!(
            self.seen.of(self.thread) >= self.sequence,
            "a session has seen its own commits"
        );
        self.is_committing = commit.is_ok();
        commit
    }

    /// Whoever sees a version sees what it was written over (I6). A node of a tree may be too new for
    /// the snapshot under which it was read ([`crate::tree`]); no other record is.
    fn has_seen(&self, changes: &[Change]) -> Result<(), Abort> {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::WritesOverTheUnseen) {
            return Ok(());
        }
        let is_unseen = |change: &&Change| !self.seen.admits(change.seen.stamp);
        match changes.iter().find(is_unseen) {
            Some(change) => Err(Abort::WriteConflict(change.seen.at)),
            None => Ok(()),
        }
    }

    /// What locks of this session would say now, while it commits nothing.
    #[must_use]
    pub fn holder(&self) -> Stamp {
        Stamp {
            thread: self.thread,
            sequence: self.sequence + 1,
        }
    }

    /// A commit has come to its end, and this to it.
    pub fn ended(&mut self, committed: &Committed) {
        if let Ok(Some(stamp)) = committed {
            assert!(
                self.is_committing,
                "a commit that has come to its end was begun"
            );
            assert_eq!(
                *stamp,
                self.holder(),
                "a thread's transactions are installed in their order"
            );
            self.sequence = stamp.sequence;
            self.seen.add(*stamp);
            if let Some(ring) = &mut self.ring {
                ring.logged(stamp.sequence);
            }
        }
        self.is_committing = matches!(committed, Err(Abort::Fault(_) | Abort::Over(_)));
    }
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::{Fault, ServerId};

    use super::*;
    use crate::read::Seen;

    const SERVER: ServerId = ServerId(0);

    fn at(offset: u64) -> Address {
        let server = SERVER;
        Address { server, offset }
    }

    fn begin_to_commit(session: &mut Session) -> Result<Commit, Abort> {
        let layout = Layout::new(2, 8).unwrap();
        let change = Change {
            seen: Seen::fresh(at(4096), layout),
            value: Some(vec![1]),
        };
        session.commit(&[], vec![change], Isolation::Snapshot)
    }

    #[test]
    fn a_session_that_does_not_know_the_end_of_a_commit_is_over() {
        let vector = Vector::new(at(0), 1).unwrap();
        let mut session = Session::new(ThreadId::FIRST, vector, 0).unwrap();
        begin_to_commit(&mut session).unwrap();
        let over = Abort::Over(ThreadId::FIRST);
        assert_eq!(session.begin(), Err(over));
        // Others were there: nothing is left of it.
        session.ended(&Err(Abort::WriteConflict(at(4096))));
        session.begin().unwrap();
        begin_to_commit(&mut session).unwrap();
        session.ended(&Err(Abort::Fault(Fault::Gone(SERVER))));
        assert_eq!(session.begin(), Err(over));
        assert_eq!(begin_to_commit(&mut session), Err(over));
        session.ended(&Err(over));
        assert_eq!(session.begin(), Err(over));
    }
}
