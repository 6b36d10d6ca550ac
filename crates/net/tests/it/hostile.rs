//! Strangers at the port of a process that has work to do.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use crate::common::{ASKER, Asker, CLUSTER, ECHO, Echo, Toy, ToyCore, loopback, place, settings};
use manxdb_core::channel::{Frame, Life};
use manxdb_core::{NodeId, Random};
use manxdb_net::packet::{Hello, Packet};
use manxdb_net::{ClusterId, Runtime, frame};

type Real = Packet<Frame<Toy>>;

/// Sends bytes and waits until the other side closes the connection.
fn is_closed(address: SocketAddr, bytes: &[u8]) -> bool {
    let mut stream = TcpStream::connect(address).unwrap();
    let _ = stream.write_all(bytes);
    let mut answer = Vec::new();
    // A reset is a close as well.
    stream.read_to_end(&mut answer).is_err() || answer.is_empty()
}

fn hello(cluster: ClusterId, node: NodeId) -> Vec<u8> {
    let hello = Hello {
        cluster,
        address: "127.0.0.1:1".parse().unwrap(),
        places: vec![place(node)],
    };
    frame::encode(&Real::Hello(hello)).unwrap()
}

/// Each closes its connection at once.
fn refused() -> Vec<(&'static str, Vec<u8>)> {
    let mut version = hello(CLUSTER, NodeId(9));
    version[4] = 99;
    let mut checksum = hello(CLUSTER, NodeId(9));
    *checksum.last_mut().unwrap() ^= 1;
    let twice = [hello(CLUSTER, NodeId(9)), hello(CLUSTER, NodeId(9))].concat();
    let nonsense = frame::encode(&[0xFF_u8; 32]).unwrap();
    let early = frame::encode(&Packet::Message {
        from: NodeId(9),
        to: ECHO,
        body: 0_u8,
    });
    vec![
        ("version", version),
        ("checksum", checksum),
        ("too long", vec![0xFF; 9]),
        ("too short", vec![0; 9]),
        ("cluster", hello(ClusterId(1), NodeId(9))),
        ("a server's place", hello(CLUSTER, ASKER)),
        ("twice", twice),
        ("nonsense", nonsense),
        ("message before hello", early.unwrap()),
    ]
}

#[test]
fn what_makes_no_sense_closes_its_own_connection_only() {
    let (here, there) = (loopback(), loopback());
    let (here_address, address) = (here.local_addr().unwrap(), there.local_addr().unwrap());
    let echo = Echo::start(settings(here_address, address), there, address);
    let settings = settings(here_address, address);
    let asker = std::thread::spawn(move || {
        let mut asker = Runtime::new(settings, here, Asker::new(5_000)).unwrap();
        asker.add(place(ASKER), Life(1), ToyCore::default());
        asker.run(None).unwrap();
        asker.counters().clone()
    });
    for (name, bytes) in refused() {
        assert!(is_closed(address, &bytes), "{name}");
    }
    let known = refused().len() as u64;
    throw_at(address);
    let asker = asker.join().unwrap();
    assert_eq!(asker.reconnects, 0, "the honest connection was broken");
    let (counters, arrived, out_of_order) = echo.stop();
    assert_eq!((arrived, out_of_order), (5_000, 0));
    assert!(counters.refused >= known, "{counters:?}");
}

/// Random bytes, frames with a random payload, frames cut short.
fn throw_at(address: SocketAddr) {
    let mut random = Random::new(3);
    for _ in 0..300 {
        let length = usize::try_from(random.below(300)).unwrap();
        let bytes: Vec<u8> = (0..length)
            .map(|_| random.next_bits().to_le_bytes()[0])
            .collect();
        let mut sent = match random.below(3) {
            0 => bytes,
            1 => [hello(CLUSTER, NodeId(9)), raw_frame(&bytes)].concat(),
            _ => hello(CLUSTER, NodeId(9)),
        };
        sent.truncate(usize::try_from(random.below(400)).unwrap());
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(&sent);
    }
}

/// A right frame around a payload that is anything.
fn raw_frame(payload: &[u8]) -> Vec<u8> {
    struct Raw<'a>(&'a [u8]);
    impl serde::Serialize for Raw<'_> {
        fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
            use serde::ser::SerializeTuple as _;
            let mut tuple = out.serialize_tuple(self.0.len())?;
            for byte in self.0 {
                tuple.serialize_element(byte)?;
            }
            tuple.end()
        }
    }
    frame::encode(&Raw(payload)).unwrap()
}
