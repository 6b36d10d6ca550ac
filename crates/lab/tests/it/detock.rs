//! Detock: what a transaction takes when nothing else runs, exactly; histories, judged; and planted
//! defects, which the judges must find.

use manxdb_baselines::SlogOptions;
use manxdb_baselines::slog::{Crossing, SlogMutant};
use manxdb_checker::append::Level as Promise;
use manxdb_common::Release;
use manxdb_core::Nanos;
use manxdb_lab::baselines::{DetockSystem, SlogSystem};
use manxdb_lab::candidate::Cluster;

use crate::common::baselines::{is_found, keeps, takes};

#[test]
fn detock_waits_for_batches_and_for_the_other_regions_logs() {
    // A microsecond before a batch is closed in the client's region.
    takes::<DetockSystem>(2, Nanos::from_micros(4_999), DETOCK);
}

/// Milliseconds. A transaction of three regions has its turn in one when both others have been heard of
/// there, and one whose value another region waits for when that one has been.
const DETOCK: &str = "
one shard                                15.001  10.000 network in the region  5.001 region log
two shards of a region                   17.501  12.500 network in the region  5.001 region log
home waits for the other shard           17.501  12.500 network in the region  5.001 region log
2 regions                               115.001  100.000 network between regions  7.500 network in the region  7.501 region log
3 regions                               162.501  150.000 network between regions  5.000 network in the region  7.501 region log
home waits for another region           115.001  100.000 network between regions  7.500 network in the region  7.501 region log
another region waits for home           212.501  200.000 network between regions  5.000 network in the region  7.501 region log
a third region waits for the second     212.501  200.000 network between regions  5.000 network in the region  7.501 region log
";

fn detock(options: SlogOptions) -> impl Fn(Cluster) -> SlogSystem + Copy {
    move |cluster| {
        let options = SlogOptions {
            crossing: Crossing::Graph,
            ..options
        };
        SlogSystem::of(cluster, options)
    }
}

#[test]
fn detock_is_serializable_however_rows_are_released() {
    for release in [Release::Transaction, Release::Piece] {
        let options = SlogOptions {
            release,
            ..SlogOptions::default()
        };
        keeps(Promise::Serializable, 5, detock(options));
    }
}

fn with(mutant: SlogMutant) -> impl Fn(Cluster) -> SlogSystem + Copy {
    detock(SlogOptions {
        mutant: Some(mutant),
        ..SlogOptions::default()
    })
}

#[test]
fn other_regions_logs_that_are_not_awaited_are_found() {
    assert!(is_found(
        Promise::Serializable,
        with(SlogMutant::OtherLogsNotAwaited)
    ));
}

#[test]
fn cycles_in_the_order_of_each_log_are_found() {
    assert!(is_found(
        Promise::Serializable,
        with(SlogMutant::CycleInLogOrder)
    ));
}
