//! The Redis frontend: `manxdb-redis` behind sockets, over the store that SQL has.
//!
//! One thread owns all keys and all connections (docs/decisions/035-one-loop-for-redis.md). It works in rounds: it
//! takes what sockets have, runs all whole commands, appends what they wrote to the commit log as
//! one batch, and sends the replies. With `sync` replies of connections that wrote are held until
//! another thread has seen the batch on disk; rounds go on meanwhile.
//!
//! ```text
//! redis-loop    epoll · commands · one append a round · replies      (event_loop, answers, connection, stream)
//! redis-sync    waits for the disk, for all rounds before at once    (sync)
//! redis-names   names of keys after a start; rows that nobody sees   (store, garbage)
//! redis-values  values that are in the store only                    (store, loads)
//! ```
//!
//! A script holds the loop up; other connections are told so, and may end it (script_host).
//!
//! Start reading at [`RedisServer`], then `event_loop`.

mod answers;
mod check;
mod connection;
mod event_loop;
mod garbage;
mod loads;
mod long_commands;
mod numbers;
mod script_host;
mod sockets;
mod store;
mod stream;
mod sync;
mod users_file;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use manxdb_redis::server::Settings;
use manxdb_storage::{Engine, StorageError};
use manxdb_txn::LocalPath;
use rustix::event::{EventfdFlags, eventfd};
use rustls::ServerConfig;

pub use check::{RowsReport, check_rows};
use event_loop::EventLoop;
pub use numbers::RedisCounters;

/// Stack of the loop: scripts nest tables and calls.
const LOOP_STACK_BYTES: usize = 16 << 20;

/// What a Redis server keeps rows in.
#[derive(Clone)]
pub struct RedisStore {
    /// Reads.
    pub engine: Arc<dyn Engine>,
    /// Writes, in the order of all commits of the store.
    pub path: Arc<LocalPath>,
}

/// Where clients connect.
pub struct Listening {
    /// Accepts them.
    pub listener: TcpListener,
    /// For clients that begin with TLS; without it there is none.
    pub tls: Option<Arc<ServerConfig>>,
    /// Connections at a time; more are refused.
    pub connections_max: usize,
    /// Where users are kept beside those of the settings: ACL LOAD and SAVE.
    pub users: Option<PathBuf>,
}

/// What the threads share.
struct Shared {
    /// Wakes the loop.
    bell: OwnedFd,
    is_stopping: AtomicBool,
    counters: Arc<RedisCounters>,
}

impl Shared {
    fn wake(&self) {
        // Full is awake.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }
}

/// A running Redis server.
pub struct RedisServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl RedisServer {
    /// Serves the connections of `listening` until [`RedisServer::shutdown`].
    ///
    /// # Errors
    /// The store or the file of users cannot be read, or the system gives no threads or descriptors.
    pub fn start(listening: Listening, store: RedisStore, settings: Settings) -> io::Result<Self> {
        let address = listening.listener.local_addr()?;
        let shared = Arc::new(Shared {
            bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
            is_stopping: AtomicBool::new(false),
            counters: Arc::default(),
        });
        let keyspace = store::open(store.engine.as_ref()).map_err(other)?;
        let mut threads = Vec::new();
        let (syncs, sync_thread) = sync::start(&shared, &store, settings.is_synced)?;
        threads.push(sync_thread);
        let (values, value_threads) = store::start(&shared, &store, &syncs)?;
        threads.extend(value_threads);
        let round = EventLoop::new(listening, keyspace, settings, store, syncs, values, &shared)?;
        let thread = thread::Builder::new()
            .name("redis-loop".to_owned())
            .stack_size(LOOP_STACK_BYTES);
        threads.push(thread.spawn(move || round.run())?);
        Ok(Self {
            shared,
            address,
            threads,
        })
    }

    /// Where it listens; the port is the real one when 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Numbers for metrics.
    #[must_use]
    pub fn counters(&self) -> Arc<RedisCounters> {
        Arc::clone(&self.shared.counters)
    }

    /// Ends: what was answered is in the log.
    pub fn shutdown(mut self) {
        self.shared.is_stopping.store(true, Ordering::SeqCst);
        self.shared.wake();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the Redis server ended with a panic");
            }
        }
    }
}

fn other(error: StorageError) -> io::Error {
    io::Error::other(error)
}
