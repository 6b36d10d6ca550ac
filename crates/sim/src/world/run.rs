//! Takes events from the queue and lets them happen.

use manxdb_core::{Core, Event, Message, Nanos, NodeId, Weight};

use super::step::Arrival;
use super::{AfterPause, Failure, World};
use crate::cost::CostModel;
use crate::driver::{Driver, NoDriver};
use crate::explain::Trigger;
use crate::pending::Pending;
use crate::system::System;
use crate::time::SimTime;
use crate::trace::{Kind, Row};

impl<S: System> World<S> {
    /// Runs until `until`, or until nothing can happen any more, or until the workload is done.
    /// What happens at `until` still does.
    ///
    /// # Errors
    /// A core's check failed.
    pub fn run_until(
        &mut self,
        driver: &mut impl Driver<S>,
        until: SimTime,
    ) -> Result<(), Failure> {
        if !self.begun {
            self.begun = true;
            driver.begin(&mut self.outside());
        }
        while !driver.done() {
            let Some((at, pending)) = self.shared.queue.pop_until(until) else {
                // Virtual time passes without events too, but not to its end when all is idle.
                if until < SimTime::MAX {
                    self.shared.now = self.shared.now.max(until);
                }
                break;
            };
            debug_assert!(at >= self.shared.now, "time goes back");
            self.shared.now = at;
            self.counters.events += 1;
            self.happen(driver, at, pending)?;
        }
        Ok(())
    }

    /// Runs without a workload.
    ///
    /// # Errors
    /// A core's check failed.
    pub fn run_alone(&mut self, until: SimTime) -> Result<(), Failure> {
        self.run_until(&mut NoDriver, until)
    }

    fn happen(
        &mut self,
        driver: &mut impl Driver<S>,
        at: SimTime,
        pending: Pending<S::Core>,
    ) -> Result<(), Failure> {
        let Some(pending) = self.unless_it_stands_still(at, pending) else {
            return Ok(());
        };
        match pending {
            Pending::Message {
                to,
                from,
                sent_in,
                body,
                ..
            } => self.message_arrives(at, (from, to), sent_in, body),
            Pending::Timer { node, timer } => {
                let arrival = Arrival::new(at, 2, self.prices(node).wake);
                self.step(node, arrival, Event::Timer(timer))
            }
            Pending::Request { node, id, body } => {
                if self.is_down(node) {
                    self.counters.trouble("request lost", 1);
                    return Ok(());
                }
                self.counters.requests += 1;
                let txn = |system: &S| system.request_txn(&body);
                self.note(at, node, Kind::Request, "request", txn);
                let weight = self.system.request_weight(&body);
                let cost = self.prices(node).receiving(weight);
                let mut arrival = Arrival::new(at, 3, cost);
                arrival.trigger = Trigger::Request;
                self.step(node, arrival, Event::Request { id, body })
            }
            Pending::Reply { node, id, body, .. } => {
                self.counters.replies += 1;
                self.nodes[node.0 as usize].digest.number(at.0).number(id.0);
                let txn = |system: &S| system.reply_txn(id, &body);
                self.note(at, node, Kind::Reply, "reply", txn);
                driver.reply(&mut self.outside(), node, id, body);
                Ok(())
            }
            Pending::Synced { node } => self.sync_ends(driver, at, node),
            Pending::Start { node } => self.start(at, node),
            Pending::Resume { node } => self.resume(driver, at, node),
            Pending::Wake { key } => {
                driver.wake(&mut self.outside(), key);
                Ok(())
            }
            Pending::FaultBegins { index } => {
                self.fault_begins(driver, index);
                Ok(())
            }
            Pending::FaultEnds { index } => self.fault_ends(driver, index),
            Pending::Nothing => Ok(()),
        }
    }

    /// What things cost a node.
    fn prices(&self, node: NodeId) -> &CostModel {
        &self.nodes[node.0 as usize].cost
    }

    /// Keeps what happens to a node that stands still, or has not yet dealt with all that
    /// happened while it did, when that is not to come in the order of time
    /// ([`super::WorldOptions::after_pause`]).
    fn unless_it_stands_still(
        &mut self,
        at: SimTime,
        pending: Pending<S::Core>,
    ) -> Option<Pending<S::Core>> {
        let (id, is_timer) = match &pending {
            Pending::Message { to, .. } => (*to, false),
            Pending::Request { node, .. } => (*node, false),
            Pending::Timer { node, .. } => (*node, true),
            _ => return Some(pending),
        };
        let kept = match self.options.after_pause {
            AfterPause::ByTime => false,
            AfterPause::DueTimers => !is_timer,
            AfterPause::Arrivals => true,
        };
        if !kept || self.is_down(id) {
            return Some(pending);
        }
        let node = &mut self.nodes[id.0 as usize];
        let until = node.cpu.paused_until();
        if at >= until && node.backlog.is_empty() {
            return Some(pending);
        }
        if node.backlog.is_empty() {
            let resume = Pending::Resume { node: id };
            self.shared.queue.push(until, resume);
        }
        node.backlog.push_back(pending);
        None
    }

    /// A pause is over, unless another one has begun.
    fn resume(
        &mut self,
        driver: &mut impl Driver<S>,
        at: SimTime,
        id: NodeId,
    ) -> Result<(), Failure> {
        let node = &mut self.nodes[id.0 as usize];
        let until = node.cpu.paused_until();
        if at < until {
            let resume = Pending::Resume { node: id };
            self.shared.queue.push(until, resume);
            return Ok(());
        }
        let mut backlog = std::mem::take(&mut node.backlog);
        // Stable: arrivals keep their order, and so do timers.
        backlog
            .make_contiguous()
            .sort_by_key(|pending| matches!(pending, Pending::Timer { .. }));
        for pending in backlog {
            if !self.is_down(id) {
                self.happen(driver, at, pending)?;
            }
        }
        Ok(())
    }

    /// Tells a core that it starts.
    pub(super) fn start(&mut self, at: SimTime, node: NodeId) -> Result<(), Failure> {
        let arrival = Arrival::new(at, 4, self.prices(node).wake);
        self.step(node, arrival, Event::Start)
    }

    fn message_arrives(
        &mut self,
        at: SimTime,
        (from, to): (NodeId, NodeId),
        sent_in: u64,
        body: <S::Core as Core>::Message,
    ) -> Result<(), Failure> {
        if self.is_down(to) {
            self.counters.trouble("message to a dead node", 1);
            return Ok(());
        }
        self.note(at, to, Kind::Message(from), body.label(), |_| body.txn());
        let mut arrival = Arrival::new(at, 1 | u64::from(from.0) << 8, Nanos::ZERO);
        if self.costs {
            let weight = body.weight();
            let prices = self.prices(to);
            arrival.cost = prices.receiving(weight);
            arrival.beside = prices.report_server && weight == Weight::Report;
        }
        if self.shared.steps.are_wanted() {
            arrival.txn = body.txn();
            arrival.trigger = Trigger::Message {
                sent_in,
                label: body.label(),
                class: self.network.topology().class(from, to),
            };
        }
        self.step(to, arrival, Event::Message { from, body })
    }

    /// A sync is over: the node hears which records are safe, and the next sync begins.
    fn sync_ends(
        &mut self,
        driver: &mut impl Driver<S>,
        at: SimTime,
        node: NodeId,
    ) -> Result<(), Failure> {
        let Ok(tokens) = self.nodes[node.0 as usize].disk.end_sync() else {
            self.counters.trouble("sync failed", 1);
            self.crash(driver, node);
            return Ok(());
        };
        for token in tokens {
            let arrival = Arrival::new(at, 5 | token.0 << 8, self.prices(node).wake);
            self.step(node, arrival, Event::Persisted(token))?;
        }
        self.start_sync(node);
        Ok(())
    }

    pub(super) fn is_down(&self, node: NodeId) -> bool {
        self.nodes[node.0 as usize].core.is_none()
    }

    /// Records that something arrived, if that is wanted.
    pub(super) fn note(
        &mut self,
        at: SimTime,
        node: NodeId,
        kind: Kind,
        label: &'static str,
        txn: impl Fn(&S) -> Option<u64>,
    ) {
        if self.trace.wants(|| txn(&self.system)) {
            let late = matches!(kind, Kind::Message(_) | Kind::Request);
            let turn = self.nodes[node.0 as usize].cpu.turn(at);
            self.trace.add(Row {
                at,
                node,
                kind,
                label,
                txn: txn(&self.system),
                wait: if late { turn.since(at) } else { Nanos::ZERO },
            });
        }
    }
}
