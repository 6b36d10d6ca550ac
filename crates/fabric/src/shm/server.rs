//! A memory server's side: it hands out its segment, and knows who has it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{PidfdFlags, Signal, getpid, pidfd_open, pidfd_send_signal};

use super::hello::{self, Ask};
use crate::address::ServerId;
use crate::memory::segment;
use crate::memory::words::Words;

/// A client that says nothing for this long after connecting is none.
const PATIENCE: Duration = Duration::from_secs(5);

/// Memory that other processes of this machine may use.
pub struct MemoryServer {
    path: PathBuf,
    words: Words,
    clients: Arc<Mutex<Clients>>,
}

/// Who has the segment.
#[derive(Default)]
struct Clients {
    /// Processes by the number that they gave; none: it is this one.
    present: BTreeMap<u64, Option<OwnedFd>>,
    /// Those who were ended, and are not let in again: a word for each.
    ended: BTreeSet<u64>,
    is_over: bool,
}

/// Why a client is not shut out.
#[derive(Debug, thiserror::Error)]
pub enum FenceError {
    /// It is a thread of this very process.
    #[error("client {0} lives in the memory server's own process")]
    Own(u64),
    /// The system does not let us.
    #[error("client {0} cannot be ended: {1}")]
    Kept(u64, io::Error),
}

impl MemoryServer {
    /// Registers so many bytes, all zero, and waits for clients at a socket.
    ///
    /// # Errors
    /// The system has no such memory, or the socket is somebody else's.
    pub fn start(path: &Path, server: ServerId, bytes: u64) -> io::Result<Self> {
        Self::start_filled(path, server, bytes, &[])
    }

    /// The same with something in memory before anybody is let in: bytes at offsets, multiples of
    /// a word. What lies outside is left out.
    ///
    /// # Errors
    /// The system has no such memory, or the socket is somebody else's.
    pub fn start_filled(
        path: &Path,
        server: ServerId,
        bytes: u64,
        first: &[(u64, Vec<u8>)],
    ) -> io::Result<Self> {
        let segment = segment::make(bytes)?;
        let words = Words::map(&segment, bytes)?;
        for (offset, bytes) in first {
            words.write(*offset, bytes);
        }
        let listener = UnixListener::bind(path)?;
        let clients = Arc::<Mutex<Clients>>::default();
        let door = Arc::new(Door {
            server,
            segment,
            clients: Arc::clone(&clients),
        });
        let open = move || open(&listener, &door);
        spawn("memory-door", open)?;
        Ok(Self {
            path: path.to_owned(),
            words,
            clients,
        })
    }

    /// Has the system give all of the memory now, which otherwise comes page by page as it is first
    /// written.
    ///
    /// # Errors
    /// The system has not that much.
    pub fn populate(&self) -> io::Result<()> {
        Ok(self.words.populate()?)
    }

    /// The server's own look at its memory.
    pub fn read(&self, offset: u64, bytes: usize) -> Vec<u8> {
        self.words.read(offset, bytes)
    }

    /// Clients that have the segment.
    pub fn clients(&self) -> Vec<u64> {
        lock(&self.clients).present.keys().copied().collect()
    }

    /// How many clients were ended.
    pub fn ended(&self) -> usize {
        lock(&self.clients).ended.len()
    }

    /// Ends a client: when this returns it writes nothing more. One that is not there, perhaps not
    /// yet, is not let in under this number any more.
    ///
    /// # Errors
    /// [`FenceError`]: it may still write.
    pub fn fence(&self, client: u64) -> Result<(), FenceError> {
        lock(&self.clients).fence(client)
    }
}

impl Clients {
    fn fence(&mut self, client: u64) -> Result<(), FenceError> {
        self.ended.insert(client);
        let Some(process) = self.present.get(&client) else {
            return Ok(());
        };
        let process = process.as_ref().ok_or(FenceError::Own(client))?;
        let kept = |error: rustix::io::Errno| FenceError::Kept(client, error.into());
        match pidfd_send_signal(process, Signal::KILL) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(error) => return Err(kept(error)),
        }
        // Readable when none of its threads runs any more.
        while poll(&mut [PollFd::new(process, PollFlags::IN)], None).map_err(kept)? == 0 {}
        self.present.remove(&client);
        Ok(())
    }
}

impl Drop for MemoryServer {
    fn drop(&mut self) {
        lock(&self.clients).is_over = true;
        let _ = UnixStream::connect(&self.path); // wakes the door, which ends
        let _ = std::fs::remove_file(&self.path); // nobody is behind it
    }
}

fn lock(clients: &Mutex<Clients>) -> std::sync::MutexGuard<'_, Clients> {
    clients.lock().unwrap_or_else(PoisonError::into_inner)
}

fn spawn(name: &str, what: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(what).map(drop)
}

/// Where others come in.
struct Door {
    server: ServerId,
    segment: OwnedFd,
    clients: Arc<Mutex<Clients>>,
}

/// A thread for each of them, so that one who says nothing keeps nobody waiting.
fn open(listener: &UnixListener, door: &Arc<Door>) {
    for stream in listener.incoming() {
        if lock(&door.clients).is_over {
            return;
        }
        let Ok(stream) = stream else { continue };
        let door = Arc::clone(door);
        let receive = move || drop(door.receive(&stream)); // whoever it was is gone again
        let _ = spawn("memory-client", receive); // or the system has no thread for it
    }
}

impl Door {
    fn receive(&self, stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        match hello::asked(stream)? {
            Ask::Admit(client) => self.admit(stream, client),
            Ask::ShutOut(client) => {
                let kept = lock(&self.clients).fence(client).err();
                hello::report(stream, kept.map(|error| error.to_string()).as_deref())
            }
        }
    }

    /// Lets one client in, and watches for its end.
    fn admit(&self, mut stream: &UnixStream, client: u64) -> io::Result<()> {
        let pid = rustix::net::sockopt::socket_peercred(stream)?.pid;
        let opened = (pid != getpid()).then(|| pidfd_open(pid, PidfdFlags::empty()));
        let process = opened.transpose()?;
        {
            let mut clients = lock(&self.clients);
            if clients.present.contains_key(&client) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            if clients.ended.contains(&client) {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            clients.present.insert(client, process);
        }
        let answered = hello::answer(stream, self.server, self.segment.as_fd());
        if answered
            .and_then(|()| stream.set_read_timeout(None))
            .is_ok()
        {
            // It has nothing more to say: whatever comes is its end.
            let _ = stream.read(&mut [0]);
        }
        lock(&self.clients).present.remove(&client);
        Ok(())
    }
}
