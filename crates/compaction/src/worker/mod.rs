//! A worker as a process: it leases jobs, runs RocksDB's compactions and reports how they ended.
//!
//! | question | answered in |
//! |---|---|
//! | one attempt at a job | [`attempt`] |
//! | a copy of the database's directory, made from an object store | [`database_copy`] |
//! | the worker's own directory | [`scratch`] |
//! | metrics | [`metrics`] |

mod attempt;
mod database_copy;
pub mod metrics;
mod scratch;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use manxdb_jobs::job::{AttemptId, Spec, WorkerId, Zone};
use manxdb_jobs::message::{Ability, Ended, Progress};
use manxdb_jobs::worker::{Given, SlotAsk};
use manxdb_jobs::{Options, Worker};

use self::attempt::{Failure, Halt, Task};
use self::database_copy::Ends;
use self::scratch::Scratch;
use crate::actor::{Actor, Handle};
use crate::object_store::objects::Moved;
use crate::object_store::volume::Volume;
use crate::order::{CompactionProfile, Order, fingerprint};
use crate::seal::{pack, unseal};
use crate::transport::link::{self, CONTROL, Link, Route};
use crate::transport::wire::DESCRIPTION_MAX;

/// Settings of a worker.
pub struct WorkerOptions {
    /// Where the control plane may be.
    pub route: Route,
    /// Storage it reaches, by the operators' names.
    pub volumes: BTreeMap<String, Volume>,
    /// Where it makes outputs before they go to an object store; workers may share it.
    pub scratch: PathBuf,
    /// Memory for the ends of files in object stores, in bytes.
    pub remember: u64,
    /// Jobs it runs at a time.
    pub slots: u32,
    /// Where it is.
    pub zone: Zone,
    /// Databases it knows to compact.
    pub profiles: Vec<Arc<dyn CompactionProfile>>,
    /// Drawn at random for each start.
    pub id: WorkerId,
}

/// State that all slots share.
struct WorkerShared {
    volumes: BTreeMap<String, Volume>,
    /// Only when there is an object store.
    scratch: Option<Scratch>,
    ends: Ends,
    profiles: Vec<Arc<dyn CompactionProfile>>,
    core: Handle<Worker>,
    zone: Zone,
    slots: u32,
    /// Bytes a second of one slot, as measured: of inputs in its own zone, and in others.
    near: AtomicU64,
    far: AtomicU64,
    counts: Counts,
}

/// Counters of a worker since it started.
#[derive(Debug, Default)]
pub struct Counts {
    /// Attempts that made outputs.
    pub finished: AtomicU64,
    /// Attempts that failed.
    pub failed: AtomicU64,
    /// Attempts that were stopped from outside.
    pub stopped: AtomicU64,
    /// Bytes of inputs compacted.
    pub bytes: AtomicU64,
    /// Bytes fetched from object stores.
    pub fetched: AtomicU64,
    /// Bytes put there.
    pub put: AtomicU64,
}

/// A worker that works until it is dropped.
pub struct RunningWorker {
    shared: Arc<WorkerShared>,
    // Ends the core, which frees the slots.
    actor: Option<Actor<Worker>>,
    _link: Link,
    slots: Vec<JoinHandle<()>>,
}

impl RunningWorker {
    /// Starts a worker.
    ///
    /// # Errors
    /// The system has no thread left, or the scratch directory cannot be written to.
    pub fn start(options: WorkerOptions) -> std::io::Result<Self> {
        let is_away = |volume: &Volume| matches!(volume, Volume::Objects(_));
        let scratch = options.volumes.values().any(is_away).then(|| {
            let name = format!("worker-{:016x}", options.id.0);
            Scratch::new(&options.scratch, &name)
        });
        let scratch = scratch.transpose()?;
        let beat = Options::default().beat;
        let ability = ability(&options.profiles, options.slots, options.zone, (0, 0));
        let core = Worker::new(options.id, CONTROL, beat, ability);
        let (to_control, waiting) = link::queue();
        let actor = Actor::start("worker", core, |_| to_control)?;
        let link = Link::start(options.route, waiting, actor.handle())?;
        let shared = Arc::new(WorkerShared {
            volumes: options.volumes,
            scratch,
            ends: Ends::new(options.remember),
            profiles: options.profiles,
            core: actor.handle(),
            zone: options.zone,
            slots: options.slots,
            near: AtomicU64::new(0),
            far: AtomicU64::new(0),
            counts: Counts::default(),
        });
        let slots = (0..options.slots).map(|number| {
            let shared = Arc::clone(&shared);
            std::thread::Builder::new()
                .name(format!("slot-{number}"))
                .spawn(move || shared.work())
        });
        Ok(Self {
            slots: slots.collect::<std::io::Result<_>>()?,
            shared,
            actor: Some(actor),
            _link: link,
        })
    }

    /// Accepts no more jobs; returns when all running attempts have ended and are recorded.
    pub fn drain(&self) {
        let _ = self.shared.core.ask(SlotAsk::Drain).recv(); // it ended: nothing is left either
    }

    /// The worker's counters.
    pub fn counts(&self) -> &Counts {
        &self.shared.counts
    }
}

impl Drop for RunningWorker {
    fn drop(&mut self) {
        // A slot that runs something ends when that does.
        drop(self.actor.take());
        self.slots.clear();
    }
}

fn ability(
    profiles: &[Arc<dyn CompactionProfile>],
    slots: u32,
    zone: Zone,
    (bytes_second, far_bytes_second): (u64, u64),
) -> Ability {
    let prints = profiles.iter().map(|profile| fingerprint(profile.as_ref()));
    Ability {
        fingerprints: prints.collect(),
        zone,
        slots,
        bytes_second,
        far_bytes_second,
        memory: memory_available(),
    }
}

/// Memory that could be had without swapping, in bytes; caches count. Everything when the system
/// does not say.
fn memory_available() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
    kilobytes.map_or(u64::MAX, |kilobytes: u64| kilobytes << 10)
}

impl WorkerShared {
    /// Runs one job after the other, until the core ends.
    fn work(&self) {
        while let Ok(given) = self.core.ask(SlotAsk::Next).recv() {
            if let Given::Run(attempt, spec) = given {
                self.run(attempt, &spec);
            }
        }
    }

    fn run(&self, attempt: AttemptId, spec: &Spec) {
        let halt = Halt::default();
        let stop = halt.clone();
        let watch = move |given| {
            if given == Given::Stop {
                stop.halt();
            }
        };
        self.core.ask_with(SlotAsk::Watch(attempt), watch);
        let (trace, bytes) = (attempt.job, spec.facts.bytes);
        tracing::debug!(%trace, %attempt, bytes, "a compaction begins");
        let began = Instant::now();
        let end = match self.compact(attempt, spec, &halt) {
            Ok((result, Moved { fetched, put })) => {
                let seconds = began.elapsed().as_secs_f64();
                tracing::info!(
                    %trace, %attempt, bytes, seconds, fetched, put, "a compaction is done"
                );
                self.measure(spec.facts.zone, bytes, began.elapsed());
                self.counts.finished.fetch_add(1, Ordering::Relaxed);
                Ended::Finished(result.into())
            }
            Err(failure) if halt.is_halted() => {
                tracing::info!(%trace, %attempt, why = failure.why, "a compaction was stopped");
                self.counts.stopped.fetch_add(1, Ordering::Relaxed);
                Ended::Failed(failure.class)
            }
            Err(failure) => {
                tracing::warn!(%trace, %attempt, why = failure.why, "a compaction failed");
                self.counts.failed.fetch_add(1, Ordering::Relaxed);
                Ended::Failed(failure.class)
            }
        };
        self.core.tell(SlotAsk::Ended(attempt, end));
    }

    /// Learns how fast a slot is with inputs in a zone: each job counts a quarter.
    fn measure(&self, inputs: Zone, bytes: u64, took: Duration) {
        self.counts.bytes.fetch_add(bytes, Ordering::Relaxed);
        let known = if inputs == self.zone {
            &self.near
        } else {
            &self.far
        };
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX).max(1);
        let now = bytes.saturating_mul(1_000_000) / micros;
        let before = known.load(Ordering::Relaxed);
        let speed = if before == 0 {
            now
        } else {
            before - before / 4 + now / 4
        };
        known.store(speed, Ordering::Relaxed);
        let [near, far] = [&self.near, &self.far].map(|speed| speed.load(Ordering::Relaxed));
        let ability = ability(&self.profiles, self.slots, self.zone, (near, far));
        self.core.tell(SlotAsk::Able(ability));
    }

    fn compact(
        &self,
        attempt: AttemptId,
        spec: &Spec,
        halt: &Halt,
    ) -> Result<(Vec<u8>, Moved), Failure> {
        let order = unseal(&spec.input)
            .ok_or_else(|| Failure::declined("the order is not what the database sent"))?;
        let order: Order = postcard::from_bytes(order)
            .map_err(|error| Failure::declined(format!("the order cannot be read: {error}")))?;
        let Some(volume) = self.volumes.get(&order.volume) else {
            let volume = order.volume;
            return Err(Failure::declined(format!("volume '{volume}' is not here")));
        };
        let profile = self.profiles.iter().find(|one| one.name() == order.profile);
        let Some(profile) = profile else {
            let profile = order.profile;
            return Err(Failure::declined(format!("'{profile}' is unknown here")));
        };
        if fingerprint(profile.as_ref()) != spec.facts.fingerprint {
            let name = profile.name();
            return Err(Failure::declined(format!(
                "'{name}' means something else here"
            )));
        }
        let prepared = profile
            .prepare(&order.parameters)
            .map_err(Failure::declined)?;
        let moved = |moved| self.tell(attempt, 0, moved);
        let task = Task {
            attempt: attempt.to_string(),
            order: &order,
            options: &prepared.options,
            halt,
            moved: &moved,
        };
        let mut answer = match (volume, &self.scratch) {
            (Volume::Directory(root), _) => task.in_place(root)?,
            (Volume::Objects(objects), Some(scratch)) => {
                let made = task.on_copies(objects, scratch, &self.ends);
                let (answer, moved) = made;
                self.counts
                    .fetched
                    .fetch_add(moved.fetched, Ordering::Relaxed);
                self.counts.put.fetch_add(moved.put, Ordering::Relaxed);
                answer?
            }
            // A worker that has an object store has a scratch directory.
            (Volume::Objects(_), None) => return Err(Failure::declined("no scratch directory")),
        };
        answer.notes = (prepared.notes)();
        self.tell(attempt, spec.facts.bytes, answer.moved);
        let moved = answer.moved;
        let answer = pack(&answer).map_err(Failure::transient)?;
        if answer.len() > DESCRIPTION_MAX {
            let bytes = answer.len();
            return Err(Failure::declined(format!(
                "its outputs take {bytes} bytes to describe, at most {DESCRIPTION_MAX}"
            )));
        }
        Ok((answer, moved))
    }

    /// Says how far an attempt is.
    fn tell(&self, attempt: AttemptId, compacted: u64, moved: Moved) {
        let progress = Progress {
            compacted,
            fetched: moved.fetched,
            put: moved.put,
        };
        self.core.tell(SlotAsk::Progress(attempt, progress));
    }
}
