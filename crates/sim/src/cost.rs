//! What protocol work costs a node's CPU.

use manxdb_core::{Nanos, Random, Weight, Work};

use crate::topology::Ppm;

/// How long a process that slept takes to run once something has arrived: the scheduler's doing,
/// no CPU time of its own. The default: none, as in a data plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Wakeup {
    /// Usually: at least half of this, evenly spread up to one and a half times.
    pub usual: Nanos,
    /// Share of wake-ups that find the CPU taken.
    pub busy: Ppm,
    /// The mean of what those take more; exponentially distributed.
    pub busy_mean: Nanos,
}

impl Wakeup {
    /// The next one; draws nothing when there is none.
    pub(crate) fn draw(&self, random: &mut Random) -> Nanos {
        if *self == Self::default() {
            return Nanos::ZERO;
        }
        let mut span = Nanos(self.usual.0 / 2 + random.below(self.usual.0 + 1));
        if random.below(1_000_000) < u64::from(self.busy.0) {
            // Exponential, in sixteenths of the mean, without floating point.
            let mut more = 0;
            while more < 256 && random.below(16) > 0 {
                more += 1;
            }
            span += Nanos(self.busy_mean.0 / 16 * more);
        }
        span
    }
}

/// Prices in CPU time. The default is calibrated on published systems (one shard of three
/// replicas executes about 2 to 2.5 thousand TPC-C transactions a second).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostModel {
    /// To receive and decode a call.
    pub receive: Nanos,
    /// On top, for each piece it carries.
    pub receive_piece: Nanos,
    /// To send a call.
    pub send: Nanos,
    /// On top, for each piece it carries.
    pub send_piece: Nanos,
    /// To execute a piece of a procedure.
    pub piece: Nanos,
    /// To lock or unlock a key, or to compare its version.
    pub key: Nanos,
    /// To merge a vertex into a dependency graph.
    pub vertex: Nanos,
    /// To examine an edge of it.
    pub edge: Nanos,
    /// To visit a vertex looking for cycles.
    pub visit: Nanos,
    /// To receive a clock report or another small notice.
    pub report_receive: Nanos,
    /// To send one.
    pub report_send: Nanos,
    /// To append a record to a log in memory.
    pub append: Nanos,
    /// To be woken up by a timer or by the disk.
    pub wake: Nanos,
    /// Before anything, when the process sleeps; no CPU time.
    pub wakeup: Wakeup,
    /// Until the disk says that a record is safe; no CPU time. Zero: the log is memory.
    pub sync: Nanos,
    /// Whether a second server, with a line of its own, receives reports.
    pub report_server: bool,
}

impl Default for CostModel {
    fn default() -> Self {
        Self {
            receive: Nanos::from_micros(8),
            receive_piece: Nanos::from_micros(1),
            send: Nanos::from_micros(4),
            send_piece: Nanos(500),
            piece: Nanos::from_micros(15),
            key: Nanos::from_micros(1),
            vertex: Nanos(1_500),
            edge: Nanos::from_micros(1),
            visit: Nanos::from_micros(1),
            report_receive: Nanos::from_micros(3),
            report_send: Nanos::from_micros(2),
            append: Nanos::from_micros(2),
            wake: Nanos::from_micros(1),
            wakeup: Wakeup::default(),
            sync: Nanos::ZERO,
            report_server: false,
        }
    }
}

impl CostModel {
    /// Everything is free: what is left of a latency are message delays alone.
    #[must_use]
    pub fn free() -> Self {
        Self {
            receive: Nanos::ZERO,
            receive_piece: Nanos::ZERO,
            send: Nanos::ZERO,
            send_piece: Nanos::ZERO,
            piece: Nanos::ZERO,
            key: Nanos::ZERO,
            vertex: Nanos::ZERO,
            edge: Nanos::ZERO,
            visit: Nanos::ZERO,
            report_receive: Nanos::ZERO,
            report_send: Nanos::ZERO,
            append: Nanos::ZERO,
            wake: Nanos::ZERO,
            wakeup: Wakeup::default(),
            sync: Nanos::ZERO,
            report_server: false,
        }
    }

    /// Whether no work takes any time.
    pub(crate) fn is_free(&self) -> bool {
        let sync = self.sync;
        let report_server = self.report_server;
        let free = Self {
            sync,
            report_server,
            ..Self::free()
        };
        *self == free
    }

    /// To receive something of this weight.
    pub fn receiving(&self, weight: Weight) -> Nanos {
        match weight {
            Weight::Report => self.report_receive,
            Weight::Call { pieces } => self.receive + self.receive_piece * u64::from(pieces),
        }
    }

    /// To send something of this weight.
    pub fn sending(&self, weight: Weight) -> Nanos {
        match weight {
            Weight::Report => self.report_send,
            Weight::Call { pieces } => self.send + self.send_piece * u64::from(pieces),
        }
    }

    /// To do what a step did beside messages.
    pub fn working(&self, work: Work) -> Nanos {
        if work == Work::default() {
            return Nanos::ZERO;
        }
        self.piece * u64::from(work.pieces)
            + self.key * u64::from(work.keys)
            + self.vertex * u64::from(work.vertices)
            + self.edge * u64::from(work.edges)
            + self.visit * u64::from(work.visits)
            + self.append * u64::from(work.appends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_shard_local_transaction_costs_its_coordinator_what_was_calibrated() {
        // 24 pieces: the request, two calls out, two acknowledgements in, execution.
        let model = CostModel::default();
        let call = Weight::Call { pieces: 24 };
        let small = Weight::Call { pieces: 0 };
        let work = Work {
            pieces: 24,
            ..Work::default()
        };
        let sum = model.receiving(call)
            + model.sending(call) * 2
            + model.receiving(small) * 2
            + model.working(work);
        assert_eq!(sum, Nanos::from_micros(8 + 24 + 2 * (4 + 12) + 2 * 8 + 360));
    }

    #[test]
    fn a_busy_host_wakes_some_late() {
        let wakeup = Wakeup {
            usual: Nanos::from_micros(20),
            busy: Ppm::percent(2),
            busy_mean: Nanos::from_millis(2),
        };
        let mut random = Random::new(1);
        let mut spans: Vec<Nanos> = (0..10_000).map(|_| wakeup.draw(&mut random)).collect();
        spans.sort_unstable();
        assert!((19..=21).contains(&spans[5_000].as_micros()), "{spans:?}");
        assert!(spans[9_700] < Nanos::from_micros(31));
        assert!(spans[9_900] > Nanos::from_micros(500));
        assert_eq!(Wakeup::default().draw(&mut random), Nanos::ZERO);
    }

    #[test]
    fn every_kind_of_work_has_its_price() {
        let work = Work {
            pieces: 1,
            keys: 1,
            vertices: 2,
            edges: 1,
            visits: 1,
            appends: 1,
        };
        let model = CostModel::default();
        assert_eq!(
            model.working(work),
            Nanos::from_micros(15 + 1 + 3 + 1 + 1 + 2)
        );
        assert_eq!(model.receiving(Weight::Report), Nanos::from_micros(3));
        assert_eq!(model.sending(Weight::Report), Nanos::from_micros(2));
        assert_eq!(CostModel::free().working(work), Nanos::ZERO);
    }
}
