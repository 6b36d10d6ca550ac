//! The model of the published experiment's machines, at the smallest size: equal trials make what was
//! kept, byte for byte.
#![allow(clippy::unwrap_used)]

use crate::common::golden;

use std::fmt::Write as _;

use manxdb_lab::rack::{System, Trial};

#[test]
fn the_model_makes_what_was_kept() {
    let mut csv = String::from("system,clients,checkouts,seconds,p50_us,p99_us,busiest,events\n");
    for system in System::ALL {
        for clients in [1, 40, 70] {
            let trial = Trial {
                system,
                clients,
                checkouts: 3_000,
                seed: 1,
            };
            let found = trial.run(&mut |_| {}).unwrap();
            writeln!(
                csv,
                "{system:?},{clients},{},{},{},{},{},{}",
                found.checkouts,
                found.seconds,
                found.p50_us,
                found.p99_us,
                found.busiest,
                found.events
            )
            .unwrap();
        }
    }
    golden::check("rack", &csv);
}
