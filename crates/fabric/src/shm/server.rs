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

use super::hello;
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
        let segment = segment::make(bytes)?;
        let words = Words::map(&segment, bytes)?;
        let listener = UnixListener::bind(path)?;
        let clients = Arc::<Mutex<Clients>>::default();
        let known = Arc::clone(&clients);
        thread::Builder::new()
            .name("memory-door".to_owned())
            .spawn(move || {
                for stream in listener.incoming() {
                    if lock(&known).is_over {
                        return;
                    }
                    let Ok(stream) = stream else { continue };
                    let _ = admit(stream, server, &segment, &known); // it is gone again
                }
            })?;
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

    /// Ends a client: when this returns it writes nothing more. One that is not there, perhaps not
    /// yet, is not let in under this number any more.
    ///
    /// # Errors
    /// [`FenceError`]: it may still write.
    pub fn fence(&self, client: u64) -> Result<(), FenceError> {
        let mut clients = lock(&self.clients);
        clients.ended.insert(client);
        let Some(process) = clients.present.get(&client) else {
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
        clients.present.remove(&client);
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

/// Lets one client in, and watches for its end.
fn admit(
    stream: UnixStream,
    server: ServerId,
    segment: &OwnedFd,
    clients: &Arc<Mutex<Clients>>,
) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let client = hello::asked(&stream)?;
    let pid = rustix::net::sockopt::socket_peercred(&stream)?.pid;
    let opened = (pid != getpid()).then(|| pidfd_open(pid, PidfdFlags::empty()));
    let process = opened.transpose()?;
    {
        let mut clients = lock(clients);
        if clients.present.contains_key(&client) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        if clients.ended.contains(&client) {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        clients.present.insert(client, process);
    }
    let answered = hello::answer(&stream, server, segment.as_fd());
    let known = Arc::clone(clients);
    let watched = answered.and_then(|()| watch(stream, client, known));
    if watched.is_err() {
        lock(clients).present.remove(&client);
    }
    watched
}

/// Forgets a client when its connection ends.
fn watch(mut stream: UnixStream, client: u64, clients: Arc<Mutex<Clients>>) -> io::Result<()> {
    stream.set_read_timeout(None)?;
    let watch = thread::Builder::new().name(format!("memory-client-{client}"));
    watch.spawn(move || {
        // It has nothing more to say: whatever comes is its end.
        let _ = stream.read(&mut [0]);
        lock(&clients).present.remove(&client);
    })?;
    Ok(())
}
