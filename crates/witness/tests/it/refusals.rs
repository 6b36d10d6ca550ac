//! Which carrier is taken when the one that was asked for cannot be had.

use manxdb_witness::kind::Place;
use manxdb_witness::{CarrierError, CarrierKind, open, open_or_fall_back};

/// No machine has a BPF file system there.
fn nowhere() -> Place {
    Place {
        interface: "lo".to_owned(),
        address: ([127, 0, 0, 1], 0).into(),
        cluster: 1,
        life: 1,
        bpffs: "/proc".into(),
    }
}

#[test]
fn a_carrier_that_cannot_be_had_is_an_error() {
    let Err(error) = open(CarrierKind::Xdp, &nowhere()) else {
        panic!("a carrier without pins");
    };
    assert!(!error.to_string().is_empty());
}

#[test]
fn another_carrier_is_taken_only_when_one_asks_for_that_and_each_is_said() {
    let mut missed = Vec::new();
    let note = |kind: CarrierKind, _: &CarrierError| missed.push(kind);
    let carrier = open_or_fall_back(CarrierKind::Xdp, &nowhere(), note)
        .ok()
        .unwrap();
    assert_eq!(carrier.kind(), CarrierKind::User);
    assert_eq!(missed, [CarrierKind::Xdp, CarrierKind::XdpGeneric]);
    let mut place = nowhere();
    place.address = carrier.address();
    let error = open_or_fall_back(CarrierKind::User, &place, |_, _| ())
        .err()
        .unwrap();
    assert!(matches!(error, CarrierError::Socket { .. }), "{error}");
}
