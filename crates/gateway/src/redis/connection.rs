//! One client's socket and what is on its way to and from it.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::TcpStream;
use std::time::Instant;

use manxdb_redis::resp::{Decoder, Protocol};
use manxdb_redis::{Command, Reply};

use super::stream::Stream;

/// Bytes read of a socket in a round.
const READ_BYTES: usize = 64 << 10;
/// Bytes of replies behind which a client's commands wait until it reads.
const OUT_PAUSE_BYTES: usize = 1 << 20;
/// Bytes of replies and messages at which a client that does not read is closed.
const OUT_BYTES_MAX: usize = 256 << 20;
/// Memory that an idle connection keeps.
const KEPT_BYTES: usize = 64 << 10;

/// A client.
pub struct Connection {
    stream: Stream,
    /// Bytes that no whole command was made of yet.
    pub input: Vec<u8>,
    pub decoder: Decoder,
    pub command: Command,
    out: Vec<u8>,
    sent: usize,
    /// Rounds whose rows are not on disk, and where in `out` their replies begin.
    held: VecDeque<(u64, usize)>,
    /// The round whose rows are not in the log, and where in `out` its replies begin.
    unlogged: Option<(u64, usize)>,
    /// A command waits for the store.
    pub is_parked: bool,
    /// Since when the command that runs next has waited for the store.
    pub parked_since: Option<Instant>,
    /// Rows of the values that it waits for, or has waited for.
    pub awaited: Vec<Vec<u8>>,
    /// It is closed when all is sent.
    pub is_ending: bool,
    pub is_closed: bool,
    /// epoll is asked to tell when it can be written.
    pub wants_write: bool,
    /// epoll is not asked to tell when it can be read.
    pub is_paused: bool,
    /// Bytes of input when it was last looked at in vain.
    looked_at: usize,
}

impl Connection {
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            input: Vec::new(),
            decoder: Decoder::default(),
            command: Command::default(),
            out: Vec::new(),
            sent: 0,
            held: VecDeque::new(),
            unlogged: None,
            is_parked: false,
            parked_since: None,
            awaited: Vec::new(),
            is_ending: false,
            is_closed: false,
            wants_write: false,
            is_paused: false,
            looked_at: 0,
        }
    }

    pub fn socket(&self) -> &TcpStream {
        self.stream.socket()
    }

    /// Reads what there is, at most one round's bytes.
    pub fn read(&mut self, buffer: &mut [u8]) {
        let length = buffer.len().min(READ_BYTES);
        match self.stream.read(&mut buffer[..length], &mut self.input) {
            Ok(true) => self.look_again(),
            Ok(false) => self.is_closed = true,
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.is_closed = true,
        }
    }

    /// Whether its next command may run.
    pub fn may_run(&self) -> bool {
        !self.is_parked && !self.is_ending && !self.is_closed && self.unsent() < OUT_PAUSE_BYTES
    }

    /// Input is looked at again though nothing came: something else has changed.
    pub fn look_again(&mut self) {
        self.looked_at = usize::MAX;
    }

    /// Whether there is input that was not looked at, so that another round makes sense at once.
    pub fn has_progressed(&mut self) -> bool {
        let before = std::mem::replace(&mut self.looked_at, self.input.len());
        before != self.looked_at
    }

    fn unsent(&self) -> usize {
        self.out.len() - self.sent
    }

    /// Where replies are added.
    pub fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    /// Replies from `start` on wait for the log to have `round`; false when earlier ones do already.
    pub fn wait_for_log(&mut self, round: u64, start: usize) -> bool {
        let is_first = self.unlogged.is_none_or(|(before, _)| before < round);
        if is_first {
            self.unlogged = Some((round, start));
        }
        is_first
    }

    /// Whether replies wait for the log to have `round`.
    pub fn waits_for_round(&self, round: u64) -> bool {
        self.unlogged
            .is_some_and(|(waits_for, _)| waits_for == round)
    }

    /// Rounds up to `round` are in the log.
    pub fn logged(&mut self, round: u64) {
        self.unlogged = self.unlogged.filter(|(waits_for, _)| *waits_for > round);
    }

    /// The log does not take the round that replies wait for: `error` is sent in their place, and the
    /// connection ends.
    pub fn end_unlogged(&mut self, error: &Reply, protocol: Protocol) {
        if let Some((_, start)) = self.unlogged.take() {
            assert!(
                start >= self.sent,
                "a reply was sent before it was in the log"
            );
            self.out.truncate(start);
            self.held.retain(|(_, held)| *held < start);
        }
        error.encode(protocol, &mut self.out);
        self.is_ending = true;
    }

    /// The disk does not take what replies wait for: as [`Connection::end_unlogged`].
    pub fn end_unsynced(&mut self, error: &Reply, protocol: Protocol) {
        if let Some((_, start)) = self.held.pop_front() {
            self.out.truncate(start);
            self.held.clear();
            self.unlogged = None;
        }
        self.end_unlogged(error, protocol);
    }

    /// Replies from `start` on wait for the disk to have `round`.
    pub fn hold(&mut self, round: u64, start: usize) {
        if self.held.back().is_none_or(|(held, _)| *held < round) {
            self.held.push_back((round, start));
        }
    }

    /// Whether replies wait for the disk.
    pub fn is_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Rounds up to `synced` are on disk.
    pub fn release(&mut self, synced: u64) {
        while self.held.front().is_some_and(|(round, _)| *round <= synced) {
            self.held.pop_front();
        }
    }

    /// Sends what may leave; whether some of it could not be taken yet.
    pub fn send(&mut self) -> bool {
        // What follows a reply that waits is behind it.
        let waiting = self.held.front().into_iter().chain(&self.unlogged);
        let starts = waiting.map(|(_, start)| *start);
        let end = starts.min().unwrap_or(self.out.len());
        assert!(end >= self.sent, "a reply that waits was sent");
        // A handshake, or the end of what was taken before.
        match self.stream.flush() {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return !self.is_overdue(),
            Err(_) => self.is_closed = true,
        }
        while self.sent < end && !self.is_closed {
            match self.stream.write(&self.out[self.sent..end]) {
                Ok(0) => self.is_closed = true,
                Ok(bytes) => {
                    self.sent += bytes;
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return !self.is_overdue(),
                Err(_) => self.is_closed = true,
            }
            return false;
        }
        self.forget_sent();
        if self.out.is_empty() {
            if self.out.capacity() > KEPT_BYTES {
                self.out = Vec::new();
            }
            if self
                .stream
                .flush()
                .is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
            {
                return !self.is_overdue();
            }
            if self.is_ending {
                self.stream.close();
                self.is_closed = true;
            }
        }
        self.is_overdue();
        false
    }

    /// Lets go of what was sent, once that is all or much.
    fn forget_sent(&mut self) {
        if self.sent < self.out.len() && self.sent < OUT_PAUSE_BYTES {
            return;
        }
        let waiting = self.held.iter_mut().chain(&mut self.unlogged);
        waiting.for_each(|(_, start)| *start -= self.sent);
        self.out.drain(..self.sent);
        self.sent = 0;
    }

    fn is_overdue(&mut self) -> bool {
        if self.unsent() > OUT_BYTES_MAX {
            self.is_closed = true;
        }
        self.is_closed
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    fn pair() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        (Connection::new(Stream::new(socket, None)), client)
    }

    fn expect_read(client: &mut TcpStream, wanted: &str) {
        client.set_nonblocking(false).unwrap();
        let mut found = vec![0; wanted.len()];
        client.read_exact(&mut found).unwrap();
        assert_eq!(String::from_utf8_lossy(&found), wanted);
        client.set_nonblocking(true).unwrap();
        let more = client.read(&mut [0; 1]);
        assert_eq!(more.unwrap_err().kind(), ErrorKind::WouldBlock);
    }

    #[test]
    fn nothing_passes_a_reply_that_waits_for_the_log_or_the_disk() {
        let (mut connection, mut client) = pair();
        connection.out().extend_from_slice(b"+read\r\n");
        // The reply of a write may be empty: CLIENT REPLY OFF.
        let start = connection.out().len();
        assert!(connection.wait_for_log(1, start));
        assert!(!connection.wait_for_log(1, start));
        connection.hold(1, start);
        assert!(!connection.send());
        expect_read(&mut client, "+read\r\n");
        connection.out().extend_from_slice(b"+later\r\n");
        connection.send();
        connection.release(1);
        connection.send();
        assert_eq!(
            client.read(&mut [0; 1]).unwrap_err().kind(),
            ErrorKind::WouldBlock
        );
        connection.logged(1);
        connection.send();
        expect_read(&mut client, "+later\r\n");
        assert!(!connection.is_closed && connection.out.is_empty());
    }

    #[test]
    fn what_was_sent_is_let_go_of_while_later_replies_wait() {
        let (mut connection, mut client) = pair();
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            client.read_to_end(&mut read).unwrap();
            read.len()
        });
        let page = vec![b'x'; 100 << 10];
        for round in 1..=40 {
            connection.out().extend_from_slice(&page);
            let start = connection.out().len();
            connection.wait_for_log(round, start);
            connection.out().extend_from_slice(b"+OK\r\n");
            while connection.send() {
                std::thread::yield_now();
            }
            assert!(connection.out.len() < OUT_PAUSE_BYTES + 2 * page.len());
            connection.logged(round);
        }
        connection.is_ending = true;
        while !connection.is_closed {
            connection.send();
        }
        drop(connection);
        assert_eq!(reader.join().unwrap(), 40 * (page.len() + 5));
    }

    #[test]
    fn replies_that_the_log_or_the_disk_does_not_take_become_one_error() {
        let error = Reply::error("MISCONF no".to_owned());
        for is_logged in [false, true] {
            let (mut connection, mut client) = pair();
            connection.out().extend_from_slice(b"+read\r\n");
            for _ in 0..2 {
                let start = connection.out().len();
                connection.wait_for_log(7, start);
                connection.hold(7, start);
                connection.out().extend_from_slice(b"+OK\r\n");
            }
            if is_logged {
                connection.logged(7);
                connection.end_unsynced(&error, Protocol::Resp2);
            } else {
                connection.end_unlogged(&error, Protocol::Resp2);
            }
            connection.send();
            assert!(connection.is_closed);
            drop(connection);
            let mut read = String::new();
            client.read_to_string(&mut read).unwrap();
            assert_eq!(read, "+read\r\n-MISCONF no\r\n");
        }
    }
}
