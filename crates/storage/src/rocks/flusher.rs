//! The thread that writes full memtables out, the oldest first, and who waits for it.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::flush;
use super::store::{FROZEN_MAX, Store};
use crate::error::StorageError;
use crate::files::io_error;
use crate::memtable::Memtable;

/// Pause after a flush that failed, unless somebody waits for the next.
const RETRY: Duration = Duration::from_secs(1);

/// Pause while too many files wait for a compaction.
const RETRY_BEHIND: Duration = Duration::from_millis(100);

/// How often who asked for a flush waits for a compaction: a minute of such pauses.
const BEHIND_MAX: u64 = 600;
const _: () = assert!(
    RETRY_BEHIND.as_millis() * BEHIND_MAX as u128 == 60_000,
    "who asks for a flush gives up when a write would"
);

/// Where flushes stand.
#[derive(Debug, Default)]
struct State {
    /// No more memtables come.
    is_ending: bool,
    /// Somebody waits: a flush that failed is tried again at once.
    is_urgent: bool,
    /// A flush is under way.
    is_flushing: bool,
    /// Flushes that failed.
    failures: u64,
    /// Why the last flush failed, until one succeeds.
    failure: Option<StorageError>,
}

/// What the thread and those who wait for it share.
#[derive(Default)]
struct Desk {
    state: Mutex<State>,
    changed: Condvar,
}

/// Writes frozen memtables out as they come.
pub struct Flusher {
    store: Arc<Store>,
    desk: Arc<Desk>,
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`StorageError::Io`] when no thread can be made.
    pub fn start(store: &Arc<Store>) -> Result<Self, StorageError> {
        let desk = Arc::new(Desk::default());
        let (worker_store, worker_desk) = (Arc::clone(store), Arc::clone(&desk));
        #[allow(
            clippy::disallowed_methods,
            reason = "what is written out reads the same before and after"
        )]
        let thread = std::thread::Builder::new()
            .name("flusher".to_owned())
            .spawn(move || work(&worker_store, &worker_desk))
            .map_err(|error| io_error("cannot start the flusher".to_owned(), error))?;
        Ok(Self {
            store: Arc::clone(store),
            desk,
            thread: Some(thread),
        })
    }

    /// A memtable was frozen.
    pub fn order(&self) {
        let _state = self.desk.state.lock();
        self.desk.changed.notify_all();
    }

    /// Whether one more memtable may be frozen, or else why not yet.
    ///
    /// # Errors
    /// What the last flush met, when waiting alone does not help.
    pub fn has_room(&self) -> Result<Result<(), String>, StorageError> {
        let waiting = self.store.layers().frozen.len();
        if waiting < FROZEN_MAX {
            return Ok(Ok(()));
        }
        assert_eq!(
            waiting, FROZEN_MAX,
            "no more memtables wait than there is memory for"
        );
        match &self.desk.state.lock().failure {
            None => Ok(Err("memtables are being written out".to_owned())),
            Some(StorageError::Behind(why)) => Ok(Err(why.clone())),
            Some(failure) => Err(refusal(failure)),
        }
    }

    /// As [`Flusher::has_room`], but while flushes succeed only when none is under way: for who fills
    /// one memtable after the other.
    ///
    /// # Errors
    /// As [`Flusher::has_room`].
    pub fn has_caught_up(&self) -> Result<Result<(), String>, StorageError> {
        let room = self.has_room()?;
        if room.is_err() || self.store.layers().frozen.is_empty() {
            return Ok(room);
        }
        match &self.desk.state.lock().failure {
            None => Ok(Err("memtables are being written out".to_owned())),
            Some(_) => Ok(Ok(())),
        }
    }

    /// Waits a moment, or until a flush ended.
    pub fn wait(&self, moment: Duration) {
        self.desk
            .changed
            .wait_for(&mut self.desk.state.lock(), moment);
    }

    /// Waits until all that is frozen now is in sorted files.
    ///
    /// # Errors
    /// What a flush met that began after this call; [`StorageError::Behind`] when compactions do
    /// not catch up within a minute.
    pub fn finish(&self) -> Result<(), StorageError> {
        let target = {
            let layers = self.store.layers();
            layers.ingested + layers.frozen.len() as u64
        };
        let mut state = self.desk.state.lock();
        // One that is under way may meet what is mended by now.
        let failures = state.failures + u64::from(state.is_flushing);
        state.is_urgent = true;
        self.desk.changed.notify_all();
        while self.store.layers().ingested < target {
            let failed = state.failures.saturating_sub(failures);
            match &state.failure {
                Some(StorageError::Behind(_)) if failed < BEHIND_MAX => {}
                Some(failure) if failed > 0 => return Err(refusal(failure)),
                _ => {}
            }
            if self.thread.as_ref().is_none_or(JoinHandle::is_finished) {
                let why = "the thread that writes memtables out ended".to_owned();
                return Err(StorageError::Engine(why));
            }
            self.desk.changed.wait_for(&mut state, RETRY);
        }
        Ok(())
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        self.desk.state.lock().is_ending = true;
        self.desk.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there left memtables that the log still has.
            let _ = thread.join();
        }
    }
}

/// A failed flush as who wants to write hears of it: nothing of the write happened, and the next
/// may succeed.
fn refusal(failure: &StorageError) -> StorageError {
    match failure {
        StorageError::Full(why) => StorageError::Full(why.clone()),
        StorageError::ReadOnly(why) => StorageError::ReadOnly(why.clone()),
        StorageError::Behind(why) => StorageError::Behind(why.clone()),
        other => StorageError::Behind(format!("memtables cannot be written out: {other}")),
    }
}

fn work(store: &Store, desk: &Desk) {
    // Freeing a memtable takes a while: it is this thread that lets go of one last.
    let mut leftover: Vec<Arc<Memtable>> = Vec::new();
    loop {
        leftover.retain(|memtable| Arc::strong_count(memtable) > 1);
        let oldest = store.layers().frozen.last().cloned();
        let Some(oldest) = oldest else {
            let mut state = desk.state.lock();
            if !store.layers().frozen.is_empty() {
                continue;
            }
            if state.is_ending {
                return;
            }
            if leftover.is_empty() {
                desk.changed.wait(&mut state);
            } else {
                desk.changed.wait_for(&mut state, RETRY);
            }
            continue;
        };
        let was_flushing = std::mem::replace(&mut desk.state.lock().is_flushing, true);
        assert!(!was_flushing, "one memtable is written out at a time");
        let flushed = flush::write_out(store, &oldest);
        let mut state = desk.state.lock();
        state.is_flushing = false;
        match flushed {
            Ok(()) => {
                store.ingested(&oldest.memtable);
                leftover.push(oldest.memtable);
                state.failure = None;
                desk.changed.notify_all();
            }
            Err(error) => {
                if state.failure.is_none() {
                    tracing::warn!(%error, "a memtable cannot be written out yet");
                }
                let pause = match &error {
                    StorageError::Behind(_) => RETRY_BEHIND,
                    _ => RETRY,
                };
                state.failures += 1;
                state.failure = Some(error);
                desk.changed.notify_all();
                if state.is_ending {
                    return;
                }
                wait_for_retry(desk, &mut state, pause);
            }
        }
    }
}

/// Waits before the next try.
fn wait_for_retry(desk: &Desk, state: &mut parking_lot::MutexGuard<'_, State>, pause: Duration) {
    while !std::mem::take(&mut state.is_urgent) && !state.is_ending {
        if desk.changed.wait_for(state, pause).timed_out() {
            return;
        }
    }
}
