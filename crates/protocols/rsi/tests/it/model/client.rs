//! A client as a state: which of the crate's own state machines it is in, and what it has under
//! way. It hears what came of its operations as soon as the last one has landed: hearing later
//! would look no different to anybody else.

use manxdb_fabric::OperationOutcome;
use manxdb_rsi::{
    Abort, Begin, Change, Commit, LookupResult, Machine, Read, Recover, Recovered, Release, Seen,
    Session, Snapshot, Stamp, Step, ThreadId,
};

use crate::model::case::{Case, MembershipDeed, RECORDS};
use crate::model::memory::Batch;

/// What a client does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Doing {
    /// It is not needed yet, or has done all.
    Nothing,
    Beginning(Begin),
    Reading(Snapshot, Vec<Seen>, Read),
    Committing(Commit),
    Recovering(Recover),
    /// Lets go of locks on the records from this one on.
    Releasing(Release, Stamp, usize),
    /// It is dead: fenced, and nothing of it lands any more.
    ShutOut,
}

/// How a transaction ended, as far as its client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Fate {
    Unknown,
    Acknowledged,
    Aborted,
}

/// A transaction that came as far as to its commit.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Fact {
    pub stamp: Stamp,
    pub snapshot: Snapshot,
    /// Which record, which version, what was in it.
    pub reads: Vec<(usize, Stamp, u64)>,
    pub writes: Vec<(usize, u64)>,
    pub fate: Fate,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Client {
    pub number: usize,
    pub session: Session,
    pub doing: Doing,
    pub batch: Option<Batch>,
    /// Transactions that it has begun.
    begun: usize,
    pub facts: Vec<Fact>,
    /// For whom it goes on.
    pub dead: Option<ThreadId>,
    /// Records that were written for the dead one.
    pub redone: usize,
    /// Whether it was given a value that nobody wrote.
    pub is_misled: bool,
}

/// What came of one of the crate's state machines.
enum Ended {
    Begun(Snapshot),
    Read(Result<Seen, Abort>),
    Committed(Result<Option<Stamp>, Abort>),
    Recovered(Recovered),
    Released,
}

fn map<T, U>(step: Step<T>, to: impl FnOnce(T) -> U) -> Step<U> {
    match step {
        Step::Post(operations) => Step::Post(operations),
        Step::Backoff(operations, tries) => Step::Backoff(operations, tries),
        Step::Done(output) => Step::Done(to(output)),
    }
}

/// What those do who have gone on for the dead.
const LOOK: &[MembershipDeed] = &[MembershipDeed::Look];

/// The same copies so many times: then whoever reads them has given up, or never will.
const STUTTERS: u32 = 40;

impl Client {
    pub fn new(case: &Case, number: usize) -> Self {
        Self {
            number,
            session: case.session(number),
            doing: Doing::Nothing,
            batch: None,
            begun: 0,
            facts: Vec::new(),
            dead: None,
            redone: 0,
            is_misled: false,
        }
    }

    /// Begins its first transaction.
    pub fn start(&mut self, case: &Case) {
        self.next(case);
        self.hear(case, Vec::new());
    }

    /// Goes on for a dead thread.
    pub fn succeed(&mut self, case: &Case, dead: ThreadId) {
        self.dead = Some(dead);
        self.doing = Doing::Recovering(Recover::new(dead, case.vector(), case.log(dead)));
        self.hear(case, Vec::new());
    }

    /// Nothing of it lands any more.
    pub fn shut_out(&mut self) {
        self.doing = Doing::ShutOut;
        self.batch = None;
    }

    pub fn is_over(&self) -> bool {
        matches!(self.doing, Doing::Nothing | Doing::ShutOut)
    }

    fn deeds<'a>(&self, case: &'a Case) -> &'a [MembershipDeed] {
        case.clients.get(self.number).map_or(LOOK, Vec::as_slice)
    }

    fn deed(&self, case: &Case) -> MembershipDeed {
        self.deeds(case)[self.begun - 1]
    }

    /// Begins a transaction if there is one left.
    fn next(&mut self, case: &Case) {
        if self.begun == self.deeds(case).len() {
            self.doing = Doing::Nothing;
            return;
        }
        self.begun += 1;
        self.doing = Doing::Beginning(self.session.begin().unwrap());
    }

    /// Hears what came of its operations, and goes on. Who asks once more and gets the same goes
    /// on asking; whether that ends in something else.
    pub fn hear(&mut self, case: &Case, outcomes: Vec<OperationOutcome>) -> bool {
        let former = self.batch.take().and_then(|batch| batch.former);
        let is_same = former.as_ref() == Some(&outcomes);
        let mut given = outcomes.clone();
        let mut stutters = 0;
        while !matches!(self.doing, Doing::Nothing) {
            match self.step(std::mem::take(&mut given)) {
                Step::Backoff(_, _) if is_same && stutters < STUTTERS => {
                    stutters += 1;
                    given.clone_from(&outcomes);
                }
                Step::Backoff(_, _) if is_same => return false,
                Step::Backoff(operations, _) => {
                    self.batch = Some(Batch::new(&case.seams, operations, Some(outcomes)));
                    return true;
                }
                Step::Post(operations) => {
                    self.batch = Some(Batch::new(&case.seams, operations, None));
                    return true;
                }
                Step::Done(ended) => self.proceed(case, ended),
            }
        }
        true
    }

    fn step(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Ended> {
        match &mut self.doing {
            Doing::Beginning(work) => {
                map(work.step(outcomes), |begun| Ended::Begun(begun.unwrap()))
            }
            Doing::Reading(_, _, work) => map(work.step(outcomes), Ended::Read),
            Doing::Committing(work) => map(work.step(outcomes), Ended::Committed),
            Doing::Recovering(work) => map(work.step(outcomes), |recovered| {
                Ended::Recovered(recovered.unwrap())
            }),
            Doing::Releasing(work, ..) => map(work.step(outcomes), |released| {
                released.unwrap();
                Ended::Released
            }),
            Doing::Nothing | Doing::ShutOut => panic!("nothing was asked for"),
        }
    }

    fn proceed(&mut self, case: &Case, ended: Ended) {
        match ended {
            Ended::Begun(snapshot) => {
                self.session.saw(&snapshot);
                self.read(case, snapshot, Vec::new());
            }
            Ended::Read(Ok(seen)) => {
                let Doing::Reading(snapshot, mut all, _) = self.doing.clone() else {
                    panic!("it was reading");
                };
                all.push(seen);
                self.read(case, snapshot, all);
            }
            Ended::Read(Err(Abort::Held(..) | Abort::SnapshotTooOld(_))) => self.next(case),
            Ended::Read(Err(other)) => panic!("{other}"),
            Ended::Committed(committed) => self.committed(case, committed),
            Ended::Recovered(recovered) => {
                self.redone = recovered.records;
                self.release(case, recovered.last, 0);
            }
            Ended::Released => {
                let Doing::Releasing(_, last, record) = self.doing else {
                    panic!("it was letting go");
                };
                self.release(case, last, record + 1);
            }
        }
    }

    /// Reads the next record, or commits.
    fn read(&mut self, case: &Case, snapshot: Snapshot, seen: Vec<Seen>) {
        let records = self.deed(case).reads();
        if let Some(record) = records.get(seen.len()) {
            let at = case.record(*record);
            let work = self.session.read(&snapshot, at, case.layout());
            self.doing = Doing::Reading(snapshot, seen, work);
            return;
        }
        let numbers: Vec<Option<u64>> = seen.iter().map(|seen| number(case, seen)).collect();
        self.is_misled |= numbers.contains(&None);
        let values: Vec<u64> = numbers.into_iter().map(Option::unwrap_or_default).collect();
        let writes = self.deed(case).writes(&values);
        let change = |(record, value): &(usize, u64)| {
            let place = records.iter().position(|read| read == record).unwrap();
            Change {
                seen: seen[place].clone(),
                value: Some(case.value(*value)),
            }
        };
        let changes = writes.iter().map(change).collect();
        let noted = seen.iter().zip(records).zip(&values);
        let noted = noted.map(|((seen, record), value)| (*record, seen.stamp, *value));
        let stamp = Stamp {
            thread: Case::thread(self.number),
            sequence: snapshot.of(Case::thread(self.number)) + 1,
        };
        self.facts.push(Fact {
            stamp,
            reads: noted.collect(),
            writes,
            fate: Fate::Unknown,
            snapshot,
        });
        let reads: Vec<LookupResult> = seen.into_iter().map(LookupResult::from).collect();
        match self.session.commit(&reads, changes, case.isolation) {
            Ok(commit) => self.doing = Doing::Committing(commit),
            Err(abort) => self.committed(case, Err(abort)),
        }
    }

    fn committed(&mut self, case: &Case, committed: Result<Option<Stamp>, Abort>) {
        self.session.ended(&committed);
        let fact = self.facts.last_mut().unwrap();
        fact.fate = match committed {
            Ok(stamp) => {
                assert!(stamp.is_none_or(|stamp| stamp == fact.stamp));
                Fate::Acknowledged
            }
            Err(Abort::WriteConflict(_) | Abort::ReadConflict(_)) => Fate::Aborted,
            Err(other) => panic!("{other}"),
        };
        self.next(case);
    }

    /// Lets go of what is left of the dead one's locks, then begins transactions of its own.
    fn release(&mut self, case: &Case, last: Stamp, record: usize) {
        if record == RECORDS {
            self.next(case);
            return;
        }
        let work = Release::new(case.record(record), case.layout(), last);
        self.doing = Doing::Releasing(work, last, record);
    }
}

/// What a value says; none if there is none, or one of two times.
fn number(case: &Case, seen: &Seen) -> Option<u64> {
    let value = seen.value()?;
    let number = u64::from_le_bytes(*value.first_chunk()?);
    (*value == case.value(number)[..]).then_some(number)
}
