//! Cores in two processes, over lines that work and lines that do not.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::time::Duration;

use crate::common::{
    ASKER, Asker, CLUSTER, Damage, Echo, ToyCore, bad_line, loopback, place, settings,
};
use manxdb_core::channel::Life;
use manxdb_net::{Runtime, ask_status};

/// Asks over a line with some damage: what the echo counted, and what the asker did.
fn ask(total: u64, damage: Option<Damage>) -> (u64, manxdb_net::counters::Counters) {
    let (here, there) = (loopback(), loopback());
    let here_address = here.local_addr().unwrap();
    let mut there_address = there.local_addr().unwrap();
    if let Some(damage) = damage {
        there_address = bad_line(there_address, damage);
    }
    let echo = Echo::start(settings(here_address, there_address), there, there_address);
    let settings = settings(here_address, there_address);
    let mut asker = Runtime::new(settings, here, Asker::new(total)).unwrap();
    asker.add(place(ASKER), Life(1), ToyCore::default());
    asker.run(None).unwrap();
    let core = asker.core(ASKER).unwrap();
    assert_eq!((core.arrived, core.out_of_order), (total, 0));
    let counters = asker.counters().clone();
    assert_eq!(
        asker.into_driver().marked,
        total,
        "its driver hears each note"
    );
    let (echo, arrived, out_of_order) = echo.stop();
    assert_eq!((arrived, out_of_order), (total, 0));
    (echo.refused, counters)
}

#[test]
fn messages_arrive_in_order_and_once() {
    let (refused, counters) = ask(2_000, None);
    assert_eq!((refused, counters.reconnects), (0, 0));
    assert_eq!(counters.connects, 1);
    assert!(counters.sent["Ask"] >= 2_000);
}

#[test]
fn messages_survive_connections_that_break() {
    let (_, counters) = ask(600, Some(Damage::Breaks));
    assert!(counters.reconnects >= 2, "{counters:?}");
}

#[test]
fn a_flipped_bit_closes_the_connection_and_loses_nothing() {
    let (refused, counters) = ask(600, Some(Damage::Flips));
    assert!(refused >= 2, "{refused}");
    assert!(counters.reconnects >= 2, "{counters:?}");
}

#[test]
fn a_process_says_how_it_is() {
    let (here, there) = (loopback(), loopback());
    let address = there.local_addr().unwrap();
    let settings = settings(here.local_addr().unwrap(), address);
    let echo = Echo::start(settings, there, address);
    let status = ask_status(address, Duration::from_secs(20)).unwrap();
    assert_eq!(status.cluster, CLUSTER);
    assert_eq!(status.process, std::process::id());
    assert_eq!(status.nodes.len(), 1);
    assert_eq!(status.nodes[0].life, 1);
    assert_eq!(status.nodes[0].notes, [("arrived".into(), "0".into())]);
    echo.stop();
    assert!(ask_status(address, Duration::from_secs(20)).is_err());
}
