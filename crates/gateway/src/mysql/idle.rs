//! Connections that wait for their client's next command without a thread.
//!
//! A thread costs its stack and the allocator's caches of free memory, some hundred kilobytes. A
//! connection that has been idle for a while is therefore put here: one thread waits for all of
//! them, and gives each a thread of its own again when something arrives or its time is over.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};

use super::connection::Connection;
use super::server::resume;
use super::shared::Shared;

/// How long the thread waits before it looks for connections whose time is over, seconds.
const ROUND_SECONDS: i64 = 1;
/// Most events taken in one round.
const EVENTS_MAX: usize = 1024;
/// A pause after the operating system could not say what has happened, so that this cannot spin.
const FAILURE_PAUSE: Duration = Duration::from_millis(50);

/// What is waited for: bytes, or the end of the stream.
const EVENTS: epoll::EventFlags = epoll::EventFlags::IN.union(epoll::EventFlags::RDHUP);

/// The idle connections of a server.
pub struct IdleConnections {
    epoll: OwnedFd,
    waiting: Mutex<HashMap<u64, Waiting>>,
}

struct Waiting {
    connection: Connection,
    /// When the client is given up.
    until: Instant,
}

impl IdleConnections {
    /// None yet.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            waiting: Mutex::default(),
        })
    }

    /// Waits for the client of `connection` until `until`.
    ///
    /// # Errors
    /// The operating system cannot watch its socket; the connection comes back.
    pub fn add(
        &self,
        connection: Connection,
        until: Instant,
    ) -> Result<(), Box<(Connection, io::Error)>> {
        let id = connection.id();
        let socket = connection.socket();
        // The map first: the event may come before this returns.
        let mut waiting = self.waiting.lock();
        let data = epoll::EventData::new_u64(id);
        if let Err(error) = epoll::add(&self.epoll, socket.as_fd(), data, EVENTS) {
            return Err(Box::new((connection, error.into())));
        }
        let before = waiting.insert(id, Waiting { connection, until });
        assert!(before.is_none(), "a connection waits twice");
        Ok(())
    }

    fn take(&self, id: u64) -> Option<Connection> {
        let taken = self.waiting.lock().remove(&id)?;
        // The socket leaves the set by itself when it is closed.
        let _ = epoll::delete(&self.epoll, taken.connection.socket().as_fd());
        Some(taken.connection)
    }

    fn overdue(&self, now: Instant) -> Vec<u64> {
        let waiting = self.waiting.lock();
        let overdue = waiting.iter().filter(|(_, waiting)| waiting.until <= now);
        overdue.map(|(id, _)| *id).collect()
    }

    /// Connections of which something arrived within a round.
    fn wait(&self) -> io::Result<Vec<u64>> {
        let mut events = Vec::with_capacity(EVENTS_MAX);
        let round = Timespec {
            tv_sec: ROUND_SECONDS,
            tv_nsec: 0,
        };
        match epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&round)) {
            Ok(_) => Ok(events.iter().map(|event| event.data.u64()).collect()),
            Err(rustix::io::Errno::INTR) => Ok(Vec::new()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The thread behind [`IdleConnections`]; ends when the server drains and no connection is left
/// that could come here.
pub fn watch(shared: &Arc<Shared>) {
    let idle = &shared.idle;
    let is_over =
        || shared.draining.load(Ordering::SeqCst) && shared.connections.load(Ordering::SeqCst) == 0;
    while !is_over() {
        match idle.wait() {
            Ok(arrived) => {
                for connection in arrived.into_iter().filter_map(|id| idle.take(id)) {
                    resume(connection);
                }
            }
            Err(error) => {
                tracing::warn!(%error, "cannot wait for idle connections");
                thread::sleep(FAILURE_PAUSE);
            }
        }
        for mut connection in idle
            .overdue(Instant::now())
            .into_iter()
            .filter_map(|id| idle.take(id))
        {
            connection.give_up();
            resume(connection);
        }
    }
}
