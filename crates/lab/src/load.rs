//! Closed loops of clients, and what is kept of the answers.

use std::collections::BTreeMap;

use manxdb_common::{Answer, Ask};
use manxdb_core::{Core, Nanos, NodeId, Random, RequestId};

use manxdb_sim::explain::{Part, explain};
use manxdb_sim::{Driver, Outside, SimTime, System};
use manxdb_txn::procedure::ShardId;

use crate::why::Why;

/// One call to make.
#[derive(Debug, Clone)]
pub struct Job {
    /// What to ask.
    pub ask: Ask,
    /// Whether it touches several regions.
    pub crosses_regions: bool,
}

/// A call that was made.
#[derive(Debug, Clone)]
pub struct Made {
    /// By which client.
    pub client: NodeId,
    /// What was asked.
    pub job: Job,
    /// When.
    pub asked: SimTime,
    /// When it was answered, and what; none: never.
    pub answered: Option<(SimTime, Answer)>,
    /// What the time went into, if steps are kept.
    pub why: Why,
}

impl Made {
    /// How long the client waited.
    #[must_use]
    pub fn latency(&self) -> Option<Nanos> {
        let (at, _) = self.answered.as_ref()?;
        Some(at.since(self.asked))
    }
}

/// What clients ask: the next call of a client of a home shard.
pub trait Generator {
    /// The next call; none: this client asks nothing more.
    fn next(&mut self, client: u32, home: ShardId, random: &mut Random) -> Option<Job>;
}

/// Who asks, and for how long.
#[derive(Debug, Clone)]
pub struct LoadOptions {
    /// Each client and its home shard.
    pub clients: Vec<(NodeId, ShardId)>,
    /// Calls a client has under way at a time.
    pub outstanding: u32,
    /// No call is made after this.
    pub until: SimTime,
    /// Whether answered calls are explained, of a world that keeps steps; what is left of their
    /// steps is dropped.
    pub explain: bool,
}

/// The workload of a run.
pub struct Load<G> {
    generator: G,
    options: LoadOptions,
    open: BTreeMap<RequestId, usize>,
    made: Vec<Made>,
    /// The call whose parts are kept one by one.
    wanted: Option<u64>,
    parts: Vec<Part>,
}

impl<G: Generator> Load<G> {
    /// A workload that asks what `generator` says.
    pub fn new(generator: G, options: LoadOptions) -> Self {
        Self {
            generator,
            options,
            open: BTreeMap::new(),
            made: Vec::new(),
            wanted: None,
            parts: Vec::new(),
        }
    }

    /// Keeps the parts of one call's latency one by one, if calls are explained.
    pub fn keep_parts_of(&mut self, txn: u64) {
        self.wanted = Some(txn);
    }

    /// Those parts, once the call is answered.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// All calls made, in the order in which they were made.
    pub fn made(&self) -> &[Made] {
        &self.made
    }

    /// The same, given up.
    pub fn into_made(self) -> Vec<Made> {
        self.made
    }

    /// Each client and its home shard.
    pub fn clients(&self) -> &[(NodeId, ShardId)] {
        &self.options.clients
    }

    /// Calls that are not answered.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Calls that may be under way at a time.
    pub fn calls_at_a_time(&self) -> usize {
        self.options.clients.len() * self.options.outstanding as usize
    }

    fn ask<S>(&mut self, outside: &mut Outside<'_, S>, place: usize)
    where
        S: System,
        S::Core: Core<Request = Ask, Reply = Answer>,
    {
        if outside.now() >= self.options.until {
            return;
        }
        let Some((client, home)) = self.options.clients.get(place).copied() else {
            return;
        };
        let number = u32::try_from(place).unwrap_or(u32::MAX);
        let Some(job) = self.generator.next(number, home, outside.random()) else {
            return;
        };
        let id = outside.request(client, job.ask.clone());
        self.open.insert(id, self.made.len());
        self.made.push(Made {
            client,
            job,
            asked: outside.now(),
            answered: None,
            why: Why::default(),
        });
    }

    /// Latencies of answered calls of a kind that were asked in `from..until`, ascending.
    pub fn latencies(&self, crosses_regions: bool, from: SimTime, until: SimTime) -> Vec<Nanos> {
        let kind = self
            .made
            .iter()
            .filter(|made| made.job.crosses_regions == crosses_regions);
        let span = kind.filter(|made| made.asked >= from && made.asked < until);
        let mut latencies: Vec<Nanos> = span.filter_map(Made::latency).collect();
        latencies.sort_unstable();
        latencies
    }
}

/// The value below which `percent` of the sorted `values` lie.
#[must_use]
pub fn percentile(values: &[Nanos], percent: usize) -> Nanos {
    let place = (values.len() * percent).div_ceil(100).saturating_sub(1);
    values.get(place).copied().unwrap_or(Nanos::ZERO)
}

impl<G, S> Driver<S> for Load<G>
where
    G: Generator,
    S: System,
    S::Core: Core<Request = Ask, Reply = Answer>,
{
    fn begin(&mut self, outside: &mut Outside<'_, S>) {
        for place in 0..self.options.clients.len() {
            for _ in 0..self.options.outstanding {
                self.ask(outside, place);
            }
        }
    }

    fn reply(&mut self, outside: &mut Outside<'_, S>, node: NodeId, id: RequestId, body: Answer) {
        let now = outside.now();
        let asked = self.open.remove(&id);
        if let Some(made) = asked.and_then(|place| self.made.get_mut(place)) {
            if self.options.explain {
                let txn = body.id.for_traces();
                let steps = outside.take_steps(txn);
                if self.wanted == Some(txn) {
                    self.parts = explain(made.asked, now, &steps);
                }
                made.why = Why::of(made.asked, now, &steps);
            }
            made.answered = Some((now, body));
        }
        let place = self
            .options
            .clients
            .iter()
            .position(|(client, _)| *client == node);
        if let Some(place) = place {
            self.ask(outside, place);
        }
    }

    fn done(&self) -> bool {
        false
    }
}
