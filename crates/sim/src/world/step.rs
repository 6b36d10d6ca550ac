//! One step of one core, and what it asks for.

use manxdb_core::{Action, ActionOf, Core, EventOf, Message, Nanos, NodeId};

use super::{Failure, World};
use crate::explain::{Step, Trigger};
use crate::network::Fate;
use crate::pending::{Held, Pending};
use crate::system::System;
use crate::time::SimTime;
use crate::trace::Kind;

/// How something arrives at a node.
pub(super) struct Arrival {
    pub at: SimTime,
    /// What it is, for digests.
    code: u64,
    /// To receive it.
    pub cost: Nanos,
    /// Whether the second server receives it.
    pub beside: bool,
    /// What it is, for the steps that explain a latency.
    pub trigger: Trigger,
    /// The transaction that it is about.
    pub txn: Option<u64>,
}

impl Arrival {
    pub fn new(at: SimTime, code: u64, cost: Nanos) -> Self {
        Self {
            at,
            code,
            cost,
            beside: false,
            trigger: Trigger::Other,
            txn: None,
        }
    }
}

impl<S: System> World<S> {
    /// Steps a core that is up. Its turn may lie ahead, when its CPU is busy; since turns come
    /// in the order of arrival, the step can be taken at once.
    pub(super) fn step(
        &mut self,
        id: NodeId,
        arrival: Arrival,
        event: EventOf<S::Core>,
    ) -> Result<(), Failure> {
        let node = &mut self.nodes[id.0 as usize];
        node.digest.number(arrival.at.0).number(arrival.code);
        let cpu = if arrival.beside {
            &node.report_cpu
        } else {
            &node.cpu
        };
        let mut turn = cpu.turn(arrival.at);
        if turn == arrival.at && self.costs && node.costs {
            // The process slept: it has to be woken up first.
            turn = turn + node.cost.wakeup.draw(&mut node.wakeup_random);
        }
        let now = node.clock_at(turn);
        let Some(core) = node.core.as_mut() else {
            return Ok(());
        };
        let mut out = std::mem::take(&mut self.actions);
        core.step(now, event, &mut out);
        let checked = if self.options.check {
            core.check()
        } else {
            Ok(())
        };
        let done = if self.costs && node.costs {
            let mut cost = arrival.cost + node.cost.working(out.take_work());
            cost += self.sending(id, out.as_slice());
            let node = &mut self.nodes[id.0 as usize];
            let cpu = if arrival.beside {
                &mut node.report_cpu
            } else {
                &mut node.cpu
            };
            cpu.work(turn, cost)
        } else {
            out.take_work();
            turn
        };
        self.steps_taken += 1;
        if self.shared.steps.are_wanted() {
            self.keep_step(id, &arrival, (turn, done), out.as_slice());
        }
        for action in out.drain() {
            self.act(id, done, action);
        }
        self.actions = out;
        checked.map_err(|what| Failure {
            at: turn,
            node: id,
            what,
        })
    }

    /// Keeps a step for each transaction that it is about.
    fn keep_step(
        &mut self,
        node: NodeId,
        arrival: &Arrival,
        (turn, done): (SimTime, SimTime),
        actions: &[ActionOf<S::Core>],
    ) {
        let (number, arrived) = (self.steps_taken, arrival.at);
        let step = |txn: u64| Step {
            number,
            node,
            trigger: match arrival.trigger {
                Trigger::Message { .. } if arrival.txn != Some(txn) => Trigger::Other,
                trigger => trigger,
            },
            arrived,
            turn,
            done,
            said: None,
            answers: false,
        };
        let steps = &mut self.shared.steps;
        if let Some(txn) = arrival.txn {
            steps.note(txn, step(txn));
        }
        for action in actions {
            let txn = match action {
                Action::Send { body, .. } => body.txn(),
                Action::Reply { id, body } => self.system.reply_txn(*id, body),
                Action::Mark { txn, .. } | Action::Wait { txn, .. } => Some(*txn),
                Action::SetTimer { .. } | Action::Persist { .. } => None,
            };
            let Some(kept) = txn.and_then(|txn| steps.note(txn, step(txn))) else {
                continue;
            };
            match action {
                Action::Wait { wait, .. } => kept.said = Some(*wait),
                Action::Reply { .. } => kept.answers = true,
                _ => {}
            }
        }
    }

    /// What it costs to send all that goes out.
    fn sending(&self, node: NodeId, actions: &[ActionOf<S::Core>]) -> Nanos {
        let prices = &self.nodes[node.0 as usize].cost;
        let mut cost = Nanos::ZERO;
        for action in actions {
            let weight = match action {
                Action::Send { body, .. } => body.weight(),
                Action::Reply { body, .. } => self.system.reply_weight(body),
                _ => continue,
            };
            cost += prices.sending(weight);
        }
        cost
    }

    /// Does what a step asked for; it leaves the node at `done`.
    fn act(&mut self, node: NodeId, done: SimTime, action: ActionOf<S::Core>) {
        match action {
            Action::Send { to, body } => {
                let class = self.network.topology().class(node, to);
                self.counters.message(body.label(), class);
                self.send(done, self.steps_taken, (node, to), body);
            }
            Action::SetTimer { after, timer } => {
                let span = self.nodes[node.0 as usize].clock.real_span(after);
                let pending = Pending::Timer { node, timer };
                self.shared.queue.push(done + span, pending);
            }
            Action::Persist { record, token } => {
                let disk = &mut self.nodes[node.0 as usize].disk;
                disk.append(done, record, token);
                self.start_sync(node);
            }
            Action::Reply { id, body } => {
                let pending = Pending::Reply {
                    node,
                    id,
                    departs: done,
                    body,
                };
                let arrives = done + self.shared.client_delay;
                self.shared.queue.push(arrives, pending);
            }
            Action::Mark { txn, phase } => {
                self.note(done, node, Kind::Mark, phase, |_| Some(txn));
            }
            Action::Wait { .. } => {}
        }
    }

    /// Gives a message to the network.
    pub(super) fn send(
        &mut self,
        departs: SimTime,
        sent_in: u64,
        (from, to): (NodeId, NodeId),
        body: <S::Core as Core>::Message,
    ) {
        let datagram = body.is_datagram();
        if self.network.is_fifo() && !datagram && self.is_down(to) {
            // Nobody answers the connection.
            self.counters.trouble("message to a dead node", 1);
            return;
        }
        let message = |body| Pending::Message {
            to,
            from,
            departs,
            sent_in,
            body,
        };
        let body = match self.network.flips(from, to).filter(|_| datagram) {
            None => body,
            Some(bit) => {
                self.counters.trouble("bit flipped", 1);
                let Some(flipped) = body.with_bit_flipped(bit) else {
                    return; // the receiver's checks drop it
                };
                flipped
            }
        };
        let fate = if datagram {
            self.network
                .send_datagram(departs, from, to, &mut self.counters)
        } else {
            self.network.send(departs, from, to, &mut self.counters)
        };
        match fate {
            Fate::Arrives(at) => self.shared.queue.push(at, message(body)),
            Fate::ArrivesTwice(one, other) => {
                self.shared.queue.push(one, message(body.clone()));
                self.shared.queue.push(other, message(body));
            }
            Fate::Lost => {}
            Fate::Held => {
                let held = Held {
                    departs,
                    sent_in,
                    body,
                };
                self.network.hold(from, to, held);
            }
        }
    }

    /// Starts a node's next sync, if there is reason to.
    pub(super) fn start_sync(&mut self, node: NodeId) {
        let now = self.shared.now;
        if let Some(end) = self.nodes[node.0 as usize].disk.start_sync(now) {
            self.shared.queue.push(end, Pending::Synced { node });
        }
    }
}
