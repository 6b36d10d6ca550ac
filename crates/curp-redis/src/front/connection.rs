//! One Redis client: bytes in, replies out in the order of its commands.

use std::collections::{BTreeSet, VecDeque};
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;

use manxdb_redis::Command;
use manxdb_redis::resp::Decoder;
use manxdb_redis::server::DataCall;

/// Bytes read of a socket in a round.
const READ_BYTES: usize = 64 << 10;
/// Bytes of replies behind which a client's commands wait until it reads.
const OUT_PAUSE_BYTES: usize = 1 << 20;
/// Commands of one client that may be under way.
const SLOTS_MAX: usize = 1_024;
/// Bytes of commands that wait; more are not read.
const INPUT_PAUSE_BYTES: usize = 1 << 20;

/// What a command under way touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Footprint {
    /// These keys.
    Keys(BTreeSet<Vec<u8>>),
    /// Perhaps any.
    Everything,
}

impl Footprint {
    /// Whether two commands have to run in the order in which they came.
    fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Keys(own), Self::Keys(other)) => !own.is_disjoint(other),
            _ => true,
        }
    }
}

/// The place of a reply.
#[derive(Debug)]
enum Slot {
    Waiting(Footprint),
    Ready(Vec<u8>),
}

/// A client.
#[derive(Debug)]
pub(super) struct Connection {
    socket: TcpStream,
    /// Bytes that no whole command was made of yet.
    pub(super) input: Vec<u8>,
    pub(super) decoder: Decoder,
    pub(super) command: Command,
    out: Vec<u8>,
    sent: usize,
    /// Replies to come, in order; the first has the number `first`.
    slots: VecDeque<Slot>,
    first: u64,
    /// The next command, with its bytes: it waits for one before it.
    pub(super) parked: Option<(DataCall, Vec<u8>, Footprint)>,
    /// It is closed when all is sent.
    pub(super) is_ending: bool,
    pub(super) is_closed: bool,
    /// What epoll was asked to tell: readable, writable.
    pub(super) interest: (bool, bool),
}

impl Connection {
    pub(super) fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            input: Vec::new(),
            decoder: Decoder::default(),
            command: Command::default(),
            out: Vec::new(),
            sent: 0,
            slots: VecDeque::new(),
            first: 0,
            parked: None,
            is_ending: false,
            is_closed: false,
            interest: (true, false),
        }
    }

    pub(super) fn socket(&self) -> &TcpStream {
        &self.socket
    }

    /// Reads what there is, at most one round's bytes.
    pub(super) fn read(&mut self) {
        let start = self.input.len();
        self.input.resize(start + READ_BYTES, 0);
        let mut count = 0;
        match self.socket.read(&mut self.input[start..]) {
            Ok(0) => self.is_closed = true,
            Ok(read) => count = read,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.is_closed = true,
        }
        self.input.truncate(start + count);
    }

    /// Whether its next command may be looked at.
    pub(super) fn may_run(&self) -> bool {
        let unsent = self.out.len() - self.sent;
        self.parked.is_none()
            && !self.is_ending
            && !self.is_closed
            && self.slots.len() < SLOTS_MAX
            && unsent < OUT_PAUSE_BYTES
    }

    /// Whether a command with this footprint has to wait for one before it.
    pub(super) fn is_blocked(&self, footprint: &Footprint) -> bool {
        self.slots.iter().any(|slot| match slot {
            Slot::Waiting(earlier) => earlier.meets(footprint),
            Slot::Ready(_) => false,
        })
    }

    /// Takes a place for the reply to a command that is under way; its number.
    pub(super) fn reserve(&mut self, footprint: Footprint) -> u64 {
        assert!(
            self.slots.len() < SLOTS_MAX,
            "a client has so many commands"
        );
        self.slots.push_back(Slot::Waiting(footprint));
        self.first + self.slots.len() as u64 - 1
    }

    /// A reply that is known at once, behind those that are not.
    pub(super) fn answer(&mut self, reply: Vec<u8>) {
        self.slots.push_back(Slot::Ready(reply));
        self.settle();
    }

    /// The reply for a place.
    pub(super) fn fill(&mut self, number: u64, reply: Vec<u8>) {
        assert!(number >= self.first, "a command is answered once");
        let index = usize::try_from(number - self.first).unwrap_or(usize::MAX);
        let slot = self.slots.get_mut(index);
        assert!(
            matches!(slot, Some(Slot::Waiting(_))),
            "what is answered is waited for"
        );
        if let Some(slot) = slot {
            *slot = Slot::Ready(reply);
        }
        self.settle();
    }

    /// Moves replies that nothing is in front of to where they are sent from.
    fn settle(&mut self) {
        while let Some(Slot::Ready(_)) = self.slots.front() {
            if let Some(Slot::Ready(reply)) = self.slots.pop_front() {
                self.out.extend_from_slice(&reply);
                self.first += 1;
            }
        }
    }

    /// Whether replies are still to come.
    pub(super) fn is_waiting(&self) -> bool {
        !self.slots.is_empty()
    }

    /// Sends what is there; then what epoll is to tell: readable, writable.
    pub(super) fn send(&mut self) -> (bool, bool) {
        while self.sent < self.out.len() && !self.is_closed {
            match self.socket.write(&self.out[self.sent..]) {
                Ok(0) => self.is_closed = true,
                Ok(bytes) => self.sent += bytes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.is_closed = true,
            }
        }
        assert!(self.sent <= self.out.len(), "no more is sent than there is");
        if self.sent == self.out.len() {
            self.out.clear();
            self.out.shrink_to(READ_BYTES);
            self.sent = 0;
            self.is_closed |= self.is_ending && !self.is_waiting() && self.parked.is_none();
        }
        let reads = self.input.len() < INPUT_PAUSE_BYTES || self.may_run();
        (reads, self.sent < self.out.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(keys: &[&str]) -> Footprint {
        Footprint::Keys(keys.iter().map(|key| key.as_bytes().to_vec()).collect())
    }

    fn connection() -> (Connection, TcpStream) {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        (Connection::new(socket), client)
    }

    #[test]
    fn replies_leave_in_the_order_of_commands() {
        let (mut connection, mut client) = connection();
        let first = connection.reserve(keys(&["a"]));
        let second = connection.reserve(keys(&["b"]));
        connection.answer(b"3".to_vec());
        connection.fill(second, b"2".to_vec());
        connection.send();
        assert!(connection.is_waiting());
        connection.fill(first, b"1".to_vec());
        connection.send();
        let mut read = [0; 3];
        client.read_exact(&mut read).unwrap();
        assert_eq!(&read, b"123");
        assert!(!connection.is_waiting());
    }

    #[test]
    fn commands_on_a_key_wait_for_each_other_and_others_do_not() {
        let (mut connection, _client) = connection();
        let first = connection.reserve(keys(&["a", "b"]));
        assert!(connection.is_blocked(&keys(&["b", "c"])));
        assert!(!connection.is_blocked(&keys(&["c"])));
        assert!(!connection.is_blocked(&keys(&[])));
        assert!(connection.is_blocked(&Footprint::Everything));
        connection.fill(first, Vec::new());
        assert!(!connection.is_blocked(&Footprint::Everything));
        connection.reserve(Footprint::Everything);
        assert!(connection.is_blocked(&keys(&[])));
    }
}
