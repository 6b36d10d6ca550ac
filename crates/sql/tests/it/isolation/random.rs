//! Random transactions of SQL text, and what their client saw of them.

use manxdb_sql::error::SqlResult;
use manxdb_txn::IsolationLevel;
use manxdb_txn::mutants::Mutants;

use crate::isolation::defects::Defect;
use crate::isolation::stage::{Progress, Stage, affected, rows_of};
use manxdb_fixtures::history::{Element, End, Key, Model, Observed, Random, Step, Value};
use manxdb_fixtures::sql::Answer;

/// Rows there may be.
pub const KEYS: Key = 4;
/// Sessions on the stage.
const ACTORS: usize = 4;
/// Turns in a row in which nobody could go on.
const STUCK_AFTER: u64 = 1_000;

/// A row is read by its key, by a secondary index, and by a join.
const SCHEMA: &str = "CREATE TABLE list (k INT PRIMARY KEY, code INT NOT NULL, v VARCHAR(400) NOT NULL, \
     UNIQUE KEY by_code (code)); \
     CREATE TABLE every (k INT PRIMARY KEY); \
     INSERT INTO every VALUES (0), (1), (2), (3)";

/// Tables and indexes of [`SCHEMA`], for defects.
pub const ROWS: (u32, u32) = (1, 0);
pub const BY_CODE: (u32, u32) = (1, 1);

/// What histories are made of.
#[derive(Debug, Clone)]
pub struct Plan {
    pub isolation: IsolationLevel,
    /// Every transaction chooses its own level instead, and is held to that.
    pub mixed: bool,
    pub model: Model,
    pub mutants: Mutants,
    pub defect: Defect,
    /// Transactions of one history.
    pub transactions: usize,
}

impl Plan {
    pub fn new(isolation: IsolationLevel, model: Model) -> Self {
        Self {
            isolation,
            mixed: false,
            model,
            mutants: Mutants::default(),
            defect: Defect::default(),
            transactions: 12,
        }
    }
}

/// What a statement is for.
#[derive(Debug, Clone)]
enum Deed {
    Begin,
    Read {
        keys: Vec<Key>,
        predicate: bool,
        plain: bool,
    },
    /// Writes whether the row is there or not.
    Write(Key, Element),
    /// Writes if the row is there.
    Change(Key, Element, bool),
    Savepoint,
    BackToSavepoint,
    End {
        commits: bool,
    },
}

#[derive(Default)]
struct Actor {
    observed: Option<Observed>,
    deed: Option<Deed>,
    /// Statements before the end.
    left: u64,
    writes: bool,
    autocommit: bool,
    savepoint: Option<usize>,
}

/// Runs histories one after the other on one stage.
pub struct Theatre {
    plan: Plan,
    stage: Stage,
    random: Random,
    actors: Vec<Actor>,
    history: Vec<Observed>,
    now: u64,
    begun: usize,
    commits: u64,
    next_element: Element,
}

impl Theatre {
    pub fn new(plan: Plan) -> Self {
        let stage = Stage::with_defects(ACTORS, SCHEMA, plan.mutants, plan.defect.clone());
        Self {
            plan,
            stage,
            random: Random::new(0),
            actors: Vec::new(),
            history: Vec::new(),
            now: 0,
            begun: 0,
            commits: 0,
            next_element: 1,
        }
    }

    /// One history over empty tables; its last transaction reads everything after the others.
    pub fn play(&mut self, seed: u64) -> Vec<Observed> {
        self.stage.seed(seed, 0, 0);
        self.stage.finish(0, "DELETE FROM list").unwrap();
        self.random = Random::new(seed);
        self.stage.seed(seed, 15, 2);
        self.actors = (0..ACTORS).map(|_| Actor::default()).collect();
        self.history.clear();
        (self.now, self.begun, self.commits, self.next_element) = (0, 0, 0, 1);
        let mut stuck = 0;
        while self.begun < self.plan.transactions || self.actors.iter().any(is_open) {
            self.now += 1;
            let chosen = usize::try_from(self.random.below(ACTORS as u64)).unwrap();
            stuck += 1;
            assert!(
                stuck < STUCK_AFTER,
                "all sessions wait: seed {seed} of {:?}",
                self.plan
            );
            if self.step(chosen) {
                stuck = 0;
            }
        }
        self.read_everything();
        assert_eq!(self.stage.locks_held(), 0, "locks outlive their owners");
        std::mem::take(&mut self.history)
    }

    /// A turn of one session; false when it has nothing to do or waits.
    fn step(&mut self, chosen: usize) -> bool {
        if self.actors[chosen].deed.is_none() {
            if !is_open(&self.actors[chosen]) && self.begun >= self.plan.transactions {
                return false;
            }
            let (deed, text) = self.next(chosen);
            self.actors[chosen].deed = Some(deed);
            self.stage.order(chosen, &text);
        }
        if !self.stage.can_go_on(chosen) {
            return false;
        }
        match self.stage.turn(chosen) {
            Progress::Paused => true,
            Progress::Waits => false,
            Progress::Answered(answer) => {
                self.conclude(chosen, answer);
                true
            }
        }
    }

    fn next(&mut self, chosen: usize) -> (Deed, String) {
        if !is_open(&self.actors[chosen]) {
            return self.begin(chosen);
        }
        let actor = &mut self.actors[chosen];
        if actor.left == 0 {
            let commits = self.random.percent(88);
            let text = if commits { "COMMIT" } else { "ROLLBACK" };
            return (Deed::End { commits }, text.to_string());
        }
        actor.left -= 1;
        let (writes, has_savepoint) = (actor.writes, actor.savepoint.is_some());
        match self.random.below(if writes { 100 } else { 45 }) {
            0..45 => self.read(writes),
            45..50 => (Deed::Savepoint, "SAVEPOINT s".to_string()),
            50..58 if has_savepoint => (Deed::BackToSavepoint, "ROLLBACK TO s".to_string()),
            _ => self.write(),
        }
    }

    /// BEGIN, or an autocommitted statement.
    fn begin(&mut self, chosen: usize) -> (Deed, String) {
        self.begun += 1;
        let isolation = self.level();
        let actor = &mut self.actors[chosen];
        actor.autocommit = self.random.percent(25);
        actor.left = 1 + self.random.below(4);
        actor.writes = self.random.percent(75);
        actor.savepoint = None;
        actor.observed = Some(Observed {
            steps: Vec::new(),
            end: End::Aborted,
            only_plain_reads: true,
            guards_reads: !self.plan.mixed || isolation == IsolationLevel::Serializable,
            began: self.now,
            ended: 0,
        });
        let (autocommit, writes) = (actor.autocommit, actor.writes);
        let (deed, text) = match (autocommit, writes) {
            (false, _) => (Deed::Begin, "BEGIN".to_string()),
            (true, true) => self.write(),
            (true, false) => self.read(false),
        };
        let level = match isolation {
            IsolationLevel::ReadCommitted => "READ COMMITTED",
            IsolationLevel::RepeatableRead => "REPEATABLE READ",
            IsolationLevel::Serializable => "SERIALIZABLE",
        };
        let text = format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}; {text}");
        (deed, text)
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

    fn key(&mut self) -> Key {
        Key::try_from(self.random.below(u64::from(KEYS))).unwrap()
    }

    fn read(&mut self, may_lock: bool) -> (Deed, String) {
        let (one, other) = (self.key(), self.key());
        let (from, to) = (one.min(other), one.max(other));
        let order = if self.random.percent(50) {
            "DESC"
        } else {
            "ASC"
        };
        let (keys, predicate, mut text): (Vec<Key>, bool, String) = match self.random.below(6) {
            0 => (
                vec![one],
                false,
                format!("SELECT k, v FROM list WHERE k = {one}"),
            ),
            1 => (
                vec![one],
                false,
                format!("SELECT k, v FROM list WHERE code = 1{one}"),
            ),
            2 => (
                (from..=to).collect(),
                true,
                format!("SELECT k, v FROM list WHERE k BETWEEN {from} AND {to} ORDER BY k {order}"),
            ),
            3 => (
                (from..=to).collect(),
                true,
                format!(
                    "SELECT k, v FROM list FORCE INDEX (by_code) \
                     WHERE code BETWEEN 1{from} AND 1{to} ORDER BY code {order}"
                ),
            ),
            4 => (
                (0..KEYS).collect(),
                true,
                "SELECT k, v FROM list WHERE v <> 'none'".to_string(),
            ),
            _ => (
                (from..=to).collect(),
                true,
                format!(
                    "SELECT list.k, v FROM every JOIN list ON list.k = every.k \
                     WHERE every.k BETWEEN {from} AND {to}"
                ),
            ),
        };
        let lock = self.random.below(8);
        let plain = !(may_lock && lock < 2);
        if !plain {
            text.push_str(if lock == 0 {
                " FOR UPDATE"
            } else {
                " FOR SHARE"
            });
        }
        let deed = Deed::Read {
            keys,
            predicate,
            plain,
        };
        (deed, text)
    }

    fn write(&mut self) -> (Deed, String) {
        let (key, element) = (self.key(), self.next_element);
        self.next_element += 1;
        let insert = format!("INSERT INTO list VALUES ({key}, 1{key}, '{element}')");
        let place = if self.random.percent(50) {
            format!("k = {key}")
        } else {
            format!("code = 1{key}")
        };
        match (self.plan.model, self.random.below(4)) {
            (Model::List, 0) => (
                Deed::Change(key, element, false),
                format!("UPDATE list SET v = CONCAT(v, ',{element}') WHERE {place}"),
            ),
            (Model::List, _) => (
                Deed::Write(key, element),
                format!("{insert} ON DUPLICATE KEY UPDATE v = CONCAT(v, ',{element}')"),
            ),
            (Model::Register, 0) => (
                Deed::Change(key, element, true),
                format!("DELETE FROM list WHERE {place}"),
            ),
            (Model::Register, 1) => (
                Deed::Change(key, element, false),
                format!("UPDATE list SET v = '{element}' WHERE {place}"),
            ),
            (Model::Register, _) => (
                Deed::Write(key, element),
                format!("REPLACE INTO list VALUES ({key}, 1{key}, '{element}')"),
            ),
        }
    }

    fn conclude(&mut self, chosen: usize, answer: SqlResult<Vec<Answer>>) {
        let deed = self.actors[chosen].deed.take().unwrap();
        let answers = match answer {
            Ok(answers) => answers,
            // Lost to others, or the planted full disk.
            Err(error) if error.code == 1213 || error.code == 1021 => {
                return self.end(chosen, End::Aborted);
            }
            Err(error) => panic!("{deed:?}: {} {error} in {:?}", error.code, self.plan),
        };
        self.note(chosen, &deed, &answers);
        match deed {
            Deed::End { commits: false } => self.end(chosen, End::Aborted),
            Deed::End { commits: true } => self.committed(chosen),
            Deed::Begin => {}
            _ if self.actors[chosen].autocommit => self.committed(chosen),
            _ => {}
        }
    }

    fn committed(&mut self, chosen: usize) {
        self.commits += 1;
        self.end(chosen, End::Committed(self.commits));
    }

    fn end(&mut self, chosen: usize, end: End) {
        let mut observed = self.actors[chosen].observed.take().unwrap();
        observed.end = end;
        observed.ended = self.now;
        self.history.push(observed);
    }

    /// Writes down what a statement saw and did.
    fn note(&mut self, chosen: usize, deed: &Deed, answers: &[Answer]) {
        let actor = &mut self.actors[chosen];
        let observed = actor.observed.as_mut().unwrap();
        let steps = &mut observed.steps;
        match deed {
            Deed::Read {
                keys,
                predicate,
                plain,
            } => {
                observed.only_plain_reads &= plain;
                steps.push(read(keys, *predicate, answers));
            }
            Deed::Write(key, element) => {
                observed.only_plain_reads = false;
                steps.push(Step::Write {
                    key: *key,
                    element: *element,
                    deletes: false,
                });
            }
            Deed::Change(key, element, deletes) => {
                observed.only_plain_reads = false;
                steps.push(if affected(answers) == 0 {
                    read(&[*key], false, &[])
                } else {
                    Step::Write {
                        key: *key,
                        element: *element,
                        deletes: *deletes,
                    }
                });
            }
            Deed::Savepoint => actor.savepoint = Some(steps.len()),
            Deed::BackToSavepoint => {
                let steps_before = actor.savepoint.unwrap();
                steps.push(Step::Undo {
                    steps: steps_before,
                });
            }
            Deed::Begin | Deed::End { .. } => {}
        }
    }

    fn read_everything(&mut self) {
        self.now += 1;
        self.stage.seed(0, 0, 0);
        let answers = self.stage.finish(0, "SELECT k, v FROM list").unwrap();
        let by_index = "SELECT k, v FROM list FORCE INDEX (by_code) WHERE code >= 0";
        assert_eq!(
            rows_of(&answers),
            self.stage.rows(0, by_index),
            "the index and the table differ in {:?}",
            self.plan
        );
        let keys: Vec<Key> = (0..KEYS).collect();
        self.history.push(Observed {
            steps: vec![read(&keys, true, &answers)],
            end: End::Committed(u64::MAX),
            only_plain_reads: true,
            guards_reads: true,
            began: self.now,
            ended: self.now,
        });
    }
}

fn is_open(actor: &Actor) -> bool {
    actor.observed.is_some()
}

/// What a query for `keys` answered, absent rows included.
fn read(keys: &[Key], predicate: bool, answers: &[Answer]) -> Step {
    let found = rows_of(answers);
    let value = |key: &Key| -> Value {
        let row = found.iter().find(|row| row[0] == key.to_string());
        row.map_or_else(Value::new, |row| {
            let elements = row[1].split(',');
            elements.map(|element| element.parse().unwrap()).collect()
        })
    };
    Step::Read {
        rows: keys.iter().map(|key| (*key, value(key))).collect(),
        predicate,
    }
}
