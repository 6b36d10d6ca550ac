//! Faults that begin and end.

use manxdb_core::NodeId;

use super::{Failure, World};
use crate::driver::Driver;
use crate::fault::{Between, Fault, FaultKind, Group, Plan};
use crate::pending::Pending;
use crate::system::System;
use crate::topology::{Link, Ppm, Topology};
use crate::trace::Kind;

impl<S: System> World<S> {
    /// Lets a fault happen at its time, or now when that has passed.
    pub fn schedule(&mut self, fault: Fault) {
        let index = self.faults.len();
        let now = self.shared.now;
        let (begins, ends) = (fault.at.max(now), fault.ends().max(now));
        self.faults.push(fault);
        let queue = &mut self.shared.queue;
        queue.push(begins, Pending::FaultBegins { index });
        queue.push(ends, Pending::FaultEnds { index });
    }

    /// Lets all faults of a plan happen.
    pub fn schedule_all(&mut self, plan: &Plan) {
        for fault in &plan.faults {
            self.schedule(fault.clone());
        }
    }

    pub(super) fn fault_begins(&mut self, driver: &mut impl Driver<S>, index: usize) {
        let kind = self.faults[index].kind.clone();
        let name = kind.name();
        let now = self.shared.now;
        match kind.node() {
            Some(node) if self.is_down(node) => return, // nothing left to harm
            Some(node) => self.note(now, node, Kind::Fault, name, |_| None),
            None => {}
        }
        self.counters.trouble(name, 1);
        self.active.insert(index);
        match kind {
            FaultKind::Crash { node, disk_lost } => {
                self.crash(driver, node);
                if disk_lost {
                    self.nodes[node.0 as usize].disk.erase();
                }
            }
            FaultKind::Pause { node } => {
                let until = self.faults[index].ends();
                let node = &mut self.nodes[node.0 as usize];
                node.cpu.pause(until);
                node.report_cpu.pause(until);
            }
            FaultKind::ClockStep { node, by } => self.nodes[node.0 as usize].clock.step(now, by),
            _ => self.refresh(&kind),
        }
    }

    pub(super) fn fault_ends(
        &mut self,
        driver: &mut impl Driver<S>,
        index: usize,
    ) -> Result<(), Failure> {
        if !self.active.remove(&index) {
            return Ok(());
        }
        let kind = self.faults[index].kind.clone();
        self.refresh(&kind);
        match kind {
            FaultKind::Crash { node, .. } | FaultKind::DiskFails { node }
                if !self.is_kept_down(node) =>
            {
                self.restart(driver, node)?;
            }
            FaultKind::DiskFull { node } => self.start_sync(node),
            FaultKind::Cut { .. } | FaultKind::Part { .. } => self.release(),
            _ => {}
        }
        Ok(())
    }

    /// Whether a crash that is not over keeps a node down.
    fn is_kept_down(&self, id: NodeId) -> bool {
        self.active.iter().any(
            |index| matches!(self.faults[*index].kind, FaultKind::Crash { node, .. } if node == id),
        )
    }

    /// Ends a node's process, now.
    pub fn crash(&mut self, driver: &mut impl Driver<S>, id: NodeId) {
        if self.is_down(id) {
            return;
        }
        let now = self.shared.now;
        let node = &mut self.nodes[id.0 as usize];
        node.stop(now);
        let loss = node.disk.crash(now, &mut node.disk_random);
        self.counters.trouble("record lost", loss.lost);
        self.counters.trouble("record torn", loss.torn);
        let mut dropped = self.network.disconnect(id);
        let fifo = self.network.is_fifo();
        for pending in self.shared.queue.values_mut() {
            if pending.dies_with(id, now, fifo) {
                dropped += u64::from(matches!(pending, Pending::Message { .. }));
                *pending = Pending::Nothing;
            }
        }
        self.counters.trouble("message lost by a crash", dropped);
        driver.crashed(&mut self.outside(), id);
    }

    /// Starts a node that is down, now, with what its disk has.
    ///
    /// # Errors
    /// The core's check failed.
    pub fn restart(&mut self, driver: &mut impl Driver<S>, id: NodeId) -> Result<(), Failure> {
        if !self.is_down(id) {
            return Ok(());
        }
        let index = id.0 as usize;
        let records = self.nodes[index].disk.records().to_vec();
        self.place_core(index, records);
        self.counters.trouble("restart", 1);
        // At once: what arrives at this very time must not come before it.
        self.start(self.shared.now, id)?;
        driver.restarted(&mut self.outside(), id);
        Ok(())
    }

    /// Puts whatever a kind of fault touches into the state that all active faults together
    /// demand.
    fn refresh(&mut self, kind: &FaultKind) {
        match kind {
            FaultKind::Cut { .. } | FaultKind::Part { .. } => self.refresh_partitions(),
            FaultKind::Loss { .. }
            | FaultKind::Duplicate { .. }
            | FaultKind::Reorder { .. }
            | FaultKind::Flip { .. }
            | FaultKind::Delay { .. } => self.refresh_weather(),
            _ => {
                if let Some(node) = kind.node() {
                    self.refresh_node(node);
                }
            }
        }
    }

    fn refresh_node(&mut self, id: NodeId) {
        let (mut slow, mut disk_slow, mut drift) = (1, 1, 0);
        let (mut frozen, mut full, mut failing) = (false, false, false);
        for index in &self.active {
            let kind = &self.faults[*index].kind;
            if kind.node() != Some(id) {
                continue;
            }
            match kind {
                FaultKind::Slow { times, .. } => slow = slow.max(*times),
                FaultKind::DiskSlow { times, .. } => disk_slow = disk_slow.max(*times),
                FaultKind::ClockDrift { ppm, .. } => drift += ppm,
                FaultKind::ClockFreeze { .. } => frozen = true,
                FaultKind::DiskFull { .. } => full = true,
                FaultKind::DiskFails { .. } => failing = true,
                _ => {}
            }
        }
        let now = self.shared.now;
        let node = &mut self.nodes[id.0 as usize];
        node.cpu.set_slowness(slow);
        node.report_cpu.set_slowness(slow);
        node.clock.set_extra_drift(now, drift);
        node.clock.set_frozen(now, frozen);
        node.disk.set_slowness(disk_slow);
        node.disk.set_full(full);
        node.disk.set_failing(failing);
    }

    fn refresh_partitions(&mut self) {
        let topology = self.network.topology();
        let mut partitions = Vec::new();
        for index in &self.active {
            match &self.faults[*index].kind {
                FaultKind::Cut { from, to } => {
                    partitions.push(sides(topology, from, to));
                }
                FaultKind::Part { one, other } => {
                    let (one, other) = sides(topology, one, other);
                    partitions.push((one.clone(), other.clone()));
                    partitions.push((other, one));
                }
                _ => {}
            }
        }
        self.network.set_partitions(&partitions);
    }

    fn refresh_weather(&mut self) {
        let (faults, active) = (&self.faults, &self.active);
        self.network.set_weather(|topology, links| {
            for index in active {
                apply_weather(&faults[*index].kind, topology, links);
            }
        });
    }

    /// Sends on what no partition holds back any longer.
    fn release(&mut self) {
        let now = self.shared.now;
        for ((from, to), messages) in self.network.release() {
            for held in messages {
                let departs = held.departs.max(now);
                self.send(departs, held.sent_in, (from, to), held.body);
            }
        }
    }
}

/// The two sides of a partition; all nodes as a side are all that are not on the other.
fn sides(topology: &Topology, one: &Group, other: &Group) -> (Vec<NodeId>, Vec<NodeId>) {
    let (mut one_side, mut other_side) = (members(topology, one), members(topology, other));
    if *other == Group::All {
        other_side.retain(|id| !one_side.contains(id));
    } else if *one == Group::All {
        one_side.retain(|id| !other_side.contains(id));
    }
    (one_side, other_side)
}

fn members(topology: &Topology, group: &Group) -> Vec<NodeId> {
    match group {
        Group::All => topology.node_ids().collect(),
        Group::Region(region) => {
            let ids = topology.node_ids();
            ids.filter(|id| topology.region(*id) == *region).collect()
        }
        Group::Nodes(nodes) => nodes.clone(),
    }
}

fn apply_weather(kind: &FaultKind, topology: &Topology, links: &mut [Link]) {
    let mut change = |between: &Between, change: &dyn Fn(&mut Link)| {
        for (from, to) in topology.region_pairs() {
            if between.covers(from, to) {
                change(&mut links[topology.index(from, to)]);
            }
        }
    };
    let more = |one: Ppm, other: Ppm| Ppm((one.0 + other.0).min(1_000_000));
    match kind {
        FaultKind::Loss { between, share } => {
            change(between, &|link| link.loss = more(link.loss, *share));
        }
        FaultKind::Duplicate { between, share } => {
            change(between, &|link| {
                link.duplicate = more(link.duplicate, *share);
            });
        }
        FaultKind::Reorder { between, share, by } => change(between, &|link| {
            link.reorder = more(link.reorder, *share);
            link.reorder_by = link.reorder_by.max(*by);
        }),
        FaultKind::Flip { between, share } => {
            change(between, &|link| link.flip = more(link.flip, *share));
        }
        FaultKind::Delay { between, extra } => change(between, &|link| link.delay += *extra),
        _ => {}
    }
}
