//! A memory server's side: it hands out its segment, and knows who has it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::process::{PidfdFlags, getpid, pidfd_open};

use super::fence::FenceError;
use super::hello::{self, Ask, Report};
use crate::address::{ServerId, WORD};
use crate::memory::segment;
use crate::memory::words::Words;

/// A client that says nothing for this long after connecting is none.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks at who is at the listener when the system has no descriptor for whoever it is.
const BREATH: Duration = Duration::from_millis(10);

/// Memory that other processes of this machine may use.
pub struct MemoryServer {
    path: PathBuf,
    words: Words,
    clients: Arc<Shared>,
}

/// What the threads of a server share.
#[derive(Default)]
pub(super) struct Shared {
    clients: Mutex<Clients>,
    /// Somebody is not there any more.
    pub(super) left: Condvar,
}

/// Who has the segment.
#[derive(Default)]
pub(super) struct Clients {
    /// By the numbers that they gave.
    pub(super) present: BTreeMap<u64, Client>,
    /// Those who were shut out, and are not let in again: a word for each.
    pub(super) ended: BTreeSet<u64>,
    is_over: bool,
}

/// Somebody who has the segment.
pub(super) struct Client {
    /// None: it is a thread of this process.
    pub(super) process: Option<OwnedFd>,
    pub(super) stream: UnixStream,
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
        for (offset, first) in first {
            assert!(
                !words.hold(*offset, WORD) || words.hold(*offset, first.len() as u64),
                "what memory begins with lies in it whole, or not at all"
            );
            words.write(*offset, first);
        }
        let listener = UnixListener::bind(path)?;
        let clients = Arc::<Shared>::default();
        let acceptor = Arc::new(Acceptor {
            server,
            segment,
            clients: Arc::clone(&clients),
        });
        let open = move || open(&listener, &acceptor, spawn);
        spawn("memory-acceptor", open)?;
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
        self.clients.lock().present.keys().copied().collect()
    }

    /// How many clients were shut out.
    pub fn ended(&self) -> usize {
        self.clients.lock().ended.len()
    }

    /// Shuts a client out: when this returns it writes nothing more. It is told to let go of the
    /// memory, and its process is ended when it does not do so at once, as when it stands still. One
    /// that is not there, perhaps not yet, is not let in under this number any more.
    ///
    /// # Errors
    /// [`FenceError`]: it may still write.
    pub fn fence(&self, client: u64) -> Result<(), FenceError> {
        self.clients.fence(client)
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Clients> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for MemoryServer {
    fn drop(&mut self) {
        self.clients.lock().is_over = true;
        let _ = UnixStream::connect(&self.path); // wakes the listener, which ends
        let _ = std::fs::remove_file(&self.path); // nobody is behind it
    }
}

fn spawn<T: FnOnce() + Send + 'static>(name: &str, what: T) -> io::Result<()> {
    let thread = thread::Builder::new().name(name.to_owned());
    thread.spawn(what).map(drop)
}

/// Where others come in.
struct Acceptor {
    server: ServerId,
    segment: OwnedFd,
    clients: Arc<Shared>,
}

/// A thread for each of them, so that one who says nothing keeps nobody waiting. Who gets none is told
/// so at once: nobody is to take a server that lives for one that is gone.
fn open<S>(listener: &UnixListener, acceptor: &Arc<Acceptor>, spawn: S)
where
    S: Fn(&str, Box<dyn FnOnce() + Send>) -> io::Result<()>,
{
    for stream in listener.incoming() {
        if acceptor.clients.lock().is_over {
            return;
        }
        let Ok(stream) = stream.map(Arc::new) else {
            thread::sleep(BREATH); // and whoever it is waits
            continue;
        };
        let (acceptor, theirs) = (Arc::clone(acceptor), Arc::clone(&stream));
        let receive = move || drop(acceptor.receive(&theirs)); // whoever it was is gone again
        if spawn("memory-client", Box::new(receive)).is_err() {
            let _ = hello::report(&stream, &Report::Busy); // it may be gone
        }
    }
}

impl Acceptor {
    fn receive(&self, stream: &UnixStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        match hello::asked(stream)? {
            Ask::Admit(client) => self.admit(stream, client),
            Ask::ShutOut(client) => {
                let report = match self.clients.fence(client) {
                    Ok(()) => Report::Done,
                    Err(FenceError::Dying(_)) => Report::Dying,
                    Err(kept) => Report::Kept(kept.to_string()),
                };
                hello::report(stream, &report)
            }
        }
    }

    /// Lets one client in, and watches for its end.
    fn admit(&self, mut stream: &UnixStream, client: u64) -> io::Result<()> {
        let pid = rustix::net::sockopt::socket_peercred(stream)?.pid;
        let opened = (pid != getpid()).then(|| pidfd_open(pid, PidfdFlags::empty()));
        let process = opened.transpose()?;
        let present = Client {
            process,
            stream: stream.try_clone()?,
        };
        {
            let mut clients = self.clients.lock();
            if clients.present.contains_key(&client) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            if clients.ended.contains(&client) {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            // Whoever shuts it out speaks to it after this.
            hello::answer(stream, self.server, self.segment.as_fd())?;
            let other = clients.present.insert(client, present);
            assert!(
                other.is_none(),
                "a client's number is one client's: {client}"
            );
        }
        if stream.set_read_timeout(None).is_ok() {
            // It has nothing more to say: whatever comes is its end.
            let _ = stream.read(&mut [0]);
        }
        let mut clients = self.clients.lock();
        assert!(
            clients.present.remove(&client).is_some() || clients.ended.contains(&client),
            "a client leaves once, unless its process was ended: {client}"
        );
        drop(clients);
        self.clients.left.notify_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::super::client::{ConnectError, SharedMemory, ShutOutError, shut_out};
    use super::*;

    #[test]
    fn whoever_gets_no_thread_hears_that_the_server_is_busy() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("memory");
        let server = MemoryServer::start(&directory.path().join("other"), ServerId(0), 64).unwrap();
        let acceptor = Arc::new(Acceptor {
            server: ServerId(3),
            segment: segment::make(64).unwrap(),
            clients: Arc::clone(&server.clients),
        });
        let listener = UnixListener::bind(&path).unwrap();
        let left = Arc::new(AtomicU32::new(20));
        let without = Arc::clone(&left);
        spawn("acceptor", move || {
            open(&listener, &acceptor, |name, what| {
                if without.load(Ordering::Relaxed) > 0 {
                    without.fetch_sub(1, Ordering::Relaxed);
                    return Err(io::ErrorKind::WouldBlock.into());
                }
                spawn(name, what)
            });
        })
        .unwrap();
        // As often as it takes: the server may hang up before or after it is spoken to.
        for _ in 0..10 {
            let refused = SharedMemory::default().connect(&path, 1);
            assert!(matches!(refused, Err(ConnectError::Busy(_))), "{refused:?}");
            let refused = shut_out(&path, 1);
            assert!(matches!(refused, Err(ShutOutError::Busy(_))), "{refused:?}");
        }
        assert_eq!(left.load(Ordering::Relaxed), 0);
        let mut memory = SharedMemory::default();
        assert_eq!(memory.connect(&path, 1).unwrap(), ServerId(3));
    }
}
