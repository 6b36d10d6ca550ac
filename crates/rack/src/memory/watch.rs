//! A recovery coordinator in a process: what [`RecoveryCoordinator`] wishes, done with threads and clocks.
//!
//! Recovery coordinators are in the processes of clients, not in memory servers: over shared memory a recovery coordinator that
//! is followed by another, and does not let go, is ended with its process, and the memory of a server
//! would end with it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use manxdb_core::last_failure::LastFailure;
use manxdb_core::{LocalTime, Nanos};
use manxdb_fabric::{Fault, OperationOutcome, ServerId};
use manxdb_rsi::{End, MembershipAction, MembershipEvent, Name, RecoveryCoordinator};

use super::{Memory, MemoryError, NotOut, Transport};
use crate::drive::Driver;

/// Between two looks at whether to end, and between two orders to shut the same client out.
const PAUSE: Duration = Duration::from_millis(20);
/// Orders that a server with replicas may leave without an answer. One that answers that a process is
/// slow to die is asked for as long as that takes: all servers wait for the same process, and to give
/// them up for it, one after the other, would lose all rows.
const TRIES_MAX: u32 = 4;

/// What the recovery coordinator of a process has done.
#[derive(Debug, Default)]
pub struct Watched {
    /// The term in which it leads; 0: it stands by.
    pub term: AtomicU64,
    /// Owners that it has shut out and recovered, and whose places it has freed.
    pub reaped: AtomicU64,
    /// Memory servers that were lost, as far as it has heard.
    pub epoch: AtomicU64,
}

/// Watches until it is told to end. `note` hears of what people should know.
pub fn watch<W: Transport>(
    memory: &Memory<W>,
    watched: &Watched,
    stop: &AtomicBool,
    note: &dyn Fn(&str),
) {
    let began = Instant::now();
    let mut before = 0;
    let mut last = LastFailure::default();
    while !stop.load(Ordering::Relaxed) {
        let ward = memory.ward();
        let lease = ward.lease;
        let mut post = Post {
            memory,
            stop,
            began,
            coordinator: RecoveryCoordinator::new(ward),
            driver: None,
            watched,
            before,
            note,
        };
        let stood = match post.stand() {
            Ok(Some(end)) => Err(format!(
                "the recovery coordinator of this server begins anew: {end}"
            )),
            Ok(None) => Ok(()),
            Err(error) => Err(format!("no recovery coordinator here for now: {error}")),
        };
        if let Some(news) = last.news(&stood) {
            note(news);
        }
        before += post.coordinator.reaped();
        watched.term.store(0, Ordering::Relaxed);
        rest(Duration::from_nanos(lease.0 / 4), stop);
    }
}

/// A recovery coordinator at its post.
struct Post<'m, W: Transport> {
    memory: &'m Memory<W>,
    stop: &'m AtomicBool,
    began: Instant,
    coordinator: RecoveryCoordinator,
    driver: Option<Driver<W::Fabric>>,
    watched: &'m Watched,
    /// What recovery coordinators of this process have reaped before.
    before: u64,
    note: &'m dyn Fn(&str),
}

impl<W: Transport> Post<'_, W> {
    /// Until it ends, or is told to: none.
    fn stand(&mut self) -> Result<Option<End>, MemoryError> {
        let servers = self.coordinator.map();
        self.driver = Some(self.memory.connect(self.memory.guest(), servers)?);
        let mut heard = MembershipEvent::Done;
        let mut opened = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let span = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
            let wish = self.coordinator.step(LocalTime(span), heard);
            self.show(&mut opened);
            heard = match wish {
                MembershipAction::End(end) => return Ok(Some(end)),
                MembershipAction::Pause(Nanos(span)) => {
                    rest(Duration::from_nanos(span), self.stop);
                    MembershipEvent::Done
                }
                MembershipAction::Ask(operations, times) => {
                    if times > 0 {
                        thread::yield_now(); // who is in the way may wait for this processor
                    }
                    let driver = self.driver.as_mut().ok_or(MemoryError::Geometry)?;
                    MembershipEvent::Outcomes(driver.ask(operations)?)
                }
                MembershipAction::ShutOut(names, servers) => self.shut_out(&names, &servers),
                MembershipAction::Become(name) => self.become_one(name)?,
            };
        }
        Ok(None)
    }

    /// What it has come to, for people.
    fn show(&self, before: &mut u64) {
        let term = self.coordinator.term().unwrap_or(0);
        let former = self.watched.term.swap(term, Ordering::Relaxed);
        assert!(
            former <= term,
            "a recovery coordinator leads in later terms only: {term} after {former}"
        );
        let reaped = self.before + self.coordinator.reaped();
        let former = self.watched.reaped.swap(reaped, Ordering::Relaxed);
        assert!(
            former <= reaped,
            "owners that were reaped stay so: {reaped} after {former}"
        );
        let map = self.coordinator.map();
        self.watched.epoch.store(map.epoch(), Ordering::Relaxed);
        let opened = self.coordinator.opened();
        assert!(
            opened >= *before,
            "epochs that it has opened are counted once: {opened} after {before}"
        );
        if opened > *before {
            *before = opened;
            let left = map.servers().count();
            let what = "a memory server is lost; all goes on with the others, which are";
            (self.note)(&format!("{what} {left}"));
        }
    }

    /// Until each of these servers has shut all of them out, or is gone.
    fn shut_out(&self, names: &[Name], servers: &[ServerId]) -> MembershipEvent {
        let all: Vec<u16> = if servers.is_empty() {
            (0..self.memory.geometry().servers).collect()
        } else {
            servers.iter().map(|server| server.0).collect()
        };
        assert!(
            !names.is_empty() && !all.is_empty(),
            "somebody is shut out somewhere: {names:?} by {all:?}"
        );
        assert!(
            all.iter().all(|one| *one < self.memory.geometry().servers),
            "there are the servers that shut somebody out: {all:?}"
        );
        for server in all {
            for name in names {
                if !self.shut_out_at(server, *name) {
                    let gone = Fault::Gone(ServerId(server));
                    return MembershipEvent::Outcomes(vec![OperationOutcome::Failed(gone)]);
                }
            }
        }
        MembershipEvent::Done
    }

    /// Whether a server has shut somebody out. One of several that does not answer is given up.
    fn shut_out_at(&self, server: u16, name: Name) -> bool {
        let is_replicated = self.memory.geometry().is_replicated();
        insist(is_replicated, || {
            let heard = self.memory.way.shut_out(server, name.client());
            if heard.is_err() && self.stop.load(Ordering::Relaxed) {
                return None;
            }
            Some(heard)
        })
    }

    /// A server without replicas that does not let it in is one that is gone for it.
    fn become_one(&mut self, name: Name) -> Result<MembershipEvent, MemoryError> {
        self.driver = None;
        match self.memory.connect(name, self.coordinator.map()) {
            Ok(driver) => {
                self.driver = Some(driver);
                Ok(MembershipEvent::Done)
            }
            Err(error) if self.memory.geometry().is_replicated() => Err(error),
            Err(_) => Ok(MembershipEvent::Outcomes(vec![OperationOutcome::Failed(
                Fault::Gone(ServerId(0)),
            )])),
        }
    }
}

/// Gives an order until it is obeyed, or until a server that may be given up has not answered too
/// often; none: nobody insists any more. Whether it is obeyed.
fn insist(is_replicated: bool, mut order: impl FnMut() -> Option<Result<(), NotOut>>) -> bool {
    let mut tries = 0;
    while let Some(heard) = order() {
        match heard {
            Ok(()) => return true,
            Err(NotOut::Yet) => {}
            Err(NotOut::Unheard) => tries += 1,
        }
        if is_replicated && tries >= TRIES_MAX {
            return false;
        }
        thread::sleep(PAUSE);
    }
    false
}

/// Sleeps for so long, or until it is told to end.
fn rest(span: Duration, stop: &AtomicBool) {
    let end = Instant::now() + span;
    while !stop.load(Ordering::Relaxed) {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(PAUSE));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether so many answers come to an order that is obeyed.
    fn is_obeyed(is_replicated: bool, answers: &[Result<(), NotOut>]) -> bool {
        let mut answers = answers.iter().copied();
        insist(is_replicated, || answers.next())
    }

    #[test]
    fn a_server_that_waits_for_a_dying_process_is_not_given_up() {
        let mut answers = vec![Err(NotOut::Yet); 20];
        answers.push(Ok(()));
        assert!(is_obeyed(true, &answers));
    }

    #[test]
    fn one_that_does_not_answer_is_given_up_where_there_are_others() {
        let mut answers = vec![Err(NotOut::Unheard); 4];
        answers.push(Ok(()));
        assert!(!is_obeyed(true, &answers));
        assert!(is_obeyed(false, &answers), "nobody else has its rows");
        assert!(!is_obeyed(false, &answers[..4]), "told to end");
    }
}
