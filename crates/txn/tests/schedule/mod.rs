//! Random concurrent transactions, driven by one thread in an order that a seed decides.
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(dead_code)]

use std::sync::Arc;

use manxdb_storage::{Direction, Durability, KeyRange, StorageError};
use manxdb_txn::mutants::Mutants;
use manxdb_txn::{CommitPath, IsolationLevel, ReadMode, Transaction, TxnError, UsedPart};

use crate::common::{Fixture, HookedEngine};
use crate::history::{Element, End, Key, Model, Observed, Random, Step, Value};

/// Rows there are.
pub const KEYS: Key = 4;

/// What one history is made of.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    pub seed: u64,
    pub isolation: IsolationLevel,
    /// Every transaction chooses its own level instead, and is held to that.
    pub mixed: bool,
    pub model: Model,
    pub mutants: Mutants,
    /// Transactions begun in all.
    pub transactions: usize,
    /// Open at a time.
    pub sessions: usize,
}

impl Plan {
    pub fn new(seed: u64, isolation: IsolationLevel, model: Model) -> Self {
        Self {
            seed,
            isolation,
            mixed: false,
            model,
            mutants: Mutants::default(),
            transactions: 12,
            sessions: 4,
        }
    }
}

/// What a session is about to do; repeated as it is while it must wait.
#[derive(Debug, Clone, Copy)]
enum Action {
    Read(Key, ReadMode),
    Range(Key, Key, Direction, ReadMode),
    Append(Key, Element),
    Write(Key, Element),
    Delete(Key, Element),
    Savepoint,
    RollbackToSavepoint,
    Commit,
    Rollback,
}

struct Session {
    txn: Transaction,
    observed: Observed,
    action: Option<Action>,
    actions_left: u64,
    writes: bool,
    savepoint: Option<(usize, usize)>,
}

/// A run in progress.
struct Schedule<P> {
    plan: Plan,
    random: Random,
    /// Under the path, if it has one that can be made to fail.
    engine: Option<Arc<HookedEngine>>,
    fixture: Fixture<P>,
    sessions: Vec<Session>,
    history: Vec<Observed>,
    now: u64,
    next_element: Element,
    waits: u64,
}

/// Steps in a row in which nobody got on, after which the run counts as stuck.
const STUCK_AFTER: u64 = 2_000;

/// Runs a plan to its end and reads every row once more.
pub fn run(plan: Plan) -> Vec<Observed> {
    run_over(plan, HookedEngine::new())
}

/// The same over a given, empty engine.
pub fn run_over(plan: Plan, engine: Arc<HookedEngine>) -> Vec<Observed> {
    let fixture = Fixture::over(engine.clone());
    fixture.path.plant(plan.mutants);
    run_in(plan, fixture, Some(engine))
}

/// The same on another path.
pub fn run_on<P: CommitPath>(plan: Plan, path: Arc<P>) -> Vec<Observed> {
    run_in(plan, Fixture::on(path), None)
}

fn run_in<P: CommitPath>(
    plan: Plan,
    fixture: Fixture<P>,
    engine: Option<Arc<HookedEngine>>,
) -> Vec<Observed> {
    let mut schedule = Schedule {
        plan,
        random: Random::new(plan.seed),
        engine,
        fixture,
        sessions: Vec::new(),
        history: Vec::new(),
        now: 0,
        next_element: 1,
        waits: 0,
    };
    while schedule.step() {}
    schedule.read_everything();
    assert_eq!(
        schedule.fixture.locks_held(),
        0,
        "locks outlive their owners"
    );
    schedule.history
}

fn name(key: Key) -> Vec<u8> {
    format!("k{key}").into_bytes()
}

fn encode(value: &Value) -> Vec<u8> {
    value.iter().flat_map(|e| e.to_be_bytes()).collect()
}

fn decode(bytes: &[u8]) -> Value {
    let elements = bytes.chunks(4);
    elements
        .map(|chunk| Element::from_be_bytes(chunk.try_into().unwrap()))
        .collect()
}

fn key_of(name: &[u8]) -> Key {
    name[1] - b'0'
}

impl<P: CommitPath> Schedule<P> {
    /// One action of one session; false when all is done.
    fn step(&mut self) -> bool {
        self.now += 1;
        let begun = self.history.len() + self.sessions.len();
        if self.sessions.len() < self.plan.sessions && begun < self.plan.transactions {
            let session = self.begin();
            self.sessions.push(session);
            return true;
        }
        if self.sessions.is_empty() {
            return false;
        }
        let chosen = usize::try_from(self.random.below(self.sessions.len() as u64)).unwrap();
        let mut session = self.sessions.swap_remove(chosen);
        let action = session.action.unwrap_or_else(|| self.choose(&mut session));
        if session.action.is_none() {
            session.txn.start_statement().unwrap();
        }
        session.action = None;
        match self.perform(session, action) {
            Some(waiting) if waiting.action.is_some() => {
                self.waits += 1;
                assert!(
                    self.waits < STUCK_AFTER,
                    "all sessions wait: {:?}",
                    self.plan
                );
                self.sessions.push(waiting);
            }
            going_on => {
                self.waits = 0;
                self.sessions.extend(going_on);
            }
        }
        true
    }

    fn begin(&mut self) -> Session {
        let isolation = self.level();
        let txn = self.fixture.begin(isolation);
        txn.plant(self.plan.mutants);
        Session {
            txn,
            observed: Observed {
                steps: Vec::new(),
                end: End::Aborted,
                only_plain_reads: true,
                guards_reads: !self.plan.mixed || isolation == IsolationLevel::Serializable,
                began: self.now,
                ended: 0,
            },
            action: None,
            actions_left: 1 + self.random.below(5),
            writes: self.random.percent(75),
            savepoint: None,
        }
    }

    fn level(&mut self) -> IsolationLevel {
        if !self.plan.mixed {
            return self.plan.isolation;
        }
        match self.random.below(4) {
            0 => IsolationLevel::ReadCommitted,
            1 => IsolationLevel::RepeatableRead,
            _ => IsolationLevel::Serializable,
        }
    }

    fn choose(&mut self, session: &mut Session) -> Action {
        if session.actions_left == 0 {
            let commits = self.random.percent(88);
            return if commits {
                Action::Commit
            } else {
                Action::Rollback
            };
        }
        session.actions_left -= 1;
        let key = self.key();
        let kind = self.random.below(if session.writes { 100 } else { 40 });
        match kind {
            0..25 => Action::Read(key, ReadMode::Plain),
            25..40 => self.range(ReadMode::Plain),
            40..46 => Action::Read(key, ReadMode::Update),
            46..50 => Action::Read(key, ReadMode::Share),
            50..56 => self.range(ReadMode::Update),
            56..60 => self.range(ReadMode::Share),
            60..64 => Action::Savepoint,
            64..68 => Action::RollbackToSavepoint,
            _ => self.write(key),
        }
    }

    fn write(&mut self, key: Key) -> Action {
        let element = self.next_element;
        self.next_element += 1;
        match self.plan.model {
            Model::List => Action::Append(key, element),
            Model::Register if self.random.percent(25) => Action::Delete(key, element),
            Model::Register => Action::Write(key, element),
        }
    }

    fn key(&mut self) -> Key {
        Key::try_from(self.random.below(u64::from(KEYS))).unwrap()
    }

    fn range(&mut self, mode: ReadMode) -> Action {
        let (one, other) = (self.key(), self.key());
        let direction = if self.random.percent(50) {
            Direction::Forward
        } else {
            Direction::Reverse
        };
        Action::Range(one.min(other), one.max(other), direction, mode)
    }

    /// The session if it goes on, with its action set again if that has to be repeated.
    fn perform(&mut self, mut session: Session, action: Action) -> Option<Session> {
        if !matches!(action, Action::Commit | Action::Rollback) {
            return match session.act(action) {
                Ok(()) => Some(session),
                Err(TxnError::WouldWait) => {
                    session.action = Some(action);
                    Some(session)
                }
                Err(TxnError::Conflict { .. } | TxnError::Deadlock) => {
                    self.end(session, End::Aborted);
                    None
                }
                Err(other) => panic!("{other} in {:?}", self.plan),
            };
        }
        let end = match action {
            Action::Commit => self.commit(&mut session),
            _ => End::Aborted,
        };
        self.end(session, end);
        None
    }

    fn commit(&mut self, session: &mut Session) -> End {
        if self.random.percent(5)
            && let Some(engine) = &self.engine
        {
            let full = || Err(StorageError::Full("planted".into()));
            engine.before_next_write(full);
        }
        let spare = self.fixture.begin(self.plan.isolation);
        let txn = std::mem::replace(&mut session.txn, spare);
        let answer = txn.commit(Durability::Sync);
        if let Some(engine) = &self.engine {
            engine.before_next_write(|| Ok(()));
        }
        match answer {
            Ok(version) => End::Committed(version.0),
            Err(TxnError::Conflict { .. } | TxnError::Storage(_)) => End::Aborted,
            Err(other) => panic!("{other} in {:?}", self.plan),
        }
    }

    fn end(&mut self, session: Session, end: End) {
        let mut observed = session.observed;
        observed.end = end;
        observed.ended = self.now;
        self.history.push(observed);
    }

    fn read_everything(&mut self) {
        self.now += 1;
        let mut session = self.begin();
        let all = Action::Range(0, KEYS - 1, Direction::Forward, ReadMode::Plain);
        session.act(all).unwrap();
        self.end(session, End::Committed(u64::MAX));
    }
}

/// Readers that use all of a value, and look at it again when its key was written.
struct AllUsed;

impl UsedPart for AllUsed {
    fn same(&self, old: &[u8], new: &[u8]) -> bool {
        old == new
    }
}

impl Session {
    fn act(&mut self, action: Action) -> Result<(), TxnError> {
        match action {
            Action::Read(key, mode) => {
                let value = self.value(key, mode)?;
                self.saw(vec![(key, value)], false, mode);
            }
            Action::Range(from, to, direction, mode) => {
                let rows = self.rows(from, to, direction, mode)?;
                self.saw(rows, true, mode);
            }
            Action::Append(key, element) => {
                let mut value = self.value(key, ReadMode::Update)?;
                self.saw(vec![(key, value.clone())], false, ReadMode::Update);
                value.push(element);
                self.txn.put(name(key), encode(&value))?;
                self.wrote(key, element, false);
            }
            Action::Write(key, element) => {
                self.txn.put(name(key), encode(&vec![element]))?;
                self.wrote(key, element, false);
            }
            Action::Delete(key, element) => {
                self.txn.delete(name(key))?;
                self.wrote(key, element, true);
            }
            Action::Savepoint => {
                self.savepoint = Some((self.txn.savepoint(), self.observed.steps.len()));
            }
            Action::RollbackToSavepoint => {
                if let Some((savepoint, steps)) = self.savepoint {
                    self.txn.rollback_to(savepoint);
                    self.observed.steps.push(Step::Undo { steps });
                }
            }
            Action::Commit | Action::Rollback => {}
        }
        Ok(())
    }

    fn value(&self, key: Key, mode: ReadMode) -> Result<Value, TxnError> {
        let found = if mode == ReadMode::Plain {
            let all: Arc<dyn UsedPart> = Arc::new(AllUsed);
            let found = self.txn.get_many_used(&[name(key)], mode, Some(&all))?;
            found.into_iter().flatten().next()
        } else {
            self.txn.get(&name(key), mode)?
        };
        Ok(found.map_or_else(Value::new, |bytes| decode(&bytes)))
    }

    /// The rows of a range in pages of two, absent ones included.
    fn rows(
        &self,
        from: Key,
        to: Key,
        direction: Direction,
        mode: ReadMode,
    ) -> Result<Vec<(Key, Value)>, TxnError> {
        let mut rows: Vec<_> = (from..=to).map(|key| (key, Value::new())).collect();
        let mut rest = KeyRange {
            start: std::ops::Bound::Included(name(from)),
            end: std::ops::Bound::Included(name(to)),
        };
        // One statement reads one state, so a page at a time would be several statements'
        // worth of locking reads below SERIALIZABLE: those take the range whole.
        let page_size = if mode == ReadMode::Plain { 2 } else { 10 };
        loop {
            let page = self.txn.scan(&rest, direction, page_size, mode)?;
            for (name, bytes) in &page {
                rows[usize::from(key_of(name) - from)].1 = decode(bytes);
            }
            match page.last() {
                Some((last, _)) if page.len() == page_size => {
                    rest = manxdb_txn::transaction::rest_behind(&rest, last, direction);
                }
                _ => return Ok(rows),
            }
        }
    }

    fn saw(&mut self, rows: Vec<(Key, Value)>, predicate: bool, mode: ReadMode) {
        if mode != ReadMode::Plain {
            self.observed.only_plain_reads = false;
        }
        self.observed.steps.push(Step::Read { rows, predicate });
    }

    fn wrote(&mut self, key: Key, element: Element, deletes: bool) {
        self.observed.only_plain_reads = false;
        self.observed.steps.push(Step::Write {
            key,
            element,
            deletes,
        });
    }
}
