//! What every manager of a region keeps of other regions' streams, whether it leads or not: with
//! [`Survive::Region`](crate::options::Survive::Region) a region's replicas pass only what two of
//! its managers hold, so that a new leader has it without the region it came from.
//!
//! Parts go to all managers of the receiver. A backup that has a stream whole up to a mark tells
//! its leader ([`DastMessage::Has`]). A new leader asks the other managers for what they keep
//! ([`DastMessage::AskKept`]) and follows streams once one of them has answered: of two that held
//! something, one has answered or is the leader itself. A manager that has lost its memory answers
//! nobody until the sender of each stream, or both other managers, have told it again.
//!
//! | invariant | |
//! |---|---|
//! | B1 | what is kept of a stream has no gaps and ends with the last entry followed |
//! | B2 | a manager is believed only of what it has, or knows that it never had |
//!
//! When a region that was fenced is back, what its stream and those to it held before that is in the
//! ledgers, or was moved: they begin again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_core::NodeId;
use manxdb_core::check::ensure;

use super::Manager;
use super::stream::{Incoming, Taken};
use crate::fence::Placed;
use crate::message::{DastMessage, Held, KeptStream, StreamPart};
use crate::options::Shared;
use crate::timestamp::Timestamp;
use crate::topology::{RegionId, Role};
use crate::wanted::Out;

/// One other region's stream.
#[derive(Debug)]
struct StreamCopy {
    stream: Incoming,
    /// What not all regions have run, by number.
    entries: BTreeMap<u64, Held>,
    /// Up to where backups have it, as they have told this leader.
    told: BTreeMap<NodeId, Timestamp>,
}

impl StreamCopy {
    fn new(has_lost: bool) -> Self {
        Self {
            stream: if has_lost {
                Incoming::new(Timestamp::ZERO)
            } else {
                Incoming::from_the_first()
            },
            entries: BTreeMap::new(),
            told: BTreeMap::new(),
        }
    }

    /// Whether it is followed, and not waiting for what has been missed.
    fn is_followed(&self) -> bool {
        self.stream.asked().is_none()
    }

    /// Another manager has it up to `mark`.
    fn hear(&mut self, from: NodeId, mark: Timestamp) {
        let told = self.told.entry(from).or_default();
        *told = mark.max(*told);
        assert!(*told >= mark, "what two hold does not become less");
    }

    /// Follows a part; false: something before it is missing.
    fn take(&mut self, part: StreamPart) -> bool {
        match self.stream.take(part) {
            Taken::Entries(new) => {
                let next = self.stream.received() + 1;
                self.extend(next - new.len() as u64, new);
                true
            }
            Taken::Waiting => true,
            Taken::Gap => false,
        }
    }

    /// Entries that follow what is here; if they do not, what is here has run everywhere.
    fn extend(&mut self, first: u64, new: impl IntoIterator<Item = Held>) {
        let last = self.entries.last_key_value().map(|(number, _)| *number);
        if last.is_some_and(|last| last.saturating_add(1) < first) {
            self.entries.clear();
        }
        self.entries.extend((first..).zip(new));
        let last = self.entries.last_key_value().map(|(number, _)| *number);
        assert!(
            last.is_none_or(|last| last >= first.saturating_sub(1)),
            "B1: what is kept ends with what has come"
        );
    }

    /// What another manager keeps.
    fn merge(&mut self, theirs: KeptStream) {
        let count = theirs.entries.len() as u64;
        let received = theirs.first.saturating_add(count).saturating_sub(1);
        let own = self.stream.received();
        if received > own {
            let from = theirs.first.max(own + 1);
            let known = usize::try_from(from - theirs.first).unwrap_or(usize::MAX);
            self.extend(from, theirs.entries.into_iter().skip(known));
        }
        self.stream.adopt(received, theirs.mark);
        assert!(
            self.stream.received() >= own,
            "B1: what has come is not forgotten"
        );
    }

    /// From the first entry at `since` or behind it on, and the number of that one.
    fn since(&self, since: Timestamp) -> (u64, Vec<Held>) {
        let wanted = self.entries.iter();
        let mut wanted = wanted.skip_while(|(_, entry)| entry.at < since).peekable();
        let first = wanted.peek().map(|(number, _)| **number);
        let entries = wanted.map(|(_, entry)| entry.clone()).collect();
        (first.unwrap_or(self.stream.received() + 1), entries)
    }

    /// All regions have run everything below `upto`. What is behind one that they have not run
    /// stays with it, so that no number is missing.
    fn pass(&mut self, upto: Timestamp) {
        while let Some(first) = self.entries.first_entry() {
            if first.get().at >= upto {
                break;
            }
            first.remove();
        }
    }

    /// What this manager and another one have, or two others.
    fn held_by_two(&self) -> Timestamp {
        let marks = self.told.values().copied();
        let (mut most, mut second) = (self.stream.mark(), Timestamp::ZERO);
        for mark in marks {
            second = second.max(mark.min(most));
            most = most.max(mark);
        }
        assert!(second <= most, "the second largest is not the largest");
        second
    }

    fn check(&self, region: RegionId) -> Result<(), String> {
        let first = self.entries.first_key_value().map(|(number, _)| *number);
        let last = self.entries.last_key_value().map(|(number, _)| *number);
        let Some((first, last)) = first.zip(last) else {
            return Ok(());
        };
        let (count, received) = (self.entries.len() as u64, self.stream.received());
        ensure(last - first + 1 == count, || {
            format!("B1: {count} entries of {region:?} are kept, from {first} to {last}")
        })?;
        ensure(last == received, || {
            format!("B1: {received} entries of {region:?} have come, {last} is the last kept")
        })
    }
}

/// The streams of all other regions.
#[derive(Debug)]
pub(super) struct Copies {
    streams: BTreeMap<RegionId, StreamCopy>,
    /// Everything below these has run on all replicas of a region, this one included.
    positions: BTreeMap<RegionId, Timestamp>,
    /// The other managers of this region, and which of them have said what they keep since that
    /// was asked for.
    others: BTreeSet<NodeId>,
    heard: BTreeSet<NodeId>,
    /// It has lost its memory and does not know yet what it has had.
    has_lost: bool,
}

impl Copies {
    /// What a manager of `region` begins with in its `life`th life; none unless streams are whole.
    pub(super) fn of_life(
        me: NodeId,
        life: u64,
        region: RegionId,
        shared: &Shared,
    ) -> Option<Self> {
        let topology = shared.topology;
        let has_lost = life > 1;
        let others = topology.all_regions().filter(|other| *other != region);
        shared.options.has_whole_streams().then(|| Self {
            streams: others.map(|it| (it, StreamCopy::new(has_lost))).collect(),
            positions: topology
                .all_regions()
                .map(|it| (it, Timestamp::ZERO))
                .collect(),
            others: topology.managers(region).filter(|it| *it != me).collect(),
            heard: BTreeSet::new(),
            has_lost,
        })
    }

    /// Transactions kept.
    pub(super) fn len(&self) -> usize {
        self.streams.values().map(|copy| copy.entries.len()).sum()
    }

    /// Everything of a region's stream below this is with two managers of this region.
    pub(super) fn held_by_two(&self, region: RegionId) -> Timestamp {
        let copy = self.streams.get(&region);
        copy.map_or(Timestamp::ZERO, StreamCopy::held_by_two)
    }

    /// Everything of a region's stream below this is with this manager.
    pub(super) fn mark(&self, region: RegionId) -> Timestamp {
        let copy = self.streams.get(&region);
        copy.map_or(Timestamp::ZERO, |copy| copy.stream.mark())
    }

    /// The transactions of a region's stream below `upto` that not all regions have run.
    pub(super) fn before(&self, region: RegionId, upto: Timestamp) -> Vec<Placed> {
        let copy = self.streams.get(&region);
        let entries = copy.into_iter().flat_map(|copy| copy.entries.values());
        let before = entries.filter(|entry| entry.at < upto);
        let placed = before.map(|entry| Placed {
            at: entry.at,
            planned: Arc::clone(&entry.planned),
        });
        placed.collect()
    }

    /// A stream begins again: everything below `from` is here or was moved, and what is behind is
    /// asked for.
    fn restart(&mut self, region: RegionId, from: Timestamp) {
        if let Some(copy) = self.streams.get_mut(&region) {
            copy.stream = Incoming::new(from);
            copy.entries.clear();
        }
    }

    /// Asks the other managers of the region for what they keep.
    pub(super) fn ask_others(&self, out: &mut Out) {
        for manager in &self.others {
            out.send(*manager, DastMessage::AskKept);
        }
    }

    /// Whether everything is here that two managers have held: what a new leader waits for.
    pub(super) fn are_complete(&self) -> bool {
        !self.has_lost && !self.heard.is_empty()
    }

    /// What is kept of a region's stream, from `since` on; none if it is not whole up to there.
    pub(super) fn part_since(&self, region: RegionId, since: Timestamp) -> Option<StreamPart> {
        let copy = self.streams.get(&region)?;
        let mark = copy.stream.mark();
        let (first, entries) = copy.since(since);
        (mark >= since).then_some(StreamPart {
            region,
            since: Some(since),
            first,
            entries,
            mark,
            epoch: 0,
            sent: 0,
            delay: None,
            closed: Timestamp::ZERO,
            position: Timestamp::ZERO,
        })
    }

    /// What another manager may know; none while this one does not.
    fn kept(&self) -> Option<Vec<KeptStream>> {
        let streams = self.streams.iter().map(|(region, copy)| {
            let (first, entries) = copy.since(Timestamp::ZERO);
            KeptStream {
                region: *region,
                first,
                entries,
                mark: copy.stream.mark(),
            }
        });
        (!self.has_lost).then(|| streams.collect())
    }

    /// Another manager of the region says what it keeps.
    fn merge(&mut self, from: NodeId, streams: Vec<KeptStream>) {
        for theirs in streams {
            if let Some(copy) = self.streams.get_mut(&theirs.region) {
                copy.hear(from, theirs.mark);
                copy.merge(theirs);
            }
        }
        self.heard.insert(from);
        self.look_for_what_was_lost();
    }

    fn look_for_what_was_lost(&mut self) {
        let is_told_again = self.streams.values().all(StreamCopy::is_followed);
        if is_told_again || self.heard.is_superset(&self.others) {
            self.has_lost = false;
        }
    }

    /// A region's replicas have run everything below `position`. One that is fenced runs nothing
    /// for which the others would have to keep these.
    fn note_position(&mut self, region: RegionId, position: Timestamp, fenced: Option<RegionId>) {
        let Some(known) = self.positions.get_mut(&region) else {
            return;
        };
        *known = position.max(*known);
        let positions = self.positions.iter();
        let positions = positions.filter(|(region, _)| Some(**region) != fenced);
        let everywhere = positions.map(|(_, position)| *position).min();
        let everywhere = everywhere.unwrap_or_default();
        for copy in self.streams.values_mut() {
            copy.pass(everywhere);
        }
    }

    /// Checks what holds between any two steps.
    ///
    /// # Errors
    /// The invariant that is broken, in words.
    pub(super) fn check(&self) -> Result<(), String> {
        for (region, copy) in &self.streams {
            copy.check(*region)?;
            copy.stream.check()?;
            let mut told = copy.told.keys();
            ensure(told.all(|node| self.others.contains(node)), || {
                format!("B2: of {region:?} others have told: {:?}", copy.told)
            })?;
        }
        let (streams, positions) = (self.streams.len(), self.positions.len());
        ensure(streams + 1 == positions, || {
            format!("B3: {streams} streams are kept, and {positions} regions have positions")
        })?;
        let has_heard = self.heard.is_superset(&self.others);
        ensure(!self.has_lost || !has_heard, || {
            "B2: it has heard of all others, and does not know what it has had".to_owned()
        })?;
        ensure(self.heard.is_subset(&self.others), || {
            format!("B2: {:?} are no managers of the region", self.heard)
        })
    }
}

impl Manager {
    /// Keeps what comes of streams, and answers who asks for it; gives back what is for others to
    /// take.
    pub(super) fn keep_copies(
        &mut self,
        from: NodeId,
        message: DastMessage,
        out: &mut Out,
    ) -> Option<DastMessage> {
        let is_own = self.shared.topology.role(from) == Role::Manager(self.region);
        let fenced = self.fenced();
        let Some(copies) = &mut self.copies else {
            return Some(message);
        };
        match message {
            DastMessage::Stream(part) => {
                self.leads_region(part.region, from);
                self.keep_part(&part, out);
                self.lead.is_some().then_some(DastMessage::Stream(part))
            }
            DastMessage::Progress {
                region, position, ..
            } => {
                copies.note_position(region, position, fenced);
                (region != self.region).then_some(message)
            }
            DastMessage::Has { region, mark } if is_own => {
                if let Some(copy) = copies.streams.get_mut(&region) {
                    copy.hear(from, mark);
                }
                self.tell_bound_if_awaited(out);
                None
            }
            DastMessage::AskKept if is_own => {
                if let Some(streams) = copies.kept() {
                    out.send(from, DastMessage::Kept { streams });
                }
                None
            }
            DastMessage::Kept { streams } if is_own => {
                copies.merge(from, streams);
                self.follow_streams(out);
                None
            }
            DastMessage::Has { .. } | DastMessage::AskKept | DastMessage::Kept { .. } => None,
            other => Some(other),
        }
    }

    fn keep_part(&mut self, part: &StreamPart, out: &mut Out) {
        let (region, leader) = (part.region, self.group.leader());
        if self.fenced() == Some(region) {
            return;
        }
        let Some(copies) = &mut self.copies else {
            return;
        };
        let Some(copy) = copies.streams.get_mut(&region) else {
            return;
        };
        let is_known = copy.take(part.clone());
        let (mark, is_followed) = (copy.stream.mark(), copy.is_followed());
        copies.look_for_what_was_lost();
        if !is_known {
            self.ask_for_stream(region, mark, out);
        }
        if is_followed && leader != self.me {
            out.send(leader, DastMessage::Has { region, mark });
        }
    }

    /// A new leader asks what the others keep, whatever its predecessors have heard.
    pub(super) fn ask_for_copies_anew(&mut self, out: &mut Out) {
        if let Some(copies) = &mut self.copies {
            copies.heard.clear();
            for copy in copies.streams.values_mut() {
                copy.told.clear();
            }
        }
        self.ask_for_copies(out);
    }

    /// Asks for what is missing: other managers for what they keep, senders for what was missed.
    pub(super) fn ask_for_copies(&self, out: &mut Out) {
        let Some(copies) = &self.copies else {
            return;
        };
        if copies.has_lost || (self.lead.is_some() && copies.heard.is_empty()) {
            copies.ask_others(out);
        }
        for (region, copy) in &copies.streams {
            if let Some(since) = copy.stream.asked()
                && self.speaks_with(*region)
            {
                self.ask_for_stream(*region, since, out);
            }
        }
    }

    /// Streams to and from regions that came back begin again, unless this manager has known of it in
    /// epoch `before`. One that does not lead may hear of many changes at once.
    pub(super) fn restart_copies(&mut self, before: u64, out: &mut Out) {
        let (own, fences) = (self.region, &self.group.state().fences);
        let Some(copies) = &mut self.copies else {
            return;
        };
        let all: Vec<RegionId> = copies.streams.keys().copied().collect();
        let again = |other: &RegionId| Some((*other, fences.begun_again(own, *other, before)?));
        let again: Vec<(RegionId, Timestamp)> = all.iter().filter_map(again).collect();
        for (other, from) in &again {
            copies.restart(*other, *from);
        }
        if !again.is_empty() {
            self.ask_for_copies(out);
        }
    }

    /// How far the region is, to those of its managers that do not lead: they need not keep what
    /// all have run.
    pub(super) fn tell_backups_progress(
        &mut self,
        closed: Timestamp,
        position: Timestamp,
        out: &mut Out,
    ) {
        let (region, fenced) = (self.region, self.fenced());
        let Some(copies) = &mut self.copies else {
            return;
        };
        copies.note_position(region, position, fenced);
        for manager in &copies.others {
            let progress = DastMessage::Progress {
                region,
                closed,
                position,
            };
            out.send(*manager, progress);
        }
    }
}

#[cfg(test)]
mod tests;
