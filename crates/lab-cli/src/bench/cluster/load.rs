//! Who asks when, and what is kept of the answers.
//!
//! Phases of a run, each when the one before has its answers: read the rows (only when checked);
//! load, for the time asked for; read the rows again.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};

use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_dast::{Answer, Ask, DastNode, Level};
use manxdb_net::{Driver, Outside};
use manxdb_txn::procedure::ShardId;
use manxdb_workloads::append::{self, Form, Kind, List, Operation};
use manxdb_workloads::{Calls, Partition, tpca};

/// What a run's rows are judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survey {
    /// So many lists of each shard.
    Lists(u32),
    /// The sums of TPC-A's tables.
    Totals,
}

/// How long a run is.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Before measuring.
    pub warm_up: Nanos,
    /// Measured.
    pub measured: Nanos,
    /// For the last answers.
    pub patience: Nanos,
    /// What is read before and after, to judge what lies between.
    pub survey: Option<Survey>,
    /// How many shards.
    pub shards: u32,
}

/// A client.
#[derive(Debug, Clone)]
pub struct Client {
    /// Its node.
    pub node: NodeId,
    /// Its shard.
    pub home: ShardId,
}

impl Client {
    /// A client that has not asked.
    pub fn new(node: NodeId, home: ShardId) -> Self {
        Self { node, home }
    }
}

/// What a call is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Rows before the load.
    Before,
    /// The load.
    Load,
    /// Rows after it.
    After,
}

/// A call that was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// By whom: a place in the list of clients.
    pub client: usize,
    /// What for.
    pub purpose: Purpose,
    /// Its arguments.
    pub args: Vec<u8>,
    /// Whether it stays in its region.
    pub is_local: bool,
    /// When.
    pub asked: Nanos,
    /// When it was answered, and what.
    pub answered: Option<(Nanos, Answer)>,
}

/// Some ticks of the channels: by then answers are acknowledged.
const LINGER: Nanos = Nanos::from_millis(100);

/// What the driver is woken for.
mod wakes {
    pub const LOAD_ENDS: u64 = 1;
    pub const PROGRESS: u64 = 2;
    pub const END: u64 = 3;
    /// The patience of this phase is over: this plus the phase's number.
    pub const GIVE_UP: u64 = 10;
}

/// The workload of a run.
pub struct Load {
    calls: Calls,
    clients: Vec<Client>,
    plan: Plan,
    phase: Purpose,
    /// When the load began, and when it is over.
    span: Option<(Nanos, Nanos)>,
    /// No more calls are made.
    is_over: bool,
    is_done: bool,
    open: BTreeMap<RequestId, usize>,
    made: Vec<Made>,
}

impl Load {
    /// Clients that ask what `calls` say.
    pub fn new(calls: Calls, clients: Vec<Client>, plan: Plan) -> Self {
        Self {
            calls,
            clients,
            plan,
            phase: Purpose::Before,
            span: None,
            is_over: false,
            is_done: false,
            open: BTreeMap::new(),
            made: Vec::new(),
        }
    }

    /// All calls, in the order in which they were made.
    pub fn made(&self) -> &[Made] {
        &self.made
    }

    /// What was read before and after.
    pub fn survey(&self) -> Option<Survey> {
        self.plan.survey
    }

    /// Calls without an answer.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Whether every phase was reached.
    pub fn is_whole(&self) -> bool {
        self.is_done && (self.plan.survey.is_none() || self.phase == Purpose::After)
    }

    /// From when to when it is measured.
    pub fn measured(&self) -> Option<(Nanos, Nanos)> {
        let (began, until) = self.span?;
        Some((began + self.plan.warm_up, until))
    }

    fn ask(&mut self, outside: &mut Outside<DastNode>, client: usize, ask: Ask, is_local: bool) {
        let Some(node) = self.clients.get(client).map(|client| client.node) else {
            return;
        };
        let args = ask.args.clone();
        let id = outside.request(node, ask);
        self.open.insert(id, self.made.len());
        self.made.push(Made {
            client,
            purpose: self.phase,
            args,
            is_local,
            asked: outside.now(),
            answered: None,
        });
    }

    fn ask_next(&mut self, outside: &mut Outside<DastNode>, place: usize) {
        let Some(Client { node, home }) = self.clients.get(place).cloned() else {
            return;
        };
        // The number makes what clients write different from that of every other run.
        let date = outside.now().0.max(1);
        let request = self.calls.next(place, node.0, home, date);
        let ask = Ask {
            procedure: request.procedure.into(),
            args: request.args,
            level: Level::Serializable,
            home,
        };
        self.ask(outside, place, ask, request.reach.is_local());
    }

    /// Asks for the rows that are to be judged.
    fn ask_survey(&mut self, outside: &mut Outside<DastNode>, survey: Survey) {
        match survey {
            Survey::Lists(lists) => self.ask_lists(outside, lists),
            Survey::Totals => {
                let home = self
                    .clients
                    .first()
                    .map_or(ShardId(0), |client| client.home);
                let args = tpca::encode_totals(self.plan.shards);
                self.ask(outside, 0, read(tpca::TOTALS, args, home), false);
            }
        }
        self.give_up_later(outside);
    }

    /// Asks for all lists: each shard's first client does.
    fn ask_lists(&mut self, outside: &mut Outside<DastNode>, lists: u32) {
        for shard in (0..self.plan.shards).map(ShardId) {
            // Shards with no client near them have one further away.
            let near = self.clients.iter().position(|client| client.home == shard);
            let ask = read(append::NAME, read_lists(shard, lists), shard);
            self.ask(outside, near.unwrap_or(0), ask, true);
        }
    }

    fn give_up_later(&self, outside: &mut Outside<DastNode>) {
        let key = wakes::GIVE_UP + self.phase as u64;
        outside.wake_after(self.plan.patience, key);
    }

    fn begin_load(&mut self, outside: &mut Outside<DastNode>) {
        self.phase = Purpose::Load;
        let span = self.plan.warm_up + self.plan.measured;
        self.span = Some((outside.now(), outside.now() + span));
        outside.wake_after(span, wakes::LOAD_ENDS);
        if std::io::stderr().is_terminal() {
            outside.wake_after(Nanos::from_secs(1), wakes::PROGRESS);
        }
        for place in 0..self.clients.len() {
            self.ask_next(outside, place);
        }
    }

    /// Goes on to the next phase once this one has its answers.
    fn advance(&mut self, outside: &mut Outside<DastNode>) {
        if !self.open.is_empty() || self.is_done {
            return;
        }
        match self.phase {
            Purpose::Before => self.begin_load(outside),
            Purpose::Load if !self.is_over => {}
            Purpose::Load => match self.plan.survey {
                Some(survey) => {
                    self.phase = Purpose::After;
                    self.ask_survey(outside, survey);
                }
                None => Self::end_soon(outside),
            },
            Purpose::After => Self::end_soon(outside),
        }
    }

    /// Ends once the last answers are acknowledged, so that nobody sends them again for ever.
    fn end_soon(outside: &mut Outside<DastNode>) {
        outside.wake_after(LINGER, wakes::END);
    }

    fn print_progress(&self, outside: &mut Outside<DastNode>) {
        let Some((began, until)) = self.span.filter(|_| !self.is_over) else {
            return;
        };
        let passed = outside.now().saturating_sub(began).as_millis_f64() / 1e3;
        let left = until.saturating_sub(outside.now()).as_millis_f64() / 1e3;
        eprint!(
            "\r{passed:.0} s, {left:.0} s left, {} calls, {} open   ",
            self.made.len() - self.open.len(),
            self.open.len()
        );
        let _ = std::io::stderr().flush();
        outside.wake_after(Nanos::from_secs(1), wakes::PROGRESS);
    }
}

/// A call that reads what there is at its time.
fn read(procedure: &str, args: Vec<u8>, home: ShardId) -> Ask {
    Ask {
        procedure: procedure.into(),
        args,
        level: Level::Strict,
        home,
    }
}

/// The arguments of a call that reads all lists of a shard.
fn read_lists(shard: ShardId, lists: u32) -> Vec<u8> {
    let read = |row| Operation {
        list: List {
            partition: Partition(shard.0),
            row,
        },
        kind: Kind::Read,
    };
    let operations: Vec<Operation> = (0..lists).map(read).collect();
    append::encode(Form::Together, &operations)
}

impl Driver<DastNode> for Load {
    fn begin(&mut self, outside: &mut Outside<DastNode>) {
        match self.plan.survey {
            Some(survey) => self.ask_survey(outside, survey),
            None => self.begin_load(outside),
        }
    }

    fn reply(&mut self, outside: &mut Outside<DastNode>, _: NodeId, id: RequestId, body: Answer) {
        let Some(place) = self.open.remove(&id) else {
            return;
        };
        self.made[place].answered = Some((outside.now(), body));
        let client = self.made[place].client;
        if self.phase == Purpose::Load && !self.is_over {
            self.ask_next(outside, client);
        }
        self.advance(outside);
    }

    fn wake(&mut self, outside: &mut Outside<DastNode>, key: u64) {
        match key {
            wakes::LOAD_ENDS => {
                self.is_over = true;
                if std::io::stderr().is_terminal() {
                    eprint!("\r\x1b[K");
                }
                self.give_up_later(outside);
                self.advance(outside);
            }
            wakes::PROGRESS => self.print_progress(outside),
            wakes::END => self.is_done = true,
            key if key == wakes::GIVE_UP + self.phase as u64 => self.is_done = true,
            _ => {}
        }
    }

    fn done(&self) -> bool {
        self.is_done
    }
}
