//! The managers of a region: they give cross-region transactions their timestamps, say up to
//! where the region's order is complete, and decide who takes part.
//!
//! Three of them agree on a [`Ledger`]; one of them leads and speaks for the region. A leader
//! tells others only what the ledger holds, or what its successor can find out again.
//!
//! | file | |
//! |---|---|
//! | [`clocks`] | reports of the replicas |
//! | [`cuts`] | what all replicas have passed, told to them and to other regions |
//! | [`cross`] | timestamps and decisions of cross-region transactions (DAST §4.3) |
//! | [`ahead`] | or their final places, given ahead of time by the home region |
//! | [`stream`] | what regions send each other of that |
//! | [`copies`] | and what each manager keeps of it |
//! | [`membership`] | who is out, and who comes back |
//! | [`leaders`] | who leads this region and the others |
//! | [`invariants`] | what holds between any two steps |
//! | [`estimate`] | how long a decision takes |
//! | [`describe`] | what it says of itself |
//! | [`shown`] | what people who watch it see of it |

mod ahead;
mod clocks;
mod copies;
mod cross;
mod cuts;
mod describe;
mod estimate;
mod invariants;
mod leaders;
mod membership;
mod shown;
mod slowest;
mod stream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use manxdb_core::{Digest, LocalTime, NodeId, Work};
use manxdb_vr::{Group, GroupMessage, GroupOptions};

use self::ahead::Ahead;
use self::clocks::Clocks;
use self::copies::Copies;
use self::cross::Crossing;
use self::estimate::Estimate;
use self::membership::Changing;
pub use self::shown::{Leading, Pair};
use crate::call::CallId;
use crate::fence::{Ballot, Want};
use crate::ledger::{Entry, Ledger};
use crate::message::{DastMessage, Decision};
use crate::options::Shared;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;
use crate::wall::Wall;
use crate::wanted::{DastTimer, Out};

/// What a leader does once an entry it proposed is agreed on.
#[derive(Debug, Clone)]
enum Effect {
    /// Tell everybody the timestamp.
    TellAssigned(CallId),
    /// Tell the region that asked that this one never will, or that the home never decided.
    TellRefused { id: CallId, to: RegionId },
    /// Tell everybody that the transaction is given up.
    TellAborted(CallId),
    /// Say that the decision is safe here.
    NoteDecided,
    /// Ask what the others hold of those who are out.
    Freeze,
    /// Begin sending to a node.
    Admit(NodeId),
    /// Count a node.
    Count(NodeId),
    /// Cuts may go on.
    NoteReserved,
    /// Tell everybody of a transaction ordered ahead.
    TellOrdered {
        id: CallId,
        at: Timestamp,
        coordinator: NodeId,
    },
    /// Tell its coordinator that it touches a region that is fenced.
    TellFenced { id: CallId, coordinator: NodeId },
    /// Tell a region that this one has promised a ballot.
    Promised {
        to: RegionId,
        number: u64,
        ballot: Ballot,
        want: Want,
    },
    /// Tell a region that this one has accepted what it proposed.
    Accepted {
        to: RegionId,
        number: u64,
        ballot: Ballot,
    },
    /// Act upon a change of who is fenced.
    Changed,
    /// Marks may go on.
    NoteMarks,
    /// Nothing.
    Nothing,
}

/// What only the leader keeps, and a new one finds out anew.
struct Lead {
    view: u64,
    since: LocalTime,
    clocks: Clocks,
    crossing: BTreeMap<CallId, Crossing>,
    changing: Changing,
    /// Timestamps given and not told yet: cuts stay below them.
    untold: BTreeMap<CallId, Timestamp>,
    /// The largest timestamp given.
    assigned: Timestamp,
    /// Final timestamps of this region's transactions that no cut has passed.
    waiting: BTreeSet<Timestamp>,
    /// Decided transactions of which the home region has not been told that they have run here,
    /// by final timestamp; those that never run first.
    untold_ends: BTreeSet<(Timestamp, CallId)>,
    effects: VecDeque<(u64, Effect)>,
    /// A reservation is under way.
    reserving: bool,
    /// How far the other regions are: closed and position.
    regions: BTreeMap<RegionId, (Timestamp, Timestamp)>,
    /// What is ordered ahead, if anything is.
    ahead: Option<Ahead>,
}

/// One manager of a region.
pub struct Manager {
    me: NodeId,
    region: RegionId,
    shared: Shared,
    wall: Wall,
    group: Group<Ledger>,
    lead: Option<Lead>,
    /// Whom it believes to lead each region.
    leaders: Vec<NodeId>,
    estimates: BTreeMap<RegionId, Estimate>,
    /// Other regions' streams, if each manager keeps them.
    copies: Option<Copies>,
    /// Changes of who is fenced that it has acted upon.
    epoch: u64,
}

impl Manager {
    /// Manager `me` of `region` in its `life`th life.
    pub fn new(me: NodeId, region: RegionId, life: u64, shared: Shared) -> Self {
        let topology = shared.topology;
        let members: Vec<NodeId> = topology.managers(region).collect();
        assert!(members.contains(&me), "a manager is one of its region's");
        let place = members.iter().position(|member| *member == me).unwrap_or(0);
        let nonce = (life > 1).then_some(life);
        let ledger = Ledger::new(topology.nodes(region));
        let group = Group::new(members, place, ledger, nonce, GroupOptions::default());
        let first_manager = |region| topology.managers(region).next().unwrap_or(me);
        Self {
            me,
            region,
            wall: Wall::default(),
            group,
            lead: None,
            leaders: topology.all_regions().map(first_manager).collect(),
            estimates: BTreeMap::new(),
            copies: Copies::of_life(me, life, region, &shared),
            epoch: 0,
            shared,
        }
    }

    /// What the managers agree on, as far as this one knows.
    #[must_use]
    pub fn ledger(&self) -> &Ledger {
        self.group.state()
    }

    /// Whether it leads.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.group.leads()
    }

    pub(crate) fn start(&mut self, now: LocalTime, out: &mut Out) {
        let now = self.wall.see(now);
        let mut wanted = Vec::new();
        self.group.start(&mut wanted);
        send_to_group(wanted, out);
        out.set_timer(self.shared.options.manager_tick, DastTimer::Tick);
        out.set_timer(self.shared.options.progress_every, DastTimer::Progress);
        out.set_timer(self.shared.options.retry_every, DastTimer::Retry);
        if self.orders_ahead() {
            self.set_mark_timer(now, out);
        }
        self.ask_for_copies(out);
        self.after_group(now, out);
    }

    pub(crate) fn on_timer(&mut self, now: LocalTime, timer: &DastTimer, out: &mut Out) {
        let now = self.wall.see(now);
        match timer {
            DastTimer::Tick => {
                out.set_timer(self.shared.options.manager_tick, DastTimer::Tick);
                self.wall.pass_time(self.shared.options.manager_tick);
                let mut wanted = Vec::new();
                self.group.tick(&mut wanted);
                send_to_group(wanted, out);
                self.after_group(now, out);
                if let Some(lead) = &mut self.lead {
                    lead.clocks.tick();
                }
                self.reserve(now, out);
                self.reserve_marks(now, out);
                self.follow_streams(out);
                self.look_for_silent_regions(out);
                self.look_for_silent_nodes(out);
            }
            DastTimer::Progress => {
                out.set_timer(self.shared.options.progress_every, DastTimer::Progress);
                self.tell_progress(out);
                self.forget_passed(out);
            }
            DastTimer::Mark => {
                self.set_mark_timer(now, out);
                self.tell_marks(now, out);
            }
            DastTimer::Retry => {
                out.set_timer(self.shared.options.retry_every, DastTimer::Retry);
                self.retry_crossing(now, out);
                self.ask_for_streams(out);
                self.ask_for_copies(out);
            }
            // [`DastNode`](crate::DastNode) gives each role its own timers only.
            DastTimer::Report | DastTimer::ReportPast(_) | DastTimer::Again { .. } => {}
        }
    }

    pub(crate) fn on_message(
        &mut self,
        now: LocalTime,
        from: NodeId,
        message: DastMessage,
        out: &mut Out,
    ) {
        let now = self.wall.see(now);
        if let DastMessage::Group(message) = message {
            self.on_group(now, from, *message, out);
            return;
        }
        let Some(message) = self.keep_copies(from, message, out) else {
            return;
        };
        if self.lead.is_none() {
            self.forward(from, message, out);
            return;
        }
        match message {
            DastMessage::Report(report) => self.on_report(now, from, *report, out),
            DastMessage::Hello {
                view,
                report,
                heard,
            } => self.on_hello(now, from, view, (*report, &heard), out),
            DastMessage::Order { planned, after } => self.on_order(now, planned, after, out),
            DastMessage::Fence {
                region,
                epoch,
                message,
            } => self.on_fence(region, epoch, *message, out),
            DastMessage::Stream(part) => {
                self.leads_region(part.region, from);
                self.on_stream(now, *part, out);
            }
            DastMessage::StreamFrom { region, since } => {
                self.leads_region(region, from);
                self.send_since(now, region, since, out);
            }
            DastMessage::PrepareRegion {
                planned,
                home,
                after,
            } => self.on_prepare_region(now, planned, home, after, out),
            DastMessage::Assigned { id, region, at } => {
                self.leads_region(region, from);
                self.on_assigned(now, id, region, at, out);
            }
            DastMessage::Decided { id, decision } => self.on_decided(now, from, id, decision, out),
            DastMessage::AskDecision { id, region } => {
                self.leads_region(region, from);
                self.on_ask_decision(id, region, out);
            }
            DastMessage::Executed { id, region } => {
                self.leads_region(region, from);
                self.on_executed(id, region, out);
            }
            DastMessage::Forget { id } => {
                let crt = self.ledger().crts.get(&id);
                if crt.is_some_and(|crt| crt.decision.is_some()) {
                    self.propose(Entry::Forget { id }, Effect::Nothing, out);
                    self.forget_crossing(id);
                }
            }
            DastMessage::Progress {
                region,
                closed,
                position,
            } => {
                self.leads_region(region, from);
                if let Some(lead) = &mut self.lead {
                    lead.regions.insert(region, (closed, position));
                }
            }
            other => self.take_membership(now, from, other, out),
        }
        self.after_group(now, out);
    }

    fn on_group(
        &mut self,
        now: LocalTime,
        from: NodeId,
        message: GroupMessage<Ledger, Entry>,
        out: &mut Out,
    ) {
        let mut wanted = Vec::new();
        self.group.receive(from, message, &mut wanted);
        send_to_group(wanted, out);
        self.after_group(now, out);
    }

    fn propose(&mut self, entry: Entry, effect: Effect, out: &mut Out) {
        let mut wanted = Vec::new();
        if let Some(number) = self.group.propose(entry, &mut wanted)
            && let Some(lead) = &mut self.lead
        {
            let last = lead.effects.back().map_or(0, |(last, _)| *last);
            assert!(number > last, "effects follow the order of their entries");
            lead.effects.push_back((number, effect));
        }
        out.work(Work {
            appends: 1,
            ..Work::default()
        });
        send_to_group(wanted, out);
    }

    /// Takes up or lays down the lead, and does what waited for agreement.
    fn after_group(&mut self, now: LocalTime, out: &mut Out) {
        self.notice_epoch(out);
        // What a new leader has taken over and not yet brought to agreement may name timestamps
        // that its predecessor has told of.
        let view = self.group.view();
        let was_leading = self.lead.as_ref().map(|lead| lead.view);
        let is_agreed = was_leading == Some(view) || self.group.uncommitted().next().is_none();
        let leads_view = (self.group.leads() && is_agreed).then_some(view);
        if leads_view != was_leading {
            self.lead = None;
            if let Some(view) = leads_view {
                self.begin_to_lead(now, view, out);
            }
        }
        while let Some(effect) = self.next_effect() {
            self.perform(now, effect, out);
        }
        self.flush_streams(now, out);
    }

    fn next_effect(&mut self) -> Option<Effect> {
        let committed = self.group.committed();
        let lead = self.lead.as_mut()?;
        let (number, _) = lead.effects.front()?;
        if *number > committed {
            return None;
        }
        lead.effects.pop_front().map(|(_, effect)| effect)
    }

    fn perform(&mut self, now: LocalTime, effect: Effect, out: &mut Out) {
        match effect {
            Effect::TellAssigned(id) => self.tell_assigned(now, id, out),
            Effect::TellRefused { id, to } => self.tell_refused(id, to, out),
            Effect::TellAborted(id) => self.tell_decision(now, id, Decision::Abort, out),
            Effect::NoteDecided => self.notice_what_has_run(out),
            Effect::Freeze => self.freeze(out),
            Effect::Admit(node) => self.admit(node, out),
            Effect::Count(node) => self.count(now, node, out),
            Effect::NoteReserved => {
                if let Some(lead) = &mut self.lead {
                    lead.reserving = false;
                }
            }
            Effect::TellOrdered {
                id,
                at,
                coordinator,
            } => self.tell_ordered(id, at, coordinator, out),
            Effect::TellFenced { id, coordinator } => {
                self.tell_refused_by_fence(id, coordinator, out);
            }
            Effect::Promised {
                to,
                number,
                ballot,
                want,
            } => self.tell_promised(to, (number, ballot), want, out),
            Effect::Accepted { to, number, ballot } => {
                self.tell_accepted(to, (number, ballot), out);
            }
            Effect::Changed => self.after_change(now, out),
            Effect::NoteMarks => self.note_marks(),
            Effect::Nothing => {}
        }
    }

    /// A new leader: asks all nodes how far they are, and tells them all that is open.
    fn begin_to_lead(&mut self, now: LocalTime, view: u64, out: &mut Out) {
        assert!(
            self.has_memory(),
            "who leads knows what its region has agreed on"
        );
        let ledger = self.group.state();
        let waiting = ledger.crts.values().filter_map(|crt| match crt.decision {
            Some(Decision::Commit(at)) => Some(at),
            _ => None,
        });
        let decided = ledger.crts.iter();
        let decided = decided.filter_map(|(id, crt)| Some((crt.decision?.place(), *id)));
        let lead = Lead {
            view,
            since: now,
            clocks: Clocks::new(self.shared.topology.nodes(self.region)),
            crossing: BTreeMap::new(),
            changing: Changing::default(),
            untold: BTreeMap::new(),
            assigned: ledger.assigned.max(ledger.reserved),
            waiting: waiting.collect(),
            untold_ends: decided.collect(),
            effects: VecDeque::new(),
            reserving: false,
            regions: BTreeMap::new(),
            ahead: self.begin_ahead(),
        };
        self.lead = Some(lead);
        for node in self.listeners() {
            out.send(node, self.lead_message(view));
        }
        self.tell_all_open(out);
        self.tell_orders_again(now, out);
        self.reserve(now, out);
        if !self.ledger().members.closing.is_empty() {
            self.freeze(out);
        }
        if let Some(node) = self.ledger().members.joining {
            // Half a joining is worth nothing: the node asks again.
            let nodes = vec![node];
            self.propose(Entry::Evict { nodes }, Effect::Freeze, out);
        }
    }

    fn lead_message(&self, view: u64) -> DastMessage {
        let members = &self.ledger().members;
        DastMessage::Lead {
            view,
            epoch: members.epoch,
            live: members.live.iter().copied().collect(),
        }
    }

    /// Nodes that are told everything: those that take part and those on their way in.
    fn listeners(&self) -> Vec<NodeId> {
        let members = &self.ledger().members;
        members
            .live
            .iter()
            .copied()
            .chain(members.joining)
            .collect()
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest
            .number(self.group.view())
            .number(self.group.committed())
            .number(self.ledger().assigned.micros)
            .number(self.ledger().members.epoch)
            .number(self.ledger().fences.epoch());
        digest.value()
    }
}

fn send_to_group(wanted: manxdb_vr::Out<Ledger>, out: &mut Out) {
    for (to, message) in wanted {
        out.send(to, DastMessage::Group(Box::new(message)));
    }
}
