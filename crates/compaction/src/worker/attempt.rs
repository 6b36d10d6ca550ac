//! One attempt at a job: RocksDB on a database's files where they are, or on copies of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use manxdb_jobs::job::FailureClass;
use parking_lot::Mutex;
use rocksdb::Options;

use crate::answer::Answer;
use crate::database::outputs::listed;
use crate::edge::{Cancel, open_and_compact};
use crate::object_store::objects::{Moved, ObjectError, Objects, Stop, Transfer};
use crate::object_store::parallel;
use crate::object_store::view::Copies;
use crate::order::{Order, STAGING, below};
use crate::worker::database_copy::{Ends, build};
use crate::worker::scratch::Scratch;

/// Directories of an attempt on copies: the database's copy, and the outputs.
const DATABASE: &str = "database";
const OUTPUT: &str = "output";

/// How an attempt failed.
#[derive(Debug)]
pub(super) struct Failure {
    /// What the failure means for further attempts.
    pub class: FailureClass,
    /// For people.
    pub why: String,
}

impl Failure {
    /// This worker may not do it.
    pub(super) fn declined(why: impl ToString) -> Self {
        let (class, why) = (FailureClass::Declined, why.to_string());
        Self { class, why }
    }

    /// It may work the next time.
    pub(super) fn transient(why: impl ToString) -> Self {
        let (class, why) = (FailureClass::Transient, why.to_string());
        Self { class, why }
    }

    /// In RocksDB's words.
    fn of_rocksdb(why: String) -> Self {
        if why.starts_with("Corruption") || why.starts_with("Invalid argument") {
            let cause = crc32fast::hash(why.split(':').next().unwrap_or_default().as_bytes());
            let class = FailureClass::Deterministic {
                cause: u64::from(cause),
            };
            return Self { class, why };
        }
        Self::transient(why)
    }
}

/// Ends an attempt from another thread, whatever it is doing.
#[derive(Clone, Default)]
pub(super) struct Halt {
    cancel: Arc<Cancel>,
    stop: Arc<Stop>,
    is_halted: Arc<AtomicBool>,
}

impl Halt {
    /// It ends with a failure soon after.
    pub(super) fn halt(&self) {
        self.is_halted.store(true, Ordering::Release);
        self.cancel.cancel();
        self.stop.stop();
    }

    /// Whether it was ended from another thread: nobody installs its outputs any more.
    pub(super) fn is_halted(&self) -> bool {
        self.is_halted.load(Ordering::Acquire)
    }
}

/// The work of one attempt.
pub(super) struct Task<'a> {
    /// The attempt's name.
    pub attempt: String,
    /// The job.
    pub order: &'a Order,
    /// Options that the database's options file cannot hold.
    pub options: &'a Options,
    /// Ends it.
    pub halt: &'a Halt,
    /// JobFiles how many bytes were moved so far.
    pub moved: &'a (dyn Fn(Moved) + Sync),
}

impl Task<'_> {
    /// Compacts files in the database's own directory.
    ///
    /// # Errors
    /// [`Failure`]; the database sweeps what is left.
    pub(super) fn in_place(&self, root: &Path) -> Result<Answer, Failure> {
        let database = below(root, &self.order.database).map_err(Failure::declined)?;
        let output = database.join(STAGING).join(&self.attempt);
        let made = self.compact(&database, &output).and_then(|answer| {
            // The database may have closed: then nothing but this removes the outputs until its next
            // start.
            if self.halt.is_halted() {
                return Err(Failure::transient("it was stopped as it ended"));
            }
            Ok(answer)
        });
        if made.is_err() {
            let _ = fs::remove_dir_all(&output);
        }
        made
    }

    /// Compacts copies in directories of this attempt alone, and uploads the outputs below a prefix
    /// of this attempt alone. Bytes that were moved count also when it fails.
    pub(super) fn on_copies(
        &self,
        objects: &Arc<Objects>,
        scratch: &Scratch,
        ends: &Ends,
    ) -> (Result<Answer, Failure>, Moved) {
        let transfer = match objects.transfer(&self.order.database, &self.halt.stop) {
            Ok(transfer) => transfer,
            Err(error) => return (Err(Failure::declined(error)), Moved::default()),
        };
        let made = self.on_copies_in(&transfer, scratch, ends);
        if let Err(error) = scratch.remove(&self.attempt) {
            tracing::warn!(%error, attempt = self.attempt, "files of an attempt are left");
        }
        (made, transfer.moved())
    }

    fn on_copies_in(
        &self,
        transfer: &Transfer,
        scratch: &Scratch,
        ends: &Ends,
    ) -> Result<Answer, Failure> {
        let Some(copies) = &self.order.copies else {
            let volume = &self.order.volume;
            let why = format!("volume '{volume}' is a directory for the database, not a store");
            return Err(Failure::declined(why));
        };
        let place = scratch.make(&self.attempt).map_err(Failure::transient)?;
        let (database, output) = (place.join(DATABASE), place.join(OUTPUT));
        fs::create_dir_all(&database).map_err(Failure::transient)?;
        build(transfer, ends, copies, &database).map_err(Failure::transient)?;
        (self.moved)(transfer.moved());
        let mut answer = self.compact(&database, &output)?;
        self.put(transfer, copies, &mut answer, &output)?;
        answer.moved = transfer.moved();
        Ok(answer)
    }

    fn put(
        &self,
        transfer: &Transfer,
        copies: &Copies,
        answer: &mut Answer,
        output: &Path,
    ) -> Result<(), Failure> {
        let sums = Mutex::new(BTreeMap::new());
        let put = parallel::each(&answer.files, |file| {
            let key = copies.output(&self.attempt, &file.name);
            let object = transfer.put_file(&key, &output.join(&file.name))?;
            sums.lock().insert(file.name.clone(), object.sum);
            (self.moved)(transfer.moved());
            Ok::<_, ObjectError>(())
        });
        put.map_err(Failure::transient)?;
        let sums = sums.into_inner();
        for file in &mut answer.files {
            file.copy_sum = sums.get(&file.name).copied();
        }
        Ok(())
    }

    fn compact(&self, database: &Path, output: &Path) -> Result<Answer, Failure> {
        // The database made the parent directory. If it is missing, so is the volume: outputs
        // written to an empty mount point would be lost.
        fs::create_dir(output)
            .map_err(|error| Failure::transient(format!("{}: {error}", output.display())))?;
        let cancel = &self.halt.cancel;
        let made = open_and_compact(database, output, &self.order.input, self.options, cancel);
        let description = made.map_err(Failure::of_rocksdb)?;
        let files = listed(&description).map_err(Failure::transient)?;
        Ok(Answer {
            description,
            files,
            moved: Moved::default(),
            notes: Vec::new(),
        })
    }
}
