//! Which memory servers do not answer just now: for people, and to refuse statements where more are
//! lost than replicas make up for ([`crate::availability`]). Nothing else is decided by it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use manxdb_rsi::Map;

use super::{Memory, Transport, forming};
use crate::availability::LossDetector;
use crate::drive::Driver;

/// Looks at all memory servers, as a guest who stays connected.
pub struct ServerProbe<W: Transport> {
    memory: Arc<Memory<W>>,
    /// Its way to all servers; none: one of them did not answer, and is called on anew.
    driver: Option<Driver<W::Fabric>>,
    /// The newest map that it knows.
    map: Arc<Map>,
    detector: LossDetector,
}

/// Servers that do not answer.
#[derive(Default)]
struct Missing {
    /// Also those of which nothing is known but that they do not.
    all: Vec<u16>,
    /// Those that are gone, or have nothing of this database.
    gone: Vec<u16>,
}

impl<W: Transport> ServerProbe<W> {
    /// One that has not looked yet.
    pub fn new(memory: Arc<Memory<W>>) -> Self {
        let geometry = memory.geometry();
        // Within a lease whoever lives has decided on a loss.
        let patience = Duration::from_nanos(geometry.lease.0);
        Self {
            driver: None,
            map: Arc::clone(&memory.chart.map),
            detector: LossDetector::new(geometry.servers, patience),
            memory,
        }
    }

    /// Servers that do not answer, or were started anew and have nothing of this database, by their
    /// numbers; and has statements refused if these are too many. May take half a lease, or as long as a
    /// server that stands still is called on.
    pub fn missing(&mut self) -> Vec<u16> {
        let Missing { all, gone } = self.look();
        assert!(
            gone.iter().all(|server| all.contains(server)),
            "who is gone does not answer: {gone:?} of {all:?}"
        );
        if self.memory.geometry().is_replicated() {
            if gone.len() > 1 {
                self.learn();
            }
            let used = self.map.servers().map(|server| server.0);
            let lost = self.detector.look(&gone, used, Instant::now());
            self.memory.availability.set(lost);
        }
        all
    }

    fn look(&mut self) -> Missing {
        let all: Vec<u16> = (0..self.memory.geometry().servers).collect();
        let mut driver = match self.driver.take() {
            Some(driver) => driver,
            None => {
                let guest = self.memory.guest().client();
                match self.memory.way.reach(&all, guest) {
                    // Nothing is asked of those that are not reached.
                    Ok((_, missing)) if !missing.is_empty() => {
                        let gone = missing.iter().filter(|one| one.fault.is_some());
                        return Missing {
                            gone: gone.map(|one| one.server).collect(),
                            all: missing.iter().map(|one| one.server).collect(),
                        };
                    }
                    Ok((fabric, _)) => Driver::new(fabric).of_lease(self.memory.geometry().lease),
                    // It may be this process that reaches nothing.
                    Err(_) => {
                        return Missing {
                            all,
                            ..Missing::default()
                        };
                    }
                }
            }
        };
        match forming::not_of(&mut driver, &all, self.memory.formation) {
            Ok(missing) => {
                if missing.is_empty() {
                    self.driver = Some(driver);
                }
                Missing {
                    gone: missing.clone(),
                    all: missing,
                }
            }
            Err(_) => Missing {
                all,
                ..Missing::default()
            },
        }
    }

    /// Which losses are decided; or what was known before, if nobody says.
    fn learn(&mut self) {
        let memory = &self.memory;
        let Ok(mut driver) = memory.connect(memory.guest(), &memory.chart.map) else {
            return;
        };
        if let Ok(map) = memory.look(&mut driver) {
            assert!(
                map.epoch() >= self.map.epoch(),
                "losses that are decided stay so: epoch {} after {}",
                map.epoch(),
                self.map.epoch()
            );
            self.map = map;
        }
    }
}
