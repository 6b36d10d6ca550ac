//! The primary in a process: what the loop does for it, and what other threads see of it.

use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use manxdb_core::{Nanos, NodeId, RequestId};
use manxdb_curp::{ClientAnswer, CurpNode};
use manxdb_net::{Driver, Outside};

use crate::commits::Commits;
use crate::effects::SqlCommand;
use crate::lease::LeaseTracker;
use crate::machine::{RowsView, SqlMachine};
use crate::primary::{Primary, Step};

/// A node of a cluster that replicates rows.
pub type SqlNode = CurpNode<SqlMachine>;

/// How often a master is asked whether it still is one, when nothing else is asked.
const SHOW_EVERY: Nanos = Nanos::from_millis(500);
/// The key of the wake-up for that.
const SHOW: u64 = 0;
/// Nobody, where a node is told.
const NOBODY: u32 = u32::MAX;

/// What happens to the primary of a process.
pub enum PrimaryEvent {
    /// This server is the primary from now on, with these rows.
    Begins {
        /// Confirms what it commits.
        commits: Arc<Commits>,
        /// All that was acknowledged before.
        rows: RowsView,
    },
    /// It is not any more.
    Ends,
}

/// A lease that other threads can look at: nobody else reads or commits before it ends.
#[derive(Debug)]
struct SharedLease {
    started: Instant,
    tracker: LeaseTracker,
    until: Arc<AtomicU64>,
}

impl SharedLease {
    fn new(length: Nanos) -> Self {
        Self {
            started: Instant::now(),
            tracker: LeaseTracker::new(length),
            until: Arc::default(),
        }
    }

    /// Looks at a server's heartbeats and leases; only those of a reign are shown.
    fn look(&mut self, leases: (u64, u64), reigns: bool) {
        let until = self.tracker.look(nanos_since(self.started), leases);
        let until = if reigns { until.0 } else { 0 };
        self.until.store(until, Ordering::SeqCst);
    }

    /// Whether the lease holds, for other threads.
    fn reader(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let (started, until) = (self.started, Arc::clone(&self.until));
        move || nanos_since(started).0 < until.load(Ordering::SeqCst)
    }
}

fn nanos_since(start: Instant) -> Nanos {
    Nanos(u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// Who is master, as far as this process knows.
#[derive(Debug, Clone)]
pub struct KnownMaster(Arc<AtomicU32>);

impl KnownMaster {
    /// The node.
    #[must_use]
    pub fn node(&self) -> Option<NodeId> {
        let node = self.0.load(Ordering::Relaxed);
        (node != NOBODY).then_some(NodeId(node))
    }
}

/// Why the server of this process cannot go on, when it cannot.
#[derive(Debug, Clone, Default)]
pub struct KnownFailure(Arc<OnceLock<String>>);

impl KnownFailure {
    /// In words.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }
}

/// Looks after the primary in the loop of its process.
pub struct PrimaryDriver {
    server: NodeId,
    client: NodeId,
    primary: Primary,
    lease: SharedLease,
    events: Sender<PrimaryEvent>,
    bell: UnixStream,
    rings: Arc<UnixStream>,
    master: KnownMaster,
    failure: KnownFailure,
}

impl PrimaryDriver {
    /// For a server and the CURP client in its process, with the length of a master's lease. What
    /// happens is told to `events`.
    ///
    /// # Errors
    /// The operating system's.
    pub fn new(
        server: NodeId,
        client: NodeId,
        lease: Nanos,
        events: Sender<PrimaryEvent>,
    ) -> std::io::Result<Self> {
        let (bell, rings) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        rings.set_nonblocking(true)?;
        Ok(Self {
            server,
            client,
            primary: Primary::default(),
            lease: SharedLease::new(lease),
            events,
            bell,
            rings: Arc::new(rings),
            master: KnownMaster(Arc::new(AtomicU32::new(NOBODY))),
            failure: KnownFailure::default(),
        })
    }

    /// Why the server cannot go on, for whoever runs the loop: it ends then.
    #[must_use]
    pub fn known_failure(&self) -> KnownFailure {
        self.failure.clone()
    }

    /// Who is master, for other threads.
    #[must_use]
    pub fn known_master(&self) -> KnownMaster {
        self.master.clone()
    }

    fn ask(&mut self, outside: &mut Outside<SqlNode>, command: &SqlCommand) {
        let id = outside.request(self.client, command.encode());
        self.primary.asked(id, command);
    }

    fn begin(&mut self, owner: crate::effects::Owner, rows: RowsView) {
        let rings = Arc::clone(&self.rings);
        let ring = move || {
            // A full pipe has rung already.
            let _ = (&*rings).write(&[1]);
        };
        let commits = Commits::new(owner, Box::new(ring), Box::new(self.lease.reader()));
        let commits = match &rows {
            RowsView::Memory(rows) => {
                commits.note_rows(rows.bytes());
                commits
            }
            RowsView::Stored(view) => {
                let home = Arc::clone(view.home());
                commits.within(Box::new(move |bytes| home.lacks_room(bytes)))
            }
        };
        let commits = Arc::new(commits);
        self.primary.begin(Arc::clone(&commits));
        tracing::info!(
            owner = owner.0,
            rows = rows.keys(),
            "this server is the primary"
        );
        self.tell(PrimaryEvent::Begins { commits, rows });
    }

    fn tell(&self, event: PrimaryEvent) {
        // Nobody listens when the process ends.
        let _ = self.events.send(event);
    }

    fn hand_over(&mut self, outside: &mut Outside<SqlNode>) {
        for command in self.primary.handed_over() {
            self.ask(outside, &command);
        }
    }
}

impl Driver<SqlNode> for PrimaryDriver {
    fn begin(&mut self, outside: &mut Outside<SqlNode>) {
        outside.wake_after(SHOW_EVERY, SHOW);
    }

    fn reply(
        &mut self,
        outside: &mut Outside<SqlNode>,
        _: NodeId,
        id: RequestId,
        body: ClientAnswer,
    ) {
        self.primary.answered(id, &body);
        self.hand_over(outside);
    }

    fn wake(&mut self, outside: &mut Outside<SqlNode>, key: u64) {
        assert_eq!(key, SHOW, "one wake-up is asked for");
        if !self.primary.is_showing() {
            self.ask(outside, &SqlCommand::Show);
        }
        outside.wake_after(SHOW_EVERY, SHOW);
    }

    fn sockets(&self) -> Option<BorrowedFd<'_>> {
        Some(self.bell.as_fd())
    }

    fn ready(&mut self, outside: &mut Outside<SqlNode>) {
        let mut rung = [0; 64];
        while matches!(self.bell.read(&mut rung), Ok(count) if count == rung.len()) {}
        self.hand_over(outside);
    }

    fn look(&mut self, outside: &mut Outside<SqlNode>, node: NodeId, core: &SqlNode) {
        if node == self.client
            && let Some(client) = core.client()
        {
            let master = client
                .config()
                .map_or(NOBODY, |config| config.master.node.0);
            self.master.0.store(master, Ordering::Relaxed);
        }
        let Some(server) = core.server().filter(|_| node == self.server) else {
            return;
        };
        if let Some(why) = server.failure() {
            let _ = self.failure.0.set(why.to_owned()); // the first one counts
            self.primary.end(why);
            return;
        }
        let step = self.primary.look(server);
        let reigns = |epoch| self.primary.reigns_in(epoch);
        // Also while it claims: what it begins with is read under a lease.
        let reigns = server.elected().is_some_and(reigns) || matches!(step, Some(Step::Begin(..)));
        self.lease.look(server.leases(), reigns);
        match step {
            None => {}
            Some(Step::Ask(command)) => self.ask(outside, &command),
            Some(Step::Begin(owner, rows)) => self.begin(owner, rows),
            Some(Step::End) => {
                tracing::warn!("this server is not the primary any more");
                self.tell(PrimaryEvent::Ends);
            }
        }
    }

    fn done(&self) -> bool {
        self.failure.why().is_some()
    }

    fn notes(&self) -> Vec<(String, String)> {
        let counts = self.primary.counts();
        let is_primary = self.primary.commits().is_some();
        [
            ("sql primary", u64::from(is_primary)),
            ("sql commits fast", counts.fast),
            ("sql commits at backups", counts.at_backups),
            ("sql commits after a refusal", counts.after_refusal),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_string()))
        .to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_shown_while_it_lasts_and_while_its_reign_does() {
        let mut lease = SharedLease::new(Nanos::from_secs(3_600));
        let holds = lease.reader();
        lease.look((1, 0), true);
        assert!(!holds(), "not granted");
        lease.look((1, 1), true);
        assert!(holds());
        lease.look((2, 2), false);
        assert!(!holds(), "another reign");
        let mut short = SharedLease::new(Nanos(1));
        let holds = short.reader();
        short.look((1, 1), true);
        assert!(!holds(), "it ends although nobody looks");
    }
}
