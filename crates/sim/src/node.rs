//! A simulated machine: clock, CPU, disk, and the core that runs on it while it is up.

use std::collections::VecDeque;

use manxdb_core::channel::Life;
use manxdb_core::{Core, Digest, LocalTime, Random};

use crate::clock::Clock;
use crate::cost::CostModel;
use crate::cpu::Cpu;
use crate::disk::Disk;
use crate::pending::Pending;
use crate::time::SimTime;

/// One node.
#[derive(Debug)]
pub(crate) struct Node<C: Core> {
    /// Nothing while it is down.
    pub core: Option<C>,
    pub life: Life,
    pub clock: Clock,
    pub cpu: Cpu,
    /// The second server, when there is one.
    pub report_cpu: Cpu,
    pub disk: Disk<C::Record>,
    pub disk_random: Random,
    /// Whether its CPU time has a price.
    pub costs: bool,
    /// What things cost it.
    pub cost: CostModel,
    pub wakeup_random: Random,
    /// What arrived while it stood still, in order.
    pub backlog: VecDeque<Pending<C>>,
    /// Of all that happened to it.
    pub digest: Digest,
    /// Where its clock was read last: with two servers turns overlap.
    last_turn: SimTime,
}

impl<C: Core> Node<C> {
    pub fn new(clock: Clock, cost: CostModel, [disk_random, wakeup_random]: [Random; 2]) -> Self {
        Self {
            core: None,
            life: Life(0),
            clock,
            cpu: Cpu::default(),
            report_cpu: Cpu::default(),
            disk: Disk::new(cost.sync),
            disk_random,
            costs: true,
            cost,
            wakeup_random,
            backlog: VecDeque::new(),
            digest: Digest::default(),
            last_turn: SimTime::ZERO,
        }
    }

    /// Its process ends: the core and whatever it had not done yet are gone.
    pub fn stop(&mut self, now: SimTime) {
        self.core = None;
        self.backlog.clear();
        self.cpu.stop(now);
        self.report_cpu.stop(now);
        self.last_turn = now;
        self.digest.number(now.0);
    }

    /// What its clock shows to a step whose turn has come.
    pub fn clock_at(&mut self, turn: SimTime) -> LocalTime {
        self.last_turn = self.last_turn.max(turn);
        self.clock.read(self.last_turn)
    }
}
