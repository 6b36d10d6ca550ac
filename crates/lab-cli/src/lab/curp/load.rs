//! Who asks: closed loops beside a CURP client in one process, without a thread between them.

use std::collections::{BTreeMap, VecDeque};

use manxdb_core::{Nanos, NodeId, Random, RequestId};
use manxdb_curp::{ClientAnswer, CurpNode};
use manxdb_curp_client::calls::SHOW_EVERY;
use manxdb_curp_client::{Calls, ClientCounts};
use manxdb_curp_redis::{RedisMachine, ReplicatedCommand};
use manxdb_net::{Driver, Outside};
use manxdb_redis::Command;
use manxdb_redis::resp::Protocol;
use manxdb_workloads::Zipf;

use super::trial::{Load, Spread, Trial, Ways};
use crate::bench::histogram::Histogram;

/// Bytes of a value.
pub const VALUE_BYTES: usize = 100;
/// How many commands before one make its key a recent one.
const RECENT: usize = 100;

/// Commands to draw from.
pub struct Source {
    load: Load,
    random: Random,
    keys: Option<Zipf>,
    count: u64,
    value: String,
    /// Keys of the last commands, and how often each is among them.
    last: VecDeque<u64>,
    among_last: BTreeMap<u64, u32>,
}

impl Source {
    /// Of one load of a trial.
    pub fn new(trial: &Trial, load: Load) -> Self {
        let zipf = || Zipf::new(trial.keys, f64::from(trial.theta) / 100.0, 1);
        Self {
            load,
            random: Random::stream(trial.seed, &[load as u64]),
            keys: (load != Load::Set).then(zipf),
            count: trial.keys.into(),
            value: "x".repeat(VALUE_BYTES),
            last: VecDeque::new(),
            among_last: BTreeMap::new(),
        }
    }

    /// The next command; whether it changes something, and whether its key was used shortly before.
    fn draw(&mut self) -> (Vec<u8>, bool, bool) {
        let key = match &self.keys {
            Some(zipf) => zipf.draw(0, &mut self.random).into(),
            None => self.random.below(self.count),
        };
        let is_recent = self.among_last.contains_key(&key);
        self.remember(key);
        let is_update = self.random.unit() >= self.load.reads();
        let name = format!("key:{key:012}");
        let command = if is_update {
            Command::of(&["SET", &name, &self.value])
        } else {
            Command::of(&["GET", &name])
        };
        let replicated = ReplicatedCommand {
            db: 0,
            protocol: Protocol::Resp2,
            is_transaction: false,
            commands: vec![command],
        };
        (replicated.encode(), is_update, is_recent)
    }

    fn remember(&mut self, key: u64) {
        self.last.push_back(key);
        *self.among_last.entry(key).or_default() += 1;
        if self.last.len() <= RECENT {
            return;
        }
        if let Some(oldest) = self.last.pop_front()
            && let Some(count) = self.among_last.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.among_last.remove(&oldest);
            }
        }
    }
}

/// A command under way.
struct Asked {
    at: Nanos,
    is_update: bool,
}

/// What was measured of a load.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    /// How long all answers took together.
    pub seconds: f64,
    /// All commands.
    pub all: Spread,
    /// Those that change something.
    pub updates: Spread,
    /// How they were completed.
    pub ways: Ways,
    /// Commands on a recent key.
    pub recent: u64,
    /// Answers that were errors.
    pub errors: u64,
}

/// Clients that are not answered for so long never are.
const PATIENCE: Nanos = Nanos::from_secs(30);

/// What is looked at when what is measured begins.
pub type Look<'a, L> = Box<dyn FnOnce() -> L + 'a>;

/// Asks, so many commands at a time, until all are answered: first those that only warm up, then, when all of
/// them are answered, those that are measured.
pub struct Loops<'a, L> {
    calls: Calls<Asked>,
    source: Source,
    clients: u32,
    to_ask: u32,
    /// Commands behind those that warm up.
    measured: u32,
    look: Option<Look<'a, L>>,
    looked: Option<L>,
    before: ClientCounts,
    began: Nanos,
    ended: Nanos,
    /// When something was last answered.
    last: Nanos,
    /// Nobody answers any more.
    is_stuck: bool,
    all: Histogram,
    updates: Histogram,
    recent: u64,
    errors: u64,
}

impl<'a, L> Loops<'a, L> {
    /// So many commands of a source, for the CURP client `node`, behind some that warm up.
    pub fn new(
        node: NodeId,
        source: Source,
        clients: u32,
        (warm_up, measured): (u32, u32),
        look: Look<'a, L>,
    ) -> Self {
        assert!(clients > 0 && warm_up > 0, "somebody asks");
        Self {
            calls: Calls::new(node),
            source,
            clients,
            to_ask: warm_up,
            measured,
            look: Some(look),
            looked: None,
            before: ClientCounts::default(),
            began: Nanos::ZERO,
            ended: Nanos::ZERO,
            last: Nanos::ZERO,
            is_stuck: false,
            all: Histogram::default(),
            updates: Histogram::default(),
            recent: 0,
            errors: 0,
        }
    }

    fn ask(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>) {
        if self.to_ask == 0 {
            return;
        }
        self.to_ask -= 1;
        let (command, is_update, is_recent) = self.source.draw();
        let is_measured = self.looked.is_some();
        self.recent += u64::from(is_recent && is_measured);
        let asked = Asked {
            at: outside.now(),
            is_update,
        };
        self.calls.ask(asked, command, outside);
    }

    /// All that warmed up is answered.
    fn begin_measuring(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>) {
        let Some(look) = self.look.take() else {
            return;
        };
        self.before = self.calls.meter().counts();
        self.looked = Some(look());
        self.to_ask = self.measured;
        for client in 0..self.clients {
            self.ask(outside);
            if client == 0 {
                self.began = outside.now();
            }
        }
    }

    /// What came of it.
    pub fn seen(&self) -> Seen {
        let (now, before) = (self.calls.meter().counts(), self.before);
        Seen {
            seconds: seconds(self.ended.saturating_sub(self.began)),
            all: spread(&self.all),
            updates: spread(&self.updates),
            ways: Ways {
                fast: now.fast - before.fast,
                reads: now.reads - before.reads,
                conflicts: now.conflicts - before.conflicts,
                synced: now.synced - before.synced,
                unknown: now.unknown - before.unknown,
                retries: now.retries - before.retries,
            },
            recent: self.recent,
            errors: self.errors,
        }
    }

    /// Whether it gave up, as nobody answered.
    pub fn is_stuck(&self) -> bool {
        self.is_stuck
    }

    /// What was looked at when what is measured began.
    pub fn into_looked(self) -> Option<L> {
        self.looked
    }
}

#[allow(clippy::cast_precision_loss)] // far below 2^53
fn seconds(nanos: Nanos) -> f64 {
    nanos.0 as f64 / 1e9
}

/// Of latencies in nanoseconds, in microseconds.
#[allow(clippy::cast_precision_loss)] // far below 2^53
pub fn spread(nanos: &Histogram) -> Spread {
    let micros = |share| nanos.quantile(share) as f64 / 1e3;
    Spread {
        count: nanos.count(),
        mean: nanos.mean() / 1e3,
        p50: micros(0.5),
        p99: micros(0.99),
        p999: micros(0.999),
    }
}

impl<L> Driver<CurpNode<RedisMachine>> for Loops<'_, L> {
    fn begin(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>) {
        outside.wake_after(SHOW_EVERY, 0);
        for _ in 0..self.clients {
            self.ask(outside);
        }
    }

    fn reply(
        &mut self,
        outside: &mut Outside<CurpNode<RedisMachine>>,
        _: NodeId,
        id: RequestId,
        body: ClientAnswer,
    ) {
        let Some(asked) = self.calls.answered(id, &body) else {
            return;
        };
        let (now, answer) = (outside.now(), body.answer);
        let is_error = answer.is_none_or(|(answer, _)| answer.starts_with(b"-"));
        self.errors += u64::from(is_error);
        self.last = now;
        if self.looked.is_some() {
            self.ended = now;
            let took = now.saturating_sub(asked.at).0;
            self.all.add(took);
            if asked.is_update {
                self.updates.add(took);
            }
        }
        self.ask(outside);
        if self.to_ask == 0 && self.calls.is_empty() {
            self.begin_measuring(outside);
        }
    }

    fn wake(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>, _: u64) {
        self.calls
            .show(ReplicatedCommand::nothing().encode(), outside);
        outside.wake_after(SHOW_EVERY, 0);
        self.is_stuck |= outside.now().saturating_sub(self.last) > PATIENCE;
    }

    fn done(&self) -> bool {
        self.is_stuck || self.looked.is_some() && self.to_ask == 0 && self.calls.is_empty()
    }
}
