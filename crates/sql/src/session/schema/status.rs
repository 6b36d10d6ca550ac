//! SHOW STATUS and COM_STATISTICS.

use crate::session::instance::Instance;

/// COM_STATISTICS.
pub(crate) fn statistics(instance: &Instance) -> String {
    let metrics = instance.metrics();
    let uptime = (instance.host.monotonic_micros() - instance.opened_at) / 1_000_000;
    let questions: u64 = metrics.statements.iter().sum();
    format!(
        "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: {}",
        metrics.connections, metrics.slow_statements
    )
}
