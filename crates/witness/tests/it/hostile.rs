//! Bytes of strangers: each is counted and dropped, and nobody else notices.

use std::net::UdpSocket;
use std::time::Duration;

use manxdb_curp::wire::{DATAGRAM_MAX, Op, Status};
use manxdb_witness::{CarrierKind, Count};

use crate::bench::{Bench, ask_patiently, client, collection, entry, question, record, rpc};
use crate::on_every_carrier;

on_every_carrier!(hostile, hostile_bytes_are_counted_and_change_nothing);

/// Datagrams of the flood.
const FLOOD: u64 = 2_000;

/// A generator of numbers that look random (SplitMix64).
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// With a checksum that fits.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len() - 4);
    let sum = crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, &bytes);
    bytes.extend_from_slice(&u32::try_from(sum).unwrap().to_le_bytes());
    bytes
}

fn with(mut bytes: Vec<u8>, at: usize, byte: u8) -> Vec<u8> {
    bytes[at] = byte;
    sealed(bytes)
}

fn hostile_bytes_are_counted_and_change_nothing(bench: &mut Bench) {
    assert_eq!(bench.record(&[1], rpc(1, 1), "kept"), Status::Accepted);
    each_is_dropped_for_its_reason(bench);
    a_replay_changes_nothing(bench);
    others_are_unharmed_by_a_flood(bench);
    assert_eq!(bench.carrier.check(), Ok(()));
    let probe = question(Op::Probe, &[1], rpc(7, FLOOD));
    assert_eq!(ask_patiently(&bench.socket, &probe).status, Status::Dirty);
    assert_eq!(bench.carrier.counts().of(Count::Failed), 0);
}

fn each_is_dropped_for_its_reason(bench: &mut Bench) {
    let good = record(&[2], rpc(1, 2), b"SET").encode().unwrap();
    let gc = collection(&[entry(1, rpc(1, 1))]).encode().unwrap();
    let answer = record(&[1], rpc(1, 1), b"").answer(Status::Accepted, Vec::new());
    let answer = answer.encode().unwrap();
    let mut longer = good.clone();
    longer.push(0);
    let mut flipped = good.clone();
    flipped[50] ^= 4;
    for (count, bytes) in [
        (Count::Length, Vec::new()),
        (Count::Length, b"CRPW".to_vec()),
        (Count::Length, good[..51].to_vec()),
        (Count::Length, vec![0; 1_473]),
        (Count::Foreign, vec![0; 100]),
        (Count::Foreign, vec![0xFF; 1_472]),
        (Count::Foreign, with(good.clone(), 4, 2)),
        (Count::Checksum, flipped),
        (Count::Checksum, good[..good.len() - 1].to_vec()),
        (Count::Checksum, longer),
        // A collection with a checksum of another one.
        (
            Count::Checksum,
            [&gc[..gc.len() - 4], &good[good.len() - 4..]].concat(),
        ),
        (Count::Field, with(good.clone(), 5, 0)),
        (Count::Field, with(good.clone(), 5, 4)),
        (Count::Field, with(good.clone(), 6, 11)),
        (Count::Field, with(good.clone(), 7, 9)),
        (Count::Field, with(gc.clone(), 7, 57)),
        (Count::Field, with(good.clone(), 22, 3)),
        (Count::Field, with(good.clone(), 20, 15)),
        (Count::Length, with(good.clone(), 7, 2)),
        (Count::Length, with(good.clone(), 20, 0)),
        (Count::Length, with(good.clone(), 21, 255)),
        (Count::Length, with(gc.clone(), 7, 2)),
        (Count::Answer, answer),
    ] {
        if bytes.len() > DATAGRAM_MAX && bench.carrier.kind() == CarrierKind::Xdp {
            continue; // in fragments on this interface, which go past the program
        }
        let before = bench.carrier.counts();
        bench.send_to_nobody(&bytes);
        let after = bench.carrier.counts();
        let counted = after.of(count) - before.of(count);
        let length = bytes.len();
        assert_eq!(counted, 1, "{}, {length} bytes: {after}", count.name());
        assert_eq!(after.refused() - before.refused(), 1, "once");
    }
    assert!(bench.is_clean(&[2]));
}

fn a_replay_changes_nothing(bench: &mut Bench) {
    let kept = bench.carrier.records(crate::bench::VIEW);
    let old = record(&[3], rpc(1, 3), b"SET");
    assert_eq!(bench.ask(&old).status, Status::Accepted);
    bench.collect(&[entry(3, rpc(1, 3))]);
    for _ in 0..10 {
        assert_eq!(bench.ask(&old).status, Status::Accepted);
    }
    assert!(bench.is_clean(&[3]));
    assert_eq!(bench.carrier.records(crate::bench::VIEW), kept);
}

fn others_are_unharmed_by_a_flood(bench: &mut Bench) {
    // Somebody else's port at the same interface, in the namespace of the test.
    let one = UdpSocket::bind("127.0.0.1:0").unwrap();
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    other.connect(one.local_addr().unwrap()).unwrap();
    one.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let flood = client(&*bench.carrier);
    let good = record(&[2], rpc(1, 2), b"SET").encode().unwrap();
    let mut numbers = Numbers(24);
    for round in 0..FLOOD {
        let mut bytes = good.clone();
        match numbers.below(4) {
            0 => bytes
                .iter_mut()
                .for_each(|byte| *byte = numbers.next() as u8),
            1 => bytes.truncate(numbers.below(bytes.len() as u64) as usize),
            2 => bytes = with(bytes, numbers.below(8) as usize, numbers.next() as u8),
            _ => {
                // Any field of the header but the view and the token, under a checksum that fits.
                let at = [5, 6, 7, 20, 21, 22, 23][numbers.below(7) as usize];
                bytes = with(bytes, at, numbers.next() as u8);
            }
        }
        // Lost like any datagram when the queue of a process is full.
        let _ = flood.send(&bytes);
        if round % 200 == 0 {
            let probe = question(Op::Probe, &[1], rpc(7, round));
            let answer = ask_patiently(&bench.socket, &probe);
            assert_eq!(answer.status, Status::Dirty, "round {round}");
            other.send(b"hello").unwrap();
            let mut read = [0; 16];
            assert_eq!(one.recv(&mut read).unwrap(), 5, "round {round}");
        }
    }
    let refused = bench.carrier.refused();
    assert!(refused > FLOOD / 10, "{refused} refused");
    let last = collection(&[entry(2, rpc(1, 2))]);
    let collected = ask_patiently(&bench.socket, &last);
    assert_eq!(collected.status, Status::GcOk);
}
