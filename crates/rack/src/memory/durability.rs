//! What is on disk of a memory, and what is to be: for the log archiver, and for who waits for it.

use std::sync::Arc;
use std::time::Instant;

use manxdb_fabric::OperationOutcome;
use manxdb_rsi::{
    Await, Drain, DurablePositions, Log, Map, Once, Progress, Snapshot, Survey, ThreadId, Vector,
};

use super::{Memory, MemoryError, Plan, Superblock, Transport};

/// What a log archiver reads, and where it says how far it is.
#[derive(Debug, Clone)]
pub struct DurabilityRecord {
    vector: Vector,
    kept: DurablePositions,
    /// Of all threads in their order, as a map has them.
    logs: Vec<Log>,
}

impl DurabilityRecord {
    /// Reads what was published behind what is written.
    pub fn drain(&self, progress: &Progress) -> Drain {
        Drain::new(self.vector, self.logs.clone(), progress)
    }

    /// Finds out what may be logged.
    pub fn survey(&self) -> Survey {
        Survey::new(self.vector, self.kept, self.logs.clone())
    }

    /// Says how far the log archiver is.
    pub fn publish(&self, written: &Snapshot, synced: &Snapshot) -> Once {
        Once::new(vec![self.kept.publish(written, synced)])
    }
}

impl Plan {
    fn durability(&self, map: &Map) -> Option<DurabilityRecord> {
        let threads = (0..self.geometry.places).filter_map(ThreadId::new);
        let logs = threads.map(|thread| map.log_on_servers(&self.log(thread)?));
        assert!(
            self.kept
                .is_none_or(|kept| kept.threads() == self.vector.threads()),
            "positions are of the vector's threads"
        );
        let logs: Vec<Log> = logs.collect::<Option<_>>()?;
        assert_eq!(
            logs.len(),
            usize::from(self.vector.threads()),
            "a thread whose log is not drained would never be on disk"
        );
        Some(DurabilityRecord {
            vector: self.vector,
            kept: self.kept?,
            logs,
        })
    }
}

impl<W: Transport> Memory<W> {
    /// Under which all servers were formed.
    #[must_use]
    pub fn formation(&self) -> u64 {
        self.formation
    }

    /// What all servers say; without the number of one, as files say it.
    #[must_use]
    pub fn superblock(&self) -> Superblock {
        Superblock {
            server: 0,
            ..self.superblock.clone()
        }
    }

    /// Where everything is.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// What a log archiver is to know in an epoch.
    ///
    /// # Errors
    /// [`MemoryError::Geometry`]: nothing is to be written to disk, or a log is lost.
    pub fn durability(&self, map: Option<&Arc<Map>>) -> Result<DurabilityRecord, MemoryError> {
        let map = map.unwrap_or(&self.chart.map);
        self.plan.durability(map).ok_or(MemoryError::Geometry)
    }

    /// Waits until all that is published by now is on disk for good; whether it is.
    ///
    /// # Errors
    /// [`MemoryError`].
    pub fn await_all(&self, until: Instant) -> Result<bool, MemoryError> {
        let kept = self.plan.kept.ok_or(MemoryError::Geometry)?;
        let mut driver = self.connect(self.guest(), &self.chart.map)?;
        let map = self.look(&mut driver)?;
        if self.plan.geometry().is_replicated() {
            driver = driver.over(map);
        }
        let outcomes = driver.ask_regions(vec![self.plan.vector.read()])?;
        assert_eq!(outcomes.len(), 1, "the vector was read");
        let published = match outcomes.into_iter().next() {
            Some(OperationOutcome::Read(copy)) => self.plan.vector.parse(&copy).0,
            Some(OperationOutcome::Failed(fault)) => return Err(fault.into()),
            _ => return Err(MemoryError::Geometry), // no carrier answers a read otherwise
        };
        match driver.run_while(Await::new(kept, published), || Instant::now() < until)? {
            None => Ok(false),
            Some(waited) => Ok(waited.map(|()| true)?),
        }
    }
}
