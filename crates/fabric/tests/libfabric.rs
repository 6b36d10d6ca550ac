//! Memory through libfabric: what every carrier is tested for, over two providers; providers that
//! do not grant enough; and what happens when one of the processes dies, hangs, is shut out, or is
//! none of ours.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)] // processes, and tests

mod common;

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use common::{OTHER, Process, SERVER, add, at, listen, role, run, say, until};
use manxdb_fabric::conformance::{self, REGISTERED};
use manxdb_fabric::libfabric::{
    ConnectError, Copies, ListenerAddress, MemoryServer, Provider, RemoteMemory, ShutOutError,
    shut_out,
};
use manxdb_fabric::{BatchId, Fabric, Fault, Grants, Operation, OperationOutcome, WORD_LENGTH};
use rustix::process::Signal;

/// Bytes of a large write.
const LARGE: usize = 1 << 20;

/// Where the servers of tests are.
const HERE: &str = "127.0.0.1";

fn tcp() -> Provider {
    Provider {
        at: Some(HERE.to_owned()),
        ..Provider::named("tcp;ofi_rxm")
    }
}

fn shm() -> Provider {
    Provider::named("shm")
}

/// As over hardware that moves whole words, which this provider does.
fn shm_directly() -> Provider {
    Provider {
        copies: Some(Copies::Directly),
        ..shm()
    }
}

/// By the names that other processes are told.
///
/// Of these `shm` cannot stand all: both sides take the same locks in shared memory, so a process
/// that is killed or stopped while it works takes the other one with it. Where that matters a test
/// is over TCP alone, or lets the process rest first.
fn providers() -> [(&'static str, Provider); 3] {
    [
        ("tcp", tcp()),
        ("shm", shm()),
        ("shm-directly", shm_directly()),
    ]
}

/// What hardware is tested as: a provider, and this machine's address in its fabric.
const NAMED: [&str; 2] = ["MANXDB_FABRIC_PROVIDER", "MANXDB_FABRIC_AT"];

fn named(name: &str) -> Provider {
    if name == "named" {
        let [name, at] = NAMED.map(|variable| std::env::var(variable).ok());
        let name = name.unwrap_or_else(|| panic!("{} names no provider", NAMED[0]));
        return Provider {
            at,
            ..Provider::named(&name)
        };
    }
    let found = providers().into_iter().find(|(known, _)| *known == name);
    found.unwrap().1
}

fn server(provider: &Provider) -> MemoryServer {
    MemoryServer::start(&listener_address(), SERVER, REGISTERED, provider).unwrap()
}

fn listener_address() -> ListenerAddress {
    SocketAddr::new(HERE.parse().unwrap(), 0).into()
}

fn client(provider: &Provider, server: SocketAddr, number: u64) -> RemoteMemory {
    let mut memory = RemoteMemory::open(provider).unwrap();
    loop {
        match memory.connect(&server.into(), number) {
            Ok(found) => break assert_eq!(found, SERVER),
            // Its last one is gone, and the server has not noticed yet.
            Err(ConnectError::Already(_)) => {}
            Err(error) => panic!("{error}"),
        }
        thread::yield_now();
    }
    memory
}

/// A server in a process of its own.
fn other_server(provider: &str) -> (Process, SocketAddr) {
    let process = Process::start("server", provider);
    let address = process.said.parse().unwrap();
    (process, address)
}

/// A client in a process of its own.
fn other_client(role: &str, provider: &str, server: &MemoryServer) -> Process {
    Process::start(role, format!("{provider} {}", server.address()))
}

#[test]
#[ignore = "started by the other tests, with a role"]
fn what_another_process_does() {
    let Some((role, about)) = role() else { return };
    let (provider, address) = about.split_once(' ').unwrap_or((&about, ""));
    let provider = named(provider);
    let other = || client(&provider, address.parse().unwrap(), OTHER);
    match role.as_str() {
        "server" => {
            let server = server(&provider);
            say(&format!("ready {}", server.address()));
            listen();
        }
        // Adds to a word until it cannot, and says why.
        "adds" => {
            let mut memory = other();
            add(&mut memory);
            say("ready");
            loop {
                if let OperationOutcome::Failed(fault) = add(&mut memory) {
                    say(&format!("end: {fault}"));
                    return listen();
                }
            }
        }
        // Adds to a word, waits, and says what becomes of adding to it again.
        "waits" => {
            let mut memory = other();
            add(&mut memory);
            say("ready");
            listen();
            say(&format!("again: {:?}", add(&mut memory)));
            listen();
        }
        // Writes large pieces, one number after the other.
        "writes" => {
            let mut memory = other();
            for number in 1_u64.. {
                let bytes = number.to_le_bytes().repeat(LARGE / WORD_LENGTH);
                run(&mut memory, Operation::Write { at: at(0), bytes });
                if number == 2 {
                    say("ready");
                }
            }
        }
        other => panic!("no role is called {other}"),
    }
}

fn does_what_every_carrier_does(name: &str) {
    let (_process, address) = other_server(name);
    let provider = named(name);
    conformance::run(
        &|number| Box::new(client(&provider, address, number)),
        SERVER,
    );
}

#[test]
fn tcp_does_what_every_carrier_does() {
    does_what_every_carrier_does("tcp");
}

#[test]
fn shm_does_what_every_carrier_does() {
    does_what_every_carrier_does("shm");
}

#[test]
fn what_copies_directly_does_what_every_carrier_does() {
    does_what_every_carrier_does("shm-directly");
}

#[test]
#[ignore = "needs a provider in MANXDB_FABRIC_PROVIDER, such as hardware's: scripts/verbs-vm.sh"]
fn a_named_provider_does_what_the_others_do() {
    let granted = RemoteMemory::open(&named("named")).unwrap().grants();
    assert!(granted.include(Grants::TRANSACTIONS).is_ok(), "{granted:?}");
    does_what_every_carrier_does("named");
    notices_the_end_of_a_server("named");
    shuts_a_client_out("named");
    shuts_a_client_out_that_hangs("named");
}

#[test]
fn it_grants_what_transactions_need() {
    for (_, provider) in providers() {
        let granted = RemoteMemory::open(&provider).unwrap().grants();
        assert!(granted.include(Grants::TRANSACTIONS).is_ok());
    }
}

#[test]
fn a_provider_that_does_not_grant_enough_is_refused_by_name() {
    let refused = |name: &str| {
        let provider = Provider::named(name);
        let client = RemoteMemory::open(&provider).err().unwrap().to_string();
        let server = MemoryServer::start(&listener_address(), SERVER, REGISTERED, &provider);
        assert_eq!(server.err().unwrap().to_string(), client);
        client
    };
    // It says that it has atomic operations, and has none.
    assert_eq!(
        refused("net"),
        "libfabric's provider 'net' does not grant 64-bit compare-and-swap (FI_CSWAP)"
    );
    // Its library is there, and no card.
    assert!(refused("efa").starts_with("libfabric has no provider 'efa' here"));
    assert!(refused("tcp\0").contains("no name has a zero in it"));
    assert!(refused("nosuch").starts_with("libfabric has no provider 'nosuch' here"));
}

fn notices_the_end_of_a_server(name: &str) {
    let (process, address) = other_server(name);
    let mut memory = client(&named(name), address, 1);
    assert_eq!(add(&mut memory), OperationOutcome::Word(0));
    drop(process);
    let gone = OperationOutcome::Failed(Fault::Gone(SERVER));
    while add(&mut memory) != gone {}
    assert_eq!(add(&mut memory), gone);
}

#[test]
fn the_end_of_a_server_is_noticed() {
    for (name, _) in providers() {
        notices_the_end_of_a_server(name);
    }
}

#[test]
fn what_is_under_way_when_a_server_ends_has_failed() {
    let (process, address) = other_server("tcp");
    let mut memory = client(&tcp(), address, 1);
    add(&mut memory);
    process.signal(Signal::STOP);
    let bytes = vec![1; LARGE];
    let write = Operation::Write { at: at(0), bytes };
    let read = Operation::Read {
        at: at(0),
        bytes: 64,
    };
    memory.post(BatchId(8), vec![read, write]).unwrap();
    assert_eq!(memory.poll(), None);
    drop(process);
    let done = loop {
        if let Some(done) = memory.poll() {
            break done;
        }
    };
    assert_eq!(done.batch, BatchId(8));
    let gone = OperationOutcome::Failed(Fault::Gone(SERVER));
    assert_eq!(done.outcomes, [gone.clone(), gone]);
}

#[test]
fn a_server_that_does_not_answer_is_given_up() {
    let (process, address) = other_server("tcp");
    let mut memory = client(&tcp(), address, 1);
    add(&mut memory);
    process.signal(Signal::STOP);
    let (at, delta) = (at(0), 1);
    let add_one = vec![Operation::FetchAdd { at, delta }];
    memory.post(BatchId(8), add_one).unwrap();
    for _ in 0..1_000 {
        assert_eq!(memory.poll(), None);
        assert_eq!(memory.awaited(), [(SERVER, 1)]);
    }
    memory.give_up(SERVER);
    assert_eq!(memory.awaited(), []);
    let gone = OperationOutcome::Failed(Fault::Gone(SERVER));
    assert_eq!(memory.poll().unwrap().outcomes.remove(0), gone);
    assert_eq!(add(&mut memory), gone);
    // Found again, it is as good as new.
    process.signal(Signal::CONT);
    memory.connect(&address.into(), 2).unwrap();
    assert!(matches!(add(&mut memory), OperationOutcome::Word(_)));
}

fn shuts_a_client_out(name: &str) {
    let provider = named(name);
    let server = server(&provider);
    let mut other = other_client("adds", name, &server);
    let mut stays = client(&provider, server.address(), 1);
    assert_eq!(server.clients(), [1, OTHER]);
    server.fence(OTHER).unwrap();
    let word = server.read(0, WORD_LENGTH);
    assert_ne!(word, [0; 8]);
    let said = other.hears("end:");
    assert_eq!(said, Fault::Fenced(SERVER).to_string(), "over {name}");
    assert_eq!(server.read(0, WORD_LENGTH), word);
    server.fence(OTHER).unwrap(); // it is out: nothing to do
    assert_eq!(server.clients(), [1]);
    assert!(matches!(add(&mut stays), OperationOutcome::Word(_)));
}

#[test]
fn a_client_that_is_shut_out_writes_nothing_more_and_hears_why() {
    for (name, _) in providers() {
        shuts_a_client_out(name);
    }
}

#[test]
fn a_client_is_shut_out_from_another_process() {
    let (process, address) = other_server("tcp");
    let (mut one, mut other) = (client(&tcp(), address, 1), client(&tcp(), address, 2));
    add(&mut one);
    shut_out(&address.into(), 1).unwrap();
    assert_eq!(
        add(&mut one),
        OperationOutcome::Failed(Fault::Fenced(SERVER))
    );
    assert_eq!(add(&mut other), OperationOutcome::Word(1));
    shut_out(&address.into(), 1).unwrap(); // it is out: nothing to do
    shut_out(&address.into(), 3).unwrap(); // and so is who has not come yet
    let late = other.connect(&address.into(), 3).unwrap_err();
    assert!(matches!(late, ConnectError::ShutOut(_)), "{late}");
    drop(process);
    let gone = shut_out(&address.into(), 2).unwrap_err();
    assert!(matches!(gone, ShutOutError::Gone(..)), "{gone}");
}

#[test]
fn who_does_not_know_the_token_is_not_heard() {
    let token = "between us".to_owned();
    let ours = ListenerAddress {
        token,
        ..listener_address()
    };
    let server = MemoryServer::start(&ours, SERVER, REGISTERED, &tcp()).unwrap();
    let address = server.address();
    let ours = ListenerAddress { address, ..ours };
    let mut memory = RemoteMemory::open(&tcp()).unwrap();
    memory.connect(&ours, 1).unwrap();
    for token in ["", "between u", "between them"] {
        let token = token.to_owned();
        let theirs = ListenerAddress { address, token };
        let away = memory.connect(&theirs, 2).unwrap_err().to_string();
        assert!(away.ends_with("its token is another one than the server's"));
        let kept = shut_out(&theirs, 1).unwrap_err().to_string();
        assert!(kept.ends_with("its token is another one than the server's"));
    }
    assert_eq!((server.clients(), server.ended()), (vec![1], 0));
    shut_out(&ours, 1).unwrap();
    assert_eq!((server.clients(), server.ended()), (vec![], 1));
}

#[test]
fn a_server_begins_with_what_it_is_filled_with() {
    let words: Vec<u8> = (0..32).collect();
    let beyond = (REGISTERED, words.clone());
    let first = [(64, words.clone()), beyond];
    let server =
        MemoryServer::start_filled(&listener_address(), SERVER, REGISTERED, &first, &tcp())
            .unwrap();
    server.populate().unwrap();
    let mut memory = client(&tcp(), server.address(), 1);
    let (at, bytes) = (at(64), 32);
    let read = run(&mut memory, Operation::Read { at, bytes });
    assert_eq!(read, OperationOutcome::Read(words));
}

#[test]
fn ports_are_where_a_server_is_reached_from() {
    let provider = Provider::towards("tcp;ofi_rxm", server(&tcp()).address()).unwrap();
    assert_eq!(provider, tcp());
    assert_eq!(Provider::at("shm", HERE.parse().unwrap()), shm());
}

fn shuts_a_client_out_that_hangs(name: &str) {
    let server = server(&named(name));
    let mut other = other_client("waits", name, &server);
    other.signal(Signal::STOP);
    server.fence(OTHER).unwrap();
    other.signal(Signal::CONT);
    other.tell();
    let fenced = OperationOutcome::Failed(Fault::Fenced(SERVER));
    assert_eq!(other.hears("again:"), format!("{fenced:?}"), "over {name}");
    assert_eq!(server.read(0, WORD_LENGTH), 1_u64.to_le_bytes());
}

#[test]
fn a_client_that_hangs_does_not_come_back_to_write() {
    for (name, _) in providers() {
        shuts_a_client_out_that_hangs(name);
    }
}

#[test]
fn a_large_write_that_is_under_way_ends_with_its_client() {
    let server = server(&tcp());
    let other = other_client("writes", "tcp", &server);
    other.signal(Signal::STOP);
    server.fence(OTHER).unwrap();
    let memory = server.read(0, LARGE);
    other.signal(Signal::CONT);
    for _ in 0..200 {
        thread::yield_now();
        assert!(server.read(0, LARGE) == memory);
    }
}

#[test]
fn a_client_of_the_servers_own_process_is_shut_out_too() {
    for (_, provider) in providers() {
        let server = server(&provider);
        let mut memory = client(&provider, server.address(), 1);
        add(&mut memory);
        server.fence(1).unwrap();
        assert_eq!(
            add(&mut memory),
            OperationOutcome::Failed(Fault::Fenced(SERVER))
        );
        let word = server.read(0, WORD_LENGTH);
        assert_eq!(word, 1_u64.to_le_bytes());
        // It may ask again, as another one.
        let again = memory.connect(&server.address().into(), 1).unwrap_err();
        assert!(matches!(again, ConnectError::ShutOut(_)), "{again}");
        memory.connect(&server.address().into(), 2).unwrap();
        assert_eq!(add(&mut memory), OperationOutcome::Word(1));
    }
}

#[test]
fn a_client_that_ends_is_forgotten_and_its_number_is_free_again() {
    for (name, provider) in providers() {
        let server = server(&provider);
        let first = client(&provider, server.address(), 1);
        assert_eq!(server.clients(), [1]);
        let mut second = RemoteMemory::open(&provider).unwrap();
        let twice = second.connect(&server.address().into(), 1).unwrap_err();
        assert!(matches!(twice, ConnectError::Already(_)), "{twice}");
        drop(first);
        until(|| server.clients().is_empty());
        second.connect(&server.address().into(), 1).unwrap();
        let again = second.connect(&server.address().into(), 2).unwrap_err();
        assert!(matches!(again, ConnectError::Twice(..)), "{again}");
        drop(second);
        drop(other_client("waits", name, &server)); // killed
        until(|| server.clients().is_empty());
    }
}

#[test]
fn strangers_get_no_memory_and_cost_no_server() {
    let server = server(&tcp());
    for words in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"MANXOFI\x01????????", b""] {
        let mut stranger = TcpStream::connect(server.address()).unwrap();
        stranger.write_all(words).unwrap();
        let _ = stranger.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stranger.read_to_end(&mut answer); // a reset is an end, too
        assert_eq!(answer, b"", "{words:?}");
    }
    let mut elsewhere = RemoteMemory::open(&shm()).unwrap();
    let turned_away = elsewhere.connect(&server.address().into(), 1).unwrap_err();
    let reason = "the provider is 'tcp;ofi_rxm' here and 'shm' there";
    assert!(turned_away.to_string().ends_with(reason), "{turned_away}");
    assert!(server.clients().is_empty());
    let mut memory = client(&tcp(), server.address(), 1);
    assert_eq!(add(&mut memory), OperationOutcome::Word(0));
}

#[test]
fn a_server_that_is_none_is_no_server() {
    let listener = TcpListener::bind((HERE, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 16]);
            stream.write_all(b"HTTP/1.1 400\r\n\r\n").unwrap();
        });
        let mut memory = RemoteMemory::open(&tcp()).unwrap();
        let failed = memory.connect(&address.into(), 1).unwrap_err().to_string();
        assert!(failed.contains("of this release"), "{failed}");
    });
}
