//! What becomes of owners that are over while no server is lost.

use std::sync::Arc;

use manxdb_core::LocalTime;
use manxdb_fabric::{Fault, Outcome};

#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::recover::{Recover, Recovered};
use crate::replicas::Spread;
use crate::seats::{Look, Name, Owner, Seat};
use crate::version::ThreadId;
use crate::warden::{Deed, End, Phase, Warden, Wish};
use crate::work::Work;

impl Warden {
    /// Buries the next owner that is over, by turns: one whose servers do not answer keeps nobody
    /// else waiting. None: nobody is.
    pub(super) fn bury(&mut self, look: &Look, lapsed: &[bool]) -> Option<Wish> {
        let threads = self.ward.seats.threads();
        for step in 1..=threads {
            let number = (self.turn + step) % threads;
            let place = usize::from(number);
            let seat = look.chairs.get(place).map(|chair| chair.seat);
            let Some((thread, seat)) = ThreadId::new(number).zip(seat) else {
                continue;
            };
            let is_lapsed = lapsed.get(place) == Some(&true);
            match seat {
                Seat::Taken(after) | Seat::Kept(after) if is_lapsed => {
                    self.turn = number;
                    let owner = Owner { thread, after };
                    let swap = self.ward.seats.swap(thread, seat, Seat::Over(after));
                    return Some(self.ask(Deed::Condemn(owner, seat), vec![swap]));
                }
                Seat::Over(after) => {
                    self.turn = number;
                    return Some(self.shut_out(Owner { thread, after }));
                }
                _ => {}
            }
        }
        None
    }

    pub(super) fn condemned(
        &mut self,
        now: LocalTime,
        owner: Owner,
        seat: Seat,
        word: Option<u64>,
    ) -> Wish {
        let found = word.map(Seat::of_word);
        if found == Some(seat) || found == Some(Seat::Over(owner.after)) {
            self.shut_out(owner)
        } else {
            self.look(now) // it is not as it was
        }
    }

    fn shut_out(&mut self, owner: Owner) -> Wish {
        #[cfg(feature = "mutants")]
        if self.mutant == Some(Mutant::RecoversTheLiving) {
            return self.begin_to_recover(owner);
        }
        self.phase = Phase::ShuttingOut(owner);
        Wish::ShutOut(vec![Name::Owner(owner)], self.servers())
    }

    pub(super) fn begin_to_recover(&mut self, owner: Owner) -> Wish {
        let place = usize::from(owner.thread.number());
        let log = self.ward.logs.get(place);
        let Some(log) = log.and_then(|log| log.on(&self.map)) else {
            return self.pause(); // the ward has fewer logs than seats, or no server has them
        };
        #[cfg_attr(not(feature = "mutants"), expect(unused_mut))]
        let mut recover = Recover::new(owner.thread, self.ward.vector, log);
        #[cfg(feature = "mutants")]
        {
            recover.mutant = self.mutant;
        }
        let spread = Spread::new(Arc::clone(&self.map), recover);
        self.recover(owner, Box::new(spread), Vec::new())
    }

    pub(super) fn recover(
        &mut self,
        owner: Owner,
        mut work: Box<Spread<Recover>>,
        outcomes: Vec<Outcome>,
    ) -> Wish {
        let recovered = match work.step(outcomes).done() {
            Ok(recovered) => recovered,
            Err(step) => return self.wait(Phase::Recovering(owner, work), step),
        };
        match recovered {
            Ok(recovered) => self.free(owner, recovered),
            // Without replicas it will be its turn again.
            Err(Fault::Gone(_)) if self.ward.chart.annals.is_none() => self.pause(),
            Err(fault @ Fault::Gone(_)) => self.fail(fault),
            Err(fault) => Wish::End(End::Fault(fault)),
        }
    }

    fn free(&mut self, owner: Owner, recovered: Recovered) -> Wish {
        let last = recovered.last.sequence.max(owner.after);
        let (over, free) = (Seat::Over(owner.after), Seat::Free(last));
        let swap = self.ward.seats.swap(owner.thread, over, free);
        self.ask(Deed::Free(owner), vec![swap])
    }
}
