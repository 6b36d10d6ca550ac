//! Whether statements are served, and the store takes writes.
//!
//! A server asks itself: it reads a record all the time, and writes one when statements were refused.
//! Pages are answered from what is known, so that they never wait for what they are asked about.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use manxdb_gateway::admin::HealthReport;
use manxdb_sql::session::Instance;

/// Looks between two tries while writes are refused.
const LOOKS_BETWEEN: u64 = 10;
/// Between two looks at writes, and at whether to end.
const TICK: Duration = Duration::from_millis(100);
/// Between two reads.
const PAUSE: Duration = Duration::from_millis(500);
/// A read that takes longer is one that is not served: clients wait as long.
const PATIENCE: Duration = Duration::from_secs(3);

/// What is known about reads and writes.
#[derive(Debug, Default)]
pub struct StoreHealth {
    reads: Mutex<Reads>,
    writes: WriteHealth,
}

/// What is known about reads.
#[derive(Debug, Default)]
struct Reads {
    /// Since when one is under way.
    since: Option<Instant>,
    /// Why the last one failed, if it did.
    refused: Option<String>,
}

impl Reads {
    /// Why statements are not served, if they are not.
    fn refusal(&self) -> Option<String> {
        let waited = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        match &self.refused {
            Some(why) => Some(why.clone()),
            None if waited > PATIENCE => Some(format!("a read waits for {} s", waited.as_secs())),
            None => None,
        }
    }
}

impl StoreHealth {
    /// Why statements are not served, when they are not.
    pub fn read_refusal(&self) -> Option<String> {
        self.reads().refusal()
    }

    /// Why the store takes no writes, when it takes none.
    pub fn write_refusal(&self) -> Option<String> {
        self.writes.refusal()
    }

    /// The report of a store that knows nothing else of itself.
    pub fn report(&self) -> HealthReport {
        match (self.read_refusal(), self.write_refusal()) {
            (Some(why), _) => HealthReport::unavailable(
                format!("statements are not served: {why}"),
                "see the log of this server",
            ),
            (None, Some(why)) => HealthReport::degraded(format!("only to read: {why}"), ""),
            (None, None) => HealthReport::ok(),
        }
    }

    fn reads(&self) -> MutexGuard<'_, Reads> {
        // What it says is whole whatever happened to the thread that said it.
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read(&self, instance: &Instance) {
        self.reads().since = Some(Instant::now());
        let refused = instance.try_read().err().map(|error| error.to_string());
        let mut reads = self.reads();
        match (&reads.refused, &refused) {
            (None, Some(why)) => tracing::error!("statements are not served: {why}"),
            (Some(_), None) => tracing::info!("statements are served again"),
            _ => {}
        }
        *reads = Reads {
            since: None,
            refused,
        };
    }
}

/// The threads that ask; they end with it, each when its try has an answer.
pub struct HealthThreads {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl HealthThreads {
    /// Starts asking.
    ///
    /// # Errors
    /// The system has no thread.
    pub fn start(health: &Arc<StoreHealth>, instance: &Arc<Instance>) -> std::io::Result<Self> {
        let mut all = Self {
            stop: Arc::default(),
            threads: Vec::new(),
        };
        let (read, own) = (Arc::clone(health), Arc::clone(instance));
        all.spawn("read-health", PAUSE, move || read.read(&own))?;
        let (written, own) = (Arc::clone(health), Arc::clone(instance));
        all.spawn("write-health", TICK, move || written.writes.look(&own))?;
        Ok(all)
    }

    fn spawn(
        &mut self,
        name: &str,
        pause: Duration,
        look: impl Fn() + Send + 'static,
    ) -> std::io::Result<()> {
        let stop = Arc::clone(&self.stop);
        let thread = thread::Builder::new().name(name.to_owned());
        let thread = thread.spawn(move || {
            let mut next = Instant::now();
            while !stop.load(Ordering::SeqCst) {
                if Instant::now() >= next {
                    look();
                    next = Instant::now() + pause;
                }
                thread::sleep(TICK);
            }
        })?;
        self.threads.push(thread);
        Ok(())
    }
}

impl Drop for HealthThreads {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // one that panicked has nothing left to do
        }
    }
}

/// What is known about writes. Reads are served whatever it says.
#[derive(Debug, Default)]
struct WriteHealth {
    looks: AtomicU64,
    refused: AtomicU64,
    refusal: Mutex<Option<String>>,
}

impl WriteHealth {
    fn refusal(&self) -> Option<String> {
        self.known().clone()
    }

    fn known(&self) -> MutexGuard<'_, Option<String>> {
        // A text is whole whatever happened to the thread that wrote it.
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tries a write when a statement was refused since the last look, and now and then until
    /// one succeeds.
    fn look(&self, instance: &Instance) {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed);
        let refused = instance.refused_writes();
        let is_news = self.refused.swap(refused, Ordering::Relaxed) != refused;
        let is_known = self.known().is_some();
        let is_time = looks.is_multiple_of(LOOKS_BETWEEN);
        if is_known && is_time || !is_known && is_news {
            let refusal = instance.try_write().err().map(|error| error.to_string());
            match (is_known, &refusal) {
                (false, Some(why)) => tracing::error!("only reads are served: {why}"),
                (true, None) => tracing::info!("writes are possible again"),
                _ => {}
            }
            *self.known() = refusal;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_read_that_takes_too_long_is_one_that_is_not_served() {
        let began = |ago: Duration| Reads {
            since: Instant::now().checked_sub(ago),
            refused: None,
        };
        assert_eq!(began(Duration::ZERO).refusal(), None);
        let waits = began(PATIENCE * 2).refusal();
        assert_eq!(waits.as_deref(), Some("a read waits for 6 s"));
    }

    #[test]
    fn a_read_that_failed_is_told_until_one_succeeds() {
        let reads = Reads {
            since: Some(Instant::now()),
            refused: Some("memory server 0 is gone".to_owned()),
        };
        assert_eq!(reads.refusal().as_deref(), Some("memory server 0 is gone"));
    }

    #[test]
    fn a_store_without_reads_is_worse_than_one_without_writes() {
        let health = StoreHealth::default();
        assert_eq!(health.report(), HealthReport::ok());
        *health.writes.known() = Some("disk full".to_owned());
        assert_eq!(
            health.report().to_string(),
            "degraded: only to read: disk full"
        );
        health.reads().refused = Some("gone".to_owned());
        let report = health.report().to_string();
        assert!(
            report.starts_with("unavailable: statements are not served: gone"),
            "{report}"
        );
    }
}
