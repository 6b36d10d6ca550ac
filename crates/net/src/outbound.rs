//! A connection to another process: made on demand, made again after failures.
//!
//! Frames for a process that cannot be reached are dropped: the channels above send them again,
//! and older ones would only be in the way.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, BorrowedFd};

use manxdb_core::Nanos;
use rustix::event::epoll::EventFlags;
use rustix::net::{AddressFamily, SocketFlags, SocketType};

use crate::counters::Counters;

/// The first pause after a failure; doubles.
const PAUSE_MIN: Nanos = Nanos::from_millis(10);
/// The longest pause.
const PAUSE_MAX: Nanos = Nanos::from_secs(1);
/// A connection that lasted so long was a good one: the next pause is short again.
const GOOD_AFTER: Nanos = Nanos::from_secs(1);
/// Bytes that may wait for a slow receiver.
const WAITING_BYTES_MAX: usize = 512 << 20;
/// A buffer that has grown past this is given back once it is empty.
const IDLE_BYTES_MAX: usize = 1 << 20;

#[derive(Debug)]
enum State {
    /// Nothing to send so far, or the pause may be over.
    Closed {
        /// No attempt before this.
        until: Nanos,
    },
    Connecting(TcpStream),
    Open {
        stream: TcpStream,
        since: Nanos,
    },
}

/// A connection out.
#[derive(Debug)]
pub struct Outbound {
    address: SocketAddr,
    state: State,
    /// Not yet written from `written` on.
    waiting: Vec<u8>,
    written: usize,
    /// Failures in a row.
    failures: u32,
    was_open: bool,
    /// Counts sockets: each new one has to be waited for anew.
    generation: u64,
    /// By which the loop tells it apart.
    pub(crate) number: u64,
    /// The socket that the loop waits for, by its generation, and for what.
    pub(crate) watched: Option<(u64, EventFlags)>,
}

impl Outbound {
    /// To `address`, under a number of its own; nothing is opened yet.
    #[must_use]
    pub fn new(address: SocketAddr, number: u64) -> Self {
        Self {
            address,
            state: State::Closed { until: Nanos::ZERO },
            waiting: Vec::new(),
            written: 0,
            failures: 0,
            was_open: false,
            generation: 0,
            number,
            watched: None,
        }
    }

    /// Sends a frame, or drops it. A new connection begins with `hello`.
    pub fn send(&mut self, now: Nanos, hello: &[u8], frame: &[u8], counters: &mut Counters) {
        if let State::Closed { until } = self.state
            && now >= until
        {
            self.connect(now, hello, counters);
        }
        let is_closed = matches!(self.state, State::Closed { .. });
        if is_closed || self.waiting.len() - self.written + frame.len() > WAITING_BYTES_MAX {
            counters.dropped += 1;
            return;
        }
        self.waiting.extend_from_slice(frame);
    }

    /// The process at its address has just said hello: the pause after failures is over.
    pub fn is_there(&mut self) {
        if let State::Closed { until } = &mut self.state {
            *until = Nanos::ZERO;
        }
        self.failures = 0;
    }

    fn connect(&mut self, now: Nanos, hello: &[u8], counters: &mut Counters) {
        if self.was_open || self.failures > 0 {
            counters.reconnects += 1;
        } else {
            counters.connects += 1;
        }
        match begin_connect(self.address) {
            Ok(stream) => {
                self.generation += 1;
                self.state = State::Connecting(stream);
                self.waiting.extend_from_slice(hello);
            }
            Err(error) => self.fail(now, &error),
        }
    }

    /// Which of its sockets it has; grows with each.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The descriptor to wait for, and for what.
    #[must_use]
    pub fn interest(&self) -> Option<(BorrowedFd<'_>, EventFlags)> {
        match &self.state {
            State::Closed { .. } => None,
            State::Connecting(stream) => Some((stream.as_fd(), EventFlags::OUT)),
            State::Open { stream, .. } => {
                let is_behind = self.written < self.waiting.len();
                let writes = if is_behind {
                    EventFlags::OUT
                } else {
                    EventFlags::empty()
                };
                Some((stream.as_fd(), EventFlags::IN | writes))
            }
        }
    }

    /// Whether there is something to write now.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.written < self.waiting.len() && matches!(self.state, State::Open { .. })
    }

    /// The descriptor is ready.
    pub fn ready(&mut self, now: Nanos, flags: EventFlags, counters: &mut Counters) {
        let result = match std::mem::replace(&mut self.state, State::Closed { until: now }) {
            State::Connecting(stream) => self.finish_connect(now, stream),
            State::Open { stream, since } => {
                let result = if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR)
                {
                    look_for_end(&stream)
                } else {
                    Ok(())
                };
                self.state = State::Open { stream, since };
                result
            }
            closed @ State::Closed { .. } => {
                self.state = closed;
                return;
            }
        };
        match result {
            Ok(()) => self.flush(now, counters),
            Err(error) => self.fail(now, &error),
        }
    }

    fn finish_connect(&mut self, now: Nanos, stream: TcpStream) -> io::Result<()> {
        if let Some(error) = stream.take_error()? {
            return Err(error);
        }
        stream.set_nodelay(true)?;
        self.was_open = true;
        self.state = State::Open { stream, since: now };
        Ok(())
    }

    /// Writes what the socket takes.
    pub fn flush(&mut self, now: Nanos, counters: &mut Counters) {
        while let State::Open { stream, .. } = &mut self.state {
            let rest = &self.waiting[self.written..];
            if rest.is_empty() {
                break;
            }
            match stream.write(rest) {
                Ok(0) => return self.fail(now, &io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count;
                    counters.bytes_sent += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.fail(now, &error),
            }
        }
        self.tidy();
    }

    fn tidy(&mut self) {
        if self.written == self.waiting.len() {
            self.waiting.clear();
            self.waiting.shrink_to(IDLE_BYTES_MAX);
            self.written = 0;
        } else if self.written > self.waiting.len() / 2 {
            self.waiting.drain(..self.written);
            self.written = 0;
        }
    }

    fn fail(&mut self, now: Nanos, error: &io::Error) {
        if let State::Open { since, .. } = self.state
            && now.saturating_sub(since) >= GOOD_AFTER
        {
            self.failures = 0;
        }
        let pause = PAUSE_MIN * (1_u64 << self.failures.min(16));
        let pause = pause.min(PAUSE_MAX);
        self.failures = self.failures.saturating_add(1);
        tracing::debug!(to = %self.address, %error, pause_ms = pause.as_millis_f64(), "connection lost");
        self.state = State::Closed { until: now + pause };
        self.waiting = Vec::new();
        self.written = 0;
    }
}

/// Nothing is ever answered on a connection out, so readable means that it ended.
fn look_for_end(mut stream: &TcpStream) -> io::Result<()> {
    match stream.read(&mut [0; 64]) {
        Ok(0) => Err(io::ErrorKind::ConnectionAborted.into()),
        Ok(_) => Err(io::Error::other("unexpected bytes")),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
        Err(error) => Err(error),
    }
}

/// The loop must not stand still while a far peer answers.
fn begin_connect(address: SocketAddr) -> io::Result<TcpStream> {
    let family = match address {
        SocketAddr::V4(_) => AddressFamily::INET,
        SocketAddr::V6(_) => AddressFamily::INET6,
    };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    match rustix::net::connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}
