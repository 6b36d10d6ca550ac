//! What is kept of a run: numbers.

use manxdb_core::Nanos;
use manxdb_sim::Latencies;
use serde::{Deserialize, Serialize};

/// What was measured. Shares are from 0 to 1.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialOutcome {
    /// Transactions that took effect, a second.
    pub throughput: f64,
    /// Latencies of local transactions (IRT), of those too that were given up.
    pub local: Spread,
    /// Latencies of cross-region transactions (CRT), of those too that were given up.
    pub cross_region: Spread,
    /// Those of them in which a region waits for another one's value.
    pub dependent: Spread,
    /// Calls that failed, in the whole run, except those that were given up.
    pub refused: u64,
    /// Why the first of them did.
    pub refusal: Option<String>,
    /// Local transactions, of those whose latencies are kept, that were tried as often as may be, in
    /// vain.
    #[serde(default)]
    pub local_given_up: u64,
    /// The same of cross-region ones.
    #[serde(default)]
    pub cross_region_given_up: u64,
    /// Tries, of the transactions whose latencies are kept, that did not commit.
    #[serde(default)]
    pub aborts: u64,
    /// Time under way in the measured span that the latencies leave out, because the calls were not
    /// answered in it, less what they have from before it: milliseconds of each client.
    #[serde(default)]
    pub left_out_ms: f64,
    /// How long the longest unanswered call had waited at the end, in milliseconds.
    pub oldest_open_ms: f64,
    /// Share of the measured span in which the busiest server worked.
    pub busiest_server: f64,
    /// What that server is.
    pub busiest_role: String,
    /// The same of all servers together.
    pub mean_server: f64,
    /// Messages inside regions per answered transaction, reports included.
    pub lan_messages: f64,
    /// Messages between regions per answered transaction.
    pub wan_messages: f64,
    /// Events that the simulator handled, in the whole run.
    pub events: u64,
}

/// Latencies of one kind, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Spread {
    /// How many there are.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Half are not longer.
    pub p50: f64,
    /// 90 of 100 are not longer.
    pub p90: f64,
    /// 95 of 100 are not longer.
    pub p95: f64,
    /// 99 of 100 are not longer.
    pub p99: f64,
    /// None is longer.
    pub max: f64,
}

impl Spread {
    pub(crate) fn of(latencies: &mut Latencies) -> Self {
        let summary = latencies.summary();
        Self {
            count: summary.count,
            mean: millis(summary.mean),
            p50: millis(summary.p50),
            p90: millis(summary.p90),
            p95: millis(summary.p95),
            p99: millis(summary.p99),
            max: millis(summary.max),
        }
    }
}

/// Whole microseconds, in milliseconds: what is below tells nothing and makes data long.
pub(crate) fn millis(span: Nanos) -> f64 {
    round(span.as_millis_f64(), 3)
}

/// So many digits behind the point.
pub(crate) fn round(value: f64, digits: i32) -> f64 {
    let unit = 10_f64.powi(digits);
    (value * unit).round() / unit
}
