//! Memory servers that are reached through libfabric, over TCP: what is said of servers that cannot be
//! reached, and who is shut out. The loss of servers is in `losses.rs`.
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // sockets, and tests

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use crate::common::{ready, submit};
use manxdb_core::Nanos;
use manxdb_fabric::libfabric::{ListenerAddress, MemoryServer, Provider};
use manxdb_fabric::{Address, Fabric, Fault, Operation, OperationOutcome, ServerId, WORD};
use manxdb_rack::drive::Driver;
use manxdb_rack::memory::{
    Geometry, Memory, MemoryError, NotOut, RemoteTransport, Source, Superblock, Transport,
};
use manxdb_rack::path::RsiPath;
use manxdb_storage::Durability;
use manxdb_txn::{CommitPath, ReadSet};

const PROVIDER: &str = "tcp;ofi_rxm";

const GEOMETRY: Geometry = Geometry {
    servers: 2,
    replicas: 1,
    bytes: 8 << 20,
    places: 6,
    log_copies: 2,
    log_bytes: 64 << 10,
    log_slots: 1,
    versions: 4,
    value: 64,
    node: 1_000,
    lease: Nanos::from_secs(30),
};

fn here(port: u16) -> SocketAddr {
    (Ipv4Addr::LOCALHOST, port).into()
}

fn start(server: u16) -> MemoryServer {
    let superblock = Superblock {
        name: "test".into(),
        server,
        directory: 0,
        geometry: GEOMETRY,
    };
    let first = [(0, superblock.encode())];
    let (listener_address, provider) = (here(0).into(), Provider::at(PROVIDER, here(0).ip()));
    let bytes = GEOMETRY.bytes;
    MemoryServer::start_filled(
        &listener_address,
        ServerId(server),
        bytes,
        &first,
        &provider,
    )
    .unwrap()
}

fn rack() -> Vec<MemoryServer> {
    (0..GEOMETRY.servers).map(start).collect()
}

fn way(addresses: impl IntoIterator<Item = SocketAddr>) -> RemoteTransport {
    let listener_addresses = addresses.into_iter().map(ListenerAddress::from).collect();
    RemoteTransport::new(PROVIDER, listener_addresses).unwrap()
}

fn addresses(rack: &[MemoryServer]) -> Vec<SocketAddr> {
    rack.iter().map(MemoryServer::address).collect()
}

/// An address at which nobody listens.
fn nowhere() -> SocketAddr {
    TcpListener::bind(here(0)).unwrap().local_addr().unwrap()
}

/// Somebody who listens, and says this to whoever comes.
fn stranger(words: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind(here(0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let _ = stream.unwrap().write_all(words); // or it is gone again
        }
    });
    address
}

/// What becomes of reading a word of a server, as this client.
fn read(way: &RemoteTransport, server: u16, client: u64) -> OperationOutcome {
    let (fabric, missing) = way.reach(&[server], client).unwrap();
    assert!(missing.is_empty(), "{missing:?}");
    word(&mut Driver::new(fabric), server)
}

fn word<F: Fabric>(driver: &mut Driver<F>, server: u16) -> OperationOutcome {
    let at = Address {
        server: ServerId(server),
        offset: GEOMETRY.bytes - WORD,
    };
    let outcomes = driver.ask(vec![Operation::Read { at, bytes: WORD }]);
    outcomes.unwrap().remove(0)
}

/// What becomes of what is asked of the one server that is not reached, and why.
fn missing(way: &RemoteTransport, server: u16, client: u64) -> (Option<Fault>, String) {
    let (_, missing) = way.reach(&[server], client).unwrap();
    let one = missing.into_iter().next().unwrap();
    assert_eq!(one.server, server);
    (one.fault, one.error.to_string())
}

fn said<T>(result: Result<T, MemoryError>) -> String {
    match result {
        Ok(_) => panic!("it is not refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn two_houses_are_one_database() {
    let rack = rack();
    let house = |seed| {
        let memory = Arc::new(Memory::open(way(addresses(&rack)), seed).unwrap());
        let source: Arc<dyn Source<_>> = memory;
        RsiPath::open(source, 2, GEOMETRY.value).unwrap()
    };
    let houses = [house(1), house(2)];
    for (number, house) in (0_u8..).zip(&houses) {
        let row = [(vec![number], Some(vec![number; 40]))];
        submit(house, ReadSet::default(), &row, Durability::Async).unwrap();
    }
    for house in &houses {
        let snapshot = ready(house.snapshot()).unwrap();
        for number in [0, 1] {
            let row = ready(house.get(snapshot.version, &[number])).unwrap();
            assert_eq!(row, Some(vec![number; 40]));
        }
        house.leave();
    }
}

#[test]
fn who_is_shut_out_hears_of_it_and_is_not_let_in_again() {
    let rack = rack();
    let way = way(addresses(&rack));
    let (fabric, _) = way.reach(&[0, 1], 7).unwrap();
    let mut driver = Driver::new(fabric);
    assert_eq!(way.shut_out(0, 7), Ok(()));
    let fenced = Fault::Fenced(ServerId(0));
    assert_eq!(word(&mut driver, 0), OperationOutcome::Failed(fenced));
    assert!(matches!(word(&mut driver, 1), OperationOutcome::Read(_)));
    assert_eq!(missing(&way, 0, 7).0, Some(fenced));
    assert_eq!(way.shut_out(1, 8), Ok(()), "who has not come yet");
    assert_eq!(missing(&way, 1, 8).0, Some(Fault::Fenced(ServerId(1))));
    assert!(matches!(read(&way, 1, 9), OperationOutcome::Read(_)));
    assert_eq!(rack[0].clients(), [7_u64; 0]);
}

#[test]
fn one_who_comes_again_at_once_is_let_in() {
    let rack = rack();
    let way = way(addresses(&rack));
    for _ in 0..20 {
        assert!(matches!(read(&way, 0, 7), OperationOutcome::Read(_)));
    }
}

#[test]
fn servers_that_cannot_be_reached_are_told_apart() {
    let rack = rack();
    let one = rack[0].address();
    let way = way([
        one,
        nowhere(),
        stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        one,
        stranger(b""),
    ]);
    let (fault, why) = missing(&way, 1, 7);
    assert_eq!(fault, Some(Fault::Gone(ServerId(1))), "{why}");
    assert!(why.contains("refused"), "{why}");
    assert_eq!(way.shut_out(1, 7), Ok(()), "nobody writes there");

    let (fault, why) = missing(&way, 2, 7);
    assert_eq!(fault, None);
    assert!(
        why.ends_with("the other side is no memory server or client of this release"),
        "{why}"
    );
    assert_eq!(way.shut_out(2, 7), Err(NotOut::Unheard));

    let (fault, why) = missing(&way, 3, 7);
    assert_eq!(fault, None);
    let words =
        format!("{one} is said to be of memory server 3, but memory server 0 answers there");
    assert_eq!(why, words);

    let (fault, why) = missing(&way, 4, 7);
    assert_eq!(fault, Some(Fault::Fenced(ServerId(4))), "{why}");
    assert_eq!(way.shut_out(4, 7), Err(NotOut::Unheard));

    let (fault, why) = missing(&way, 5, 7);
    assert_eq!(fault, None);
    assert!(
        why.contains("more than the 5 whose addresses are given"),
        "{why}"
    );
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_asked() {
    let rack = rack();
    let refused = |provider| RemoteTransport::new(provider, vec![rack[0].address().into()]);
    let absent = said(refused("nosuch"));
    assert!(
        absent.starts_with("libfabric has no provider 'nosuch' here"),
        "{absent}"
    );
    let few = way([rack[0].address()]);
    let few = said(Memory::open(few, 1));
    assert!(few.contains("memory server 1 has none"), "{few}");
    let turned = way([rack[1].address(), rack[0].address()]);
    let turned = said(Memory::open(turned, 1));
    assert!(
        turned.contains("is said to be of memory server 0, but memory server 1"),
        "{turned}"
    );
    let listener_addresses = addresses(&rack).into_iter().map(|address| ListenerAddress {
        address,
        token: "not ours".to_owned(),
    });
    let strange = RemoteTransport::new(PROVIDER, listener_addresses.collect()).unwrap();
    let strange = said(Memory::open(strange, 1));
    assert!(
        strange.ends_with("its token is another one than the server's"),
        "{strange}"
    );
}
