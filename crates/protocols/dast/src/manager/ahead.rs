//! Ordering ahead: between regions as within one.
//!
//! Inside a region replicas stamp, send and report clocks, and a cut passes what all clocks have
//! passed. Between regions managers order, send, and tell marks. The managers of the home region
//! give a transaction its place: ahead of their clock by what a message takes to the farthest region
//! touched, and behind every mark told to a region touched. They agree on it and then send it, in
//! order, on the stream to each of those regions ([`stream`](super::stream)). A *mark* says that all
//! places below it that touch the receiver are sent. A region's *bound* is the least mark of the
//! others: no cut reaches it, and clocks stretch below it. So a transaction has its final place when
//! it arrives, everything before it is known when a cut passes it, and nobody votes or aborts.
//!
//! | file | |
//! |---|---|
//! | here | places, and the end |
//! | [`bound`] | up to where cuts go |
//! | [`sending`] | streams to other regions |
//! | [`following`] | streams from other regions |
//! | [`fencing`], [`attempt`], [`accepting`] | how the others agree to end the stream of a silent region, and on its return |
//! | [`changes`] | what follows from that |
//! | [`shown`] | what people who watch see of them |
//!
//! | invariant | |
//! |---|---|
//! | A1 | every place below a mark told to a region it touches is agreed on, and sent before the mark |
//! | A2 | a new place is not below a mark told to a region that it touches, by whatever leader |
//! | A3 | a cut is below the bound |
//! | A4 | a replica is sent a transaction before a cut that passes it |
//! | A6 | a transaction goes on the streams to all regions that are not fenced, if those are whole |

mod accepting;
mod attempt;
mod bound;
mod changes;
mod check;
mod fencing;
mod following;
mod sending;
mod shown;

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_core::check::ensure;
use manxdb_core::{LocalTime, NodeId};

use self::fencing::Fencing;
use super::stream::{Incoming, Outgoing};
use super::{Effect, Lead, Manager};
use crate::call::{CallId, Planned};
use crate::ledger::Entry;
use crate::message::{DastMessage, Held};
use crate::options::Crossing;
use crate::timestamp::Timestamp;
use crate::topology::{RegionId, Role};
use crate::waits::{LEDGER, wait};
use crate::wanted::Out;

/// What the leader of a region keeps of what is ordered ahead.
#[derive(Debug)]
pub(super) struct Ahead {
    /// Streams carry what does not touch the receiver, too.
    is_whole: bool,
    outgoing: BTreeMap<RegionId, Outgoing>,
    /// Empty until all replicas have said from where on streams are to be followed.
    incoming: BTreeMap<RegionId, Incoming>,
    /// Cuts and places that earlier leaders may have told.
    inherited_cuts: Timestamp,
    /// Marks that earlier leaders may have told.
    inherited: BTreeMap<RegionId, Timestamp>,
    /// What replicas have said of that.
    heard: BTreeMap<NodeId, Timestamp>,
    /// Places that are proposed and not agreed on, with the other regions touched.
    unagreed: BTreeMap<Timestamp, Vec<RegionId>>,
    /// The bound as replicas were told last.
    told: Timestamp,
    /// Marks told so far.
    rounds: u64,
    /// A reservation of marks is under way.
    reserving: bool,
    /// The last place of which it was proposed that all have passed it.
    passed: Timestamp,
    /// A change of who is fenced.
    fencing: Fencing,
}

impl Ahead {
    /// Where a clock that shows `reading` would tell the next mark on a stream. A place lies behind
    /// the marks told on all streams that it goes on; so that a region far away does not keep the
    /// others' transactions waiting, whole streams are told the same marks as the nearest region
    /// that is not fenced.
    fn next_mark(&self, stream: &Outgoing, reading: u64, fenced: Option<RegionId>) -> u64 {
        let own = stream.ahead_of(reading);
        if !self.is_whole {
            return own;
        }
        let told = self.outgoing.iter();
        let told = told.filter(|(region, _)| Some(**region) != fenced);
        let all = told.map(|(_, it)| it.ahead_of(reading));
        all.min().unwrap_or(own)
    }

    /// The first place not agreed on that goes on the stream to a region.
    fn first_unagreed(&self, region: RegionId) -> Option<Timestamp> {
        let mut touching = self.unagreed.iter();
        let first = touching.find(|(_, to)| to.contains(&region));
        first.map(|(at, _)| *at)
    }
}

impl Manager {
    pub(super) fn orders_ahead(&self) -> bool {
        self.shared.options.crossing == Crossing::Ahead
    }

    fn other_regions(&self) -> impl Iterator<Item = RegionId> + use<> {
        let own = self.region;
        let all = self.shared.topology.all_regions();
        all.filter(move |region| *region != own)
    }

    /// What a new leader begins with; none unless transactions are ordered ahead.
    pub(super) fn begin_ahead(&self) -> Option<Ahead> {
        let lead = self.shared.options.first_lead.as_micros();
        let orders = &self.ledger().orders;
        let reserved = |region| (region, orders.reserved(region));
        let stream = |region| {
            let next = orders.next_number(region);
            (region, Outgoing::new(next, lead, 0))
        };
        self.orders_ahead().then(|| Ahead {
            is_whole: self.shared.options.has_whole_streams(),
            outgoing: self.other_regions().map(stream).collect(),
            incoming: BTreeMap::new(),
            inherited_cuts: self.ledger().reserved.max(self.ledger().assigned),
            inherited: self.other_regions().map(reserved).collect(),
            heard: BTreeMap::new(),
            unagreed: BTreeMap::new(),
            told: Timestamp::ZERO,
            rounds: 0,
            reserving: false,
            passed: Timestamp::ZERO,
            fencing: Fencing::of_epoch(self.ledger().fences.epoch()),
        })
    }

    /// A new leader tells its replicas and the other regions again what is ordered here and not
    /// over: nobody knows what its predecessor came to send.
    pub(super) fn tell_orders_again(&mut self, now: LocalTime, out: &mut Out) {
        if !self.orders_ahead() {
            return;
        }
        self.tell_fences(out);
        let ledger = self.ledger();
        let orders = ledger.orders.iter();
        let orders = orders.map(|(at, order)| (at, Arc::clone(&order.planned)));
        let stayed = ledger.fences.stayed();
        let stayed = stayed.map(|(at, planned)| (at, Arc::clone(planned)));
        for (at, planned) in stayed.chain(orders).collect::<Vec<_>>() {
            self.tell_place(&planned, at, out);
        }
        for region in self.other_regions() {
            self.send_since(now, region, Timestamp::ZERO, out);
        }
        self.reserve_marks(now, out);
        self.ask_for_copies_anew(out);
    }

    pub(super) fn on_order(
        &mut self,
        now: LocalTime,
        planned: Arc<Planned>,
        after: Timestamp,
        out: &mut Out,
    ) {
        let id = planned.id();
        let touches = self.shared.topology.regions_of(&planned);
        if self.refuses(&planned, &touches, out) {
            return;
        }
        let ledger = self.ledger();
        // Its coordinator asks the replicas for what it gives.
        let is_known = ledger.orders.has(id) || ledger.is_over(id);
        let is_whole = self.shared.options.has_whole_streams();
        let mut to: Vec<RegionId> = self.other_regions().collect();
        // A region that is fenced is among them: it may be back when this is agreed on.
        to.retain(|region| is_whole || touches.contains(region));
        let Some(at) = self.place(now, &to, self.behind_moved(&touches).max(after)) else {
            return;
        };
        let Some(lead) = &mut self.lead else {
            return;
        };
        let Some(ahead) = lead.ahead.as_mut().filter(|_| !is_known) else {
            return;
        };
        if lead.untold.contains_key(&id) {
            return;
        }
        assert!(at > lead.clocks.told(), "a place is behind all cuts");
        assert!(at > ahead.inherited_cuts, "a place is behind all cuts");
        lead.assigned = lead.assigned.max(at);
        lead.untold.insert(id, at);
        let before = ahead.unagreed.insert(at, to.clone());
        assert!(before.is_none(), "a place is given once");
        out.wait(id.for_traces(), Some(wait(LEDGER)));
        let coordinator = planned.coordinator;
        let entry = Entry::Order {
            planned,
            at,
            touches,
            to,
        };
        let effect = Effect::TellOrdered {
            id,
            at,
            coordinator,
        };
        self.propose(entry, effect, out);
    }

    /// The next place for a transaction that goes on the streams to the regions `to`: about when it
    /// will be there, and behind everything promised to anybody.
    fn place(&self, now: LocalTime, to: &[RegionId], after: Timestamp) -> Option<Timestamp> {
        let lead = self.lead.as_ref()?;
        let ahead = lead.ahead.as_ref()?;
        let reading = lead.clocks.reading(now);
        let streams = to.iter().filter_map(|region| ahead.outgoing.get(region));
        let fenced = self.ledger().fences.fenced().map(|span| span.region);
        let expected = streams.map(|stream| ahead.next_mark(stream, reading, fenced));
        let expected = expected.max();
        let mut behind = vec![ahead.inherited_cuts, lead.clocks.told(), after];
        for region in to {
            let stream = ahead.outgoing.get(region);
            behind.push(stream.map(Outgoing::told).unwrap_or_default());
            behind.push(self.reserved_before(*region));
        }
        let behind = behind.iter().map(|at| at.micros + 1).max();
        let micros = behind.max(expected).unwrap_or(0);
        let mut at = Timestamp::at(micros, self.shared.topology.manager_site(self.region));
        let orders = &self.ledger().orders;
        while ahead.unagreed.contains_key(&at) || orders.get(at).is_some() {
            at.micros += 1;
        }
        for region in to {
            let told = ahead.outgoing.get(region).map(Outgoing::told);
            assert!(
                told.is_none_or(|told| at >= told),
                "A2: a place is not below a mark told"
            );
        }
        Some(at)
    }

    /// Marks below this may have been told to a region by earlier leaders.
    fn reserved_before(&self, region: RegionId) -> Timestamp {
        #[cfg(feature = "mutants")]
        if self.shared.options.mutant == Some(crate::mutants::Mutant::MarkNotReserved) {
            return Timestamp::ZERO;
        }
        let ahead = self.lead.as_ref().and_then(|lead| lead.ahead.as_ref());
        let inherited = ahead.and_then(|ahead| ahead.inherited.get(&region));
        inherited.copied().unwrap_or_default()
    }

    /// The place is agreed on: the replicas here that it touches hear of it, and it goes on the
    /// streams to the other regions. Or a region that it touches was fenced before.
    pub(super) fn tell_ordered(
        &mut self,
        id: CallId,
        at: Timestamp,
        coordinator: NodeId,
        out: &mut Out,
    ) {
        out.wait(id.for_traces(), None);
        let order = self.group.state().orders.get(at).cloned();
        let Some(lead) = &mut self.lead else {
            return;
        };
        lead.untold.remove(&id);
        let Some(ahead) = &mut lead.ahead else {
            return;
        };
        let was_open = ahead.unagreed.remove(&at);
        assert!(
            was_open.is_some(),
            "A1: what is agreed on was proposed here"
        );
        let Some(order) = order else {
            self.tell_refused_by_fence(id, coordinator, out);
            return;
        };
        let (own, fences) = (self.region, &self.group.state().fences);
        let acted = ahead.fencing.epoch();
        for (region, number) in &order.numbers {
            // It begins again with a return that this leader has not acted on, and brings this then.
            let begins_again = fences.begun_again(own, *region, acted).is_some();
            if let Some(stream) = ahead.outgoing.get_mut(region)
                && !begins_again
            {
                let planned = Arc::clone(&order.planned);
                stream.push(*number, Held { at, planned });
            }
        }
        self.tell_place(&order.planned, at, out);
    }

    /// The replicas of this region that a transaction touches get it at its place, before a cut
    /// passes it.
    fn tell_place(&mut self, planned: &Arc<Planned>, at: Timestamp, out: &mut Out) {
        if self.has_no_turn(planned, at) {
            return;
        }
        let topology = self.shared.topology;
        let mut is_touched = false;
        for node in self.listeners() {
            let touched = match topology.role(node) {
                Role::Replica(shard) => planned.touches(shard),
                Role::Manager(_) | Role::Client => false,
            };
            if touched {
                is_touched = true;
                let planned = Arc::clone(planned);
                out.send(node, DastMessage::Place { planned, at });
            }
        }
        if let Some(lead) = &mut self.lead
            && is_touched
            && at > lead.clocks.told()
        {
            lead.waiting.insert(at);
        }
    }

    /// What all replicas of all regions have run is over.
    pub(super) fn forget_passed(&mut self, out: &mut Out) {
        let Some(own) = self.progress() else {
            return;
        };
        let (_, upto) = self.everywhere(own);
        let first = self.ledger().orders.first();
        let Some(ahead) = self.lead.as_mut().and_then(|lead| lead.ahead.as_mut()) else {
            return;
        };
        if first.is_some_and(|first| first < upto) && upto > ahead.passed {
            ahead.passed = upto;
            self.propose(Entry::Passed { upto }, Effect::Nothing, out);
        }
    }

    pub(super) fn check_ahead(&self, lead: &Lead) -> Result<(), String> {
        let Some(ahead) = &lead.ahead else {
            return Ok(());
        };
        let defects_allowed = self.passes_unagreed();
        for (region, stream) in &ahead.outgoing {
            let (told, reserved) = (stream.told(), self.reserved_for(*region));
            ensure(told <= reserved, || {
                format!("A2: {told:?} was told to {region:?} and only {reserved:?} is reserved")
            })?;
            let open = ahead.first_unagreed(*region);
            let holds = open.is_none_or(|open| open >= told) || defects_allowed;
            ensure(holds, || {
                format!("A1: {told:?} was told to {region:?} and {open:?} is not agreed on")
            })?;
        }
        let ledger = self.ledger();
        let newest = ledger.orders.newest().filter(|_| ahead.is_whole);
        let mut others = self.other_regions();
        let goes_on_all = newest.is_none_or(|order| {
            others.all(|it| ledger.fences.is_fenced(it) || order.numbers.contains_key(&it))
        });
        ensure(goes_on_all, || {
            format!("A6: {newest:?} is not on all streams")
        })?;
        let (cut, bound) = (lead.clocks.told(), self.bound());
        ensure(cut < bound || cut == Timestamp::ZERO, || {
            format!("A3: the region has passed {cut:?} and is bound by {bound:?}")
        })?;
        for (region, stream) in &ahead.incoming {
            let (asked, mark) = (stream.asked(), stream.mark());
            ensure(asked.is_none_or(|asked| asked <= mark), || {
                format!("A1: {region:?} is asked from {asked:?} on and is here up to {mark:?}")
            })?;
        }
        self.check_streams(lead, ahead)?;
        let is_proposed = |at: &Timestamp| lead.untold.values().any(|untold| untold == at);
        ensure(ahead.unagreed.keys().all(is_proposed), || {
            "A1: a place is open that no transaction waits for".to_owned()
        })
    }
}
