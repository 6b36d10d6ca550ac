//! Sessions that take turns. Each has a thread of its own, because a statement waits in the
//! middle of its work, but only the one that has the turn runs: from its order until it answers,
//! parks (a lock, a pause before a retry), or comes to read the store and the seed says that
//! others go first. So the same seed gives the same run, whatever the machine does.
#![allow(
    clippy::disallowed_methods,
    reason = "threads carry stacks here; they never run at the same time"
)]

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use manxdb_sql::error::{SqlError, SqlResult};
use manxdb_sql::session::Host;
use manxdb_storage::{
    Appended, Cursor, Direction, Engine, KeyRange, MemoryEngine, StorageError, Version, Versioned,
    WriteBatch,
};
use manxdb_txn::mutants::Mutants;
use manxdb_txn::{LocalOptions, LocalPath};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::isolation::defects::{Defect, DefectivePath};
use manxdb_fixtures::history::Random;
use manxdb_fixtures::sql::{Answer, Client, START_MICROS, connect, instance_of};

/// A park that ends by itself this soon is a pause, not a wait for another.
const PAUSE_MICROS: i64 = 5_000;

/// Only a defect of this file, or a session that blocks for real, takes this long.
const HUNG: Duration = Duration::from_secs(120);

/// How far an order got in its turn.
#[derive(Debug)]
pub enum Progress {
    /// It goes on at its next turn.
    Paused,
    /// It waits until another session does something.
    Waits,
    Answered(SqlResult<Vec<Answer>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Director,
    Actor(usize),
}

struct State {
    turn: Turn,
    elapsed_micros: i64,
    woken: BTreeSet<u64>,
    actors: Vec<Actor>,
    random: Random,
    /// How often a read of the store lets others go first.
    pause_percent: u64,
    /// How often a write of the store finds the disk full.
    full_percent: u64,
}

#[derive(Default)]
struct Actor {
    order: Option<String>,
    busy: bool,
    answer: Option<SqlResult<Vec<Answer>>>,
    /// The session and the moment its park ends.
    parked: Option<(u64, i64)>,
}

thread_local! {
    static IS_UNDISTURBED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Runs `work` without passing the turn.
pub fn undisturbed(work: impl FnOnce()) {
    IS_UNDISTURBED.set(true);
    work();
    IS_UNDISTURBED.set(false);
}

/// Passes the turn; the host and the engine of the instance on stage.
struct Baton {
    state: Mutex<State>,
    passed: Condvar,
    engine: MemoryEngine,
}

impl Baton {
    fn await_turn(&self, state: &mut MutexGuard<'_, State>, turn: Turn) {
        while state.turn != turn {
            let late = self.passed.wait_for(state, HUNG).timed_out();
            assert!(!late || turn != Turn::Director, "a session blocks");
        }
    }

    fn pass(&self, state: &mut MutexGuard<'_, State>, turn: Turn) {
        state.turn = turn;
        self.passed.notify_all();
    }

    /// Lets the director choose who goes on.
    fn yield_turn(&self, state: &mut MutexGuard<'_, State>, actor: usize) {
        self.pass(state, Turn::Director);
        self.await_turn(state, Turn::Actor(actor));
    }

    fn pause(&self) {
        if IS_UNDISTURBED.get() {
            return;
        }
        let mut state = self.state.lock();
        let Turn::Actor(actor) = state.turn else {
            return;
        };
        let percent = state.pause_percent;
        if state.random.percent(percent) {
            self.yield_turn(&mut state, actor);
        }
    }

    fn perform(&self, actor: usize, mut client: Client) {
        loop {
            let order = {
                let mut state = self.state.lock();
                self.await_turn(&mut state, Turn::Actor(actor));
                state.actors[actor].order.take()
            };
            let Some(order) = order else { break };
            let answer = catch_unwind(AssertUnwindSafe(|| client.try_run(&order)))
                .unwrap_or_else(|_| Err(SqlError::internal("the session panicked")));
            let mut state = self.state.lock();
            state.actors[actor].answer = Some(answer);
            self.pass(&mut state, Turn::Director);
        }
        drop(client);
        self.pass(&mut self.state.lock(), Turn::Director);
    }
}

impl Host for Baton {
    fn wall_micros(&self) -> i64 {
        START_MICROS + self.monotonic_micros()
    }

    fn monotonic_micros(&self) -> i64 {
        self.state.lock().elapsed_micros
    }

    fn random(&self) -> u64 {
        7
    }

    fn park(&self, session: u64, micros: u64) {
        let mut state = self.state.lock();
        if state.woken.remove(&session) {
            return;
        }
        let end = state.elapsed_micros + i64::try_from(micros).unwrap();
        let Turn::Actor(actor) = state.turn else {
            state.elapsed_micros = end;
            return;
        };
        state.actors[actor].parked = Some((session, end));
        self.yield_turn(&mut state, actor);
        state.actors[actor].parked = None;
        state.woken.remove(&session);
    }

    fn wake(&self, session: u64) {
        self.state.lock().woken.insert(session);
    }

    fn system_time_zone(&self) -> String {
        "UTC".to_string()
    }
}

impl Engine for Baton {
    fn get(&self, key: &[u8], at: Version) -> Result<Option<Versioned>, StorageError> {
        self.pause();
        self.engine.get(key, at)
    }

    fn scan<'a>(
        &'a self,
        range: &KeyRange,
        at: Version,
        direction: Direction,
    ) -> Result<Box<dyn Cursor + 'a>, StorageError> {
        self.pause();
        self.engine.scan(range, at, direction)
    }

    // No pause: the order of commits is the order in which they answer.
    fn append(&self, batch: &WriteBatch) -> Result<Appended, StorageError> {
        let mut state = self.state.lock();
        let percent = state.full_percent;
        if state.turn != Turn::Director && state.random.percent(percent) {
            return Err(StorageError::Full("planted".into()));
        }
        self.engine.append(batch)
    }

    fn sync(&self, appended: &Appended) -> Result<(), StorageError> {
        self.engine.sync(appended)
    }

    fn latest(&self) -> Result<Version, StorageError> {
        self.engine.latest()
    }

    fn set_watermark(&self, watermark: Version) {
        self.engine.set_watermark(watermark);
    }

    fn checkpoint(&self, directory: &std::path::Path) -> Result<(), StorageError> {
        self.engine.checkpoint(directory)
    }
}

/// An instance with sessions on it.
pub struct Stage {
    path: Arc<LocalPath>,
    pub instance: Arc<manxdb_sql::session::Instance>,
    baton: Arc<Baton>,
    threads: Vec<JoinHandle<()>>,
}

impl Stage {
    /// `actors` sessions in the database `d`, made by running `schema`.
    pub fn new(actors: usize, schema: &str) -> Self {
        Self::with_defects(actors, schema, Mutants::default(), Defect::default())
    }

    pub fn with_defects(actors: usize, schema: &str, mutants: Mutants, defect: Defect) -> Self {
        let baton = Arc::new(Baton {
            state: Mutex::new(State {
                turn: Turn::Director,
                elapsed_micros: 0,
                woken: BTreeSet::new(),
                actors: (0..actors).map(|_| Actor::default()).collect(),
                random: Random::new(0),
                pause_percent: 0,
                full_percent: 0,
            }),
            passed: Condvar::new(),
            engine: MemoryEngine::new(),
        });
        let engine: Arc<dyn Engine> = baton.clone();
        let path = Arc::new(LocalPath::open(engine, LocalOptions::default()).unwrap());
        let defective = Arc::new(DefectivePath::new(Arc::clone(&path), defect));
        let instance = instance_of(defective, baton.clone());
        connect(&instance, "root").run(&format!("CREATE DATABASE d; USE d; {schema}"));
        path.plant(mutants);
        let threads = (0..actors)
            .map(|actor| {
                let mut client = connect(&instance, "root");
                client.run("USE d");
                let baton = Arc::clone(&baton);
                std::thread::spawn(move || baton.perform(actor, client))
            })
            .collect();
        Self {
            path,
            instance,
            baton,
            threads,
        }
    }

    /// What chance decides from now on.
    pub fn seed(&self, seed: u64, pause_percent: u64, full_percent: u64) {
        let mut state = self.baton.state.lock();
        state.random = Random::new(seed);
        state.pause_percent = pause_percent;
        state.full_percent = full_percent;
    }

    /// Gives a session that has nothing to do a statement; it starts at its next turn.
    pub fn order(&self, actor: usize, text: &str) {
        let mut state = self.baton.state.lock();
        let actor = &mut state.actors[actor];
        assert!(!actor.busy, "one statement at a time");
        actor.order = Some(text.to_string());
        actor.busy = true;
    }

    /// Whether a session that has an order could go on, as far as others are concerned.
    pub fn can_go_on(&self, actor: usize) -> bool {
        let state = self.baton.state.lock();
        state.actors[actor].parked.is_none_or(|(session, end)| {
            state.woken.contains(&session) || end - state.elapsed_micros <= PAUSE_MICROS
        })
    }

    /// A turn of a session that has an order.
    pub fn turn(&self, actor: usize) -> Progress {
        let baton = &self.baton;
        let mut state = baton.state.lock();
        assert!(state.actors[actor].busy, "a turn needs an order");
        if let Some((session, end)) = state.actors[actor].parked
            && !state.woken.contains(&session)
        {
            state.elapsed_micros = state.elapsed_micros.max(end);
        }
        baton.pass(&mut state, Turn::Actor(actor));
        baton.await_turn(&mut state, Turn::Director);
        if let Some(answer) = state.actors[actor].answer.take() {
            state.actors[actor].busy = false;
            return Progress::Answered(answer);
        }
        let waits = state.actors[actor]
            .parked
            .is_some_and(|(_, end)| end - state.elapsed_micros > PAUSE_MICROS);
        if waits {
            Progress::Waits
        } else {
            Progress::Paused
        }
    }

    /// Runs a statement until it answers or waits; `None`: it waits.
    pub fn start(&self, actor: usize, text: &str) -> Option<SqlResult<Vec<Answer>>> {
        self.order(actor, text);
        self.resume(actor)
    }

    /// Goes on with a statement that waited.
    pub fn resume(&self, actor: usize) -> Option<SqlResult<Vec<Answer>>> {
        while self.can_go_on(actor) {
            match self.turn(actor) {
                Progress::Paused => {}
                Progress::Waits => return None,
                Progress::Answered(answer) => return Some(answer),
            }
        }
        None
    }

    /// Runs a statement to its end in one go; it must not wait.
    pub fn finish(&self, actor: usize, text: &str) -> SqlResult<Vec<Answer>> {
        self.start(actor, text)
            .unwrap_or_else(|| panic!("{text} waits"))
    }

    /// The rows of a query that must succeed without waiting, as text.
    pub fn rows(&self, actor: usize, text: &str) -> Vec<Vec<String>> {
        let answer = self.finish(actor, text);
        rows_of(&answer.unwrap_or_else(|error| panic!("{text}: {} {error}", error.code)))
    }

    /// Row locks anybody holds or waits for.
    pub fn locks_held(&self) -> usize {
        self.path.statistics().locks
    }
}

/// Rows of the last result.
pub fn rows_of(answers: &[Answer]) -> Vec<Vec<String>> {
    let Some(Answer::Rows(_, rows)) = answers.last() else {
        return Vec::new();
    };
    let text = |value: &Option<String>| value.clone().unwrap_or("NULL".into());
    rows.iter()
        .map(|row| row.iter().map(text).collect())
        .collect()
}

/// Rows changed by the last result.
pub fn affected(answers: &[Answer]) -> u64 {
    match answers.last() {
        Some(Answer::Done(outcome, _)) => outcome.affected_rows,
        _ => 0,
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // Sessions in the middle of a statement stay where they are.
            return;
        }
        for (actor, thread) in self.threads.drain(..).enumerate() {
            let mut state = self.baton.state.lock();
            assert!(!state.actors[actor].busy, "a statement was left running");
            self.baton.pass(&mut state, Turn::Actor(actor));
            self.baton.await_turn(&mut state, Turn::Director);
            drop(state);
            thread.join().unwrap();
        }
    }
}
