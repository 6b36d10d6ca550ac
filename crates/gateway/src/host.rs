//! What the process gives to the layers below: clocks, randomness, waiting, and a way to reach
//! the connection of a session that is to be killed.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use manxdb_sql::executor::SpillSpace;
use manxdb_sql::session::{Host, SessionControl};
use manxdb_vault::{Disk, Vault};
use parking_lot::{Condvar, Mutex};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::data_files;
use crate::spill::SpillDirectory;

/// The one [`Host`] of a server process.
pub struct ProcessHost {
    started: Instant,
    time_zone: String,
    random: AtomicU64,
    sessions: Mutex<SessionTable>,
    emptied: Condvar,
    spill: OnceLock<SpillDirectory>,
    vault: OnceLock<Arc<Vault>>,
    audit: OnceLock<Arc<dyn Disk>>,
}

#[derive(Default)]
struct SessionTable {
    by_session: HashMap<u64, Arc<SessionEntry>>,
    /// Those that belong to a connection.
    connected: usize,
}

/// Where one session sleeps, and how it is reached.
#[derive(Default)]
struct SessionEntry {
    /// A wake that came before the sleep is not lost.
    woken: Mutex<bool>,
    bell: Condvar,
    socket: Option<Arc<TcpStream>>,
    /// The server itself takes no more commands, which looks as if the client had said its last.
    reads_no_more: AtomicBool,
    control: Mutex<Option<Control>>,
}

impl SessionEntry {
    fn close_if_killed(&self) {
        let control = self.control.lock();
        let (Some(socket), Some(control)) = (&self.socket, &*control) else {
            return;
        };
        if control.session.kill_connection.load(Ordering::SeqCst) {
            // A session that kills itself still reads the answer to that.
            let how = if control.thread == thread::current().id() {
                self.reads_no_more.store(true, Ordering::SeqCst);
                Shutdown::Read
            } else {
                Shutdown::Both
            };
            // An error means the connection is gone already.
            let _ = socket.shutdown(how);
        }
    }

    /// Whether the peer has ended or reset the connection. Commands it sent before do not count:
    /// nobody is there to read their answers.
    fn is_abandoned(&self) -> bool {
        let Some(socket) = &self.socket else {
            return false;
        };
        let mut ends = PollFlags::HUP | PollFlags::ERR;
        if !self.reads_no_more.load(Ordering::SeqCst) {
            ends |= PollFlags::RDHUP;
        }
        let mut sockets = [PollFd::new(socket, PollFlags::RDHUP)];
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // A poll that fails tells nothing about the client.
        let polled = poll(&mut sockets, Some(&now));
        polled.is_ok() && sockets[0].revents().intersects(ends)
    }
}

struct Control {
    session: Arc<SessionControl>,
    /// The connection's own thread.
    thread: ThreadId,
}

impl ProcessHost {
    /// A host whose SYSTEM time zone has the given name, for example `UTC`.
    ///
    /// # Errors
    /// The operating system has no randomness to give.
    pub fn new(time_zone: String) -> Result<Arc<Self>, aws_lc_rs::error::Unspecified> {
        use aws_lc_rs::rand::SecureRandom;
        let mut seed = [0; 8];
        aws_lc_rs::rand::SystemRandom::new().fill(&mut seed)?;
        Ok(Arc::new(Self {
            started: Instant::now(),
            time_zone,
            random: AtomicU64::new(u64::from_le_bytes(seed)),
            sessions: Mutex::default(),
            emptied: Condvar::new(),
            spill: OnceLock::new(),
            vault: OnceLock::new(),
            audit: OnceLock::new(),
        }))
    }

    /// Statements have their temporary files in this directory from now on; it is set once.
    pub fn spill_into(&self, directory: PathBuf) {
        let set = self.spill.set(SpillDirectory::new(directory));
        assert!(set.is_ok(), "the directory of temporary files is set once");
    }

    /// Rows of people are sealed by this vault; it is set once, before the instance opens.
    pub fn keep_keys_in(&self, vault: Arc<Vault>) {
        let set = self.vault.set(vault);
        assert!(set.is_ok(), "the vault is set once");
    }

    /// The audit of requests to forget is written here too; it is set once, before the instance opens.
    pub fn keep_audit_in(&self, audit: Arc<dyn Disk>) {
        let set = self.audit.set(audit);
        assert!(set.is_ok(), "the audit's place is set once");
    }

    /// A connection exists from now on.
    pub fn register(&self, session: u64, socket: Arc<TcpStream>) {
        let entry = SessionEntry {
            socket: Some(socket),
            ..SessionEntry::default()
        };
        let mut sessions = self.sessions.lock();
        sessions.by_session.insert(session, Arc::new(entry));
        sessions.connected += 1;
    }

    /// The connection has logged in and can be killed. Called by its own thread.
    pub fn attach(&self, session: u64, control: Arc<SessionControl>) {
        if let Some(entry) = self.sessions.lock().by_session.get(&session) {
            *entry.control.lock() = Some(Control {
                session: control,
                thread: thread::current().id(),
            });
        }
    }

    /// The connection is gone.
    pub fn forget(&self, session: u64) {
        let mut sessions = self.sessions.lock();
        if sessions
            .by_session
            .remove(&session)
            .is_some_and(|entry| entry.socket.is_some())
        {
            sessions.connected -= 1;
        }
        if sessions.connected == 0 {
            self.emptied.notify_all();
        }
    }

    /// Connections that exist.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.sessions.lock().connected
    }

    /// Connections get no further command: blocked reads end, running statements go on.
    pub fn stop_reading(&self) {
        for entry in self.sessions.lock().by_session.values() {
            if let Some(socket) = &entry.socket {
                entry.reads_no_more.store(true, Ordering::SeqCst);
                // An error means the connection is gone already.
                let _ = socket.shutdown(Shutdown::Read);
            }
        }
    }

    /// Running statements are interrupted and their connections closed.
    pub fn kill_all(&self) {
        let sessions: Vec<(u64, Arc<SessionEntry>)> = self
            .sessions
            .lock()
            .by_session
            .iter()
            .map(|(id, entry)| (*id, Arc::clone(entry)))
            .collect();
        for (session, entry) in sessions {
            if let Some(control) = &*entry.control.lock() {
                control.session.kill_query.store(true, Ordering::SeqCst);
                control
                    .session
                    .kill_connection
                    .store(true, Ordering::SeqCst);
            }
            self.wake(session);
        }
    }

    /// Waits until no connection exists; false when `limit` passed first.
    #[must_use]
    pub fn wait_until_empty(&self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        let mut sessions = self.sessions.lock();
        while sessions.connected > 0 {
            if self.emptied.wait_until(&mut sessions, deadline).timed_out() {
                return sessions.connected == 0;
            }
        }
        true
    }

    fn entry(&self, session: u64) -> Arc<SessionEntry> {
        Arc::clone(self.sessions.lock().by_session.entry(session).or_default())
    }
}

impl Host for ProcessHost {
    fn audit(&self) -> Option<Arc<dyn Disk>> {
        self.audit.get().cloned()
    }

    fn secret_bytes(&self, bytes: &mut [u8]) -> io::Result<()> {
        use aws_lc_rs::rand::SecureRandom;
        let filled = aws_lc_rs::rand::SystemRandom::new().fill(bytes);
        filled.map_err(|_| io::Error::other("the system has no randomness to give"))
    }

    fn vault(&self) -> Option<Arc<Vault>> {
        self.vault.get().cloned()
    }

    fn spill_space(&self) -> Option<&dyn SpillSpace> {
        let space = self.spill.get();
        space.map(|space| space as &dyn SpillSpace)
    }

    fn wall_micros(&self) -> i64 {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        since.map_or(0, |d| i64::try_from(d.as_micros()).unwrap_or(i64::MAX))
    }

    fn monotonic_micros(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }

    /// Securely seeded at start, then mixed: good for RAND() and UUID(), not for secrets.
    fn random(&self) -> u64 {
        // SplitMix64 (Steele et al., 2014).
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mut z = self
            .random
            .fetch_add(STEP, Ordering::Relaxed)
            .wrapping_add(STEP);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn park(&self, session: u64, micros: u64) {
        let entry = self.entry(session);
        let mut woken = entry.woken.lock();
        if !*woken {
            entry
                .bell
                .wait_for(&mut woken, Duration::from_micros(micros));
        }
        *woken = false;
    }

    /// Also closes the connection when the session was told to end it.
    fn wake(&self, session: u64) {
        let Some(entry) = self
            .sessions
            .lock()
            .by_session
            .get(&session)
            .map(Arc::clone)
        else {
            return;
        };
        // The connection first: a killed statement that wakes up must not answer any more.
        entry.close_if_killed();
        *entry.woken.lock() = true;
        entry.bell.notify_all();
    }

    fn client_is_gone(&self, session: u64) -> bool {
        let entry = self
            .sessions
            .lock()
            .by_session
            .get(&session)
            .map(Arc::clone);
        entry.is_some_and(|entry| entry.is_abandoned())
    }

    fn system_time_zone(&self) -> String {
        self.time_zone.clone()
    }

    fn open_file(&self, directory: &str, name: &str) -> io::Result<Box<dyn Read>> {
        data_files::open(directory, name)
    }

    fn create_file(&self, directory: &str, name: &str) -> io::Result<Box<dyn Write>> {
        data_files::create(directory, name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_the_park_is_not_lost() {
        let host = ProcessHost::new("UTC".into()).unwrap();
        let entry = host.entry(1);
        host.wake(1);
        assert!(*entry.woken.lock());
        host.park(1, u64::MAX / 2_000); // would wait for centuries
        assert!(!*entry.woken.lock());
    }

    #[test]
    fn a_wake_ends_the_park_of_another_thread() {
        let host = ProcessHost::new("UTC".into()).unwrap();
        host.entry(7);
        let sleeper = {
            let host = Arc::clone(&host);
            std::thread::spawn(move || host.park(7, u64::MAX / 2_000))
        };
        host.wake(7);
        sleeper.join().unwrap();
    }

    #[test]
    fn a_client_that_hangs_up_is_gone_and_one_that_is_told_to_send_no_more_is_not() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        let host = ProcessHost::new("UTC".into()).unwrap();
        host.register(3, Arc::new(socket));
        assert!(!host.client_is_gone(3));
        // What it has sent before does not hide that it left.
        std::io::Write::write_all(&mut &client, b"a command").unwrap();
        host.stop_reading();
        assert!(!host.client_is_gone(3), "the server ended the commands");
        client.shutdown(Shutdown::Write).unwrap();

        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        host.register(4, Arc::new(socket));
        std::io::Write::write_all(&mut &client, b"a command").unwrap();
        drop(client);
        // Over the loopback the end arrives before `drop` returns.
        assert!(host.client_is_gone(4));
        assert!(!host.client_is_gone(5), "nobody was there");
    }

    #[test]
    fn random_numbers_differ() {
        let host = ProcessHost::new("UTC".into()).unwrap();
        assert_ne!(host.random(), host.random());
    }
}
