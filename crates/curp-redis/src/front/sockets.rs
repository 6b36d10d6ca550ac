//! Clients' sockets: accepting, reading, sending.

use manxdb_curp::CurpNode;
use manxdb_net::Outside;
use manxdb_redis::server::ClientId;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};

use super::connection::Connection;
use super::{ELSEWHERE, Front, LISTENER, wall_millis};
use crate::machine::RedisMachine;

const EVENTS: usize = 256;
/// Connections accepted in a round.
const ACCEPTED: usize = 64;

impl Front {
    /// Does what its sockets are ready for.
    pub(super) fn take_ready(&mut self, outside: &mut Outside<CurpNode<RedisMachine>>) {
        let mut events: Vec<epoll::Event> = Vec::with_capacity(EVENTS);
        let at_once = Timespec::default();
        if epoll::wait(&self.epoll, spare_capacity(&mut events), Some(&at_once)).is_err() {
            return; // interrupted: what is ready stays ready
        }
        for event in events {
            let (data, flags) = (event.data, event.flags);
            if data.u64() == LISTENER {
                self.accept();
                continue;
            }
            if data.u64() == ELSEWHERE {
                self.take_told(outside);
                continue;
            }
            let id = ClientId(data.u64());
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR) {
                connection.read();
            }
            self.active.insert(id);
            if connection.parked.is_none() {
                self.take_commands(id, outside);
            }
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTED {
            let Ok((socket, address)) = self.listener.accept() else {
                return;
            };
            if self.connections.len() >= self.settings.connections_max {
                use std::io::Write as _;
                let _ = (&socket).write_all(b"-ERR max number of clients reached\r\n");
                continue;
            }
            if socket.set_nonblocking(true).is_err() || socket.set_nodelay(true).is_err() {
                continue;
            }
            let id = self.server.connect(address.to_string(), wall_millis());
            assert!(
                id.0 != LISTENER && id.0 != ELSEWHERE,
                "a connection has a number of its own"
            );
            let data = EventData::new_u64(id.0);
            if epoll::add(&self.epoll, &socket, data, EventFlags::IN).is_err() {
                self.server.disconnect(id);
                continue;
            }
            self.connections.insert(id, Connection::new(socket));
        }
    }

    /// Sends what a client is to get; closes it when it is over.
    pub(super) fn send(&mut self, id: ClientId) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let wanted = connection.send();
        if !connection.is_closed && wanted != connection.interest {
            let (reads, writes) = wanted;
            let mut flags = EventFlags::empty();
            flags.set(EventFlags::IN, reads);
            flags.set(EventFlags::OUT, writes);
            let data = EventData::new_u64(id.0);
            let changed = epoll::modify(&self.epoll, connection.socket(), data, flags);
            connection.is_closed |= changed.is_err();
            connection.interest = wanted;
        }
        if connection.is_closed {
            let _ = epoll::delete(&self.epoll, connection.socket());
            self.connections.remove(&id);
            self.server.disconnect(id);
            self.asleep.retain(|_, call| call.client != id);
        }
    }
}
