//! What nodes write to disk, and what a server that starts again makes of it.
//!
//! A server writes down each message that changed its log before or after it answers
//! ([`Durability`](crate::options::Durability)), and as a master its own entries. Read again, oldest
//! first, they give the log that it had. A process that starts again is still another *member*: nobody
//! takes its log for that of the process before it, unless the coordinator finds all processes of the
//! last view that had it in memory gone. What a log is worth then, [`Holding::rank`] says.

use manxdb_core::Token;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

use crate::backup::Store;
use crate::coordinator::CoordinatorRecord;
use crate::execute::Execute;
use crate::ids::{Config, Epoch, LogId, Member, Position, View};
use crate::log::Entry;
use crate::message::CurpMessage;
use crate::node::Outbox;
use crate::options::{Durability, Options};
use crate::rifl::Rifl;

/// What a node writes down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum CurpRecord {
    /// A coordinator's.
    Coordinator(CoordinatorRecord),
    /// A server's.
    Server(ServerRecord),
}

impl CurpRecord {
    /// Whether what was written before it says nothing any more.
    #[must_use]
    pub fn supersedes(&self) -> bool {
        match self {
            Self::Server(ServerRecord::Whole(_)) => true,
            Self::Coordinator(_) | Self::Server(_) => false,
        }
    }
}

/// What a server writes down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServerRecord {
    /// Everything.
    Whole(WholeStore),
    /// A message of its master, as `CurpMessage::Append`.
    Obeyed {
        /// The master's life.
        epoch: Epoch,
        /// The place before the first of them.
        after: Position,
        /// The entries.
        entries: Vec<Entry>,
        /// The end of the master's log.
        last: Position,
        /// All backups have everything up to here.
        synced: Position,
    },
    /// Entries of its own, as a master.
    Led {
        /// Its life as a master.
        epoch: Epoch,
        /// The place before the first of them.
        after: Position,
        /// The entries.
        entries: Vec<Entry>,
        /// All backups have everything up to here.
        synced: Position,
    },
}

impl ServerRecord {
    /// Bytes that it takes on disk, roughly.
    fn bytes(&self) -> u64 {
        let bytes = match self {
            Self::Whole(whole) => {
                whole.state.len() + whole.tail.iter().map(Entry::bytes).sum::<usize>()
            }
            Self::Obeyed { entries, .. } | Self::Led { entries, .. } => {
                entries.iter().map(Entry::bytes).sum()
            }
        };
        bytes as u64
    }
}

/// A server's whole log, state and completion records.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WholeStore {
    /// See [`Holding::base`].
    pub base: u64,
    /// The newest master that wrote here.
    pub epoch: Epoch,
    /// See [`Holding::copied`].
    pub copied: View,
    /// The last entry that `state` and `rifl` have.
    pub applied: LogId,
    /// The log is as that master has it up to here.
    pub verified: Position,
    /// The machine's snapshot, or the name of its own store, which has gone on since.
    #[serde(with = "crate::bytes")]
    pub state: Vec<u8>,
    /// The completion records.
    pub rifl: Rifl,
    /// What follows `applied`.
    pub tail: Vec<Entry>,
}

/// The log of a server that is not master, as it tells the coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holding {
    /// The first life of the server since which its log has gone on without a gap: everything that it
    /// said to have, in that life or a later one, is in the log (in `fsync` mode), or was when it
    /// stopped (in `memory` mode, but for the end).
    pub base: u64,
    /// The newest master that wrote it.
    pub epoch: Epoch,
    /// The view that it became a copy of its master's everything for, in life `base`, if it is one.
    pub copied: View,
    /// Its end.
    pub last: Position,
}

impl Holding {
    /// What the log is worth to a cluster all of whose processes are gone, where `old` was the last view
    /// and `holder` has the log now: a larger one is longer. Nothing when it may lack what was
    /// acknowledged. Two kinds of logs lack nothing:
    ///
    /// - that of a member of the view itself, with no gap since it was one: all f + 1 servers have what
    ///   is acknowledged;
    /// - a copy made for a view with a newer name. Its master was about to leave this view, since all
    ///   attempts to leave an earlier one have older names; and a master makes copies once it has
    ///   everything, and serves nobody. Nothing is acknowledged after that until the next view is
    ///   decided, which then is the last one.
    #[must_use]
    pub fn rank(&self, old: &Config, holder: Member) -> Option<(View, Position)> {
        if self.copied > old.view {
            return Some((self.copied, self.last));
        }
        let mut members = std::iter::once(&old.master).chain(&old.backups);
        let was = members.find(|member| member.node == holder.node)?;
        let is_whole = self.base <= was.life && was.life < holder.life;
        is_whole.then_some((View::default(), self.last))
    }
}

/// Why what is on a disk cannot be the log of a node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DiskError {
    /// It is that of another role.
    #[error("record {0} of its journal is of another role: this is not the node's directory")]
    Role(usize),
    /// A record does not follow from those before it.
    #[error(
        "record {0} of its journal does not follow from those before it: records are missing. Start the \
         node with an empty directory; it then gets everything from the others"
    )]
    Gap(usize),
    /// The machine has no such state.
    #[error("record {at} of its journal: {why}")]
    State {
        /// The record's place.
        at: usize,
        /// What is wrong, and the way out.
        why: String,
    },
}

/// What a coordinator decided, oldest first.
pub(crate) fn decisions(disk: Vec<CurpRecord>) -> Result<Vec<CoordinatorRecord>, DiskError> {
    let records = disk.into_iter().enumerate();
    let decided = records.map(|(index, record)| match record {
        CurpRecord::Coordinator(record) => Ok(record),
        CurpRecord::Server(_) => Err(DiskError::Role(index)),
    });
    decided.collect()
}

/// The log that a server had, and its base; nothing on an empty disk.
/// A machine's own store is where `origin` is.
pub(crate) fn read<E: Execute>(
    disk: Vec<CurpRecord>,
    origin: &E,
) -> Result<Option<(Store<E>, u64)>, DiskError> {
    let mut kept: Option<(Store<E>, u64)> = None;
    for (index, record) in disk.into_iter().enumerate() {
        let CurpRecord::Server(record) = record else {
            return Err(DiskError::Role(index));
        };
        match (record, &mut kept) {
            (ServerRecord::Whole(whole), kept) => {
                let base = whole.base;
                *kept = None; // a store is opened once
                let read = Store::from_whole(whole, origin);
                let store = read.map_err(|why| DiskError::State { at: index, why })?;
                *kept = Some((store, base));
            }
            (record, Some((store, _))) => {
                if !store.replay(record) {
                    return Err(DiskError::Gap(index));
                }
                if let Some(why) = &store.failure {
                    let (at, why) = (index, why.to_string());
                    return Err(DiskError::State { at, why });
                }
            }
            (_, None) => return Err(DiskError::Gap(index)),
        }
    }
    Ok(kept)
}

/// What follows once a record is safe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Then {
    /// A master is told what this server has.
    Tell(manxdb_core::NodeId, CurpMessage),
    /// The master elected in this epoch has its log on its own disk up to a place.
    Own(Epoch, Position),
}

/// A server's records on their way to its disk.
#[derive(Debug)]
pub(crate) struct DiskQueue {
    durability: Durability,
    whole_after: u64,
    /// Records written so far, and those of them that are safe.
    written: u64,
    safe: u64,
    waiting: VecDeque<(u64, Then)>,
    /// Bytes of the last whole state, and of what was written since.
    whole_bytes: u64,
    bytes: u64,
}

impl DiskQueue {
    pub(crate) fn new(options: &Options) -> Self {
        Self {
            durability: options.durability,
            whole_after: options.whole_after,
            written: 0,
            safe: 0,
            waiting: VecDeque::new(),
            whole_bytes: 0,
            bytes: 0,
        }
    }

    pub(crate) fn is_used(&self) -> bool {
        self.durability.is_on_disk()
    }

    /// Whether entries are said to be there only when they are on disk.
    pub(crate) fn is_waited_for(&self) -> bool {
        self.durability == Durability::Fsync
    }

    /// Records written so far that are not safe yet.
    pub(crate) fn unsafe_records(&self) -> u64 {
        self.written - self.safe
    }

    /// Whether the whole state is to be written down, so that what was written before can go.
    pub(crate) fn is_long(&self) -> bool {
        self.is_used() && self.bytes > self.whole_after.max(self.whole_bytes)
    }

    pub(crate) fn write(&mut self, record: ServerRecord, out: &mut impl Outbox) {
        if !self.is_used() {
            return;
        }
        let bytes = record.bytes();
        if matches!(record, ServerRecord::Whole(_)) {
            (self.whole_bytes, self.bytes) = (bytes, 0);
        } else {
            self.bytes += bytes;
        }
        self.written += 1;
        assert!(
            self.written > self.safe,
            "a record is written before it is safe"
        );
        out.persist(CurpRecord::Server(record), Token(self.written));
    }

    /// Has something follow once everything written so far is safe; or gives it back, when it is.
    pub(crate) fn then(&mut self, then: Then) -> Option<Then> {
        if self.safe == self.written {
            assert!(self.waiting.is_empty(), "what could follow has followed");
            return Some(then);
        }
        let again = self.waiting.iter().any(|(_, waiting)| *waiting == then);
        if !again {
            let last = self.waiting.back();
            assert!(
                last.is_none_or(|(at, _)| *at <= self.written),
                "nothing waits for a record that was not written"
            );
            self.waiting.push_back((self.written, then));
        }
        None
    }

    /// A record is safe: what follows.
    pub(crate) fn persisted(&mut self, token: Token) -> Vec<Then> {
        assert!(
            token.0 <= self.written,
            "only what was written becomes safe"
        );
        self.safe = self.safe.max(token.0);
        let ready = self.waiting.iter().take_while(|(at, _)| *at <= self.safe);
        let ready = ready.count();
        let follows = self.waiting.drain(..ready).map(|(_, then)| then);
        let follows = follows.collect();
        assert!(
            self.waiting.iter().all(|(at, _)| *at > self.safe),
            "what waits, waits in the order of the records"
        );
        follows
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        if self.safe > self.written {
            return Err("a record is safe that was not written".to_owned());
        }
        if self.waiting.front().is_some_and(|(at, _)| *at <= self.safe) {
            return Err("something waits for a record that is safe".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use manxdb_core::NodeId;

    use super::*;
    use crate::ids::Wlv;
    use crate::machine_tests::{Nothing, entry};

    fn view(epoch: u64, wlv: u32) -> View {
        View {
            epoch: Epoch(epoch),
            wlv: Wlv(wlv),
        }
    }

    fn member(node: u32, life: u64) -> Member {
        Member {
            node: NodeId(node),
            life,
        }
    }

    /// The view 3.5 of master 1 in its second life and backup 2 in its fourth.
    fn old() -> Config {
        Config {
            view: view(3, 5),
            master: member(1, 2),
            backups: vec![member(2, 4)],
            witnesses: vec![member(5, 1)],
            record_token: 1,
            gc_token: 2,
        }
    }

    fn holding(base: u64, copied: View) -> Holding {
        Holding {
            base,
            epoch: Epoch(3),
            copied,
            last: 9,
        }
    }

    #[test]
    fn a_log_counts_that_has_no_gap_since_its_server_was_a_member() {
        let rank = |base, holder| holding(base, View::default()).rank(&old(), holder);
        let whole = Some((View::default(), 9));
        assert_eq!(rank(1, member(2, 5)), whole);
        assert_eq!(rank(4, member(2, 9)), whole);
        assert_eq!(rank(2, member(1, 3)), whole, "the master too");
        assert_eq!(rank(5, member(2, 5)), None, "begun after it was a member");
        assert_eq!(rank(3, member(2, 3)), None, "of an earlier life");
        assert_eq!(rank(1, member(3, 5)), None, "no member");
    }

    #[test]
    fn a_copy_counts_that_was_made_to_leave_the_view() {
        let rank = |copied, holder| holding(6, copied).rank(&old(), holder);
        let newer = view(3, 6);
        assert_eq!(rank(newer, member(3, 6)), Some((newer, 9)));
        assert_eq!(rank(old().view, member(3, 6)), None, "made to enter it");
        assert!(rank(view(4, 6), member(3, 6)) > rank(newer, member(2, 6)));
    }

    fn whole() -> CurpRecord {
        let mut store: Store<Nothing> = Store::empty();
        CurpRecord::Server(ServerRecord::Whole(store.to_whole(7).unwrap()))
    }

    fn obeyed(epoch: u64, after: Position, clients: &[u64]) -> CurpRecord {
        let entries: Vec<Entry> = clients.iter().map(|client| entry(epoch, *client)).collect();
        CurpRecord::Server(ServerRecord::Obeyed {
            epoch: Epoch(epoch),
            after,
            last: after + entries.len() as Position,
            entries,
            synced: after,
        })
    }

    fn led(epoch: u64, after: Position, clients: &[u64]) -> CurpRecord {
        CurpRecord::Server(ServerRecord::Led {
            epoch: Epoch(epoch),
            after,
            entries: clients.iter().map(|client| entry(epoch, *client)).collect(),
            synced: after,
        })
    }

    fn end_of(disk: Vec<CurpRecord>) -> Result<Position, DiskError> {
        let read = read(disk, &Nothing)?;
        Ok(read.map_or(0, |(store, base)| {
            assert_eq!(base, 7, "since the state was written down");
            assert!(store.check().is_ok());
            store.last()
        }))
    }

    #[test]
    fn a_log_is_read_again_as_backup_and_as_master() {
        assert_eq!(end_of(Vec::new()), Ok(0));
        assert_eq!(end_of(vec![whole(), obeyed(1, 0, &[1, 2])]), Ok(2));
        let cut = vec![whole(), obeyed(1, 0, &[1, 2, 3]), obeyed(2, 0, &[4])];
        assert_eq!(end_of(cut), Ok(1), "the second master has no more");
        let later = vec![
            whole(),
            obeyed(1, 0, &[1, 2]),
            led(2, 2, &[3]),
            led(2, 3, &[4]),
        ];
        assert_eq!(end_of(later), Ok(4));
        let again = vec![obeyed(1, 0, &[1]), whole()];
        assert_eq!(
            end_of(again),
            Err(DiskError::Gap(0)),
            "nothing to append to"
        );
    }

    #[test]
    fn what_does_not_follow_is_named() {
        let gap = |disk| end_of(disk).unwrap_err();
        assert_eq!(gap(vec![whole(), obeyed(1, 1, &[2])]), DiskError::Gap(1));
        let missing = vec![whole(), led(2, 0, &[1]), led(2, 2, &[3])];
        assert_eq!(gap(missing), DiskError::Gap(2));
        let older = vec![whole(), obeyed(2, 0, &[1]), obeyed(1, 0, &[1])];
        assert_eq!(gap(older), DiskError::Gap(2));
        let entries = vec![entry(2, 1), entry(1, 2)];
        let own = ServerRecord::Led {
            epoch: Epoch(3),
            after: 0,
            entries: entries.clone(),
            synced: 0,
        };
        let told = ServerRecord::Obeyed {
            epoch: Epoch(3),
            after: 0,
            entries,
            last: 2,
            synced: 0,
        };
        for unordered in [own, told] {
            let disk = vec![whole(), CurpRecord::Server(unordered)];
            assert_eq!(gap(disk), DiskError::Gap(1));
        }
        let decision = CurpRecord::Coordinator(CoordinatorRecord::default());
        assert_eq!(gap(vec![whole(), decision]), DiskError::Role(1));
        assert_eq!(decisions(vec![whole()]), Err(DiskError::Role(0)));
    }
}
