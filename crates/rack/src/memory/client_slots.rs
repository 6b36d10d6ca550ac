//! Clients with places, and how they go on after the loss of a server.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use manxdb_fabric::{Address, Misuse, Operation, ServerId, WORD};
use manxdb_rsi::rows::{Client, Extent, Failure};
use manxdb_rsi::{
    Abort, Chart, ClientSlot, Closed, Join, JoinError, Joined, Lease, LowWatermark, Map, Name,
    Once, Owner, Rejoin, RejoinError, ReplicatedOp, ThreadId,
};

use super::chunks::ExtentPair;
use super::{Memory, MemoryError, Transport, chunks};
use crate::availability::LostServers;
use crate::drive::{Driver, now};

/// Leases that one waits for the end of what a loss begins; then there is nobody who sees to it.
const PATIENCE: u64 = 8;
/// Looks at whether it has ended while a lease lasts.
const LOOKS: u64 = 32;

/// A client with a place.
pub struct JoinedClient<F> {
    /// Whose place it is.
    pub owner: Owner,
    /// Its way to the rows.
    pub client: Client<Driver<F>>,
}

/// Where a process gets clients, and what it knows of those of other processes.
pub trait Source<F>: Send + Sync {
    /// A client with a place of its own.
    ///
    /// # Errors
    /// [`MemoryError`].
    fn join(&self) -> Result<JoinedClient<F>, MemoryError>;

    /// A client that has met a fault goes on with its place, in the next epoch of replicated memory,
    /// as soon as that has begun; how it ended before. `None`: the place is somebody else's, or
    /// nobody goes on in this memory.
    ///
    /// # Errors
    /// [`MemoryError`]: the client is over.
    fn go_on(&self, member: &mut JoinedClient<F>) -> Result<Option<Closed>, MemoryError>;

    /// Gives a client room until it has so many records left, and so many nodes of the tree of keys.
    ///
    /// # Errors
    /// [`MemoryError::NoRoom`]; others.
    fn refill(&self, client: &mut Client<Driver<F>>, wanted: (u64, u64))
    -> Result<(), MemoryError>;

    /// Leaves places whose owners are not connected any more. Whoever watches gives them to others.
    ///
    /// # Errors
    /// [`MemoryError`]: their leases lapse all the same.
    fn leave(&self, owners: &[Owner]) -> Result<(), MemoryError>;

    /// The number of this process among those that use the memory.
    fn own(&self) -> u64;

    /// Numbers of processes that have places, or had them and are not reaped yet; 0: of one of them
    /// it is not known which it is.
    ///
    /// # Errors
    /// [`MemoryError`].
    fn present(&self, client: &mut Client<Driver<F>>) -> Result<Vec<u64>, MemoryError>;

    /// Threads whose places are somebody's.
    ///
    /// # Errors
    /// [`MemoryError`].
    fn placed(&self, client: &mut Client<Driver<F>>) -> Result<Vec<ThreadId>, MemoryError>;

    /// Where it is said which snapshots nobody uses any more.
    fn low_watermark(&self) -> LowWatermark;

    /// Whether a log archiver writes to disk what is committed.
    fn is_kept(&self) -> bool;

    /// The servers for whose sake nothing is asked of this memory, if nothing is.
    fn lost(&self) -> Option<LostServers>;
}

fn failed(failure: Failure<Misuse>) -> MemoryError {
    match failure {
        Failure::Abort(Abort::Fault(fault)) => fault.into(),
        Failure::Carrier(misuse) => misuse.into(),
        failure => MemoryError::Own(failure),
    }
}

impl<W: Transport> Memory<W> {
    /// Takes a place; waits for the end of what a loss begins.
    ///
    /// # Errors
    /// [`MemoryError::Full`] while all are taken; others.
    pub fn join(&self) -> Result<JoinedClient<W::Fabric>, MemoryError> {
        let until = self.patience();
        loop {
            if let Some(lost) = self.availability.lost() {
                return Err(MemoryError::Lost(lost));
            }
            let mut driver = self.connect(self.guest(), &self.chart.map)?;
            let places = u64::from(self.geometry().places);
            let first = u16::try_from(self.draw() % places).unwrap_or(0); // it is one of them
            assert!(
                first < self.geometry().places,
                "it looks from a place on: {first}"
            );
            let join = Join::new(self.plan.client_slots(), self.chart.clone(), first);
            match driver.run(join)? {
                Ok(joined) => match self.member(joined.owner, &joined.map) {
                    Err(_) if self.has_lapsed(&mut driver, &joined) && Instant::now() < until => {}
                    done => return done,
                },
                Err(error @ JoinError::Full(_)) => return Err(MemoryError::Full(error)),
                Err(JoinError::Fault(fault)) if !self.may_end(until) => return Err(fault.into()),
                Err(JoinError::Ending) if !self.may_end(until) => return Err(MemoryError::Ending),
                Err(_) => thread::sleep(Duration::from_nanos(self.geometry().lease.0 / LOOKS)),
            }
        }
    }

    /// Whether a place that was just taken is not its owner's any more: whoever takes longer than a
    /// lease to come in under its name is shut out before it has kept it once.
    fn has_lapsed(&self, driver: &mut Driver<W::Fabric>, joined: &Joined) -> bool {
        let Owner { thread, after } = joined.owner;
        let read = Operation::Read {
            at: self.plan.client_slots().client_slot(thread),
            bytes: WORD,
        };
        let read = ReplicatedOp::new(Arc::clone(&joined.map), Once::new(vec![read]));
        let found = driver
            .run(read)
            .ok()
            .and_then(|found| found.into_iter().next());
        let word = found.and_then(|outcome| super::forming::number(outcome).ok());
        word.is_some_and(|word| ClientSlot::of_word(word) != ClientSlot::Taken(after))
    }

    fn patience(&self) -> Instant {
        Instant::now() + Duration::from_nanos(self.geometry().lease.0 * PATIENCE)
    }

    /// Whether what a loss begins may still come to its end.
    fn may_end(&self, until: Instant) -> bool {
        self.geometry().is_replicated() && Instant::now() < until
    }

    fn member(&self, owner: Owner, map: &Arc<Map>) -> Result<JoinedClient<W::Fabric>, MemoryError> {
        let driver = self.drive(owner, map)?;
        let session = self.plan.session(owner, map);
        let session = session.ok_or(MemoryError::Geometry)?;
        let keyspace = self.plan.keyspace;
        let nothing = |bytes| {
            let nowhere = Address {
                server: ServerId(0),
                offset: super::SUPERBLOCK,
            };
            Extent::new(nowhere, bytes, 0).ok_or(MemoryError::Geometry)
        };
        let records = nothing(keyspace.records.bytes())?;
        let nodes = nothing(keyspace.tree.layout().bytes())?;
        let mut client = Client::new(driver, session, keyspace, records, nodes);
        // It has no transactions yet that might have begun before the bound.
        let bound = now(client.look_at(self.plan.low_watermark)).map_err(failed)?;
        now(client.advance_watermark(self.plan.low_watermark, &bound)).map_err(failed)?;
        Ok(JoinedClient { owner, client })
    }

    /// The way of an owner in an epoch, which keeps its lease and has said whose it is.
    fn drive(&self, owner: Owner, map: &Arc<Map>) -> Result<Driver<W::Fabric>, MemoryError> {
        let mut driver = self.connect(Name::Owner(owner), map)?;
        if self.geometry().is_replicated() {
            driver = driver.over(Arc::clone(map));
        }
        let client_slots = self.plan.client_slots();
        let lease = Lease::new(client_slots, owner, map);
        let driver = driver.keeping(lease, self.geometry().lease);
        let mut driver = driver.heeding(Arc::clone(&self.availability));
        driver.keep()?;
        let whose = Operation::Write {
            at: client_slots.note(owner.thread),
            bytes: self.own.to_le_bytes().to_vec(),
        };
        driver.ask_regions(vec![whose])?; // a fault is met by the first transaction
        Ok(driver)
    }

    /// Threads whose places are somebody's, with the number of the process.
    fn look_at_places(
        &self,
        client: &mut Client<Driver<W::Fabric>>,
    ) -> Result<Vec<(ThreadId, u64)>, MemoryError> {
        let client_slots = self.plan.client_slots();
        let threads = (0..self.geometry().places).filter_map(ThreadId::new);
        let threads: Vec<ThreadId> = threads.collect();
        let read = |at| Operation::Read { at, bytes: WORD };
        let words = threads.iter().flat_map(|thread| {
            [
                read(client_slots.client_slot(*thread)),
                read(client_slots.note(*thread)),
            ]
        });
        let outcomes = client.carrier_mut().ask_regions(words.collect())?;
        assert_eq!(
            outcomes.len(),
            2 * threads.len(),
            "a place whose owner was not looked up would pass for free"
        );
        let mut placed = Vec::new();
        for (thread, pair) in threads.into_iter().zip(outcomes.as_chunks::<2>().0) {
            let [client_slot, note] = pair.clone().map(super::forming::number);
            match ClientSlot::of_word(client_slot?) {
                ClientSlot::Free(_) => {}
                ClientSlot::Kept(_) | ClientSlot::Taken(_) | ClientSlot::Over(_) => {
                    placed.push((thread, note?));
                }
            }
        }
        Ok(placed)
    }

    /// The map of now, as a guest finds it.
    pub(super) fn look(&self, driver: &mut Driver<W::Fabric>) -> Result<Arc<Map>, MemoryError> {
        match self.chart.epoch_log {
            None => Ok(Arc::clone(&self.chart.map)),
            Some(epoch_log) => {
                let learn = epoch_log.learn(Map::clone(&self.chart.map));
                Ok(Arc::new(driver.run(learn)??))
            }
        }
    }
}

impl<W: Transport> Source<W::Fabric> for Memory<W> {
    fn join(&self) -> Result<JoinedClient<W::Fabric>, MemoryError> {
        Self::join(self)
    }

    fn go_on(&self, member: &mut JoinedClient<W::Fabric>) -> Result<Option<Closed>, MemoryError> {
        let map = member.client.carrier_mut().map().map(Arc::clone);
        let (Some(epoch_log), Some(map)) = (self.chart.epoch_log, map) else {
            return Ok(None);
        };
        if let Some(lost) = self.availability.lost() {
            return Err(MemoryError::Lost(lost));
        }
        let mut driver = self.connect(self.guest(), &self.chart.map)?;
        let chart = Chart::new(epoch_log, map);
        let rejoin = Rejoin::new(self.plan.client_slots(), chart, member.owner);
        let (until, availability) = (self.patience(), &self.availability);
        let may_wait = || Instant::now() < until && !availability.is_refused();
        match driver.run_while(rejoin, may_wait)? {
            None => Err(availability
                .lost()
                .map_or(MemoryError::Ending, MemoryError::Lost)),
            Some(Err(RejoinError::Over(_))) => Ok(None),
            Some(Err(RejoinError::Fault(fault))) => Err(fault.into()),
            Some(Ok(rejoined)) => {
                let driver = self.drive(rejoined.owner, &rejoined.map)?;
                let session = self.plan.session(rejoined.owner, &rejoined.map);
                let session = session.ok_or(MemoryError::Geometry)?;
                assert_eq!(
                    rejoined.owner.thread, member.owner.thread,
                    "an owner goes on in its own place"
                );
                assert!(
                    rejoined.owner.after > member.owner.after,
                    "an owner goes on behind its closing"
                );
                member.client.go_on(driver, session);
                member.owner = rejoined.owner;
                Ok(Some(rejoined.closed))
            }
        }
    }

    fn refill(
        &self,
        client: &mut Client<Driver<W::Fabric>>,
        wanted: (u64, u64),
    ) -> Result<(), MemoryError> {
        let lacking = client.lacks(wanted);
        if lacking == (0, 0) {
            return Ok(());
        }
        let free_extent_record = self.plan.free_extent_record(client.thread())?;
        let opened = now(client.open(free_extent_record)).map_err(failed)?;
        let more = if opened.has(lacking) {
            None
        } else {
            let first = self.draw();
            let ExtentPair { records, nodes } =
                chunks::take(client.carrier_mut(), &self.plan, first, lacking)?;
            Some((records, nodes))
        };
        now(client.draw(opened, more, lacking)).map_err(failed)?;
        assert_eq!(
            client.lacks(wanted),
            (0, 0),
            "a client that was given room has it"
        );
        Ok(())
    }

    fn leave(&self, owners: &[Owner]) -> Result<(), MemoryError> {
        let mut driver = self.connect(self.guest(), &self.chart.map)?;
        let map = self.look(&mut driver)?;
        let client_slots = self.plan.client_slots();
        let leave = |owner: &Owner| Lease::leave(client_slots, *owner);
        let leave = owners.iter().map(leave).collect();
        if self.geometry().is_replicated() {
            driver = driver.over(map);
        }
        driver.ask_regions(leave)?;
        Ok(())
    }

    fn own(&self) -> u64 {
        self.own
    }

    fn present(&self, client: &mut Client<Driver<W::Fabric>>) -> Result<Vec<u64>, MemoryError> {
        let placed = self.look_at_places(client)?;
        Ok(placed.into_iter().map(|(_, process)| process).collect())
    }

    fn placed(&self, client: &mut Client<Driver<W::Fabric>>) -> Result<Vec<ThreadId>, MemoryError> {
        let placed = self.look_at_places(client)?;
        Ok(placed.into_iter().map(|(thread, _)| thread).collect())
    }

    fn low_watermark(&self) -> LowWatermark {
        self.plan.low_watermark
    }

    fn is_kept(&self) -> bool {
        self.plan.kept.is_some()
    }

    fn lost(&self) -> Option<LostServers> {
        self.availability.lost()
    }
}
