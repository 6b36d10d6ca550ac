//! Opens the epoch after a loss.

use std::sync::Arc;

use manxdb_core::check::ensure;
use manxdb_fabric::{Address, Fault, OperationOutcome};

use crate::client_slots::{ClientSlot, Look, Name, Owner, SlotWords};
use crate::machine::{Machine, fault};
use crate::membership::{End, MembershipAction, MembershipDeed, Phase, RecoveryCoordinator};
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::replicas::{Closed, Event, RaiseMax, Restore};
use crate::version::ThreadId;

/// How far the opening of an epoch has come. Who dies over it is followed by one that begins anew,
/// and finds of each place what was there before or what was to be there.
#[derive(Debug)]
pub(super) struct Opening {
    /// What the table said when the loss was decided and former recovery coordinators were shut out.
    look: Look,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// All owners are being shut out.
    Fencing,
    Restoring(Box<Restore>),
    /// Writes for whom client slots are kept,
    Keeping(Vec<(Address, u64)>, RaiseMax),
    /// then the client slots, and all else that the table has, on all its replicas.
    SlotTaking(RaiseMax),
    /// Without a loss: writes what the table has to the replicas that lack it.
    Levelling(RaiseMax),
}

impl Opening {
    /// What is true of it between two steps of its recovery coordinator, which has these events to note.
    pub(super) fn check(&self, pending: &[Event]) -> Result<(), String> {
        let is_level = matches!(self.stage, Stage::Levelling(_));
        ensure(pending.is_empty() == is_level, || {
            format!("an epoch is opened after its events, and levelled without: {pending:?}")
        })?;
        let Stage::Keeping(words, work) = &self.stage else {
            return Ok(());
        };
        ensure(!words.is_empty(), || {
            "who keeps slots has a term to write".to_owned()
        })?;
        work.check()
    }
}

/// Threads with what a look has found of their places.
fn places(look: &Look) -> impl Iterator<Item = (ThreadId, &SlotWords)> {
    let chairs = (0..).zip(&look.chairs);
    chairs.filter_map(|(number, chair)| Some((ThreadId::new(number)?, chair)))
}

impl RecoveryCoordinator {
    /// Notes what has happened; after a loss when all is restored.
    pub(super) fn open(&mut self, mut look: Look) -> MembershipAction {
        let is_loss = self.pending.iter().copied().any(Event::is_loss);
        #[cfg(feature = "mutants")]
        let is_loss = is_loss && self.mutant != Some(Mutant::LeadsBeforeItRestores);
        if !is_loss {
            return self.announce();
        }
        if let Some(filling) = self.filling.take() {
            filling.leave(&mut look);
        }
        let owner = |(thread, chair): (ThreadId, &SlotWords)| match chair.client_slot {
            ClientSlot::Taken(after) | ClientSlot::Over(after) => {
                Some(Name::Owner(Owner { thread, after }))
            }
            // Nobody is this one yet: it would have been on all replicas before the loss was decided.
            ClientSlot::Kept(_) | ClientSlot::Free(_) => None,
        };
        let names: Vec<Name> = places(&look).filter_map(owner).collect();
        #[cfg(feature = "mutants")]
        let names = match self.mutant {
            Some(Mutant::RestoresUnderTheLiving) => Vec::new(),
            _ => names,
        };
        if names.is_empty() {
            return self.restore(look);
        }
        let stage = Stage::Fencing;
        self.phase = Phase::Opening(Box::new(Opening { look, stage }));
        MembershipAction::ShutOut(names, self.servers())
    }

    pub(super) fn go_on_opening(
        &mut self,
        opening: Opening,
        outcomes: Vec<OperationOutcome>,
    ) -> MembershipAction {
        let Opening { look, stage } = opening;
        match stage {
            Stage::Fencing => match fault(&outcomes) {
                Some(fault) => self.fail(fault),
                None => self.restore(look),
            },
            Stage::Restoring(mut work) => match work.step(outcomes).done() {
                Ok(Ok(closed)) => self.keep(look, &closed),
                Ok(Err(fault)) => self.fail(fault),
                Err(step) => self.wait(at(look, Stage::Restoring(work)), step),
            },
            Stage::Keeping(client_slots, mut work) => match work.step(outcomes).done() {
                Ok(Ok(())) => self.client_slot(look, client_slots),
                Ok(Err(fault)) => self.fail(fault),
                Err(step) => self.wait(at(look, Stage::Keeping(client_slots, work)), step),
            },
            Stage::SlotTaking(mut work) => match work.step(outcomes).done() {
                Ok(Ok(())) => self.announce(),
                Ok(Err(fault)) => self.fail(fault),
                Err(step) => self.wait(at(look, Stage::SlotTaking(work)), step),
            },
            Stage::Levelling(mut work) => match work.step(outcomes).done() {
                Ok(Ok(())) => self.pause(),
                Ok(Err(fault)) => self.fail(fault),
                Err(step) => self.wait(at(look, Stage::Levelling(work)), step),
            },
        }
    }

    /// Whoever led before may have died over a swap that only the primary has seen.
    pub(super) fn level(&mut self, look: Look) -> MembershipAction {
        self.is_level = true;
        let table = self.ward.client_slots;
        let mut words = vec![(table.term(), look.term), (table.shut(), look.shut)];
        for (thread, chair) in places(&look) {
            words.push((table.former(thread), chair.former));
            words.push((table.client_slot(thread), chair.client_slot.word()));
        }
        let mut work = RaiseMax::new(self.on_servers(&words));
        match work.step(Vec::new()).done() {
            Ok(_) => self.pause(), // not reached: there is a term
            Err(step) => self.wait(at(look, Stage::Levelling(work)), step),
        }
    }

    /// Installs, publishes and closes all.
    fn restore(&mut self, look: Look) -> MembershipAction {
        let logs = self
            .ward
            .logs
            .iter()
            .map(|log| self.map.log_on_servers(log));
        let Some(logs) = logs.collect() else {
            let region = self.ward.vector.base().server;
            return MembershipAction::End(End::Fault(Fault::Gone(region))); // no server has them any more
        };
        // One whose place is kept was closed before, and hears the same of its end.
        let owner = |(thread, chair): (ThreadId, &SlotWords)| match chair.client_slot {
            ClientSlot::Taken(after) | ClientSlot::Over(after) => Some(Owner { thread, after }),
            ClientSlot::Kept(_) => Some(Owner {
                thread,
                after: chair.former,
            }),
            ClientSlot::Free(_) => None,
        };
        let owners = places(&look).filter_map(owner).collect();
        let map = Arc::clone(&self.map);
        let mut work = Restore::new(map, self.ward.vector, logs, owners);
        #[cfg(feature = "mutants")]
        {
            work = work.with(self.mutant);
        }
        match work.step(Vec::new()).done() {
            Ok(_) => self.pause(), // it has a vector to read
            Err(step) => self.wait(at(look, Stage::Restoring(Box::new(work))), step),
        }
    }

    /// Client slots as they are to be, on every server that has the table.
    fn keep(&mut self, look: Look, closed: &[Closed]) -> MembershipAction {
        let table = self.ward.client_slots;
        let (mut formers, mut client_slots) = (Vec::new(), Vec::new());
        client_slots.push((table.term(), look.term));
        client_slots.push((table.shut(), look.shut));
        for (thread, chair) in places(&look) {
            let closing = closed.iter().find(|closed| closed.by.thread == thread);
            assert!(
                closing.is_some() || matches!(chair.client_slot, ClientSlot::Free(_)),
                "each owner that there was is closed: thread {thread}"
            );
            let by = closing.map_or(0, |closed| closed.by.sequence);
            let (client_slot, former) = match chair.client_slot {
                ClientSlot::Free(number) => (ClientSlot::Free(number), chair.former),
                ClientSlot::Over(_) => (ClientSlot::Free(by), chair.former),
                ClientSlot::Kept(_) => (ClientSlot::Kept(by), chair.former),
                ClientSlot::Taken(after) => (ClientSlot::Kept(by), after),
            };
            assert!(
                client_slot.word() >= chair.client_slot.word() && former >= chair.former,
                "words of the table only grow: {client_slot:?} after {:?}",
                chair.client_slot
            );
            #[cfg(feature = "mutants")]
            let client_slot = match (client_slot, self.mutant) {
                (ClientSlot::Kept(by), Some(Mutant::KeepsNoPlaces)) => ClientSlot::Free(by),
                _ => client_slot,
            };
            self.reaped += u64::from(matches!(chair.client_slot, ClientSlot::Over(_)));
            formers.push((table.former(thread), former));
            client_slots.push((table.client_slot(thread), client_slot.word()));
        }
        let client_slots = self.on_servers(&client_slots);
        let mut work = RaiseMax::new(self.on_servers(&formers));
        match work.step(Vec::new()).done() {
            Ok(_) => self.client_slot(look, client_slots), // there are none
            Err(step) => self.wait(at(look, Stage::Keeping(client_slots, work)), step),
        }
    }

    fn on_servers(&self, words: &[(Address, u64)]) -> Vec<(Address, u64)> {
        let places = |(at, word): &(Address, u64)| {
            let (places, word) = (self.map.all(*at), *word);
            places.into_iter().map(move |at| (at, word))
        };
        words.iter().flat_map(places).collect()
    }

    fn client_slot(&mut self, look: Look, client_slots: Vec<(Address, u64)>) -> MembershipAction {
        let mut work = RaiseMax::new(client_slots);
        match work.step(Vec::new()).done() {
            Ok(_) => self.announce(), // not reached: there is a term
            Err(step) => self.wait(at(look, Stage::SlotTaking(work)), step),
        }
    }

    /// Says to all servers what has happened: the map may be used.
    fn announce(&mut self) -> MembershipAction {
        let epoch_log = self.ward.chart.epoch_log;
        let notes = epoch_log.map(|epoch_log| epoch_log.note_all(&self.map, &self.pending));
        self.opened += u64::from(self.pending.iter().copied().any(Event::is_loss));
        self.ask(MembershipDeed::Announce, notes.unwrap_or_default())
    }
}

fn at(look: Look, stage: Stage) -> Phase {
    Phase::Opening(Box::new(Opening { look, stage }))
}
