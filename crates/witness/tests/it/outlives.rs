//! Records in the kernel outlive the process that looks after them; several witnesses share an interface.

use manxdb_curp::WitnessCarrier as _;
use manxdb_curp::wire::Status;
use manxdb_witness::kind::Place;
use manxdb_witness::{Carrier, CarrierError, CarrierKind, XdpCarrier};

use crate::bench::{TOKENS, VIEW, ask, client, record, rpc};
use crate::namespace::{open, place, within};

const GENERIC: CarrierKind = CarrierKind::XdpGeneric;

#[test]
fn records_outlive_the_process_and_are_taken_up_by_the_next() {
    within(
        "outlives::records_outlive_the_process_and_are_taken_up_by_the_next",
        |bpffs| {
            let mut place = place(bpffs);
            let Some(mut first) = open(GENERIC, &place) else {
                return;
            };
            assert_eq!(first.life(), 7);
            assert!(first.serve(VIEW, TOKENS));
            let socket = client(&first);
            let one = record(&[1], rpc(1, 1), b"one");
            assert_eq!(ask(&socket, &one).status, Status::Accepted);
            drop(first);
            // Nobody looks after it, and it answers.
            let two = record(&[2], rpc(1, 2), b"two");
            assert_eq!(ask(&socket, &two).status, Status::Accepted);
            assert_eq!(
                ask(&socket, &record(&[1], rpc(2, 1), b"x")).status,
                Status::Conflict
            );

            place.life = 8;
            let mut second = open(GENERIC, &place).unwrap();
            assert_eq!(second.life(), 7, "it is the same life of the witness");
            let frozen = second.freeze(VIEW).unwrap();
            assert_eq!(frozen.len(), 2);
            assert_eq!(second.strays(), 0);
            drop(second);

            // Another cluster at the same place begins with nothing.
            place.cluster = 2;
            let mut third = open(GENERIC, &place).unwrap();
            assert_eq!((third.life(), third.records(VIEW)), (8, 0));
            assert_eq!(ask(&socket, &one).status, Status::WrongLife);
            assert!(third.serve(VIEW, TOKENS));
            third.remove().unwrap();
            drop(third);
            assert_eq!(std::fs::read_dir(bpffs.join("manxdb")).unwrap().count(), 0);
            let fourth = open(GENERIC, &place).unwrap();
            assert_eq!(fourth.records(VIEW), 0);
        },
    );
}

#[test]
fn witnesses_share_an_interface_and_nothing_else() {
    within(
        "outlives::witnesses_share_an_interface_and_nothing_else",
        |bpffs| {
            let (here, there) = (place(bpffs), place(bpffs));
            let Some(mut one) = open(GENERIC, &here) else {
                return;
            };
            let mut two = open(GENERIC, &there).unwrap();
            assert!(one.serve(VIEW, TOKENS) && two.serve(VIEW, TOKENS));
            let (to_one, to_two) = (client(&one), client(&two));
            let asked = record(&[1], rpc(1, 1), b"SET");
            assert_eq!(ask(&to_one, &asked).status, Status::Accepted);
            assert_eq!((one.records(VIEW), two.records(VIEW)), (1, 0));
            assert_eq!(ask(&to_two, &asked).status, Status::Accepted);
            one.remove().unwrap();
            drop(one);
            let again = record(&[1], rpc(2, 2), b"SET");
            assert_eq!(ask(&to_two, &again).status, Status::Conflict);
            two.remove().unwrap();
        },
    );
}

#[test]
fn witnesses_that_start_at_once_get_one_program_at_the_interface() {
    within(
        "outlives::witnesses_that_start_at_once_get_one_program_at_the_interface",
        |bpffs| {
            let places: Vec<Place> = (0..4).map(|_| place(bpffs)).collect();
            let opened: Vec<Option<XdpCarrier>> = std::thread::scope(|scope| {
                let start = |place| scope.spawn(move || open(GENERIC, place));
                let starts: Vec<_> = places.iter().map(start).collect();
                let joined = starts.into_iter().map(|start| start.join().unwrap());
                joined.collect()
            });
            for mut carrier in opened.into_iter().flatten() {
                assert!(carrier.serve(VIEW, TOKENS));
                let asked = record(&[1], rpc(1, 1), b"SET");
                assert_eq!(ask(&client(&carrier), &asked).status, Status::Accepted);
                carrier.remove().unwrap();
            }
            assert_eq!(std::fs::read_dir(bpffs.join("manxdb")).unwrap().count(), 0);
        },
    );
}

#[test]
fn what_is_missing_is_named() {
    within("outlives::what_is_missing_is_named", |bpffs| {
        let here = place(bpffs);
        let refusal = |kind, place: &Place| match XdpCarrier::open(kind, place) {
            Ok(_) => panic!("{place:?} has a carrier"),
            Err(error) => error,
        };
        if open(GENERIC, &here).is_none() {
            return;
        }
        let mut other = place(bpffs);
        other.interface = "eth9".to_owned();
        let error = refusal(GENERIC, &other);
        assert!(matches!(error, CarrierError::Interface(_)), "{error}");
        // `lo` has no driver; and two modes do not go together.
        let error = refusal(CarrierKind::Xdp, &here);
        assert!(matches!(error, CarrierError::Taken(_)), "{error}");
        XdpCarrier::open(GENERIC, &here).unwrap().remove().unwrap();
        let error = refusal(CarrierKind::Xdp, &here);
        assert!(matches!(error, CarrierError::Driver(_)), "{error}");
        assert!(
            error.to_string().contains("--carrier xdp-generic"),
            "{error}"
        );
        let mut other = place(bpffs);
        other.bpffs = "/proc".into();
        let error = refusal(GENERIC, &other);
        assert!(matches!(error, CarrierError::FileSystem(_)), "{error}");
        let mut other = place(bpffs);
        other.address = "[::1]:7404".parse().unwrap();
        let error = refusal(GENERIC, &other);
        assert!(matches!(error, CarrierError::Address(_)), "{error}");
    });
}
