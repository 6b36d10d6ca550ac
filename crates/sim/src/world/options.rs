//! What a run is made of.

use manxdb_core::{Nanos, Random};

use crate::clock::Clock;
use crate::cost::CostModel;
use crate::network::Transport;
use crate::topology::{Link, Topology};
use crate::trace::Record;

/// How wrong clocks are when the run begins: evenly spread up to these bounds, either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockOptions {
    /// The largest offset.
    pub offset_max: Nanos,
    /// The largest drift, in millionths.
    pub drift_max_ppm: u32,
}

impl ClockOptions {
    pub(crate) fn draw(&self, random: &mut Random) -> Clock {
        let mut either_way = |max: u64| {
            let drawn = random.below(max.saturating_mul(2).saturating_add(1));
            drawn.cast_signed() - max.cast_signed()
        };
        Clock::new(
            either_way(self.offset_max.0.min(1 << 60)),
            either_way(u64::from(self.drift_max_ppm)),
        )
    }
}

/// What a process that stood still meets first when it goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AfterPause {
    /// Timers that are due and what arrived, in the order in which they came.
    #[default]
    ByTime,
    /// All timers that are due, as with a driver that looks at timers first.
    DueTimers,
    /// All that arrived, as with a driver that looks at its sockets first.
    Arrivals,
}

/// Everything about a run but its system, its workload and its faults.
#[derive(Debug, Clone)]
pub struct WorldOptions {
    /// Decides everything random.
    pub seed: u64,
    /// Where nodes are, and how far apart.
    pub topology: Topology,
    /// What carries messages.
    pub transport: Transport,
    /// One way between the workload and a node.
    pub client_delay: Nanos,
    /// What things cost.
    pub cost: CostModel,
    /// What a process that stood still meets first.
    pub after_pause: AfterPause,
    /// How wrong clocks are.
    pub clocks: ClockOptions,
    /// Whether a core's own check runs after each of its steps.
    pub check: bool,
    /// What is recorded.
    pub record: Record,
    /// Whether steps about transactions are kept, to explain latencies.
    pub explain: bool,
}

impl WorldOptions {
    /// Right clocks, free CPU, FIFO channels, every step checked: message delays alone.
    pub fn new(seed: u64, topology: Topology) -> Self {
        Self {
            seed,
            topology,
            transport: Transport::default(),
            client_delay: Nanos::ZERO,
            cost: CostModel::free(),
            after_pause: AfterPause::default(),
            clocks: ClockOptions::default(),
            check: true,
            record: Record::Nothing,
            explain: false,
        }
    }

    /// A single region of this many nodes, 1 ms apart.
    pub fn small(seed: u64, nodes: u32) -> Self {
        let lan = Link::after(Nanos::from_millis(1));
        Self::new(seed, Topology::single(nodes, lan))
    }
}
