//! A replica of a shard: it stamps local transactions, runs its shard's, and answers clients.
//!
//! | file | |
//! |---|---|
//! | [`local`] | local transactions (DAST §4.2) |
//! | [`cross`] | cross-region transactions (DAST §4.3) |
//! | [`asking`] | whom it asks for the place of a cross-region one |
//! | [`fences`] | what it does not run because a region is fenced, and which sessions wait |
//! | [`holders`] | which replicas of the shard hold a local transaction |
//! | [`coordination`] | what a coordinator waits for before it answers |
//! | [`cuts`] | what the manager says of the region's clocks: up to where everything is known |
//! | [`membership`] | leaving and coming back |
//! | [`invariants`] | what holds between any two steps |
//! | [`waits`] | what is said of transactions that cannot run yet |
//! | [`shown`] | what people who watch it see of it |

mod asking;
mod coordination;
mod cross;
mod cuts;
mod fences;
mod holders;
mod invariants;
mod local;
mod membership;
mod shown;
mod waits;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use manxdb_core::{Digest, LocalTime, Nanos, NodeId, Wait, Work};
use manxdb_txn::procedure::ShardId;
use manxdb_txn::rows::Rows;

use self::coordination::Coordination;
use self::cuts::Cuts;
use self::fences::EarlyCall;
use self::holders::{EarlyHolders, Holders};
use self::membership::{Gift, Standing};
pub use self::shown::OpenCall;
use crate::call::{CallId, Planned};
use crate::clock::Clock;
use crate::execution::Execution;
use crate::fence::Span;
use crate::message::{DastMessage, Report};
use crate::options::Shared;
use crate::timestamp::Timestamp;
use crate::topology::RegionId;
use crate::wall::Wall;
use crate::wanted::{DastTimer, Out};

/// A local transaction that this replica must be able to tell others about.
#[derive(Debug, Clone)]
struct Local {
    planned: Arc<Planned>,
    coordinator: NodeId,
    holders: Holders,
}

/// One replica of one shard.
pub struct Replica {
    me: NodeId,
    shard: ShardId,
    region: RegionId,
    shared: Shared,
    wall: Wall,
    clock: Clock,
    /// What the timer of the next report was set to.
    report_after: Nanos,
    corrections: u32,
    execution: Execution,
    cuts: Cuts,
    standing: Standing,
    /// The manager that leads the region, and its view.
    leader: NodeId,
    leader_view: u64,
    /// Nodes of the region that count.
    live: BTreeSet<NodeId>,
    /// Nodes that are out and whose transactions are being collected.
    closing: BTreeSet<NodeId>,
    /// A node that is sent everything and does not count yet.
    joining: Option<NodeId>,
    epoch: u64,
    /// Local transactions this replica has stamped, by shard, and as last reported.
    stamped: BTreeMap<u32, u64>,
    reported: BTreeMap<u32, u64>,
    /// Local transactions that touch this shard and that not all replicas have run.
    locals: BTreeMap<Timestamp, Local>,
    local_places: BTreeMap<CallId, Timestamp>,
    early_holders: EarlyHolders,
    /// Cross-region transactions of the region that are not decided.
    floors: BTreeMap<CallId, Timestamp>,
    /// Places of transactions ordered ahead that touch this shard and that not all replicas of the
    /// region have passed.
    placed: BTreeSet<Timestamp>,
    coordinating: BTreeMap<CallId, Coordination>,
    /// Calls that must come behind something their session saw and this clock has not reached.
    early_calls: Vec<EarlyCall>,
    /// Where transactions of a fenced region were moved from.
    fences: Vec<Span>,
    attempts_to_join: u64,
    gift: Option<Gift>,
    /// Attempts of peers to join that this node has heard of itself.
    heard_to_join: BTreeMap<NodeId, u64>,
    /// A node that is to be let in and was not heard yet: leader, epoch, node and attempt.
    admission: Option<(NodeId, u64, NodeId, u64)>,
    violation: Option<String>,
    /// What was said last of transactions that wait.
    said_waits: BTreeMap<CallId, Wait>,
}

impl Replica {
    /// Replica `me` of `shard`. `life` is 1 at the start of the cluster; a later life has no memory
    /// and asks to be let in again.
    pub fn new(me: NodeId, shard: ShardId, life: u64, shared: Shared, rows: Rows) -> Self {
        let topology = shared.topology;
        let region = topology.region_of(shard);
        #[allow(unused_mut)] // planted defects change it
        let mut execution = Execution::new(
            shard,
            Arc::clone(&shared.procedures),
            Arc::clone(&shared.placement),
            rows,
            shared.options.keeps_order,
        );
        #[allow(unused_mut)]
        let mut clock = Clock::new(me.0);
        #[allow(unused_mut)]
        let mut cuts = Cuts::default();
        #[cfg(feature = "mutants")]
        {
            clock.plant(shared.options.mutant);
            cuts.plant(shared.options.mutant);
            execution.plant(shared.options.mutant);
        }
        Self {
            me,
            shard,
            region,
            wall: Wall::default(),
            clock,
            report_after: Nanos::ZERO,
            corrections: 0,
            execution,
            cuts,
            standing: Standing::at_start(life),
            leader: topology.managers(region).next().unwrap_or(me),
            leader_view: 0,
            live: topology.nodes(region).collect(),
            closing: BTreeSet::new(),
            joining: None,
            epoch: 0,
            stamped: BTreeMap::new(),
            reported: BTreeMap::new(),
            locals: BTreeMap::new(),
            local_places: BTreeMap::new(),
            early_holders: BTreeMap::new(),
            floors: BTreeMap::new(),
            placed: BTreeSet::new(),
            coordinating: BTreeMap::new(),
            early_calls: Vec::new(),
            fences: Vec::new(),
            attempts_to_join: life << 32,
            gift: None,
            heard_to_join: BTreeMap::new(),
            admission: None,
            violation: None,
            said_waits: BTreeMap::new(),
            shared,
        }
    }

    /// The shard's transactions and rows.
    #[must_use]
    pub fn execution(&self) -> &Execution {
        &self.execution
    }

    /// Whether it takes part.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.standing.is_live()
    }

    /// Everything up to this is known here.
    #[must_use]
    pub fn safe(&self) -> Timestamp {
        self.cuts.safe()
    }

    /// What holds its clock back, if anything does.
    #[must_use]
    pub fn lowest_floor(&self) -> Option<Timestamp> {
        self.clock.lowest_floor()
    }

    /// Records kept about transactions, of all kinds: bounded while everything is well.
    #[must_use]
    pub fn records(&self) -> usize {
        self.execution.records()
            + self.locals.len()
            + self.early_holders.len()
            + self.floors.len()
            + self.placed.len()
            + self.coordinating.len()
            + self.early_calls.len()
    }

    /// Where it stands, for people.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "replica of shard {}: {:?}, leader {:?} view {}, epoch {}, live {:?}, closing {:?}, joining {:?}, safe {:?}, {}, clock {:?} floor {:?} ceiling {:?}, first unsettled {:?}, running {}, {} coordinated",
            self.shard.0,
            self.standing,
            self.leader,
            self.leader_view,
            self.epoch,
            self.live,
            self.closing,
            self.joining,
            self.cuts.safe(),
            self.cuts.describe(),
            self.clock.last(),
            self.clock.lowest_floor(),
            self.clock.ceiling(),
            self.execution.first_unsettled(),
            self.execution.describe(),
            self.coordinating.len(),
        )
    }

    pub(crate) fn start(&mut self, now: LocalTime, out: &mut Out) {
        let now = self.wall.see(now);
        self.set_report_timer(now, out);
        out.set_timer(self.shared.options.retry_every, DastTimer::Retry);
        if !self.is_live() {
            self.ask_to_join(out);
        }
    }

    pub(crate) fn on_timer(&mut self, now: LocalTime, timer: &DastTimer, out: &mut Out) {
        let now = self.wall.see(now);
        match timer {
            DastTimer::Report => {
                self.wall.pass_time(self.report_after);
                self.clock.pass_time(self.report_after.as_micros());
                self.set_report_timer(now, out);
                self.report(now, out);
                self.retry_early_calls(now, out);
            }
            DastTimer::ReportPast(at) => {
                if self.clock.reading(now) < at.micros {
                    self.report_once_past(now, *at, out);
                } else {
                    self.report(now, out);
                }
            }
            DastTimer::Retry => {
                out.set_timer(self.shared.options.retry_every, DastTimer::Retry);
                self.retry(now, out);
            }
            // [`DastNode`](crate::DastNode) gives each role its own timers only.
            DastTimer::Tick | DastTimer::Progress | DastTimer::Mark | DastTimer::Again { .. } => {}
        }
        self.advance(out);
    }

    pub(crate) fn on_message(
        &mut self,
        now: LocalTime,
        from: NodeId,
        message: DastMessage,
        out: &mut Out,
    ) {
        let now = self.wall.see(now);
        if let Some(message) = self.keep_for_later(from, message) {
            self.take(now, from, message, out);
        }
        self.advance(out);
    }

    fn take(&mut self, now: LocalTime, from: NodeId, message: DastMessage, out: &mut Out) {
        match message {
            DastMessage::Submit { call, after } => self.on_submit(now, *call, &after, out),
            DastMessage::Refused { id, region } => self.coordination_refused(id, region, out),
            DastMessage::Fences { spans } if from == self.leader => self.on_fences(spans),
            DastMessage::PrepareIrt {
                at,
                number,
                planned,
            } => self.on_prepare_irt(from, at, number, planned, out),
            DastMessage::AckIrt { id, at } => self.on_ack_irt(from, id, at, out),
            DastMessage::Confirm { id } => self.on_confirm(from, id, out),
            DastMessage::Output(output) => self.on_output(*output, out),
            DastMessage::Inputs { id, given } => {
                if let crate::topology::Role::Replica(shard) = self.shared.topology.role(from) {
                    self.execution.give(id, shard, Ok(given));
                }
            }
            DastMessage::AskOutput { id } => self.on_ask_output(from, id, out),
            DastMessage::Cut(cut) if from == self.leader => {
                self.clock.hear(cut.reading);
                if cut.correction != 0 {
                    self.clock.correct(cut.correction);
                    self.corrections += 1;
                }
                if cut.bound < Timestamp::MAX {
                    self.clock.set_ceiling(cut.bound);
                }
                for at in &cut.crossed {
                    self.execution.decide_crossing(*at, Some(*at));
                }
                self.cuts.told(*cut);
            }
            DastMessage::Place { planned, at } if from == self.leader => {
                self.on_place(planned, at, out);
            }
            DastMessage::Bound { bound, past } if from == self.leader => {
                self.on_bound(now, bound, past, out);
            }
            DastMessage::Lead { view, epoch, live } => {
                self.on_lead(now, from, (view, epoch), &live, out);
            }
            // One that leads no more may hear late that what it proposed was agreed on, and tell of
            // it when its successor has told that it is over.
            DastMessage::PrepareCrt { planned, at } if from == self.leader => {
                self.on_prepare_crt(planned, at);
            }
            DastMessage::Floor { id, at } if from == self.leader => self.on_floor(id, at),
            DastMessage::Settle {
                id,
                anticipated,
                decision,
            } => self.on_settle(now, id, anticipated, decision, out),
            other => self.take_membership(now, from, other, out),
        }
    }

    /// Goes as far as what is known allows.
    fn advance(&mut self, out: &mut Out) {
        if !self.standing.has_state() {
            return;
        }
        self.give_state(out);
        let counts = |node: NodeId| self.live.contains(&node) || self.closing.contains(&node);
        let cut = self.cuts.apply(counts);
        if let Some(cut) = &cut {
            self.collect(cut.position, cut.everywhere);
        }
        let progress = self.execution.run(self.cuts.safe_to_run());
        let pieces = self.execution.take_steps_run();
        out.work(Work {
            pieces,
            ..Work::default()
        });
        for gave in progress.gave {
            self.share_inputs(gave, out);
        }
        for answerable in progress.answerable {
            self.tell_outcome(answerable, out);
        }
        for ended in progress.ended {
            self.after_execution(ended, out);
        }
        if cut.is_some() {
            self.answer_what_is_closed(out);
        }
        self.say_waits(out);
    }

    fn collect(&mut self, region: Timestamp, everywhere: Timestamp) {
        while let Some(first) = self.locals.first_entry() {
            // A replica that does not count yet may be behind those that have passed, and still has
            // to hear who holds what it has not run.
            if *first.key() >= region || self.execution.is_known(*first.key()) {
                break;
            }
            let local = first.remove();
            self.local_places.remove(&local.planned.id());
        }
        self.early_holders = self.early_holders.split_off(&region);
        self.placed = self.placed.split_off(&region);
        let topology = self.shared.topology;
        let fenced = self.fences.iter().find(|span| span.back.is_none());
        self.execution.collect(region, everywhere, |done| {
            fenced.is_some_and(|span| span.concerns(topology, &done.planned, done.at))
        });
    }

    /// Reports go out at multiples of the interval, the same on all nodes, so that the manager
    /// has a whole round of them at once.
    fn set_report_timer(&mut self, now: LocalTime, out: &mut Out) {
        let interval = self.shared.options.report_every.as_micros().max(1);
        let reading = self.clock.reading(now);
        self.report_after = Nanos::from_micros(interval - reading % interval);
        out.set_timer(self.report_after, DastTimer::Report);
    }

    fn report(&mut self, now: LocalTime, out: &mut Out) {
        if !self.is_live() {
            return;
        }
        let changed = |(shard, number): (&u32, &u64)| {
            (self.reported.get(shard) != Some(number)).then_some((*shard, *number))
        };
        let stamped: Vec<(u32, u64)> = self.stamped.iter().filter_map(changed).collect();
        self.reported.extend(stamped.iter().copied());
        let report = self.make_report(now, stamped);
        out.send(self.leader, DastMessage::Report(Box::new(report)));
    }

    fn make_report(&mut self, now: LocalTime, stamped: Vec<(u32, u64)>) -> Report {
        Report {
            clock: self.clock.tick(now),
            reading: self.clock.reading(now),
            corrections: self.corrections,
            stamped,
            position: self.execution.position(self.cuts.safe()),
        }
    }

    /// Reports as soon as the clock is past `at`: somebody waits for just that.
    fn report_once_past(&mut self, now: LocalTime, at: Timestamp, out: &mut Out) {
        let reading = self.clock.reading(now);
        if reading > at.micros {
            self.report(now, out);
            return;
        }
        let left = Nanos::from_micros(at.micros - reading + 1);
        out.set_timer(left, DastTimer::ReportPast(at));
    }

    fn retry(&mut self, now: LocalTime, out: &mut Out) {
        if !self.standing.has_state() {
            self.ask_to_join(out);
            return;
        }
        self.ask_to_be_counted(out);
        self.ask_for_missing_inputs(out);
        self.ask_for_what_coordination_misses(now, out);
    }

    /// The replicas of a shard that are to be sent its transactions, as far as this one knows:
    /// of other regions, all.
    fn receivers(&self, shard: ShardId) -> Vec<NodeId> {
        let topology = self.shared.topology;
        let elsewhere = topology.region_of(shard) != self.region;
        let is_receiver =
            |node: &NodeId| elsewhere || self.live.contains(node) || self.joining == Some(*node);
        topology.replicas(shard).filter(is_receiver).collect()
    }

    #[cfg(feature = "mutants")]
    fn is_mutant(&self, mutant: crate::mutants::Mutant) -> bool {
        self.shared.options.mutant == Some(mutant)
    }

    fn violated(&mut self, what: String) {
        self.violation.get_or_insert(what);
    }

    pub(crate) fn digest(&self) -> u64 {
        let mut digest = Digest::default();
        digest
            .number(self.execution.digest())
            .number(self.clock.last().micros)
            .number(self.clock.last().stretch)
            .number(self.epoch);
        digest.value()
    }
}
