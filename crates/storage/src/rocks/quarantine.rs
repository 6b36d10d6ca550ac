//! Sorted files that a compaction found damaged.
//!
//! Nothing repairs a block that does not match its sum: reads that need it fail and name the file,
//! and a compaction that needs it fails whenever it is tried. Neither is a reason to stop anything
//! else. RocksDB tries a failed compaction again after a second, for ever, so the next one of these
//! files is held back before it begins, for ten seconds and then for twice as long each time. While
//! it is held its files are busy for RocksDB, which compacts around them, inside of level 0 too: so
//! level 0 does not fill up behind them. A held compaction takes up a thread, so there is one more
//! for each ([`Quarantine::held_max`]).
//!
//! A file leaves the list when a compaction of it succeeds.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use manxdb_compaction_edge::{CORRUPTION, CompactionListener};
use manxdb_core::check::ensure;
use parking_lot::{Condvar, Mutex};

/// How long compactions of a damaged file are held back at first,
const HOLD: Duration = Duration::from_secs(10);
/// and how often that is doubled: to somewhat more than ten minutes.
const DOUBLED_MAX: u32 = 6;
const _: () = assert!(
    HOLD.as_secs() << DOUBLED_MAX == 640,
    "a damaged file is read in vain every ten minutes at most"
);
/// Compactions held back at a time; others fail again, which costs reading.
const HELD_MAX: u16 = 2;

/// A damaged file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// Its name in the folder of sorted files.
    pub name: String,
    /// What RocksDB found, in its words.
    pub why: String,
}

/// Damaged files of a store that is open.
#[derive(Debug, Default)]
pub struct Quarantine {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, Damage>,
    /// Compactions that wait.
    held: u16,
    /// Somebody waits for a compaction, or the store closes: nothing is held back.
    hurries: usize,
}

#[derive(Debug)]
struct Damage {
    why: String,
    /// Compactions of it that failed.
    failures: u32,
    /// No compaction of it begins before.
    until: Instant,
}

impl Damage {
    #[allow(
        clippy::disallowed_methods,
        reason = "when a compaction is tried changes nothing that anybody reads"
    )]
    fn new() -> Self {
        Self {
            why: String::new(),
            failures: 0,
            until: Instant::now(),
        }
    }

    #[allow(
        clippy::disallowed_methods,
        reason = "when a compaction is tried changes nothing that anybody reads"
    )]
    fn failed(&mut self, why: &str) {
        let doubled = self.failures.min(DOUBLED_MAX);
        self.until = Instant::now() + HOLD * 2_u32.pow(doubled); // at most 2^6
        self.failures = self.failures.saturating_add(1);
        why.clone_into(&mut self.why);
    }
}

impl Quarantine {
    /// The files that are damaged, by their names.
    pub fn files(&self) -> Vec<DamagedFile> {
        let state = self.state.lock();
        let files = state.files.iter().map(|(name, damage)| DamagedFile {
            name: name.clone(),
            why: damage.why.clone(),
        });
        files.collect()
    }

    /// Threads that compactions held back may take up.
    pub fn held_max(&self) -> u16 {
        if self.state.lock().files.is_empty() {
            0
        } else {
            HELD_MAX
        }
    }

    /// Runs something that waits for compactions: none is held back meanwhile.
    pub fn hurry<T>(&self, work: impl FnOnce() -> T) -> T {
        self.release();
        let done = work();
        let mut state = self.state.lock();
        assert!(state.hurries > 0, "a hurry ends once");
        state.hurries -= 1;
        done
    }

    /// The store closes: no compaction is held back any more.
    pub fn close(&self) {
        self.release();
    }

    fn release(&self) {
        self.state.lock().hurries += 1;
        self.changed.notify_all();
    }
}

impl State {
    /// What holds between any two calls.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self) -> Result<(), String> {
        for (name, damage) in &self.files {
            ensure(damage.failures > 0 && !damage.why.is_empty(), || {
                format!("no compaction of {name} has failed, which is listed as damaged")
            })?;
        }
        ensure(self.held <= HELD_MAX, || {
            format!(
                "{} compactions are held, more than there are threads for",
                self.held
            )
        })
    }

    /// Until when a compaction of these files waits.
    fn until(&self, inputs: &[String]) -> Option<Instant> {
        let damaged = inputs.iter().filter_map(|name| self.files.get(name));
        let until = damaged.map(|damage| damage.until).max();
        until.filter(|_| self.hurries == 0)
    }
}

impl CompactionListener for Quarantine {
    fn begins(&self, inputs: &[String]) {
        let mut state = self.state.lock();
        if state.held == HELD_MAX {
            return;
        }
        state.held += 1;
        assert_eq!(state.check(), Ok(()));
        while let Some(until) = state.until(inputs) {
            if self.changed.wait_until(&mut state, until).timed_out() {
                break;
            }
        }
        assert!(state.held > 0, "a compaction is held once");
        state.held -= 1;
    }

    fn ended(&self, inputs: &[String], error: Option<&str>) {
        let Some(error) = error else {
            let mut state = self.state.lock();
            for name in inputs {
                state.files.remove(name);
            }
            return;
        };
        if !error.starts_with(CORRUPTION) {
            return; // the store closes, or the disk is full
        }
        let is_named = |name: &&String| error.contains(name.as_str());
        let named: Vec<&String> = inputs.iter().filter(is_named).collect();
        // Without a name it may be any of them.
        let damaged = if named.is_empty() {
            inputs.iter().collect()
        } else {
            named
        };
        let mut state = self.state.lock();
        for name in damaged {
            if !state.files.contains_key(name) {
                tracing::error!(
                    file = name,
                    error,
                    "a sorted file is damaged: reads of what it holds fail, all else goes on; \
                     restore a backup, or another copy of this data"
                );
            }
            let damage = state.files.entry(name.clone());
            damage.or_insert_with(Damage::new).failed(error);
        }
        assert_eq!(state.check(), Ok(()));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn damaged(quarantine: &Quarantine) -> Vec<String> {
        let files = quarantine.files().into_iter();
        files.map(|file| file.name).collect()
    }

    const ERROR: &str = "Corruption: block checksum mismatch in /data/000007.sst offset 3";

    #[test]
    fn the_file_that_an_error_names_is_damaged_or_else_all_inputs_until_one_succeeds() {
        let quarantine = Quarantine::default();
        let inputs = names(&["000006.sst", "000007.sst"]);
        quarantine.ended(&inputs, Some("IO error: No space left on device"));
        assert_eq!((damaged(&quarantine), quarantine.held_max()), (vec![], 0));
        quarantine.ended(&inputs, Some(ERROR));
        assert_eq!(damaged(&quarantine), ["000007.sst"]);
        assert_eq!(quarantine.held_max(), HELD_MAX);
        quarantine.ended(&inputs, Some("Corruption: out-of-order keys"));
        assert_eq!(damaged(&quarantine), inputs);
        quarantine.ended(&inputs, None);
        assert_eq!(damaged(&quarantine), [""; 0]);
    }

    #[test]
    fn a_file_that_no_compaction_has_found_damaged_is_not_listed() {
        let mut state = State::default();
        let inputs = names(&["000007.sst"]);
        assert_eq!(state.check(), Ok(()));
        state.files.insert(inputs[0].clone(), Damage::new());
        assert!(state.check().unwrap_err().contains("000007.sst"));
    }

    #[test]
    fn each_failure_holds_back_for_twice_as_long_up_to_a_limit() {
        let mut damage = Damage::new();
        let mut holds = Vec::new();
        for _ in 0..9 {
            let before = damage.until;
            damage.failed(ERROR);
            holds.push(damage.until.duration_since(before));
        }
        let ends: Vec<u64> = holds.iter().map(Duration::as_secs).collect();
        assert!(ends[..7].is_sorted(), "{ends:?}");
        assert!(damage.until.duration_since(Damage::new().until) <= HOLD * 64);
    }

    #[test]
    fn a_compaction_of_a_damaged_file_is_held_back_until_somebody_waits_for_it() {
        let quarantine = Arc::new(Quarantine::default());
        let inputs = names(&["000007.sst"]);
        quarantine.ended(&inputs, Some(ERROR));
        quarantine.begins(&names(&["000008.sst"])); // returns at once
        let held = Arc::clone(&quarantine);
        #[allow(clippy::disallowed_methods)] // one of RocksDB's threads is what it stands for
        let thread = std::thread::spawn(move || held.begins(&inputs));
        while quarantine.state.lock().held == 0 {
            std::thread::yield_now();
        }
        assert!(!thread.is_finished());
        quarantine.hurry(|| thread.join().unwrap());
        quarantine.close();
        quarantine.begins(&names(&["000007.sst"])); // returns at once
    }
}
