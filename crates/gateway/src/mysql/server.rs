//! The listening side: admission, one thread a connection, orderly end.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use manxdb_sql::error::SqlError;
use manxdb_sql::session::Instance;

use super::connection::{self, Connection};
use super::framing::Channel;
use super::idle;
use super::response::put_error;
use super::shared::{MysqlOptions, Shared};
use crate::host::ProcessHost;
use crate::transport::Transport;

/// Stack of a connection's thread, bytes. Below 2 MiB no transparent huge page fits into it, so
/// that an idle connection costs the few pages it touched.
const STACK_BYTES: usize = 2 * 1024 * 1024 - 64 * 1024;
/// A pause after the operating system refused a connection, so that refusals cannot spin.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long killed connections may take to leave.
const KILL_GRACE: Duration = Duration::from_secs(5);

/// A running MySQL listener.
pub struct MysqlServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    acceptor: Option<JoinHandle<()>>,
}

impl MysqlServer {
    /// Serves the connections of `listener` until [`MysqlServer::shutdown`].
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        listener: TcpListener,
        instance: Arc<Instance>,
        host: Arc<ProcessHost>,
        options: MysqlOptions,
    ) -> io::Result<Self> {
        crate::admin::install_recorder();
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::new(instance, host, options)?);
        {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("mysql-idle".to_owned())
                .spawn(move || idle::watch(&shared))?;
        }
        let acceptor = {
            let shared = Arc::clone(&shared);
            thread::Builder::new()
                .name("mysql-accept".to_owned())
                .spawn(move || accept(&shared, &listener))?
        };
        Ok(Self {
            shared,
            address,
            acceptor: Some(acceptor),
        })
    }

    /// Where it listens; the port is the real one when 0 was asked for.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting, lets running statements finish for `grace`, then interrupts them.
    /// Returns whether all connections ended by themselves.
    pub fn shutdown(mut self, grace: Duration) -> bool {
        self.shared.draining.store(true, Ordering::SeqCst);
        wake_acceptor(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            // It cannot have panicked in a way that matters now.
            let _ = acceptor.join();
        }
        self.shared.host.stop_reading();
        if self.shared.host.wait_until_empty(grace) {
            return true;
        }
        tracing::warn!(
            connections = self.shared.host.connections(),
            "interrupting statements that did not finish in time"
        );
        self.shared.host.kill_all();
        let _ = self.shared.host.wait_until_empty(KILL_GRACE);
        false
    }
}

/// A blocked accept ends with a connection: make one.
fn wake_acceptor(mut address: SocketAddr) {
    if address.ip().is_unspecified() {
        address.set_ip(match address {
            SocketAddr::V4(_) => std::net::Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => std::net::Ipv6Addr::LOCALHOST.into(),
        });
    }
    // Failing means that nobody listens any more, which is the aim.
    let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    loop {
        let accepted = listener.accept();
        if shared.draining.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok((socket, _)) => admit(shared, Arc::new(socket)),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                thread::sleep(ACCEPT_PAUSE);
            }
        }
    }
}

fn admit(shared: &Arc<Shared>, socket: Arc<TcpStream>) {
    shared.metrics.accepted.increment(1);
    if shared.connections.load(Ordering::SeqCst) >= shared.instance.max_connections() {
        let error = SqlError::new(1040, "08004", "Too many connections");
        return refuse(shared, socket, &error);
    }
    let permit = ConnectionPermit::take(shared, &socket);
    let spawned = {
        let socket = Arc::clone(&socket);
        thread::Builder::new()
            .name(format!("mysql-{}", permit.id))
            .stack_size(STACK_BYTES)
            .spawn(move || connection::serve(permit, socket))
    };
    if let Err(error) = spawned {
        let message = format!("Can't create a new thread ({error})");
        refuse(shared, socket, &SqlError::new(1135, "HY000", message));
    }
}

/// Gives an idle connection a thread again. Without one it is closed: there is nothing to tell
/// its client with.
pub(super) fn resume(connection: Connection) {
    let id = connection.id();
    let spawned = thread::Builder::new()
        .name(format!("mysql-{id}"))
        .stack_size(STACK_BYTES)
        .spawn(move || connection.run());
    if let Err(error) = spawned {
        tracing::warn!(connection = id, %error, "an idle connection gets no thread and is closed");
    }
}

/// Tells a client in the first packet why it is not admitted. The packet fits into the socket's
/// buffer, so that this blocks on nobody.
fn refuse(shared: &Shared, socket: Arc<TcpStream>, error: &SqlError) {
    shared.metrics.refused.increment(1);
    if let Ok(transport) = Transport::new(socket, ACCEPT_PAUSE) {
        let mut channel = Channel::new(transport);
        put_error(channel.start_packet(), error, false);
        let _ = channel.end_packet().and_then(|()| channel.flush());
    }
}

/// A connection's place among those admitted; given up on drop, also when its thread could not
/// start or panicked.
pub(super) struct ConnectionPermit {
    pub(super) shared: Arc<Shared>,
    pub(super) id: u64,
}

impl ConnectionPermit {
    fn take(shared: &Arc<Shared>, socket: &Arc<TcpStream>) -> Self {
        let id = shared.instance.next_connection_id();
        shared.connections.fetch_add(1, Ordering::SeqCst);
        shared.metrics.connections.increment(1.0);
        shared.host.register(id, Arc::clone(socket));
        Self {
            shared: Arc::clone(shared),
            id,
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        self.shared.connections.fetch_sub(1, Ordering::SeqCst);
        self.shared.metrics.connections.decrement(1.0);
        self.shared.host.forget(self.id);
    }
}
