//! Where jobs go when workers are in several zones.
#![allow(clippy::unwrap_used, clippy::panic)]

use crate::plane::{Plane, able, job};
use manxdb_jobs::job::{Facts, Pressure, Zone};
use manxdb_jobs::message::Ability;
use manxdb_jobs::{Options, Policy};

const MIB: u64 = 1 << 20;
/// A worker where the database is, and one elsewhere.
const NEAR: u64 = 7;
const FAR: u64 = 8;

/// Where jobs of 16 MiB go, one after the other, if slots are this slow with inputs of their own
/// zone, and with others'.
fn places(bytes_second: u64, far_bytes_second: u64) -> Vec<u64> {
    let mut plane = Plane::new(Options {
        policy: Policy::Manxdb,
        ..Options::default()
    });
    for (worker, zone) in [(NEAR, 0), (FAR, 1)] {
        let ability = Ability {
            zone: Zone(zone),
            bytes_second,
            far_bytes_second,
            ..able(4)
        };
        plane.beat(worker, ability, &[], 0);
    }
    let id = job(1, 1, 1);
    plane.alive(id, &[], Pressure::default());
    for number in 1..=4 {
        let facts = Facts {
            bytes: 16 * MIB,
            ..Facts::default()
        };
        plane.submit(job(1, 1, number), facts);
    }
    plane.runs().iter().map(|(worker, _)| *worker).collect()
}

#[test]
fn a_job_goes_far_when_it_ends_there_sooner_as_far_as_is_known() {
    // Near it takes 4 s, and longer beside others; the way is thought to take 0.64 s.
    assert_eq!(places(4 * MIB, 0), [NEAR, FAR, NEAR, FAR]);
}

#[test]
fn a_job_stays_near_when_others_were_seen_to_take_longer_far_away() {
    assert_eq!(places(4 * MIB, MIB), [NEAR; 4]);
}

#[test]
fn what_was_seen_counts_more_than_what_is_thought_of_the_way() {
    // Thought to take 0.25 s and 0.64 s for the way; seen to take 0.27 s.
    assert_eq!(places(64 * MIB, 0), [NEAR; 4]);
    assert_eq!(places(64 * MIB, 60 * MIB), [NEAR, FAR, NEAR, FAR]);
}
