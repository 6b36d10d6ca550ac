//! A small HTTP/1.1 server: blocking, a thread for each connection, over TLS or without.
//!
//! It serves what browsers, probes and Prometheus send: requests without a body, or with one whose length is
//! said before it. The size of a request, the time that it may take and the number of connections are
//! limited. Who asks, and for what, is no matter of this module.
//!
//! | file | what |
//! |---|---|
//! | `mod` | listening, admission, orderly end |
//! | `connection` | the requests of one connection, and what a plain one gets where TLS is spoken |
//! | `request` | bytes as requests |
//! | `answer` | answers as bytes |

mod answer;
mod connection;
mod request;

pub use answer::Answer;
pub use request::Request;

use std::collections::HashMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustls::ServerConfig;

/// Connections at a time; more are closed at once.
const CONNECTIONS_MAX: usize = 256;
/// How long the end waits for answers under way.
const STOP_PATIENCE: Duration = Duration::from_secs(5);
/// A pause after the operating system refused a connection, so that refusals cannot spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Pause between two upkeeps.
const TICK: Timespec = Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// Answers a request; many may be under way at a time.
pub type Handler = dyn Fn(&Request) -> Answer + Send + Sync;

/// A running server. It ends when it is dropped: no request is taken any more, answers under way are awaited
/// for a while.
pub struct HttpServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    /// Closed, it wakes the thread that accepts.
    ending: Option<UnixStream>,
    acceptor: Option<JoinHandle<()>>,
}

struct Shared {
    handler: Box<Handler>,
    tls: Option<Arc<ServerConfig>>,
    connections: Mutex<Connections>,
    /// A connection has ended.
    ended: Condvar,
}

#[derive(Default)]
struct Connections {
    open: HashMap<u64, Arc<TcpStream>>,
    last: u64,
}

impl HttpServer {
    /// Serves the connections of `listener`, with `tls` to clients that speak it alone. `upkeep` is called
    /// every second, and more often.
    ///
    /// # Errors
    /// The listener is none, or no thread can be started.
    pub fn start(
        listener: TcpListener,
        tls: Option<Arc<ServerConfig>>,
        handler: Box<Handler>,
        upkeep: impl Fn() + Send + 'static,
    ) -> io::Result<Self> {
        // A connection that is gone before it is accepted must not keep the thread from its end.
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (ending, end) = UnixStream::pair()?;
        let shared = Arc::new(Shared {
            handler,
            tls,
            connections: Mutex::default(),
            ended: Condvar::new(),
        });
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("admin".to_owned())
                .spawn(move || accept(&shared, &listener, &end, upkeep))?
        };
        Ok(Self {
            shared,
            address,
            ending: Some(ending),
            acceptor: Some(acceptor),
        })
    }

    /// Where it listens; the port is the real one when 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        drop(self.ending.take());
        if let Some(acceptor) = self.acceptor.take() {
            // Nothing is left to do for a thread that panicked.
            let _ = acceptor.join();
        }
        let mut connections = self.shared.connections.lock();
        for socket in connections.open.values() {
            // A client that has left already is what is wanted.
            let _ = socket.shutdown(Shutdown::Read);
        }
        let some_are_open = |connections: &mut Connections| !connections.open.is_empty();
        let waited =
            self.shared
                .ended
                .wait_while_for(&mut connections, some_are_open, STOP_PATIENCE);
        if waited.timed_out() {
            let connections = connections.open.len();
            tracing::warn!(connections, "answers of the admin listener go on");
        }
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener, end: &UnixStream, upkeep: impl Fn()) {
    loop {
        let mut wanted = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::new(end, PollFlags::IN),
        ];
        if let Err(error) = poll(&mut wanted, Some(&TICK))
            && error != rustix::io::Errno::INTR
        {
            tracing::warn!(%error, "the admin listener cannot wait for connections");
            thread::sleep(ACCEPT_PAUSE);
        }
        if !wanted[1].revents().is_empty() {
            return;
        }
        upkeep();
        match listener.accept() {
            Ok((socket, peer)) => admit(shared, socket, peer),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                tracing::warn!(%error, "the admin listener cannot accept a connection");
                thread::sleep(ACCEPT_PAUSE);
            }
        }
    }
}

fn admit(shared: &Arc<Shared>, socket: TcpStream, peer: SocketAddr) {
    let socket = Arc::new(socket);
    let Some(permit) = Permit::take(shared, &socket) else {
        tracing::debug!(%peer, "too many connections to the admin listener");
        return;
    };
    let spawned = thread::Builder::new()
        .name("admin-http".to_owned())
        .spawn(move || connection::serve(&permit.shared, socket, peer));
    if let Err(error) = spawned {
        tracing::warn!(%error, "no thread for a connection to the admin listener");
    }
}

/// A connection's place among those admitted; given up on drop, also when its thread could not start or
/// panicked.
struct Permit {
    shared: Arc<Shared>,
    number: u64,
}

impl Permit {
    fn take(shared: &Arc<Shared>, socket: &Arc<TcpStream>) -> Option<Self> {
        let mut connections = shared.connections.lock();
        if connections.open.len() >= CONNECTIONS_MAX {
            return None;
        }
        connections.last += 1;
        let number = connections.last;
        let former = connections.open.insert(number, Arc::clone(socket));
        assert!(former.is_none(), "two connections have one number");
        Some(Self {
            shared: Arc::clone(shared),
            number,
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.shared.connections.lock().open.remove(&self.number);
        self.shared.ended.notify_all();
    }
}
