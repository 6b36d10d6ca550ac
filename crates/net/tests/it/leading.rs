//! A node for which several processes may act, one at a time.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::{Duration, Instant};

use manxdb_core::channel::Life;
use manxdb_net::runtime::NetError;
use manxdb_net::tenure::Tenure;
use manxdb_net::{NoDriver, Runtime};

use crate::common::{ASKER, Asker, ECHO, Echo, ToyCore, loopback, place, settings};

/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(600);

fn address(listener: &TcpListener) -> SocketAddr {
    listener.local_addr().unwrap()
}

/// Where nobody listens.
fn nowhere() -> SocketAddr {
    address(&loopback())
}

#[test]
fn what_is_sent_to_a_node_reaches_the_process_that_acts_for_it() {
    let (asker, echo, first) = (loopback(), loopback(), nowhere());
    let (from, at) = (address(&asker), address(&echo));
    let shared = || {
        let mut shared = settings(from, first);
        shared.directory.add_other(ECHO, at);
        shared
    };
    let acting = Echo::start(shared(), echo, at);
    let mut runtime = Runtime::new(shared(), asker, Asker::new(200)).unwrap();
    runtime.add(place(ASKER), Life(1), ToyCore::default());
    runtime.run(None).unwrap();
    assert_eq!(runtime.core(ASKER).unwrap().arrived, 200);
    let (_, arrived, out_of_order) = acting.stop();
    assert_eq!((arrived, out_of_order), (200, 0));
}

/// A process that asks itself, during a tenure; how that ended, and how much arrived.
fn ask_during(tenure: Tenure) -> (Result<(), NetError>, u64) {
    let asker = loopback();
    let mut shared = settings(address(&asker), nowhere());
    shared.delays = manxdb_net::Delays::default();
    let mut runtime = Runtime::new(shared, asker, Asker::new(50)).unwrap();
    runtime.act_during(tenure);
    for node in [ASKER, ECHO] {
        runtime.add(place(node), Life(1), ToyCore::default());
    }
    let ran = runtime.run(None);
    (ran, runtime.core(ECHO).unwrap().arrived)
}

#[test]
fn no_core_is_stepped_when_the_tenure_is_over() {
    let (ran, arrived) = ask_during(Tenure::until(Instant::now() + LONG));
    assert!(ran.is_ok());
    assert_eq!(arrived, 50);
    // As of a process that stood still: it has not looked at its clock since.
    let (ran, arrived) = ask_during(Tenure::until(Instant::now()));
    assert!(matches!(ran, Err(NetError::TenureOver)), "{ran:?}");
    assert_eq!(arrived, 0);
}

#[test]
fn a_process_that_serves_ends_when_its_tenure_does() {
    let listener = loopback();
    let shared = settings(nowhere(), address(&listener));
    let tenure = Tenure::until(Instant::now() + LONG);
    let acts = tenure.clone();
    let acting = thread::spawn(move || {
        let mut runtime = Runtime::new(shared, listener, NoDriver).unwrap();
        runtime.act_during(acts);
        runtime.add(place(ECHO), Life(1), ToyCore::default());
        runtime.run(None)
    });
    tenure.end();
    let ran = acting.join().unwrap();
    assert!(matches!(ran, Err(NetError::TenureOver)), "{ran:?}");
}
