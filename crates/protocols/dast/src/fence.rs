//! The part of a region's ledger that is about a silent region whose stream the others end, and about
//! its return (`docs/decisions/046-the-others-end-a-silent-regions-stream.md`).
//!
//! Who is fenced changes by *changes*, numbered by *epochs*. Each is one decision of Paxos of which
//! the regions are the acceptors; what a region promises and accepts is in its ledger first. A change
//! is applied by an entry of its own once more than half of the regions have accepted it. A region
//! applies them in their order: one that has missed some is told the first of them first ([`News`]).
//!
//! | invariant | |
//! |---|---|
//! | F1 | what is accepted was accepted under the last ballot promised, or an earlier one |
//! | F2 | promises and acceptances are about the next change only |
//! | F3 | one region is fenced at a time, and its span is the last one; only who is fenced comes back |
//! | F4 | a span begins at the end of a stream and leads to a place behind it |

mod made;

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_core::check::ensure;
use serde::{Deserialize, Serialize};

use crate::call::Planned;
use crate::timestamp::Timestamp;
use crate::topology::{RegionId, Topology};

pub use self::made::{Made, News};

/// Names an attempt at a change; the larger one goes before the smaller (Paxos).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ballot {
    /// Counts attempts.
    pub round: u64,
    /// Whose attempt it is.
    pub region: RegionId,
}

/// What an attempt is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Want {
    /// To end another attempt that came to nothing.
    Nothing,
    /// To end the stream of a silent region.
    Fence(RegionId),
    /// To take a fenced region in again.
    Return(RegionId),
}

/// A transaction at its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Its place.
    pub at: Timestamp,
    /// The transaction.
    pub planned: Arc<Planned>,
}

/// A change of who is fenced.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// None: streams are followed again that were frozen.
    Nothing,
    /// A region's stream ends.
    Fence(Fence),
    /// A fenced region is taken in again.
    Return(Return),
}

/// The end of a region's stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fence {
    /// Whose stream.
    pub region: RegionId,
    /// The highest mark that another region has of it.
    pub end: Timestamp,
    /// Every order of that region below the end that is not over.
    pub orders: Vec<Placed>,
}

/// The return of a fenced region.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Return {
    /// Which.
    pub region: RegionId,
    /// Behind all marks told, bounds passed and places given before the change. Moved transactions run
    /// within this microsecond, and what touches the region from then on behind it.
    pub back: Timestamp,
    /// The old places of all moved transactions, ascending. The first of them runs first.
    pub moved: Vec<Timestamp>,
    /// Orders of the others below the end that touch the region.
    pub orders: Vec<Placed>,
}

impl Return {
    /// The new place of the transaction that was at `old`: in the order of the old ones, and of the
    /// same site.
    #[must_use]
    pub fn new_place(&self, old: Timestamp) -> Timestamp {
        #[allow(unused_mut)] // a planted defect changes it
        let mut place = self.moved.binary_search(&old).ok();
        #[cfg(feature = "mutants")]
        if !self.moved.is_sorted() {
            place = self.moved.iter().position(|at| *at == old);
        }
        assert!(
            place.is_some(),
            "F4: {old:?} is moved, and not among what is"
        );
        Timestamp {
            stretch: place.unwrap_or(0) as u64 + 1,
            site: old.site,
            ..self.back
        }
    }
}

/// The places from which transactions of a region that is or was fenced are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// The region.
    pub region: RegionId,
    /// Where its stream ended.
    pub end: Timestamp,
    /// From here on nothing runs at its old place: the end, or in the region itself what it had
    /// passed when it heard of it, if that is more.
    pub from: Timestamp,
    /// Where moved transactions run, once the region is back.
    pub back: Option<Timestamp>,
}

impl Span {
    /// Whether a transaction touches the region, or was ordered by it.
    #[must_use]
    pub fn concerns(&self, topology: Topology, planned: &Planned, at: Timestamp) -> bool {
        let is_touched = |shard| topology.region_of(shard) == self.region;
        planned.crosses_regions
            && (at.site == topology.manager_site(self.region) || planned.shards().any(is_touched))
    }

    /// Whether a transaction does not run at this place.
    #[must_use]
    pub fn sets_aside(&self, topology: Topology, planned: &Planned, at: Timestamp) -> bool {
        let is_within = self.from <= at && self.back.is_none_or(|back| at < back);
        is_within && self.concerns(topology, planned, at)
    }

    /// All that was moved lies before this.
    #[must_use]
    pub fn over(&self) -> Option<Timestamp> {
        let back = self.back?;
        assert!(back > self.end, "F4: moved transactions run behind the end");
        Some(Timestamp::at(back.micros + 1, 0))
    }

    /// Up to where another region has closed its places, or run them, as the fenced one may know it:
    /// that a place is closed there says nothing of what was moved from it.
    #[must_use]
    pub fn told(&self, upto: Timestamp) -> Timestamp {
        let is_past = self.over().is_some_and(|over| upto >= over);
        if is_past {
            return upto;
        }
        upto.min(self.end)
    }
}

/// What a region has agreed on about fences.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Fences {
    /// Changes so far.
    epoch: u64,
    /// Of the next one: the last ballot promised.
    promised: Option<Ballot>,
    /// Nothing is taken from these regions' streams behind these marks until the next change.
    frozen: BTreeMap<RegionId, Timestamp>,
    /// No mark is told and no place is cut behind this until the next change.
    cap: Option<Timestamp>,
    /// What is accepted for the next change.
    accepted: Option<(Ballot, Change)>,
    /// The last changes that were one, the oldest first.
    made: Vec<Made>,
    /// With which epoch each region has come back last.
    returned: BTreeMap<RegionId, u64>,
    /// Where transactions were moved, until all have passed where to.
    spans: Vec<Span>,
    /// Transactions that concern a fenced region and run here at their places: a new leader tells
    /// them again.
    stayed: BTreeMap<Timestamp, Arc<Planned>>,
    /// This region is the fenced one.
    is_out: bool,
    /// Everything below this that touches this region was told here when it was fenced last.
    stood: Timestamp,
    /// Everything of the stream of a region that came back is here, below these, or was moved.
    floors: BTreeMap<RegionId, Timestamp>,
}

impl Fences {
    /// Changes so far.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The number of the next change.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.epoch + 1
    }

    /// The last ballot promised, of the next change.
    #[must_use]
    pub fn promised(&self) -> Option<Ballot> {
        self.promised
    }

    /// What is accepted for the next change.
    #[must_use]
    pub fn accepted(&self) -> Option<&(Ballot, Change)> {
        self.accepted.as_ref()
    }

    /// Up to where a region's stream is followed, if it is frozen.
    #[must_use]
    pub fn frozen(&self, region: RegionId) -> Option<Timestamp> {
        self.frozen.get(&region).copied()
    }

    /// Behind this nothing is told or cut until the next change.
    #[must_use]
    pub fn cap(&self) -> Option<Timestamp> {
        self.cap
    }

    /// Where transactions were moved that not all have passed.
    #[must_use]
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// The region that is fenced, and from where on.
    #[must_use]
    pub fn fenced(&self) -> Option<Span> {
        let last = self.spans.last();
        last.filter(|span| span.back.is_none()).copied()
    }

    /// The stream of `region` must not end before this: what was moved for another region's return lies
    /// before it, and a second fence would move part of that from the rest.
    #[must_use]
    pub fn least_end(&self, region: RegionId) -> Timestamp {
        let others = self.spans.iter().filter(|span| span.region != region);
        others.filter_map(Span::over).max().unwrap_or_default()
    }

    /// Whether that is `region`.
    #[must_use]
    pub fn is_fenced(&self, region: RegionId) -> bool {
        self.fenced().is_some_and(|span| span.region == region)
    }

    /// Whether that is this region.
    #[must_use]
    pub fn is_out(&self) -> bool {
        self.is_out
    }

    /// Everything below this that touches this region was told here when it was fenced last.
    #[must_use]
    pub fn stood(&self) -> Timestamp {
        self.stood
    }

    /// Everything of a region's stream below this is here or moved, whatever has come of it.
    #[must_use]
    pub fn floor(&self, region: RegionId) -> Timestamp {
        let floor = self.floors.get(&region).copied();
        floor.unwrap_or_default().max(self.stood)
    }

    /// Transactions that concern a region that is or was fenced and run here at their places.
    pub fn stayed(&self) -> impl Iterator<Item = (Timestamp, &Arc<Planned>)> {
        self.stayed.iter().map(|(at, planned)| (*at, planned))
    }

    /// Promises a ballot of the `number`th change, and with it to follow a stream no further and to
    /// tell nothing behind a cap, until that change. Whether it does.
    pub(crate) fn promise(
        &mut self,
        number: u64,
        ballot: Ballot,
        frozen: Option<(RegionId, Timestamp)>,
        cap: Option<Timestamp>,
    ) -> bool {
        if number != self.next() || self.promised >= Some(ballot) {
            return false;
        }
        self.promised = Some(ballot);
        if let Some((region, mark)) = frozen {
            self.frozen.entry(region).or_insert(mark);
        }
        if self.cap.is_none() {
            self.cap = cap;
        }
        true
    }

    /// Accepts a change, unless a larger ballot was promised. Whether it does.
    pub(crate) fn accept(&mut self, number: u64, ballot: Ballot, change: &Change) -> bool {
        if number != self.next() || self.promised > Some(ballot) {
            return false;
        }
        self.promised = Some(ballot);
        self.accepted = Some((ballot, change.clone()));
        true
    }

    /// Begins epoch `epoch`. The last change that was one came with epoch `at`; whether it is new
    /// here.
    pub(crate) fn begin(&mut self, epoch: u64, at: u64, change: &Change) -> bool {
        if epoch <= self.epoch {
            return false;
        }
        let is_new = at > self.epoch && *change != Change::Nothing;
        self.epoch = epoch;
        self.promised = None;
        self.frozen.clear();
        self.cap = None;
        self.accepted = None;
        if is_new {
            self.keep(at, change);
        }
        is_new
    }

    /// A region is fenced. `stood` and what stays at its place below that: of this region, if it is
    /// the one.
    pub(crate) fn fence(&mut self, fence: &Fence, stood: Option<(Timestamp, Vec<Placed>)>) {
        assert!(
            self.fenced().is_none(),
            "F3: one region is fenced at a time"
        );
        let mut from = fence.end;
        let stayed = match stood {
            Some((stood, stayed)) => {
                self.is_out = true;
                self.stood = stood.max(self.stood);
                from = from.max(stood);
                stayed
            }
            None => fence.orders.clone(),
        };
        self.spans.push(Span {
            region: fence.region,
            end: fence.end,
            from,
            back: None,
        });
        self.stay(stayed);
    }

    fn stay(&mut self, orders: impl IntoIterator<Item = Placed>) {
        let orders = orders.into_iter();
        self.stayed
            .extend(orders.map(|order| (order.at, order.planned)));
    }

    /// The fenced region is back.
    pub(crate) fn take_back(&mut self, change: &Return) {
        assert!(self.is_fenced(change.region), "F3: who is back was fenced");
        if let Some(span) = self.spans.last_mut() {
            span.back = Some(change.back);
        }
        self.returned.insert(change.region, self.last_epoch());
        if std::mem::take(&mut self.is_out) {
            self.stay(change.orders.iter().cloned());
        } else {
            self.floors.insert(change.region, change.back);
        }
    }

    /// All regions have passed everything below `upto`.
    pub(crate) fn pass(&mut self, upto: Timestamp) {
        let is_open = |span: &Span| span.over().is_none_or(|over| over > upto);
        self.spans.retain(is_open);
        if self.spans.is_empty() {
            self.stayed = self.stayed.split_off(&upto);
        }
    }

    /// Checks what holds between any two entries.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub fn check(&self) -> Result<(), String> {
        let accepted = self.accepted.as_ref().map(|(ballot, _)| *ballot);
        ensure(accepted <= self.promised, || {
            format!(
                "F1: {accepted:?} is accepted and {:?} promised",
                self.promised
            )
        })?;
        self.check_made()?;
        let mut returned = self.returned.values();
        ensure(returned.all(|epoch| *epoch <= self.epoch), || {
            let (epoch, returned) = (self.epoch, &self.returned);
            format!("F3: regions are back since {returned:?}, of {epoch} changes")
        })?;
        let mut floors = self.floors.keys();
        ensure(
            floors.all(|region| self.returned.contains_key(region)),
            || {
                format!(
                    "F3: streams begin again that did not end: {:?}",
                    self.floors
                )
            },
        )?;
        let is_untouched = self.spans.is_empty() && self.stayed.is_empty();
        ensure(!self.made.is_empty() || is_untouched, || {
            format!(
                "F4: nothing has changed, and transactions are moved: {:?}",
                self.spans
            )
        })?;
        let is_idle = self.frozen.is_empty() && self.cap.is_none();
        ensure(self.promised.is_some() || is_idle, || {
            "F2: streams are frozen and nothing is promised".to_owned()
        })?;
        let mut earlier = self.spans.iter().rev().skip(1);
        ensure(earlier.all(|span| span.back.is_some()), || {
            format!("F3: more than one region is fenced: {:?}", self.spans)
        })?;
        let mut spans = self.spans.iter();
        ensure(
            spans
                .all(|span| span.end <= span.from && span.back.is_none_or(|back| back > span.from)),
            || {
                format!(
                    "F4: transactions are moved to where they were: {:?}",
                    self.spans
                )
            },
        )?;
        ensure(!self.is_out || self.fenced().is_some(), || {
            "F3: this region is fenced and none is".to_owned()
        })
    }
}

#[cfg(test)]
mod tests;
