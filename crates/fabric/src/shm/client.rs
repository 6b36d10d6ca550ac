//! A client's side: operations are done at once, by the client itself.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering, fence};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::net::sockopt::Timeout;
use rustix::net::{self, AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::hello::{self, Ask, Report};
use crate::address::ServerId;
use crate::fabric::{BatchId, Completion, Fabric, check};
use crate::grants::Grants;
use crate::memory::segment;
use crate::memory::words::Words;
use crate::operation::{Fault, Misuse, Operation, OperationOutcome};

/// How long one waits at the listener of a server for a word.
const PATIENCE: Duration = Duration::from_secs(5);

/// The memory of servers on this machine.
#[derive(Default)]
pub struct SharedMemory {
    /// By their numbers.
    servers: Vec<Option<Segment>>,
    done: VecDeque<Completion>,
    work: Arc<AtWork>,
}

/// Whether a batch is under way: odd meanwhile.
#[derive(Default)]
struct AtWork(AtomicU64);

impl AtWork {
    /// Whoever looks from now on sees that a batch is under way, or the batch sees what that one has
    /// said before it looked. And all that batches before it have written is there for everybody before
    /// anything of this one is done: who waits for that at the end of each batch waits for its memory,
    /// which meanwhile comes by itself.
    fn begin(&self) {
        let before = self.step(Ordering::Relaxed);
        assert!(
            before.is_multiple_of(2),
            "batches of a client do not overlap"
        );
        fence(Ordering::SeqCst);
    }

    fn end(&self) {
        let before = self.step(Ordering::Release);
        assert!(!before.is_multiple_of(2), "what ends has begun");
    }

    /// Batches are one client's, one after the other: nobody else counts here.
    fn step(&self, order: Ordering) -> u64 {
        let count = self.0.load(Ordering::Relaxed);
        self.0.store(count.wrapping_add(1), order);
        count
    }

    /// Waits for the end of the batch that may be under way.
    fn wait(&self) {
        fence(Ordering::SeqCst);
        let found = self.0.load(Ordering::Acquire);
        while found % 2 == 1 && self.0.load(Ordering::Acquire) == found {
            thread::sleep(Duration::from_micros(20));
        }
    }
}

/// A client is not known to be shut out.
#[derive(Debug, thiserror::Error)]
pub enum ShutOutError {
    /// Nobody is there: the server is gone, and nobody writes its memory any more.
    #[error("the memory server at {0} is gone: {1}")]
    Gone(PathBuf, io::Error),
    /// The server has ended its process, which is slow to die. To be asked again.
    #[error("the memory server at {0} waits for the end of a client's process")]
    Dying(PathBuf),
    /// The server lives, and has no thread for us now. To be asked again.
    #[error("the memory server at {0} is busy")]
    Busy(PathBuf),
    /// It may still write.
    #[error("the memory server at {0} does not shut a client out: {1}")]
    Kept(PathBuf, String),
}

/// Has a server shut a client out for good ([`super::MemoryServer::fence`]).
///
/// # Errors
/// [`ShutOutError`].
pub fn shut_out(path: &Path, client: u64) -> Result<(), ShutOutError> {
    let kept = |reason: String| ShutOutError::Kept(path.to_owned(), reason);
    let failed = |error: io::Error| kept(error.to_string());
    let stream = match knock(path) {
        Ok(stream) => stream,
        Err(error) if is_nobody(&error) => return Err(ShutOutError::Gone(path.to_owned(), error)),
        Err(error) => return Err(failed(error)),
    };
    hello::ask(&stream, Ask::ShutOut(client)).map_err(failed)?;
    match hello::reported(&stream).map_err(failed)? {
        Report::Done => Ok(()),
        Report::Dying => Err(ShutOutError::Dying(path.to_owned())),
        Report::Busy => Err(ShutOutError::Busy(path.to_owned())),
        Report::Kept(reason) => Err(kept(reason)),
    }
}

/// A connection to a server, which need not have heard of it yet. Neither to come so far nor to hear a
/// word takes longer than [`PATIENCE`]; then it is [`io::ErrorKind::WouldBlock`].
fn knock(path: &Path) -> io::Result<UnixStream> {
    let stream = net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    for timeout in [Timeout::Send, Timeout::Recv] {
        net::sockopt::set_socket_timeout(&stream, timeout, Some(PATIENCE))?;
    }
    net::connect(&stream, &SocketAddrUnix::new(path)?)?;
    Ok(stream.into())
}

/// Whether an error of connecting says that nobody listens.
fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
    )
}

/// A server does not let us at its memory.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nobody is there.
    #[error("the memory server at {0} is gone: {1}")]
    Gone(PathBuf, io::Error),
    /// Somebody is there, who has no thread for us now. To be tried again.
    #[error("the memory server at {0} is busy")]
    Busy(PathBuf),
    /// Somebody is there, who says nothing: one that stands still, or is slow.
    #[error("the memory server at {0} does not answer")]
    Silent(PathBuf),
    /// It does not want us, or is no memory server; or this process has no room for it.
    #[error("the memory server at {0}: {1}")]
    Failed(PathBuf, io::Error),
    /// Two servers call themselves the same.
    #[error("the memory server at {0} calls itself {1}, as another one does")]
    Twice(PathBuf, u16),
}

impl ConnectError {
    /// By an error of the way to a server and back.
    fn of(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            _ if is_nobody(&error) => Self::Gone(path, error),
            io::ErrorKind::ResourceBusy => Self::Busy(path),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => Self::Silent(path),
            _ => Self::Failed(path, error),
        }
    }
}

impl SharedMemory {
    /// Connects to a server, as a client that has a number of its own among all of that server's.
    ///
    /// # Errors
    /// [`ConnectError`].
    pub fn connect(&mut self, path: &Path, client: u64) -> Result<ServerId, ConnectError> {
        let admitted = knock(path).and_then(|stream| {
            hello::ask(&stream, Ask::Admit(client))?;
            let (server, memory) = hello::answered(&stream)?;
            Ok((stream, server, memory))
        });
        let (stream, server, memory) = admitted.map_err(|error| ConnectError::of(path, error))?;
        let segment = Segment::begin(stream, server, &memory, &self.work);
        let segment = segment.map_err(|error| ConnectError::Failed(path.to_owned(), error))?;
        assert_eq!(
            self.grants().include(Grants::TRANSACTIONS),
            Ok(()),
            "shared memory grants what transactions are built on"
        );
        let place = usize::from(server.0);
        if place >= self.servers.len() {
            self.servers.resize_with(place + 1, || None);
        }
        let slot = self.servers.get_mut(place);
        assert!(
            slot.is_some(),
            "the table of servers reaches to server {place}"
        );
        match slot {
            Some(free @ None) => *free = Some(segment),
            _ => return Err(ConnectError::Twice(path.to_owned(), server.0)),
        }
        Ok(server)
    }

    /// Has the system map all memory that this client is connected to, so that no operation waits
    /// for a page: what hardware does when memory is registered.
    ///
    /// # Errors
    /// The system has not that much.
    pub fn populate(&self) -> io::Result<()> {
        let populate = |segment: &Segment| segment.words.populate();
        Ok(self.servers.iter().flatten().try_for_each(populate)?)
    }
}

impl Fabric for SharedMemory {
    fn grants(&self) -> Grants {
        Grants {
            writes_in_order: true,
            complete_means_visible: true,
            atomic_among_clients: true,
            atomic_with_server: true,
            needs_no_server: true,
        }
    }

    fn registered(&self, server: ServerId) -> Option<u64> {
        self.segment(server).map(|segment| segment.bytes)
    }

    fn post(&mut self, batch: BatchId, operations: Vec<Operation>) -> Result<(), Misuse> {
        check(&operations, |server| self.registered(server))?;
        self.work.begin();
        self.touch(&operations);
        let outcomes = operations.iter().map(|one| self.run(one)).collect();
        self.work.end();
        let completion = Completion::new(batch, &operations, outcomes);
        self.done.push_back(completion);
        Ok(())
    }

    fn poll(&mut self) -> Option<Completion> {
        self.done.pop_front()
    }
}

impl SharedMemory {
    fn segment(&self, server: ServerId) -> Option<&Segment> {
        self.servers.get(usize::from(server.0))?.as_ref()
    }

    /// Sets out for all that is to be copied, before any of it is.
    fn touch(&self, operations: &[Operation]) {
        for operation in operations {
            let bytes = match operation {
                Operation::Read { bytes, .. } => usize::try_from(*bytes).unwrap_or(0),
                Operation::Write { bytes, .. } | Operation::WriteThenSet { bytes, .. } => {
                    bytes.len()
                }
                Operation::CompareSwap { .. } | Operation::FetchAdd { .. } => continue,
            };
            if let Some(segment) = self.segment(operation.server()) {
                segment.words.touch(operation.at().offset, bytes);
            }
        }
    }

    fn run(&self, operation: &Operation) -> OperationOutcome {
        let server = operation.server();
        let gone = OperationOutcome::Failed(Fault::Gone(server));
        let Some(segment) = self.segment(server) else {
            return gone;
        };
        match segment.state.load(Ordering::Relaxed) {
            PRESENT => segment.run(operation).unwrap_or(gone),
            SHUT_OUT => OperationOutcome::Failed(Fault::Fenced(server)),
            state => {
                assert_eq!(state, GONE, "a server is present, gone, or has shut us out");
                gone
            }
        }
    }
}

/// A server is there, and lets us at its memory;
const PRESENT: u8 = 0;
/// it does not any more;
const SHUT_OUT: u8 = 1;
/// it is gone.
const GONE: u8 = 2;

/// The memory of one server.
struct Segment {
    words: Words,
    bytes: u64,
    state: Arc<AtomicU8>,
    stream: UnixStream,
    watch: Option<JoinHandle<()>>,
}

impl Segment {
    fn begin(
        stream: UnixStream,
        server: ServerId,
        memory: &OwnedFd,
        work: &Arc<AtWork>,
    ) -> io::Result<Self> {
        let bytes = segment::measure(memory)?;
        let words = Words::map(memory, bytes)?;
        assert!(
            words.hold(0, bytes) && !words.hold(0, bytes + 1),
            "all that operations are checked against is mapped, and no more"
        );
        stream.set_read_timeout(None)?;
        let state = Arc::new(AtomicU8::new(PRESENT));
        let (listening, seen, work) = (stream.try_clone()?, Arc::clone(&state), Arc::clone(work));
        let watch = thread::Builder::new().name(format!("memory-server-{}", server.0));
        let watch = watch.spawn(move || listen(&listening, &seen, &work))?;
        Ok(Self {
            words,
            bytes,
            state,
            stream,
            watch: Some(watch),
        })
    }

    /// Does it; none if it lies outside, which has been checked before.
    fn run(&self, operation: &Operation) -> Option<OperationOutcome> {
        let words = &self.words;
        assert_eq!(
            operation.check(self.bytes),
            Ok(()),
            "operations are checked before any of their batch runs"
        );
        Some(match operation {
            Operation::Read { at, bytes } => {
                OperationOutcome::Read(words.read(at.offset, usize::try_from(*bytes).ok()?))
            }
            Operation::Write { at, bytes } => {
                words.write(at.offset, bytes);
                OperationOutcome::Written
            }
            Operation::WriteThenSet {
                at,
                bytes,
                word_at,
                word,
            } => {
                words.write(at.offset, bytes);
                words.set(*word_at, *word);
                OperationOutcome::Written
            }
            Operation::CompareSwap { at, expected, new } => {
                OperationOutcome::Word(words.compare_swap(at.offset, *expected, *new)?)
            }
            Operation::FetchAdd { at, delta } => {
                OperationOutcome::Word(words.fetch_add(at.offset, *delta)?)
            }
        })
    }
}

/// Hears whether the server is gone, or shuts us out; then it is told when nothing of ours is under
/// way any more, by the end of the connection.
fn listen(mut stream: &UnixStream, state: &AtomicU8, work: &AtWork) {
    let mut word = [0];
    let heard = loop {
        match stream.read(&mut word) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {} // a signal says nothing
            heard => break heard,
        }
    };
    let is_shut_out = matches!(heard, Ok(1)) && word == [hello::LET_GO];
    let found = if is_shut_out { SHUT_OUT } else { GONE };
    let before = state.swap(found, Ordering::Relaxed);
    assert_eq!(before, PRESENT, "the end of a server is heard of once");
    work.wait();
    let _ = stream.shutdown(Shutdown::Both);
}

impl Drop for Segment {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both); // ends the watch
        if let Some(watch) = self.watch.take() {
            let _ = watch.join(); // it has nothing to panic over
        }
    }
}
