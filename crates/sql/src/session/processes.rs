//! Who is connected and what they do: SHOW PROCESSLIST and KILL.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;

use super::locks::TablesInUse;
use super::waiter::SessionControl;

/// Longest statement text kept for the process list, bytes.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// What a session is doing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Activity {
    /// User name without host.
    pub user: String,
    /// Account it logged in to.
    pub identity: String,
    /// Peer address.
    pub peer: String,
    /// Current database.
    pub database: Option<String>,
    /// `Query`, `Execute`, `Sleep`.
    pub command: &'static str,
    /// Monotonic microseconds when `command` began.
    pub since_micros: i64,
    /// Statement running.
    pub text: Option<String>,
}

/// One connected session as others see it.
#[derive(Debug)]
pub(crate) struct Process {
    /// Connection id.
    pub id: u64,
    /// Way to stop it.
    pub control: Arc<SessionControl>,
    /// Tables its transaction uses.
    pub(super) tables: TablesInUse,
    activity: Mutex<Activity>,
}

impl Process {
    /// A statement begins.
    pub(crate) fn begin(&self, command: &'static str, text: &str, now: i64) {
        let mut activity = self.activity.lock();
        activity.command = command;
        activity.since_micros = now;
        let kept = activity.text.get_or_insert_default();
        kept.clear();
        kept.push_str(cut(text));
    }

    /// The statement ended.
    pub(crate) fn idle(&self, now: i64) {
        let mut activity = self.activity.lock();
        activity.command = "Sleep";
        activity.since_micros = now;
        activity.text = None;
    }

    /// The current database changed.
    pub(crate) fn set_database(&self, database: Option<&str>) {
        self.activity.lock().database = database.map(ToString::to_string);
    }

    /// The user changed.
    pub(crate) fn set_user(&self, user: &str, identity: &str) {
        let mut activity = self.activity.lock();
        activity.user = user.to_string();
        activity.identity = identity.to_string();
    }

    /// A copy of what it does.
    pub(crate) fn activity(&self) -> Activity {
        self.activity.lock().clone()
    }
}

fn cut(text: &str) -> &str {
    let mut end = text.len().min(TEXT_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// All sessions by connection id.
#[derive(Debug, Default)]
pub(crate) struct Processes {
    all: Mutex<BTreeMap<u64, Arc<Process>>>,
}

impl Processes {
    /// A session connects.
    pub(crate) fn add(&self, id: u64, activity: Activity) -> Arc<Process> {
        let process = Arc::new(Process {
            id,
            control: Arc::default(),
            tables: TablesInUse::default(),
            activity: Mutex::new(activity),
        });
        self.all.lock().insert(id, Arc::clone(&process));
        process
    }

    /// A session is gone.
    pub(crate) fn remove(&self, id: u64) {
        self.all.lock().remove(&id);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.lock().len()
    }

    /// All of them in order of id.
    pub(crate) fn list(&self) -> Vec<Arc<Process>> {
        self.all.lock().values().cloned().collect()
    }

    /// One of them.
    pub(crate) fn get(&self, id: u64) -> Option<Arc<Process>> {
        self.all.lock().get(&id).cloned()
    }
}

impl Process {
    /// KILL: the running statement stops; without `query_only` the frontend closes the connection.
    pub(crate) fn kill(&self, query_only: bool) {
        if !query_only {
            self.control.kill_connection.store(true, Ordering::SeqCst);
        }
        self.control.kill_query.store(true, Ordering::SeqCst);
    }
}
