//! Customers buy on every system, all at once; then the books are right.
#![allow(clippy::unwrap_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // threads and sockets stand for processes

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::thread;

use manxdb_checkout::mailbox::{End, LINE_BYTES, Mailbox};
use manxdb_checkout::one_sided::{OneSided, audit, load};
use manxdb_checkout::two_phase::{Line, Manager, Resource, TcpLine, TwoPhase};
use manxdb_checkout::{
    Books, CheckoutOutcome, InRows, Plan, Published, PublishedPlan, Sales, Shop, draw, published,
};
use manxdb_core::Random;
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_fabric::{Address, ServerId};
use manxdb_rack::drive::Driver;
use manxdb_rack::rows::RowsPlan;
use manxdb_rsi::Isolation;

const CLIENTS: u16 = 3;
const ORDERS: u64 = 200;
const PRODUCTS: u64 = 50;
/// For the published protocol, which gets hardly anything done on few: what one client writes, the
/// others can neither read nor write until all numbers before it are done.
const MANY_PRODUCTS: u64 = 20_000;

const PLAN: Plan = Plan {
    servers: 2,
    products: PRODUCTS,
    versions: 2,
    clients: CLIENTS,
    orders: ORDERS,
    log_copies: 2,
};

/// Places all orders, however often it takes.
fn buy_all(shop: &mut impl Shop, client: u16, products: u64) {
    let mut random = Random::new(u64::from(client));
    for _ in 0..ORDERS {
        while shop.buy(draw(&mut random, products)).unwrap() == CheckoutOutcome::Aborted {}
    }
}

fn memory(directory: &Path, servers: u16, bytes: u64) -> (Vec<MemoryServer>, Vec<PathBuf>) {
    let path = |server: u16| directory.join(format!("memory-{server}"));
    let start = |server| MemoryServer::start(&path(server), ServerId(server), bytes).unwrap();
    let started = (0..servers).map(start).collect();
    (started, (0..servers).map(path).collect())
}

fn connect(paths: &[PathBuf], client: u64) -> SharedMemory {
    let mut memory = SharedMemory::default();
    for path in paths {
        memory.connect(path, client).unwrap();
    }
    memory
}

fn one_sided(plan: Plan, isolation: Isolation) {
    let directory = tempfile::tempdir().unwrap();
    let (servers, paths) = memory(directory.path(), plan.servers, plan.bytes());
    load(connect(&paths, 99), plan).unwrap();
    thread::scope(|scope| {
        for client in 0..plan.clients {
            let fabric = connect(&paths, u64::from(client));
            let mut shop = OneSided::new(fabric, plan, client, isolation).unwrap();
            scope.spawn(move || buy_all(&mut shop, client, PRODUCTS));
        }
    });
    let orders = u64::from(plan.clients) * ORDERS;
    let books = Books {
        sold: 3 * orders,
        orders,
        locks: 0,
    };
    assert_eq!(audit(connect(&paths, 100), plan).unwrap(), books);
    drop(servers);
}

#[test]
fn the_books_are_right_over_one_sided_memory() {
    one_sided(PLAN.check().unwrap(), Isolation::Snapshot);
    one_sided(PLAN, Isolation::Serializable);
    let unlogged = Plan {
        log_copies: 0,
        versions: 4,
        ..PLAN
    };
    one_sided(unlogged, Isolation::Snapshot);
}

#[test]
fn the_books_are_right_in_rows() {
    let plan = RowsPlan {
        servers: 2,
        clients: CLIENTS + 1,
        log_copies: 2,
        versions: 4,
        value: 128,
        node: 600,
        loaded: PRODUCTS,
        added: 4 * ORDERS,
    };
    let directory = tempfile::tempdir().unwrap();
    let (_servers, paths) = memory(directory.path(), plan.servers, plan.bytes());
    let shop = |thread: u16, customer: u16| {
        let driver = Driver::new(connect(&paths, thread.into()));
        InRows::fixed(plan.client(thread, driver).unwrap(), customer)
    };
    shop(plan.loader(0), 99).stock_up(PRODUCTS, 128).unwrap();
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let mut shop = shop(client, client);
            scope.spawn(move || buy_all(&mut shop, client, PRODUCTS));
        }
    });
    let mut auditor = shop(CLIENTS, CLIENTS);
    auditor.touch(PRODUCTS).unwrap();
    let orders = vec![ORDERS; CLIENTS.into()];
    let sold = 3 * u64::from(CLIENTS) * ORDERS;
    let sales = auditor.audit(PRODUCTS, CLIENTS).unwrap();
    assert_eq!(sales, Sales { sold, orders });
    // Who is not among the customers, and a product that is not there, are told of.
    let unknown = auditor.audit(PRODUCTS, CLIENTS - 1).unwrap_err();
    assert!(unknown.to_string().contains("unknown client"), "{unknown}");
    assert!(auditor.audit(PRODUCTS + 1, CLIENTS).is_err());
    assert!(auditor.buy([1, 2, PRODUCTS]).is_err());
}

#[test]
fn a_client_that_has_no_room_for_an_order_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let plan = Plan { orders: 1, ..PLAN };
    let (_servers, paths) = memory(directory.path(), plan.servers, plan.bytes());
    load(connect(&paths, 99), plan).unwrap();
    let mut shop = OneSided::new(connect(&paths, 0), plan, 0, Isolation::Snapshot).unwrap();
    assert_eq!(shop.buy([1, 2, 3]), Ok(CheckoutOutcome::Committed));
    let full = shop.buy([1, 2, 3]).unwrap_err().to_string();
    assert!(full.contains("room for 1 orders"), "{full}");
    let nobody = OneSided::new(connect(&paths, 9), plan, CLIENTS, Isolation::Snapshot);
    assert!(nobody.is_err());
}

#[test]
fn the_books_are_right_on_the_published_protocol() {
    let directory = tempfile::tempdir().unwrap();
    let plan = PublishedPlan {
        servers: 2,
        products: MANY_PRODUCTS,
        clients: CLIENTS,
        orders: ORDERS,
    };
    let (_servers, paths) = memory(directory.path(), plan.servers, plan.bytes());
    published::load(connect(&paths, 99), plan).unwrap();
    let left = AtomicU16::new(CLIENTS);
    thread::scope(|scope| {
        let service = connect(&paths, 100);
        scope.spawn(|| published::serve(service, || left.load(Ordering::Relaxed) > 0).unwrap());
        for client in 0..CLIENTS {
            let (mut shop, left) = (
                Published::new(connect(&paths, u64::from(client)), plan, client),
                &left,
            );
            scope.spawn(move || {
                buy_all(&mut shop, client, MANY_PRODUCTS);
                left.fetch_sub(1, Ordering::Relaxed);
                while left.load(Ordering::Relaxed) > 0 {
                    shop.skip().unwrap();
                }
            });
        }
    });
    let orders = u64::from(CLIENTS) * ORDERS;
    let books = Books {
        sold: 3 * orders,
        orders,
        locks: 0,
    };
    assert_eq!(published::audit(connect(&paths, 101), plan).unwrap(), books);
}

/// Clients by two-phase commit, with lines that `connect` makes: one end to ask, one to answer.
fn two_phase<L: Line + Send + 'static>(connect: impl Fn() -> (L, L)) {
    const RESOURCES: usize = 2;
    let resource = |mine| Arc::new(Resource::new(mine, RESOURCES, PRODUCTS));
    let resources: Vec<Arc<Resource>> = (0..RESOURCES).map(resource).collect();
    let to_resources = || -> Vec<L> {
        let line = |resource: &Arc<Resource>| {
            let (asking, mut answering) = connect();
            let resource = Arc::clone(resource);
            thread::spawn(move || resource.serve(&mut answering).unwrap());
            asking
        };
        resources.iter().map(line).collect()
    };
    let manager = Arc::new(Manager::default());
    let client = || {
        let (asking, mut answering) = connect();
        let mut lines = to_resources();
        let manager = Arc::clone(&manager);
        thread::spawn(move || manager.serve(&mut answering, &mut lines).unwrap());
        TwoPhase::new(asking, to_resources()).unwrap()
    };
    thread::scope(|scope| {
        for number in 0..CLIENTS {
            let mut shop = client();
            scope.spawn(move || buy_all(&mut shop, number, PRODUCTS));
        }
    });
    let orders = u64::from(CLIENTS) * ORDERS;
    assert_eq!(client().audit().unwrap(), (3 * orders, 4 * orders));
}

#[test]
fn the_books_are_right_over_sockets() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    two_phase(|| {
        let asking = TcpStream::connect(address).unwrap();
        let (answering, _) = listener.accept().unwrap();
        (
            TcpLine::new(asking).unwrap(),
            TcpLine::new(answering).unwrap(),
        )
    });
}

#[test]
fn the_books_are_right_over_mailboxes() {
    let directory = tempfile::tempdir().unwrap();
    let lines = 64;
    let (_servers, paths) = memory(directory.path(), 1, lines * LINE_BYTES);
    let count = std::cell::Cell::new(0);
    two_phase(|| {
        let at = Address {
            server: ServerId(0),
            offset: count.get() * LINE_BYTES,
        };
        count.set(count.get() + 1);
        let end = |end, client| Mailbox::new(connect(&paths, client), at, end);
        let client = count.get() * 2;
        (end(End::Asking, client), end(End::Answering, client + 1))
    });
}
