//! Prometheus text: what the process counted itself, and gauges asked from others.

use std::fmt::Write as _;
use std::sync::OnceLock;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};

/// Upper bounds of time histograms, seconds: 25 µs to 10 s.
const TIME_BUCKETS: [f64; 18] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

/// One number read when metrics are asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Gauge {
    /// Full metric name, `manxdb_…` with its unit at the end; with labels in braces, if it has any.
    /// Those of one name stand together.
    pub name: String,
    /// Value now.
    pub value: f64,
}

/// What was counted as the value of a sample: exact up to 2^53.
#[allow(clippy::cast_precision_loss)]
#[must_use]
pub fn count(counted: u64) -> f64 {
    counted as f64
}

/// Microseconds as seconds: exact up to 285 years.
#[allow(clippy::cast_precision_loss)]
#[must_use]
pub fn seconds(micros: u64) -> f64 {
    micros as f64 / 1e6
}

/// The samples of one histogram of durations, in their order: what follows the metric's name and a `_`, the
/// label `le` of those that have one, and the value. `cumulative` are upper bounds, in microseconds, with how
/// many of `all` took no longer.
pub fn histogram(
    cumulative: impl Iterator<Item = (u64, u64)>,
    all: u64,
    sum_micros: u64,
) -> impl Iterator<Item = (&'static str, Option<String>, f64)> {
    let buckets = cumulative.map(|(bound, below)| (seconds(bound).to_string(), below));
    let buckets = buckets.chain([("+Inf".to_owned(), all)]);
    let buckets = buckets.map(|(bound, below)| ("bucket", Some(bound), count(below)));
    buckets.chain([
        ("count", None, count(all)),
        ("sum", None, seconds(sum_micros)),
    ])
}

/// The process's recorder; installed on first use, because there can be only one.
///
/// `None` when somebody else installed another one.
pub fn recorder() -> Option<&'static PrometheusHandle> {
    static HANDLE: OnceLock<Option<PrometheusHandle>> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            PrometheusBuilder::new()
                .set_buckets(&TIME_BUCKETS)
                .ok()?
                .install_recorder()
                .ok()
        })
        .as_ref()
}

/// Makes the process count. Handles taken before count nothing.
pub fn install_recorder() {
    let _ = recorder();
}

/// The whole page.
pub fn render(gauges: &[Gauge]) -> String {
    let mut text = recorder().map(PrometheusHandle::render).unwrap_or_default();
    let mut last = "";
    // Writing to a String cannot fail.
    for Gauge { name, value } in gauges {
        let (family, kind) = family_of(name);
        if family != last {
            let _ = writeln!(text, "# TYPE {family} {kind}");
            last = family;
        }
        let _ = writeln!(text, "{name} {value}");
    }
    text
}

/// The name that a sample's type is said of, and the type.
fn family_of(name: &str) -> (&str, &'static str) {
    let sample = name.split('{').next().unwrap_or(name);
    let of_histogram = ["_seconds_bucket", "_seconds_sum", "_seconds_count"];
    if of_histogram.iter().any(|end| sample.ends_with(end)) {
        let end = sample.rfind('_').unwrap_or(sample.len());
        return (&sample[..end], "histogram");
    }
    let is_counter = sample.ends_with("_total");
    (sample, if is_counter { "counter" } else { "gauge" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_of_others_follow_the_naming_rules() {
        let text = render(&[
            Gauge {
                name: "manxdb_storage_cache_bytes".into(),
                value: 12.0,
            },
            Gauge {
                name: "manxdb_storage_compactions_total".into(),
                value: 3.0,
            },
        ]);
        assert!(
            text.contains(
                "# TYPE manxdb_storage_cache_bytes gauge\nmanxdb_storage_cache_bytes 12\n"
            )
        );
        assert!(text.contains("# TYPE manxdb_storage_compactions_total counter\n"));
    }

    #[test]
    fn samples_of_a_histogram_share_its_type() {
        let samples = ["bucket{le=\"1\"}", "count", "sum"].map(|end| Gauge {
            name: format!("manxdb_test_seconds_{end}"),
            value: 1.0,
        });
        let text = render(&samples);
        let expected = "# TYPE manxdb_test_seconds histogram\n\
                        manxdb_test_seconds_bucket{le=\"1\"} 1\n\
                        manxdb_test_seconds_count 1\nmanxdb_test_seconds_sum 1\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_histogram_ends_with_all_of_its_samples() {
        let samples = histogram([(2_500, 3), (10_000, 5)].into_iter(), 7, 1_500_000);
        let samples = samples.map(|(end, bound, value)| format!("{end} {bound:?} {value}"));
        let expected = [
            "bucket Some(\"0.0025\") 3",
            "bucket Some(\"0.01\") 5",
            "bucket Some(\"+Inf\") 7",
            "count None 7",
            "sum None 1.5",
        ];
        assert_eq!(samples.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn labels_share_the_type_of_their_name() {
        let gauge = |name: &str| Gauge {
            name: name.into(),
            value: 1.0,
        };
        let text = render(&[
            gauge("manxdb_local_total{reason=\"away\"}"),
            gauge("manxdb_local_total{reason=\"small\"}"),
        ]);
        let expected = "# TYPE manxdb_local_total counter\n\
                        manxdb_local_total{reason=\"away\"} 1\n\
                        manxdb_local_total{reason=\"small\"} 1\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
