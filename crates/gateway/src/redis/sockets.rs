//! All connections and what the system tells of them.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use manxdb_redis::server::{ClientId, Server};
use rustix::event::epoll;
use rustix::fd::{AsFd as _, OwnedFd};
use rustls::ServerConfig;

use super::Listening;
use super::connection::Connection;
use super::stream::Stream;

const LISTENER: u64 = 0;
const BELL: u64 = u64::MAX;
/// Connections accepted in a round.
const ACCEPTED: usize = 64;

/// Sockets, and the connections on them.
pub struct Sockets {
    pub listener: TcpListener,
    pub epoll: OwnedFd,
    bell: OwnedFd,
    /// Each is taken out while its commands run: a pointer is what moves.
    pub connections: HashMap<ClientId, Box<Connection>, foldhash::fast::RandomState>,
    connections_max: usize,
    tls: Option<Arc<ServerConfig>>,
    /// Connections with something to send, or whose next commands may be there.
    pub active: BTreeSet<ClientId>,
    buffer: Vec<u8>,
}

impl Sockets {
    /// Begins to listen; `bell` wakes who waits.
    pub fn new(listening: Listening, bell: &OwnedFd) -> io::Result<Self> {
        let Listening {
            listener,
            tls,
            connections_max,
            users: _,
        } = listening;
        listener.set_nonblocking(true)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = bell.try_clone()?;
        for (socket, data) in [(listener.as_fd(), LISTENER), (bell.as_fd(), BELL)] {
            let data = epoll::EventData::new_u64(data);
            epoll::add(&epoll, socket, data, epoll::EventFlags::IN)?;
        }
        Ok(Self {
            listener,
            epoll,
            bell,
            connections: HashMap::default(),
            connections_max,
            tls,
            active: BTreeSet::new(),
            buffer: vec![0; 64 << 10],
        })
    }

    /// Takes one event.
    pub fn take(&mut self, server: &mut Server, data: u64, flags: epoll::EventFlags, now: u64) {
        match data {
            LISTENER => self.accept(server, now),
            BELL => {
                let mut rung = [0; 8];
                let _ = rustix::io::read(&self.bell, &mut rung);
            }
            id => {
                let id = ClientId(id);
                let Some(connection) = self.connections.get_mut(&id) else {
                    return;
                };
                let may_read =
                    epoll::EventFlags::IN | epoll::EventFlags::HUP | epoll::EventFlags::ERR;
                if flags.intersects(may_read) {
                    connection.read(&mut self.buffer);
                }
                self.active.insert(id);
            }
        }
    }

    fn accept(&mut self, server: &mut Server, now: u64) {
        for _ in 0..ACCEPTED {
            let Ok((socket, address)) = self.listener.accept() else {
                return;
            };
            if self.connections.len() >= self.connections_max {
                use std::io::Write as _;
                let _ = (&socket).write_all(b"-ERR max number of clients reached\r\n");
                continue;
            }
            if socket.set_nonblocking(true).is_err() || socket.set_nodelay(true).is_err() {
                continue;
            }
            let id = server.connect(address.to_string(), now);
            assert!(
                id.0 != LISTENER && id.0 != BELL,
                "a connection has a number of its own"
            );
            let data = epoll::EventData::new_u64(id.0);
            if epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN).is_err() {
                server.disconnect(id);
                continue;
            }
            if let Ok(local) = socket.local_addr() {
                server.set_local_address(id, local.to_string());
            }
            let stream = Stream::new(socket, self.tls.clone());
            self.connections
                .insert(id, Box::new(Connection::new(stream)));
        }
    }
}
