//! Whether the rows of a database are served: whether more memory servers are lost at a time than
//! replicas make up for.
//!
//! Recovery coordinators decide losses, one after the other, and clients wait meanwhile. Of several
//! losses at a time none may ever be decided, and to wait for that would never end. So a process looks
//! which servers of the newest map it does not reach ([`LossDetector`]); when these are several for long,
//! its clients ask nothing of memory any more ([`Availability`]) and statements are refused. Nothing else
//! is decided by it: if the losses are made up for after all, statements are served again.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// So many losses at a time are made up for.
const LOSSES_MAX: usize = 1;

/// Memory servers that are lost at a time and are too many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostServers {
    /// Their numbers, ascending; at least two.
    servers: Vec<u16>,
    /// Memory servers that the database was made with.
    of: u16,
}

impl fmt::Display for LostServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (last, before) = self.servers.split_last().unwrap_or((&0, &[])); // there are several
        let before: Vec<String> = before.iter().map(ToString::to_string).collect();
        write!(
            f,
            "memory servers {} and {last} of {} are lost, which are more at a time than replicas make up \
             for: rows are neither read nor written until all memory servers are ended and started again \
             (/readyz says how)",
            before.join(", "),
            self.of
        )
    }
}

/// What the clients of a process know of that.
#[derive(Debug, Default)]
pub struct Availability {
    /// Whether there is something in `lost`: asked for at each operation.
    is_refused: AtomicBool,
    lost: Mutex<Option<LostServers>>,
}

impl Availability {
    /// The servers for whose sake statements are refused, if they are.
    #[must_use]
    pub fn lost(&self) -> Option<LostServers> {
        if self.is_refused() {
            self.lost.lock().clone()
        } else {
            None
        }
    }

    /// Whether statements are refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.is_refused.load(Ordering::Relaxed)
    }

    /// What is known from now on.
    pub(crate) fn set(&self, lost: Option<LostServers>) {
        assert!(
            lost.as_ref()
                .is_none_or(|lost| lost.servers.len() > LOSSES_MAX),
            "statements are refused only where more is lost than is made up for: {lost:?}"
        );
        let mut known = self.lost.lock();
        self.is_refused.store(lost.is_some(), Ordering::Relaxed);
        *known = lost;
    }
}

/// Decides from what is seen of servers whether too many are lost.
#[derive(Debug)]
pub(crate) struct LossDetector {
    /// Servers that there are.
    of: u16,
    /// So long losses may take to be decided.
    patience: Duration,
    /// Since when there are too many.
    since: Option<Instant>,
}

impl LossDetector {
    /// Of so many servers, where a loss is decided within so long.
    pub(crate) fn new(of: u16, patience: Duration) -> Self {
        Self {
            of,
            patience,
            since: None,
        }
    }

    /// The servers that are too many, if they have been for long. `gone` do not answer, and `used` are
    /// those of the newest map: one whose loss is decided is not among them.
    pub(crate) fn look(
        &mut self,
        gone: &[u16],
        used: impl IntoIterator<Item = u16>,
        now: Instant,
    ) -> Option<LostServers> {
        let mut lost: Vec<u16> = used.into_iter().filter(|one| gone.contains(one)).collect();
        lost.sort_unstable();
        assert!(
            lost.windows(2).all(|pair| pair[0] < pair[1]) && lost.iter().all(|one| *one < self.of),
            "a map has each of {} servers once: {lost:?}",
            self.of
        );
        if lost.len() <= LOSSES_MAX {
            self.since = None;
            return None;
        }
        let since = *self.since.get_or_insert(now);
        let is_over = now.saturating_duration_since(since) >= self.patience;
        is_over.then_some(LostServers {
            servers: lost,
            of: self.of,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    /// What is said second by second, of servers that do not answer and those of the map.
    fn said(looks: &[(&[u16], &[u16])]) -> Vec<bool> {
        let began = Instant::now();
        let mut detector = LossDetector::new(4, PATIENCE);
        let looks = (0..).zip(looks);
        let looks = looks.map(|(second, (gone, used))| {
            let now = began + Duration::from_secs(second);
            detector.look(gone, used.iter().copied(), now).is_some()
        });
        looks.collect()
    }

    #[test]
    fn two_losses_that_nobody_decides_are_too_many_after_a_while() {
        let looks: [(&[u16], &[u16]); 7] = [(&[1, 0], &[0, 1, 2, 3]); 7];
        assert_eq!(
            said(&looks),
            [false, false, false, false, false, true, true]
        );
    }

    #[test]
    fn losses_that_are_decided_one_after_the_other_are_never_too_many() {
        let first: [(&[u16], &[u16]); 7] = [(&[1], &[0, 1, 2, 3]); 7];
        let second: [(&[u16], &[u16]); 7] = [(&[0, 1], &[0, 2, 3]); 7];
        assert_eq!(said(&[first, second].concat()), [false; 14]);
    }

    #[test]
    fn what_was_made_up_for_after_all_is_forgotten() {
        let two: [(&[u16], &[u16]); 4] = [(&[0, 1], &[0, 1, 2, 3]); 4];
        let one: [(&[u16], &[u16]); 1] = [(&[0, 1], &[0, 2, 3])];
        assert_eq!(said(&[&two[..], &one, &two, &one].concat()), [false; 10]);
    }

    #[test]
    fn who_is_refused_hears_which_servers_are_lost() {
        let availability = Availability::default();
        assert_eq!(
            (availability.is_refused(), availability.lost()),
            (false, None)
        );
        let servers = vec![0, 1, 3];
        let lost = LostServers { servers, of: 5 };
        availability.set(Some(lost.clone()));
        assert_eq!(availability.lost(), Some(lost.clone()));
        let said = lost.to_string();
        assert!(
            said.starts_with("memory servers 0, 1 and 3 of 5 are lost"),
            "{said}"
        );
        availability.set(None);
        assert_eq!(
            (availability.is_refused(), availability.lost()),
            (false, None)
        );
    }
}
