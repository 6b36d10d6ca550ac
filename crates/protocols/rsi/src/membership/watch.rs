//! Which beats have not changed for how long.

use manxdb_core::{LocalTime, Nanos};

#[cfg(feature = "mutants")]
use crate::client_slots::ClientSlot;
use crate::client_slots::{Look, SlotWords};
use crate::membership::RecoveryCoordinator;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;

/// A beat that is watched.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Watch {
    /// Whose it is, and what it was.
    seen: Option<(u64, u64)>,
    /// When it was seen so first, or a little later.
    since: LocalTime,
}

impl Watch {
    /// Takes a look that was asked for at one time and answered at another. For how long at least
    /// nothing has changed.
    pub(super) fn look(
        &mut self,
        found: (u64, u64),
        asked: LocalTime,
        answered: LocalTime,
    ) -> Nanos {
        if self.seen == Some(found) {
            return asked.since(self.since);
        }
        self.seen = Some(found);
        self.since = answered;
        Nanos::ZERO
    }
}

impl RecoveryCoordinator {
    /// Which owners have not shown for a lease that they live.
    pub(super) fn lapsed(&mut self, look: &Look, asked: LocalTime, now: LocalTime) -> Vec<bool> {
        let lease = self.ward.lease;
        assert_eq!(
            look.chairs.len(),
            self.watches.len(),
            "an owner that nobody watches would never lapse"
        );
        assert_eq!(
            asked, self.recent,
            "the look that is answered is the one under way"
        );
        let chairs = look.chairs.iter().zip(&mut self.watches);
        let judge = |(chair, watch): (&SlotWords, &mut Watch)| {
            let found = (chair.client_slot.word(), chair.beat);
            #[cfg(feature = "mutants")]
            match self.mutant {
                Some(Mutant::BelievesClocks) => {
                    let silent = now.since(LocalTime(chair.beat));
                    return matches!(chair.client_slot, ClientSlot::Taken(_)) && silent >= lease;
                }
                Some(Mutant::CountsTheWait) => {
                    return watch.look(found, now, asked) >= lease;
                }
                _ => {}
            }
            watch.look(found, asked, now) >= lease
        };
        chairs.map(judge).collect()
    }
}
