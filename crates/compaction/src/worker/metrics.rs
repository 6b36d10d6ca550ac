//! Metrics of a worker.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Counts;
use crate::metrics::{alone, family};

/// A worker's numbers.
#[must_use]
pub fn of_worker(counts: &Counts) -> String {
    let mut text = String::new();
    let load = |count: &AtomicU64| alone(count.load(Ordering::Relaxed));
    for (name, help, value) in [
        (
            "finished",
            "Attempts that made outputs.",
            load(&counts.finished),
        ),
        ("failed", "Attempts that failed.", load(&counts.failed)),
        (
            "stopped",
            "Attempts stopped from outside.",
            load(&counts.stopped),
        ),
        (
            "input_bytes",
            "Bytes of inputs compacted.",
            load(&counts.bytes),
        ),
        (
            "fetched_bytes",
            "Bytes fetched from object stores.",
            load(&counts.fetched),
        ),
        (
            "put_bytes",
            "Bytes put into object stores.",
            load(&counts.put),
        ),
    ] {
        let name = format!("manxdb_compactor_worker_{name}_total");
        family(&mut text, &name, "counter", help, &value);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_its_type() {
        crate::metrics::tests::every_number_has_its_type(&of_worker(&Counts::default()));
    }
}
