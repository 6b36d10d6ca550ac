//! How regions agree that the stream of a silent one ends, and that it is back: Paxos, a decision for
//! each change, with the regions as acceptors (decision 46).
//!
//! A leader that has not heard of one region for long asks the others to promise a ballot. With the
//! promise each follows the silent one's stream no further and says up to where it has it, and what it
//! holds; or tells no marks behind a cap, if a region is to be taken in. The leader waits for *every*
//! region that takes part: one that has not answered may have passed more. It proposes a change made
//! of the answers, or one that was accepted before, and it is decided when more than half of the
//! regions have accepted it. Each region hears of that from whoever knows, and applies it in its own
//! ledger.
//!
//! A region that is heard here is not fenced, whatever another one hears. An attempt that comes to
//! nothing is ended by another change, of which some region loses patience first.

use std::collections::{BTreeMap, BTreeSet};

use super::attempt::{Attempt, FenceMutant};
use super::{Ahead, Manager};
use crate::fence::{Ballot, Change, News, Want};
use crate::manager::stream::Outgoing;
use crate::message::{DastMessage, FenceMessage, Promise};
use crate::options::FENCE_REGIONS_LEAST;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;
use crate::wanted::Out;

/// After so many ticks without an answer it is asked again.
const AGAIN_TICKS: u64 = 10;

/// So often regions that may not know of it are told how many changes there were, in ticks.
const TELL_TICKS: u64 = 20;

/// An attempt takes up to six ways between regions; so many, and this long in microseconds, is what
/// one is given before it is ended.
const ATTEMPT_WAYS: u64 = 8;
/// See [`ATTEMPT_WAYS`].
const ATTEMPT_MICROS: u64 = 200_000;

/// What a leader keeps of a change of who is fenced.
#[derive(Debug, Default)]
pub(super) struct Fencing {
    /// Changes that this leader has acted upon.
    epoch: u64,
    attempt: Option<Attempt>,
    /// The largest round that was heard of.
    pub(super) round: u64,
    /// Since which tick the next change is promised and not decided.
    pending_since: Option<u64>,
    /// Changes that the other regions know of.
    known: BTreeMap<RegionId, u64>,
    /// Promised in entries that are not agreed on: the ballot, streams that are followed no further,
    /// and behind what nothing is told.
    pub(super) promising: Option<Ballot>,
    pub(super) freezing: BTreeMap<RegionId, Timestamp>,
    pub(super) capping: Option<Timestamp>,
    /// Accepted in an entry that is not agreed on.
    pub(super) accepting: Option<Ballot>,
    /// An epoch that begins with an entry that is not agreed on.
    pub(super) beginning: u64,
}

impl Fencing {
    /// Of a leader whose ledger is in this epoch.
    pub(super) fn of_epoch(epoch: u64) -> Self {
        Self {
            epoch,
            ..Self::default()
        }
    }

    /// Up to which epoch this leader has acted.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The attempt that goes on, if one does.
    pub(super) fn current(&self) -> Option<&Attempt> {
        self.attempt.as_ref()
    }

    /// Up to where a stream is followed, by a promise that is not agreed on.
    pub(super) fn freezing(&self, region: RegionId) -> Option<Timestamp> {
        self.freezing.get(&region).copied()
    }

    /// Behind what nothing is told, by an entry that is not agreed on.
    pub(super) fn capping(&self) -> Option<Timestamp> {
        self.capping
    }

    /// The ledger is in another epoch: up to which one this leader has acted before. None: this has
    /// been acted upon.
    pub(super) fn begin(&mut self, epoch: u64) -> Option<u64> {
        let before = self.epoch;
        if epoch == before {
            return None;
        }
        assert!(epoch > before, "epochs only grow");
        let known = std::mem::take(&mut self.known);
        *self = Self {
            round: self.round,
            known,
            beginning: self.beginning.max(epoch),
            ..Self::of_epoch(epoch)
        };
        Some(before)
    }
}

impl Ahead {
    /// For how many ticks a region has not been heard of. What this leader has never heard may be on
    /// a way that is long: half as many.
    pub(super) fn silent_ticks(&self, region: RegionId, tick: u64) -> u64 {
        let Some(stream) = self.outgoing.get(&region) else {
            return 0;
        };
        let ticks = stream.silent_ticks(tick);
        if stream.is_heard() { ticks } else { ticks / 2 }
    }

    /// The longest way to another region, in microseconds.
    pub(super) fn longest_way(&self) -> u64 {
        let leads = self.outgoing.values().map(Outgoing::lead_micros);
        leads.max().unwrap_or(0)
    }
}

impl Manager {
    pub(super) fn ticks_of(&self, micros: u64) -> u64 {
        micros.div_ceil(self.shared.options.manager_tick.as_micros().max(1))
    }

    /// Whether this leader may fence: it follows all streams, and enough regions would be left.
    pub(super) fn may_fence(&self) -> bool {
        let ahead = self.lead.as_ref().and_then(|lead| lead.ahead.as_ref());
        let follows = ahead.is_some_and(|ahead| !ahead.incoming.is_empty());
        let is_enough = self.shared.topology.regions >= FENCE_REGIONS_LEAST;
        follows && is_enough && self.shared.options.has_whole_streams()
    }

    pub(super) fn fencing(&mut self) -> Option<&mut Fencing> {
        let ahead = self.lead.as_mut()?.ahead.as_mut()?;
        Some(&mut ahead.fencing)
    }

    fn attempt(&mut self) -> Option<&mut Attempt> {
        self.fencing()?.attempt.as_mut()
    }

    fn tick(&self) -> u64 {
        self.lead.as_ref().map_or(0, |lead| lead.clocks.ticks())
    }

    /// Goes on with an attempt, begins one if a region is silent or this one is to be taken in, and
    /// tells of changes.
    pub(in crate::manager) fn look_for_silent_regions(&mut self, out: &mut Out) {
        if !self.may_fence() {
            return;
        }
        let tick = self.tick();
        let is_pending = self.ledger().fences.promised().is_some();
        let patience = self.attempt_ticks();
        let Some(fencing) = self.fencing() else {
            return;
        };
        if !is_pending {
            fencing.pending_since = None;
        } else if fencing.pending_since.is_none() {
            fencing.pending_since = Some(tick);
        }
        match &mut fencing.attempt {
            Some(attempt) if tick - attempt.since_tick > patience => fencing.attempt = None,
            Some(attempt) if tick - attempt.asked_tick >= AGAIN_TICKS => {
                attempt.asked_tick = tick;
                self.ask_for_attempt(out);
                self.go_on_with_attempt(out);
            }
            Some(_) => {}
            None => {
                if let Some(want) = self.wanted() {
                    self.begin_attempt(want, out);
                }
            }
        }
        if tick.is_multiple_of(TELL_TICKS) {
            self.tell_changes(out);
        }
    }

    /// What an attempt is given, in ticks.
    fn attempt_ticks(&self) -> u64 {
        let ahead = self.lead.as_ref().and_then(|lead| lead.ahead.as_ref());
        let way = ahead.map_or(0, Ahead::longest_way);
        self.ticks_of(ATTEMPT_WAYS * way + ATTEMPT_MICROS)
    }

    /// What this leader should try now.
    fn wanted(&self) -> Option<Want> {
        let fences = &self.ledger().fences;
        let lead = self.lead.as_ref()?;
        let (ahead, tick) = (lead.ahead.as_ref()?, lead.clocks.ticks());
        // Regions lose patience one after another.
        let turn = u64::from(self.region.0) * AGAIN_TICKS;
        let patience = self.attempt_ticks() + turn;
        let pending = ahead.fencing.pending_since;
        let is_stuck = pending.is_some_and(|since| tick - since > patience);
        if pending.is_some() && !is_stuck {
            return None;
        }
        let after = self.ticks_of(self.shared.options.fence_after.as_micros());
        let is_silent = |region: &RegionId| {
            !fences.is_fenced(*region) && ahead.silent_ticks(*region, tick) > after
        };
        let silent: Vec<RegionId> = self.other_regions().filter(is_silent).collect();
        match (fences.fenced(), &silent[..]) {
            (Some(span), []) if span.region == self.region => Some(Want::Return(self.region)),
            (None, [region]) if self.may_end(*region) => Some(Want::Fence(*region)),
            _ => is_stuck.then_some(Want::Nothing),
        }
    }

    fn begin_attempt(&mut self, want: Want, out: &mut Out) {
        let (number, region, tick) = (self.ledger().fences.next(), self.region, self.tick());
        let promised = self.ledger().fences.promised();
        let least_end = match want {
            Want::Fence(region) => self.least_end(region),
            Want::Return(_) | Want::Nothing => Timestamp::ZERO,
        };
        let Some(fencing) = self.fencing() else {
            return;
        };
        let round = fencing.round.max(promised.map_or(0, |it| it.round)) + 1;
        fencing.round = round;
        let ballot = Ballot { round, region };
        assert!(
            promised < Some(ballot),
            "an attempt is above those promised"
        );
        fencing.attempt = Some(Attempt {
            number,
            ballot,
            want,
            least_end,
            since_tick: tick,
            asked_tick: tick,
            promises: BTreeMap::new(),
            change: None,
            accepted: BTreeSet::new(),
        });
        self.ask_for_attempt(out);
    }

    /// Asks those for promises, or acceptances, who have not given them.
    fn ask_for_attempt(&mut self, out: &mut Out) {
        let ahead = self.lead.as_ref().and_then(|lead| lead.ahead.as_ref());
        let Some(attempt) = ahead.and_then(|ahead| ahead.fencing.attempt.as_ref()) else {
            return;
        };
        let (number, ballot) = (attempt.number, attempt.ballot);
        let message = match &attempt.change {
            None => FenceMessage::Prepare {
                number,
                ballot,
                want: attempt.want,
            },
            Some(change) => FenceMessage::Accept {
                number,
                ballot,
                change: change.clone(),
            },
        };
        let has_answered = |region: &RegionId| match &attempt.change {
            None => attempt.promises.contains_key(region),
            Some(_) => attempt.accepted.contains(region),
        };
        let others = self.other_regions();
        for region in others.filter(|region| !has_answered(region)) {
            self.send_fence(region, message.clone(), out);
        }
    }

    /// To all managers of a region: the one that leads takes it.
    pub(super) fn send_fence(&self, to: RegionId, message: FenceMessage, out: &mut Out) {
        let (region, epoch) = (self.region, self.ledger().fences.epoch());
        for manager in self.shared.topology.managers(to) {
            let message = Box::new(message.clone());
            let fence = DastMessage::Fence {
                region,
                epoch,
                message,
            };
            out.send(manager, fence);
        }
    }

    /// Tells of changes those that may not know of them, and all while one of them is fenced: it has to
    /// know who is there.
    fn tell_changes(&self, out: &mut Out) {
        let fences = &self.ledger().fences;
        let fenced = self.fenced();
        for region in self.other_regions() {
            let is_behind = self.epoch_known_by(region) < fences.epoch();
            if is_behind || fenced == Some(region) || fences.is_out() {
                self.tell_change(region, out);
            }
        }
    }

    fn epoch_known_by(&self, region: RegionId) -> u64 {
        let ahead = self.lead.as_ref().and_then(|lead| lead.ahead.as_ref());
        let known = ahead.and_then(|ahead| ahead.fencing.known.get(&region));
        known.copied().unwrap_or(0)
    }

    /// The first change that a region may not know; once it says that it does, the next one.
    pub(super) fn tell_change(&self, region: RegionId, out: &mut Out) {
        let known = self.epoch_known_by(region);
        let news = self.ledger().fences.news_since(known);
        self.send_fence(region, FenceMessage::Decided(news), out);
    }

    /// Another region's leader says how many changes it knows of, with a message of any kind.
    pub(super) fn note_epoch_of(&mut self, region: RegionId, epoch: u64) {
        let tick = self.tick();
        let Some(ahead) = self.lead.as_mut().and_then(|lead| lead.ahead.as_mut()) else {
            return;
        };
        let known = ahead.fencing.known.entry(region).or_default();
        *known = epoch.max(*known);
        if let Some(stream) = ahead.outgoing.get_mut(&region) {
            stream.hear(tick);
        }
    }

    pub(in crate::manager) fn on_fence(
        &mut self,
        region: RegionId,
        epoch: u64,
        message: FenceMessage,
        out: &mut Out,
    ) {
        if region == self.region || !self.other_regions().any(|other| other == region) {
            return;
        }
        self.note_epoch_of(region, epoch);
        match message {
            FenceMessage::Prepare {
                number,
                ballot,
                want,
            } => self.on_prepare(region, (number, ballot), want, out),
            FenceMessage::Promised {
                number,
                ballot,
                promise,
            } => self.on_promised(region, (number, ballot), promise, out),
            FenceMessage::Refused { number, promised } => self.on_refused(number, promised),
            FenceMessage::Accept {
                number,
                ballot,
                change,
            } => self.on_accept(region, (number, ballot), change, out),
            FenceMessage::Accepted { number, ballot } => {
                self.on_accepted(region, (number, ballot), out);
            }
            FenceMessage::Decided(news) => self.learn(news, out),
        }
    }

    pub(super) fn on_promised(
        &mut self,
        region: RegionId,
        (number, ballot): (u64, Ballot),
        promise: Promise,
        out: &mut Out,
    ) {
        let Some(attempt) = self.attempt() else {
            return;
        };
        if (attempt.number, attempt.ballot) == (number, ballot) && attempt.change.is_none() {
            attempt.promises.insert(region, promise);
            self.go_on_with_attempt(out);
        }
    }

    fn on_refused(&mut self, number: u64, promised: Ballot) {
        let Some(fencing) = self.fencing() else {
            return;
        };
        fencing.round = fencing.round.max(promised.round);
        let attempt = fencing.attempt.as_ref();
        if attempt.is_some_and(|it| it.number == number && it.ballot < promised) {
            fencing.attempt = None;
        }
    }

    /// Once all have promised that have to, this region does; then the change is proposed.
    fn go_on_with_attempt(&mut self, out: &mut Out) {
        let (own, majority) = (self.region, self.majority());
        let others: Vec<RegionId> = self.other_regions().collect();
        let mutant = self.fence_mutant();
        let Some(attempt) = self.attempt() else {
            return;
        };
        if attempt.change.is_some() || !attempt.has_enough(&others, majority) {
            return;
        }
        let (number, ballot, want) = (attempt.number, attempt.ballot, attempt.want);
        if !attempt.promises.contains_key(&own) {
            self.promise(own, (number, ballot), want, out);
            return;
        }
        let change = attempt.make_change(mutant);
        attempt.change = Some(change.clone());
        self.ask_for_attempt(out);
        self.on_accept(own, (number, ballot), change, out);
    }

    #[cfg(feature = "mutants")]
    fn fence_mutant(&self) -> FenceMutant {
        self.shared.options.mutant
    }

    #[cfg(not(feature = "mutants"))]
    #[allow(clippy::unused_self)] // planted defects ask
    fn fence_mutant(&self) -> FenceMutant {
        None
    }

    pub(super) fn on_accepted(
        &mut self,
        region: RegionId,
        (number, ballot): (u64, Ballot),
        out: &mut Out,
    ) {
        let majority = self.majority();
        let Some(fencing) = self.fencing() else {
            return;
        };
        let is_it = |attempt: &&mut Attempt| (attempt.number, attempt.ballot) == (number, ballot);
        let Some(attempt) = fencing.attempt.as_mut().filter(is_it) else {
            return;
        };
        attempt.accepted.insert(region);
        let Some(change) = attempt.change.clone() else {
            return;
        };
        if attempt.accepted.len() < majority {
            return;
        }
        fencing.attempt = None;
        let news = News {
            after: self.ledger().fences.last_epoch(),
            epoch: number,
            change: (change != Change::Nothing).then_some((number, change)),
        };
        for region in self.other_regions() {
            self.send_fence(region, FenceMessage::Decided(news.clone()), out);
        }
        self.learn(news, out);
    }

    /// More than half of the regions.
    pub(super) fn majority(&self) -> usize {
        usize::try_from(self.shared.topology.regions / 2 + 1).unwrap_or(usize::MAX)
    }
}
