//! How near a database is to stopping its writes, looked at again and again while it is open.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use manxdb_jobs::job::Pressure;
use parking_lot::Mutex;

use crate::edge::{Level0, OpenDatabase};

/// The database while it is open. A reader holds the lock, so the thread that closes the database
/// knows that no reader is left.
pub(super) type Sight = Arc<Mutex<Option<Box<dyn OpenDatabase>>>>;

/// Time between two looks.
const EVERY: Duration = Duration::from_millis(250);

/// How long what arrived counts: the rate is an average over about this time.
const MEMORY: Duration = Duration::from_secs(10);

/// A thread that looks at a database; ends when it is dropped.
pub(super) struct Watch {
    end: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Calls `said` with each observation.
    ///
    /// # Errors
    /// The system has no thread left.
    pub(super) fn start(
        sight: Sight,
        said: impl Fn(Pressure) + Send + 'static,
    ) -> std::io::Result<Self> {
        let (end, ended) = channel();
        let thread = std::thread::Builder::new()
            .name("compaction-watch".to_owned())
            .spawn(move || {
                let mut rates = Rates::default();
                let mut last = Instant::now();
                while ended.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
                    let seen = sight.lock().as_ref().map(|opened| opened.level0());
                    let Some(levels) = seen else { continue };
                    let now = Instant::now();
                    said(rates.look(levels, now - last));
                    last = now;
                }
            })?;
        Ok(Self {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.end.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join(); // it panicked: nobody is told of pressure any more
        }
    }
}

/// How fast files arrive, in each column family.
#[derive(Debug, Default)]
struct Rates(BTreeMap<String, Rate>);

impl Rates {
    /// The family that stops writes first speaks for all.
    fn look(&mut self, levels: BTreeMap<String, Level0>, passed: Duration) -> Pressure {
        self.0.retain(|family, _| levels.contains_key(family));
        let pressures = levels.into_iter().map(|(family, level0)| {
            let rate = self.0.entry(family).or_default();
            rate.look(level0.arrived, passed);
            rate.pressure(level0)
        });
        let nearness = |one: &Pressure| {
            let room = one.files_stall.saturating_sub(one.files);
            (one.stalls_in_millis().unwrap_or(u64::MAX), room)
        };
        pressures.min_by_key(nearness).unwrap_or_default()
    }
}

/// How fast files arrive: an average that forgets.
#[derive(Debug, Default)]
struct Rate {
    /// At the last observation; `None`: this is the first.
    arrived: Option<u64>,
    files_hour: f64,
}

impl Rate {
    #[allow(clippy::cast_precision_loss)] // files
    fn look(&mut self, arrived: u64, passed: Duration) {
        let known = self.arrived.replace(arrived).unwrap_or(arrived);
        let new = arrived.saturating_sub(known) as f64;
        let share = 1.0 - (-passed.as_secs_f64() / MEMORY.as_secs_f64()).exp();
        let now = new * 3600.0 / passed.as_secs_f64().max(0.001);
        self.files_hour += (now - self.files_hour) * share;
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // a float saturates
    fn pressure(&self, level0: Level0) -> Pressure {
        Pressure {
            files: level0.files,
            files_stall: level0.files_stall,
            files_hour: self.files_hour as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edge::Inputs;

    fn level0(files: u32, arrived: u64) -> Level0 {
        Level0 {
            files,
            files_stall: 20,
            arrived,
        }
    }

    #[test]
    fn what_arrived_before_the_first_look_is_not_new() {
        let mut rate = Rate::default();
        rate.look(5_000, EVERY);
        assert_eq!(rate.pressure(level0(4, 5_000)).stalls_in_millis(), None);
    }

    #[test]
    fn families_that_fill_up_in_turns_have_each_a_rate_of_their_own() {
        let mut rates = Rates::default();
        for look in 0..100_u64 {
            // Each gets a file every ten seconds, and now the one, now the other has more of them.
            let levels = [("old", 5_000, look % 2), ("new", 3, 1 - look % 2)];
            let levels = levels.map(|(family, before, more)| {
                let files = 5 + u32::try_from(more).unwrap();
                (family.to_owned(), level0(files, before + look / 10))
            });
            let pressure = rates.look(levels.into(), Duration::from_secs(1));
            assert_eq!(pressure.files, 6, "the fuller one speaks");
            assert!(pressure.files_hour < 1_000, "{pressure:?} at look {look}");
        }
    }

    #[test]
    fn a_rate_follows_what_arrives_and_forgets_it() {
        let mut rate = Rate::default();
        let second = Duration::from_secs(1);
        for second_number in 1..=60 {
            rate.look(second_number * 2, second);
        }
        let busy = rate.pressure(Level0::default()).files_hour;
        assert!((7_000..=7_200).contains(&busy), "{busy}");
        for _ in 0..120 {
            rate.look(120, second);
        }
        assert_eq!(rate.pressure(Level0::default()).files_hour, 0);
    }

    struct Full;

    impl OpenDatabase for Full {
        fn inputs(&self, _: &[String]) -> Result<Inputs, String> {
            Ok(Inputs::default())
        }

        fn level0(&self) -> BTreeMap<String, Level0> {
            BTreeMap::from([("default".to_owned(), level0(20, 20))])
        }
    }

    #[test]
    fn what_is_seen_is_said_until_the_watch_ends() {
        let sight: Sight = Arc::new(Mutex::new(Some(Box::new(Full))));
        let (said, heard) = channel();
        let watch = Watch::start(Arc::clone(&sight), move |pressure| {
            let _ = said.send(pressure);
        })
        .unwrap();
        let pressure = heard.recv().unwrap();
        assert_eq!(pressure.stalls_in_millis(), Some(0));
        drop(watch);
        assert_eq!(Arc::strong_count(&sight), 1);
        while heard.recv().is_ok() {}
    }
}
