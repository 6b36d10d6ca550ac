//! What must hold in every state, and what must be reachable (reference: rack, §2.6).

use std::sync::Arc;

use manxdb_rsi::{Block, Head, Isolation, Snapshot, Stamp};
use stateright::{Model as _, Property};

use crate::model::case::{AT_FIRST, Case, MembershipDeed, RECORDS};
use crate::model::client::{Client, Doing, Fact, Fate};
use crate::model::memory::Batch;
use crate::model::state::State;

/// A name, and when it is so.
type Named = (&'static str, fn(&Case, &State) -> bool);

/// What is always so; a state that is not is a defect.
pub const ALWAYS: [Named; 12] = [
    ("an unlocked head is the newest version's (I1)", heads),
    ("only the owner of a lock writes (I2)", |_, state| {
        !state.has_trespassed
    }),
    ("what a snapshot admits is installed (I5)", installed),
    ("who sees a transaction sees what it had seen (I6)", cuts),
    ("a session sees no less than before (I7)", sessions),
    ("no value is made up", |_, state| {
        !state.clients.iter().any(|client| client.is_misled)
    }),
    ("money is neither made nor lost (I9)", sums),
    ("the first committer wins", first_committer_wins),
    ("what is acknowledged is there", acknowledged),
    (
        "in the end nothing is half there and nothing is locked",
        ends,
    ),
    ("nobody waits for ever", goes_on),
    ("who is promised a serial order gets one", |case, state| {
        case.isolation == Isolation::Snapshot || is_acyclic(state)
    }),
];

pub const SKEW: &str = "write skew";
pub const AGAIN: &str = "a torn copy is read again";
pub const REDONE: &str = "a record is written for a dead thread";
pub const UNDONE: &str = "a dead thread's transaction is not there";
pub const CONFLICT: &str = "a transaction loses against another";
pub const ALL_COMMIT: &str = "all transactions commit";

/// What must be reachable where a test says so.
const SOMETIMES: [Named; 6] = [
    (SKEW, |_, state| !is_acyclic(state)),
    (AGAIN, |_, state| {
        state.clients.iter().any(|client| client.reads_again())
    }),
    (REDONE, |_, state| {
        state.clients.iter().any(|client| client.redone > 0)
    }),
    (UNDONE, |_, state| {
        state.is_over()
            && state
                .facts()
                .any(|fact| is_absent(state, fact) && fact.fate == Fate::Unknown)
    }),
    (CONFLICT, |_, state| {
        state.facts().any(|fact| fact.fate == Fate::Aborted)
    }),
    (ALL_COMMIT, all_commit),
];

pub fn all() -> Vec<Property<Case>> {
    let always = ALWAYS.map(|(name, holds)| Property::always(name, holds));
    let sometimes = SOMETIMES.map(|(name, holds)| Property::sometimes(name, holds));
    always.into_iter().chain(sometimes).collect()
}

impl State {
    fn facts(&self) -> impl Iterator<Item = &Fact> {
        self.clients.iter().flat_map(|client| &client.facts)
    }

    fn has(&self, record: usize, stamp: Stamp) -> bool {
        self.versions[record].contains(&stamp)
    }

    /// What the vector says.
    pub fn published(&self, case: &Case) -> Snapshot {
        let vector = case.vector();
        let bytes = usize::try_from(vector.bytes()).unwrap();
        vector.parse(&self.memory.bytes(0, bytes)).0
    }
}

fn is_whole(state: &State, fact: &Fact) -> bool {
    fact.writes
        .iter()
        .all(|(record, _)| state.has(*record, fact.stamp))
}

/// Versions of aborted transactions have their numbers from the next one.
fn is_absent(state: &State, fact: &Fact) -> bool {
    !fact.writes.is_empty()
        && fact
            .writes
            .iter()
            .all(|(record, _)| !state.has(*record, fact.stamp))
}

fn block(case: &Case, state: &State, record: usize) -> Option<Block> {
    let (at, layout) = (case.record(record), case.layout());
    let copy = state.memory.bytes(at.offset, layout.bytes());
    Block::parse(layout, copy).ok().map(|(_, block)| block)
}

/// The newest version of a record and what it says.
fn newest(case: &Case, state: &State, record: usize) -> Option<(Stamp, u64)> {
    let block = block(case, state, record)?;
    let version = block.visible(|_| true).ok()??;
    let number = u64::from_le_bytes(*version.value?.first_chunk()?);
    Some((version.stamp, number))
}

fn heads(case: &Case, state: &State) -> bool {
    (0..RECORDS).all(|record| match state.head(case, record) {
        Head::Locked(_) => true,
        Head::Free(stamp) => newest(case, state, record).is_some_and(|(found, _)| found == stamp),
    })
}

fn installed(case: &Case, state: &State) -> bool {
    let published = state.published(case);
    let mut live = state.facts().filter(|fact| fact.fate != Fate::Aborted);
    live.all(|fact| {
        let is_there = is_whole(state, fact);
        !published.admits(fact.stamp) || is_there || is_closed(state, fact)
    })
}

/// Its client died before it logged it: its number is published and no version has it.
fn is_closed(state: &State, fact: &Fact) -> bool {
    let is_dead = |client: &&Arc<Client>| client.doing == Doing::ShutOut;
    let mut dead = state.clients.iter().filter(is_dead);
    fact.fate == Fate::Unknown
        && is_absent(state, fact)
        && dead.any(|client| Case::thread(client.number) == fact.stamp.thread)
}

/// Snapshots that transactions have now, and had.
fn snapshots(state: &State) -> impl Iterator<Item = &Snapshot> {
    let reading = state
        .clients
        .iter()
        .filter_map(|client| match &client.doing {
            Doing::Reading(snapshot, ..) => Some(snapshot),
            _ => None,
        });
    reading.chain(state.facts().map(|fact| &fact.snapshot))
}

fn cuts(_: &Case, state: &State) -> bool {
    let live = || state.facts().filter(|fact| fact.fate != Fate::Aborted);
    snapshots(state).all(|snapshot| {
        live().all(|fact| {
            let is_seen = !fact.writes.is_empty() && snapshot.admits(fact.stamp);
            !is_seen || snapshot.includes(&fact.snapshot)
        })
    })
}

fn sessions(_: &Case, state: &State) -> bool {
    state.clients.iter().all(|client| {
        client.facts.windows(2).all(|pair| {
            let is_own = pair[0].fate == Fate::Acknowledged && !pair[0].writes.is_empty();
            pair[1].snapshot.includes(&pair[0].snapshot)
                && (!is_own || pair[1].snapshot.admits(pair[0].stamp))
        })
    })
}

/// Where money only moves, every snapshot has all of it, and so has memory in the end.
fn sums(case: &Case, state: &State) -> bool {
    let moves_only =
        |deed: &MembershipDeed| matches!(deed, MembershipDeed::Move(_) | MembershipDeed::Look);
    if !case.clients.iter().flatten().all(moves_only) {
        return true;
    }
    let total = RECORDS as u64 * AT_FIRST;
    let read = |fact: &Fact| fact.reads.iter().map(|(_, _, value)| value).sum::<u64>() == total;
    let values = (0..RECORDS).map(|record| newest(case, state, record));
    let kept = || {
        values
            .map(|found| found.map_or(0, |(_, value)| value))
            .sum::<u64>()
            == total
    };
    state.facts().all(read) && (!state.is_over() || kept())
}

fn first_committer_wins(_: &Case, state: &State) -> bool {
    state.facts().all(|fact| {
        fact.writes.iter().all(|(record, _)| {
            let versions = &state.versions[*record];
            let place = versions.iter().position(|stamp| *stamp == fact.stamp);
            let Some(place) = place.filter(|_| fact.fate != Fate::Aborted) else {
                return true;
            };
            let read = fact.reads.iter().find(|(read, ..)| read == record);
            place > 0 && read.is_some_and(|(_, stamp, _)| *stamp == versions[place - 1])
        })
    })
}

fn acknowledged(case: &Case, state: &State) -> bool {
    let published = state.published(case);
    let known = state.facts().filter(|fact| fact.fate == Fate::Acknowledged);
    let mut written = known.filter(|fact| !fact.writes.is_empty());
    written.all(|fact| is_whole(state, fact) && published.admits(fact.stamp))
}

fn ends(case: &Case, state: &State) -> bool {
    if !state.is_over() {
        return true;
    }
    let published = state.published(case);
    let is_free = |record| matches!(state.head(case, record), Head::Free(_));
    let mut open = state.facts().filter(|fact| fact.fate == Fate::Unknown);
    let is_one = |fact: &Fact| {
        let is_there = is_whole(state, fact) && published.admits(fact.stamp);
        fact.writes.is_empty() || is_there || is_absent(state, fact)
    };
    (0..RECORDS).all(is_free) && open.all(is_one)
}

/// Who asks for something the first time goes on; who asks once more may get the same for ever.
fn goes_on(case: &Case, state: &State) -> bool {
    let is_first = |batch: &Batch| !batch.is_read() || batch.former.is_none();
    let batches = state
        .clients
        .iter()
        .filter_map(|client| client.batch.as_ref());
    state.is_over() || batches.into_iter().any(is_first) || !case.next_states(state).is_empty()
}

fn all_commit(_: &Case, state: &State) -> bool {
    let mut facts = state.facts();
    let are_over = state.is_over() && state.deaths == 0;
    are_over && facts.all(|fact| fact.fate == Fate::Acknowledged)
}

/// Whether what is installed has a serial order: no cycle of who must stand before whom.
fn is_acyclic(state: &State) -> bool {
    let is_there = |fact: &&Fact| match fact.fate {
        Fate::Aborted => false,
        Fate::Acknowledged => true,
        Fate::Unknown => !fact.writes.is_empty() && is_whole(state, fact),
    };
    let mut left: Vec<&Fact> = state.facts().filter(is_there).collect();
    // Whoever nobody must stand before is taken away, again and again.
    while !left.is_empty() {
        let is_first = |fact: &&Fact| !left.iter().any(|other| stands_before(state, other, fact));
        let Some(place) = left.iter().position(is_first) else {
            return false;
        };
        left.remove(place);
    }
    true
}

/// It wrote a version before one that the other wrote or read, or read one before the other's.
fn stands_before(state: &State, one: &Fact, other: &Fact) -> bool {
    if std::ptr::eq(one, other) {
        return false;
    }
    (0..RECORDS).any(|record| {
        let place = |stamp: Stamp| {
            state.versions[record]
                .iter()
                .position(|found| *found == stamp)
        };
        let wrote = |fact: &Fact| {
            let is_written = fact.writes.iter().any(|(written, _)| *written == record);
            is_written.then(|| place(fact.stamp)).flatten()
        };
        let read = |fact: &Fact| {
            let found = fact.reads.iter().find(|(read, ..)| *read == record);
            found.and_then(|(_, stamp, _)| place(*stamp))
        };
        let is_before = |one: Option<usize>, other: Option<usize>| {
            one.zip(other).is_some_and(|(one, other)| one < other)
        };
        let writes_what_is_read = wrote(one).is_some() && wrote(one) <= read(other);
        is_before(wrote(one), wrote(other))
            || (read(other).is_some() && writes_what_is_read)
            || is_before(read(one), wrote(other))
    })
}
