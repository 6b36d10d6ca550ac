//! What a checkout over one-sided memory costs a client: one thread, memory in the same process.
//!
//! ```sh
//! cargo bench -p manxdb-checkout --bench checkout
//! ```
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::cast_precision_loss)]
#![allow(clippy::disallowed_methods)] // it measures time

use std::time::{Duration, Instant};

use manxdb_checkout::one_sided::{OneSided, load};
use manxdb_checkout::{Plan, Shop, draw};
use manxdb_core::Random;
use manxdb_fabric::ServerId;
use manxdb_fabric::shm::{MemoryServer, SharedMemory};
use manxdb_rsi::Isolation;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const FOR: Duration = Duration::from_secs(2);

/// Processor time of this thread in nanoseconds, as Linux counts it: others may use the machine too.
fn processor_time() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    first.parse().unwrap_or(f64::NAN)
}

fn main() {
    for (log_copies, isolation) in [
        (0, Isolation::Snapshot),
        (0, Isolation::Serializable),
        (2, Isolation::Snapshot),
    ] {
        let plan = Plan {
            servers: 3,
            products: 100_000,
            versions: 2,
            clients: 1,
            orders: 1 << 19,
            log_copies,
        };
        let micros = measure(plan, isolation);
        println!("{log_copies} logs, {isolation:?}: {micros:.2} µs of CPU a checkout");
    }
}

fn measure(plan: Plan, isolation: Isolation) -> f64 {
    let directory = tempfile::tempdir().unwrap();
    let path = |server: u16| directory.path().join(server.to_string());
    let start = |server| MemoryServer::start(&path(server), ServerId(server), plan.bytes());
    let _servers: Vec<MemoryServer> = (0..plan.servers).map(|one| start(one).unwrap()).collect();
    let connect = |client| {
        let mut fabric = SharedMemory::default();
        for server in 0..plan.servers {
            fabric.connect(&path(server), client).unwrap();
        }
        fabric.populate().unwrap();
        fabric
    };
    load(connect(1), plan).unwrap();
    let mut shop = OneSided::new(connect(0), plan, 0, isolation).unwrap();
    let mut random = Random::new(1);
    let (began, used, mut count) = (Instant::now(), processor_time(), 0_u64);
    while began.elapsed() < FOR && count < plan.orders {
        for _ in 0..64 {
            shop.buy(draw(&mut random, plan.products)).unwrap();
            count += 1;
        }
    }
    (processor_time() - used) / 1e3 / count as f64
}
