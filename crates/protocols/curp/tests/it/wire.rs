//! Datagrams, byte by byte: an XDP program reads the same.

use manxdb_curp::ids::{ClientId, Epoch, RpcId, Stamp, View, Wlv};
use manxdb_curp::wire::{Datagram, GcEntry, Op, RecordedRequest, Status, WireError};
use proptest::prelude::*;

fn record() -> Datagram {
    Datagram {
        op: Op::Record,
        status: Status::None,
        view: View {
            epoch: Epoch(3),
            wlv: Wlv(4),
        },
        asks: true,
        token: 0x0102_0304_0506_0708,
        rpc: RpcId {
            client: ClientId(9),
            seq: 10,
        },
        hashes: vec![0xAA, 0xBB],
        entries: Vec::new(),
        request: Some(RecordedRequest {
            stamp: Stamp { micros: 1, seed: 2 },
            command: b"SET".to_vec(),
        }),
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let words: Vec<String> = digits.chunks(8).map(<[String]>::concat).collect();
    words.join(" ")
}

#[test]
fn a_record_has_the_bytes_that_the_page_says() {
    assert_eq!(
        hex(&record().encode().unwrap()),
        "4352505701010002 0300000000000000 0400000013000100 0807060504030201 \
         0900000000000000 0a00000000000000 aa00000000000000 bb00000000000000 \
         0100000000000000 0200000000000000 534554db04d67d"
    );
    let answer = record().answer(Status::Conflict, Vec::new());
    assert_eq!(
        hex(&answer.encode().unwrap()),
        "4352505701010200 0300000000000000 0400000000000000 0000000000000000 \
         0900000000000000 0a00000000000000 e077b4b4"
    );
}

#[test]
fn what_does_not_fit_into_one_packet_is_no_datagram() {
    let mut many = record();
    many.hashes = (0..9).collect();
    assert_eq!(many.encode(), None);
    let mut large = record();
    large.request.as_mut().unwrap().command = vec![0; 1_400];
    assert_eq!(large.encode(), None);
    large.request.as_mut().unwrap().command = vec![0; 1_388];
    assert_eq!(large.encode().unwrap().len(), 1_472);
}

#[test]
fn a_datagram_that_is_short_foreign_or_lies_about_its_length_is_refused() {
    let bytes = record().encode().unwrap();
    assert_eq!(Datagram::decode(&bytes[..40]), Err(WireError::Length));
    assert_eq!(Datagram::decode(&[0; 100]), Err(WireError::Unknown));
    assert_eq!(
        Datagram::decode(&bytes[..bytes.len() - 1]),
        Err(WireError::Checksum)
    );
    for bit in 0..bytes.len() * 8 {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(Datagram::decode(&flipped).is_err(), "bit {bit}");
    }
}

fn datagram() -> impl Strategy<Value = Datagram> {
    let ids = (
        any::<u64>(),
        any::<u32>(),
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
    );
    let hashes = prop::collection::vec(any::<u64>(), 0..=8);
    let entries = prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>()), 0..=56);
    let command = prop::option::of(prop::collection::vec(any::<u8>(), 0..200));
    (ids, hashes, entries, command, any::<bool>()).prop_map(
        |(ids, hashes, entries, command, collects)| {
            let (epoch, wlv, token, client, seq) = ids;
            let mut datagram = record();
            datagram.view = View {
                epoch: Epoch(epoch),
                wlv: Wlv(wlv),
            };
            datagram.token = token;
            datagram.rpc = RpcId {
                client: ClientId(client),
                seq,
            };
            datagram.request = command.map(|command| RecordedRequest {
                stamp: Stamp {
                    micros: seq,
                    seed: token,
                },
                command,
            });
            datagram.hashes = hashes;
            if collects {
                datagram.op = Op::Gc;
                datagram.hashes = Vec::new();
                datagram.request = None;
                let entry = |(hash, client, seq)| GcEntry {
                    hash,
                    rpc: RpcId {
                        client: ClientId(client),
                        seq,
                    },
                };
                datagram.entries = entries.into_iter().map(entry).collect();
            }
            datagram
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_datagram_reads_back_as_it_was_written(datagram in datagram()) {
        let bytes = datagram.encode().unwrap();
        prop_assert_eq!(Datagram::decode(&bytes), Ok(datagram));
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), op in 0..5_u8, count in any::<u8>()) {
        let mut bytes = bytes;
        if bytes.len() > 8 {
            bytes[..5].copy_from_slice(b"CRPW\x01");
            bytes[5] = op;
            bytes[7] = count;
        }
        let _ = Datagram::decode(&bytes);
    }
}
