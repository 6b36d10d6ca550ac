//! A database's uploads to an object store, their index, and the collection of objects that are no
//! longer needed.

mod index;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use manxdb_jobs::job::{AttemptId, DatabaseId, SessionId};

use self::index::UploadIndex;
use crate::answer::{OutputFile, is_plain};
use crate::object_store::objects::{Moved, Object, ObjectError, Objects, Stop, Transfer};
use crate::object_store::parallel;
use crate::object_store::view::Copies;

/// After a job that is over: RocksDB removes its inputs a little later.
const TIDY: Duration = Duration::from_secs(1);
/// Between two looks for what belongs to nothing.
const SWEEP: Duration = Duration::from_secs(300);
/// After one that failed.
const SWEEP_AGAIN: Duration = Duration::from_secs(20);

/// The uploads of a job.
pub(super) struct Put {
    /// Its number here.
    pub job: u64,
    /// Where.
    pub copies: Copies,
    /// Bytes moved for them.
    pub moved: Moved,
}

/// The copies of one database in an object store.
pub(super) struct Uploads {
    objects: Arc<Objects>,
    index: Arc<UploadIndex>,
    base: String,
    stop: Arc<Stop>,
    ended: Sender<u64>,
    numbers: AtomicU64,
}

impl Uploads {
    /// For a database that is about to be opened. What its earlier sessions left in the store is
    /// removed in the background, and so is what jobs leave.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(
        objects: &Arc<Objects>,
        directory: &Path,
        database: DatabaseId,
        session: SessionId,
    ) -> std::io::Result<Self> {
        let (ended, waiting) = channel();
        let uploads = Self {
            objects: Arc::clone(objects),
            index: Arc::new(UploadIndex::new(directory)),
            base: format!("{:x}/{:x}", database.0, session.0),
            stop: Arc::default(),
            ended,
            numbers: AtomicU64::new(1),
        };
        let gc = ObjectGc {
            objects: Arc::clone(objects),
            index: Arc::clone(&uploads.index),
            database: format!("{:x}", database.0),
            session: format!("{:x}/", session.0),
            stop: Arc::clone(&uploads.stop),
        };
        std::thread::Builder::new()
            .name("compaction-gc".to_owned())
            .spawn(move || gc.work(&waiting))?;
        Ok(uploads)
    }

    /// Where it is on its volume.
    pub(super) fn base(&self) -> &str {
        &self.base
    }

    /// Whether the store failed a moment ago.
    pub(super) fn rests(&self) -> bool {
        self.objects.rests()
    }

    /// Uploads what a job needs.
    ///
    /// # Errors
    /// [`ObjectError`]; the job must then stay local.
    pub(super) fn put(
        &self,
        family: &str,
        inputs: &[String],
        options: u64,
    ) -> Result<Put, ObjectError> {
        let job = self.numbers.fetch_add(1, Ordering::Relaxed);
        let transfer = self.objects.transfer(&self.base, &self.stop)?;
        let copies = self.index.put(&transfer, job, family, inputs, options);
        if copies.is_err() {
            self.end(job);
        }
        Ok(Put {
            job,
            copies: copies?,
            moved: transfer.moved(),
        })
    }

    /// Fetches an attempt's outputs into a directory of their own.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub(super) fn fetch(
        &self,
        copies: &Copies,
        attempt: AttemptId,
        outputs: &[OutputFile],
        directory: &Path,
    ) -> Result<Moved, ObjectError> {
        let transfer = self.objects.transfer(&self.base, &self.stop)?;
        fs::create_dir_all(directory).map_err(crate::object_store::objects::local(directory))?;
        parallel::each(outputs, |output| {
            let name = output.name.as_str();
            if !is_plain(name) {
                return Err(ObjectError::Name(name.to_owned()));
            }
            let key = copies.output(&attempt.to_string(), name);
            let Some(sum) = output.copy_sum else {
                let what = "the worker put no copy of it there".to_owned();
                return Err(ObjectError::Differs { key, what });
            };
            let object = Object {
                key,
                bytes: output.bytes,
                sum,
            };
            transfer.fetch_file(&object, &directory.join(name))
        })?;
        let key = |name: &str| copies.output(&attempt.to_string(), name);
        self.index.stage(directory, outputs, key);
        Ok(transfer.moved())
    }

    /// A job is over: the collector removes its uploads, except those that became files of the
    /// database.
    pub(super) fn end(&self, job: u64) {
        let _ = self.ended.send(job); // the gc lives as long as this
    }

    /// The database closes.
    pub(super) fn stop(&self) {
        self.stop.stop();
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        self.stop.stop();
    }
}

/// Removes objects that no job needs.
struct ObjectGc {
    objects: Arc<Objects>,
    index: Arc<UploadIndex>,
    database: String,
    session: String,
    stop: Arc<Stop>,
}

impl ObjectGc {
    fn work(&self, ended: &Receiver<u64>) {
        let mut sweep_at = Instant::now();
        let mut tidy_at = None;
        loop {
            let next = tidy_at.map_or(sweep_at, |tidy: Instant| tidy.min(sweep_at));
            let pause = next.saturating_duration_since(Instant::now());
            match ended.recv_timeout(pause) {
                Ok(job) => {
                    self.end(job);
                    tidy_at = Some(Instant::now() + TIDY);
                }
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) if tidy_at.take().is_some() => self.tidy(),
                Err(RecvTimeoutError::Timeout) => sweep_at = Instant::now() + self.sweep(),
            }
        }
    }

    fn end(&self, job: u64) {
        let transfer = self.objects.transfer(&self.own(), &self.stop);
        if let Err(error) = transfer.and_then(|transfer| self.index.end(&transfer, job)) {
            tracing::debug!(%error, job, "objects of a job are left for the next sweep");
        }
    }

    fn tidy(&self) {
        let transfer = self.objects.transfer(&self.own(), &self.stop);
        if let Err(error) = transfer.and_then(|transfer| self.index.tidy(&transfer)) {
            tracing::debug!(%error, "copies of removed files are left for the next sweep");
        }
    }

    fn own(&self) -> String {
        format!("{}/{}", self.database, self.session.trim_end_matches('/'))
    }

    /// Removes objects of earlier sessions and of abandoned attempts; returns the pause until the
    /// next sweep.
    fn sweep(&self) -> Duration {
        let others = self.objects.transfer(&self.database, &self.stop);
        let own = self.objects.transfer(&self.own(), &self.stop);
        let swept = others
            .and_then(|others| self.sweep_others(&others))
            .and_then(|()| {
                let own = own?;
                self.index.tidy(&own)?;
                self.index.sweep(&own, "")
            });
        match swept {
            Ok(()) => SWEEP,
            Err(ObjectError::Stopped) => SWEEP,
            Err(error) => {
                tracing::warn!(%error, "the object store cannot be cleaned up; it is tried again");
                SWEEP_AGAIN
            }
        }
    }

    fn sweep_others(&self, transfer: &Transfer) -> Result<(), ObjectError> {
        let mut keys = transfer.list("")?;
        keys.retain(|key| !key.starts_with(&self.session));
        transfer.remove(&keys)
    }
}
