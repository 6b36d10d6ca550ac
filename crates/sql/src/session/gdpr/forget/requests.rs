//! Requests to forget: SHOW GDPR REQUESTS, and those that a crash cut short.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::{SqlError, SqlResult};
use crate::session::ResultSink;
use crate::session::accounts::{Privileges, access};
use crate::session::host::ClientInfo;
use crate::session::instance::Instance;
use crate::session::processes::Activity;
use crate::session::session::Session;
use crate::statement::owners::requests::{self as waiting, WaitingRequest};
use crate::statement::owners::subjects::{self, ForgetRequest};
use crate::types::{Row, Value};

const COLUMNS: [&str; 9] = [
    "Request", "Database", "Kind", "State", "Rows", "Asked_by", "Asked_at", "Reason", "Due_at",
];

/// Requests that a session of this process is at.
#[derive(Debug, Default)]
pub(in crate::session) struct RunningRequests(Mutex<BTreeSet<u64>>);

/// A request that is under way; no longer when it is dropped.
pub(in crate::session) struct RunningRequest {
    instance: Arc<Instance>,
    number: u64,
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.instance.requests_running.0.lock().remove(&self.number);
    }
}

impl Session {
    /// SHOW GDPR REQUESTS: those that are open, those that wait, then the newest of those that are done.
    pub(in crate::session) fn show_requests(
        &mut self,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        access::require_global(&self.state.account(), Privileges::GDPR, "GDPR")?;
        let txn = self.instance().store.begin();
        txn.declare_read_only();
        let mut rows: Vec<Row> = Vec::new();
        for (number, request) in subjects::open_requests(&txn)? {
            rows.push(self.request_row(number, &request, "open"));
        }
        for (number, waiting) in waiting::waiting(&txn)?.into_iter().rev() {
            let state = waiting.why.to_string();
            let mut row = self.request_row(number, &waiting.request, &state);
            let due = waiting.due_at_micros.map(|due| self.shown_time(due));
            if let (Some(last), Some(due)) = (row.last_mut(), due) {
                *last = due;
            }
            rows.push(row);
        }
        for (number, request) in subjects::done_requests(&txn)? {
            rows.push(self.request_row(number, &request, "done"));
        }
        self.send_rows(&COLUMNS, &rows, sink, more)
    }

    /// A time in the session's time zone.
    pub(super) fn shown_time(&self, micros: i64) -> Value {
        let zone = self.state.settings().time_zone.clone();
        let at = jiff::Timestamp::from_microsecond(micros).map(|at| at.to_zoned(zone));
        at.map_or(Value::Null, |at| {
            Value::Text(at.strftime("%Y-%m-%d %H:%M:%S").to_string())
        })
    }

    fn request_row(&self, number: u64, request: &ForgetRequest, state: &str) -> Row {
        let text = |text: &str| Value::Text(text.to_string());
        vec![
            Value::UInt(number),
            text(&request.database),
            text(&request.table),
            text(state),
            Value::UInt(request.rows),
            text(&request.asked_by),
            self.shown_time(request.asked_at_micros),
            request.reason.as_deref().map_or(Value::Null, text),
            Value::Null,
        ]
    }
}

impl Instance {
    /// Goes on with requests to forget that a crash, or a conflict, has cut short; how many came to
    /// their end. The process calls it now and then while it serves.
    ///
    /// # Errors
    /// Storage; conflicts: it is tried again at the next call.
    pub fn resume_requests(self: &Arc<Self>) -> SqlResult<usize> {
        self.mirror_audit()?;
        self.redo_erasures()?;
        let txn = self.store.begin();
        txn.declare_read_only();
        let mut open = subjects::open_requests(&txn)?;
        let now = self.host.wall_micros();
        let is_due = |waiting: &WaitingRequest| waiting.due_at_micros.is_some_and(|due| due <= now);
        let due = waiting::waiting(&txn)?
            .into_iter()
            .filter(|(_, waiting)| is_due(waiting));
        open.extend(due.map(|(number, waiting)| (number, waiting.request)));
        drop(txn);
        let mut ended = 0;
        for (number, request) in open.into_iter().rev() {
            if self.requests_running.0.lock().contains(&number) {
                continue;
            }
            let mut session = self.own_session(&request.asked_by);
            match session.resume(number) {
                Ok(_) => {
                    self.empty_views();
                    ended += 1;
                }
                Err(error) if error.code == 1213 => {}
                Err(error) => {
                    return Err(SqlError::internal(format!("request {number}: {error}")));
                }
            }
        }
        Ok(ended)
    }

    /// A session of the server's own, in the name of who asked.
    pub(in crate::session::gdpr) fn own_session(self: &Arc<Self>, identity: &str) -> Session {
        let id = self.next_connection_id();
        let activity = Activity {
            user: "gdpr".to_string(),
            identity: identity.to_string(),
            peer: "localhost".to_string(),
            command: "Daemon",
            since_micros: self.host.monotonic_micros(),
            ..Activity::default()
        };
        let process = self.processes.add(id, activity);
        let client = ClientInfo {
            peer: "localhost".to_string(),
            host: "localhost".to_string(),
            found_rows: false,
            multi_statements: false,
            local_files: false,
            collation: 255,
            compression: None,
            tls: None,
        };
        Session::new(Arc::clone(self), process, identity, "gdpr", client)
    }
}

/// Notes that a request is under way.
pub(in crate::session) fn begin(instance: &Arc<Instance>, number: u64) -> RunningRequest {
    instance.requests_running.0.lock().insert(number);
    RunningRequest {
        instance: Arc::clone(instance),
        number,
    }
}
