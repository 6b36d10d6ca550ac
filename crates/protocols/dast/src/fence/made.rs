//! The last changes of who is fenced, as others are told them, and what has begun again with them.

use manxdb_core::check::ensure;
use serde::{Deserialize, Serialize};

use super::{Change, Fences};
use crate::timestamp::Timestamp;
use crate::topology::RegionId;

/// A change that was one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Made {
    /// The epoch of the one before it; 0: it is the first.
    pub after: u64,
    /// The epoch that it began.
    pub epoch: u64,
    /// What changed.
    pub change: Change,
}

/// What a region is told of the changes that it does not know: up to the first that was one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// For a region that knows of the changes up to this epoch.
    pub after: u64,
    /// The epoch that begins with it.
    pub epoch: u64,
    /// The one change between the two epochs that was one, and its epoch; none: there is none that
    /// the receiver has not said that it knows.
    pub change: Option<(u64, Change)>,
}

/// How many changes that were one a region keeps, to tell them to others. A fence is decided with
/// promises of all regions but the one that is fenced, and a return with promises of all, each of
/// which has applied everything before: so a region that has missed a change is in no later one but
/// its own fence, and misses no more than these two.
const KEPT: usize = 2;

impl Fences {
    /// Keeps a change that was one.
    pub(super) fn keep(&mut self, epoch: u64, change: &Change) {
        self.made.push(Made {
            after: self.last_epoch(),
            epoch,
            change: change.clone(),
        });
        if self.made.len() > KEPT {
            self.made.remove(0);
        }
    }

    /// The last change that was one.
    #[must_use]
    pub fn last(&self) -> Option<&Made> {
        self.made.last()
    }

    /// The epoch of the last change that was one; 0: there was none.
    #[must_use]
    pub fn last_epoch(&self) -> u64 {
        self.last().map_or(0, |made| made.epoch)
    }

    /// Changes that were one behind an epoch, in their order; of more than are kept, the last.
    pub fn made_since(&self, epoch: u64) -> impl Iterator<Item = &Made> {
        self.made.iter().filter(move |made| made.epoch > epoch)
    }

    /// What a region is to be told that knows of the changes up to an epoch.
    #[must_use]
    pub fn news_since(&self, known: u64) -> News {
        let mut unknown = self.made_since(known);
        let Some(first) = unknown.next() else {
            return News {
                after: self.last_epoch(),
                epoch: self.epoch,
                change: None,
            };
        };
        let next = unknown.next();
        News {
            after: first.after,
            epoch: next.map_or(self.epoch, |next| next.epoch - 1),
            change: Some((first.epoch, first.change.clone())),
        }
    }

    /// From where on this region, `own`, follows another one's stream since it has begun again,
    /// if that was behind epoch `before`: one of the two has come back.
    pub(crate) fn begun_again(
        &self,
        own: RegionId,
        other: RegionId,
        before: u64,
    ) -> Option<Timestamp> {
        let returned = |region| self.returned.get(&region).copied();
        let last = returned(own).max(returned(other))?;
        let from = if returned(own) == Some(last) {
            self.stood
        } else {
            self.floor(other)
        };
        (last > before).then_some(from)
    }

    /// Checks that what is kept is each change with the one before it.
    pub(super) fn check_made(&self) -> Result<(), String> {
        let epochs = self.made.iter().map(|made| (made.after, made.epoch));
        let mut follow = epochs.clone().zip(epochs.clone().skip(1));
        let are_behind = epochs
            .clone()
            .all(|(after, at)| after < at && at <= self.epoch)
            && follow.all(|((_, at), (after, _))| at == after);
        ensure(are_behind, || {
            let epochs: Vec<_> = epochs.collect();
            format!("F3: of {} changes {epochs:?} were one", self.epoch)
        })
    }
}
