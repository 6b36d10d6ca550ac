//! Which lists clients read and append to.

use manxdb_txn::procedure::ShardId;

use super::args::{Form, Kind, List, Operation, encode};
use super::procedure::NAME;
use crate::{Partition, Random, Reach, Request, Topology};

/// How much of what there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Lists on each shard: the fewer, the more conflicts.
    pub lists_per_shard: u32,
    /// Most operations of one transaction, 1 to 64.
    pub operations_max: u32,
    /// Share of transactions that touch another region, if there is one.
    pub cross_region: f64,
    /// Share of the others that touch another shard of the region, if there is one.
    pub other_shard: f64,
    /// Share of operations that append.
    pub appends: f64,
    /// Share of transactions of which a part waits for values.
    pub deferred: f64,
}

impl Default for Settings {
    /// Few lists, and much of everything that is hard.
    fn default() -> Self {
        Self {
            lists_per_shard: 4,
            operations_max: 4,
            cross_region: 0.3,
            other_shard: 0.3,
            appends: 0.5,
            deferred: 0.4,
        }
    }
}

/// Neighbours among which a deferred append chooses.
const CHOICES: u8 = 3;

/// Names the stream of random numbers.
const STREAM: u64 = 1;

/// The transactions of one client.
#[derive(Debug, Clone)]
pub struct Generator {
    topology: Topology,
    settings: Settings,
    home: ShardId,
    random: Random,
    next_element: u64,
}

impl Generator {
    /// Client number `client`, unlike every other's, at a shard. Its elements are `client` · 2^32
    /// and up.
    #[must_use]
    pub fn new(
        topology: Topology,
        settings: Settings,
        client: u32,
        home: ShardId,
        seed: u64,
    ) -> Self {
        let random = Random::stream(seed, &[STREAM, client.into()]);
        Self {
            topology,
            settings,
            home,
            random,
            next_element: u64::from(client) << 32,
        }
    }

    /// The next transaction.
    pub fn next_request(&mut self) -> Request {
        let partitions = self.choose_partitions();
        let most = self.settings.operations_max as usize;
        let count = partitions.len() + self.index(most.saturating_sub(partitions.len()) + 1);
        let mut operations = Vec::with_capacity(count);
        for index in 0..count {
            // Each partition once, and then any.
            let partition = match partitions.get(index) {
                Some(partition) => *partition,
                None => partitions[self.index(partitions.len())],
            };
            operations.push(self.choose_operation(partition));
        }
        let form = self.choose_form(&mut operations);
        let reach = self.reach(&partitions);
        let waits = form == Form::Deferred && reach == Reach::Regions;
        Request {
            procedure: NAME,
            args: encode(form, &operations),
            reach,
            pieces: u32::try_from(count).unwrap_or(u32::MAX),
            waits_across_regions: waits && waits_on_others(self.topology, &operations),
        }
    }

    fn reach(&self, partitions: &[Partition]) -> Reach {
        let shards = partitions.iter().map(|at| self.topology.home_of(*at));
        self.topology.reach(shards)
    }

    fn chance(&mut self, share: f64) -> bool {
        self.random.unit() < share
    }

    fn index(&mut self, bound: usize) -> usize {
        let index = self.random.below(bound as u64);
        usize::try_from(index).unwrap_or_default()
    }

    fn below(&mut self, bound: u32) -> u32 {
        let number = self.random.below(u64::from(bound));
        u32::try_from(number).unwrap_or_default()
    }

    /// Home first.
    fn choose_partitions(&mut self) -> Vec<Partition> {
        let mut partitions = vec![Partition(self.home.0)];
        let most = self.settings.operations_max as usize;
        if most < 2 {
            return partitions;
        }
        if self.topology.regions > 1 && self.chance(self.settings.cross_region) {
            let others = 1 + self.index(2);
            for _ in 0..others.min(most - 1) {
                partitions.push(self.choose_far_away());
            }
            partitions.dedup();
        } else if self.topology.shards_per_region > 1 && self.chance(self.settings.other_shard) {
            partitions.push(self.choose_nearby());
        }
        partitions
    }

    fn first_of_region(&self) -> u32 {
        let region = self.topology.region_of(self.home);
        self.topology.first_shard_of(region).0
    }

    /// A shard of another region.
    fn choose_far_away(&mut self) -> Partition {
        let (first, in_region) = (self.first_of_region(), self.topology.shards_per_region);
        // Those before the region, and those after it.
        let shard = self.below(self.topology.shards() - in_region);
        let behind = if shard < first { 0 } else { in_region };
        Partition(shard + behind)
    }

    /// Another shard of the region.
    fn choose_nearby(&mut self) -> Partition {
        let (first, in_region) = (self.first_of_region(), self.topology.shards_per_region);
        let step = 1 + self.below(in_region - 1);
        Partition(first + (self.home.0 - first + step) % in_region)
    }

    fn choose_operation(&mut self, partition: Partition) -> Operation {
        let row = self.below(self.settings.lists_per_shard);
        let kind = if self.chance(self.settings.appends) {
            Kind::Append(self.element())
        } else {
            Kind::Read
        };
        let list = List { partition, row };
        Operation { list, kind }
    }

    fn element(&mut self) -> u64 {
        self.next_element += 1;
        self.next_element
    }

    /// Deferred needs something to wait for and something that waits; half of what waits chooses
    /// its list by what it gets.
    fn choose_form(&mut self, operations: &mut [Operation]) -> Form {
        if operations.len() < 2 || !self.chance(self.settings.deferred) {
            return Form::Together;
        }
        let reads = operations.iter().filter(|at| at.is_read()).count();
        if reads == operations.len() {
            let last = operations.len() - 1;
            operations[last].kind = Kind::Append(self.element());
        } else if reads == 0 {
            operations[0].kind = Kind::Read;
        }
        let row_max = self.settings.lists_per_shard.checked_sub(CHOICES.into());
        for operation in operations {
            let Kind::Append(element) = operation.kind else {
                continue;
            };
            if let Some(row_max) = row_max
                && self.chance(0.5)
            {
                operation.list.row = operation.list.row.min(row_max);
                operation.kind = Kind::AppendChosen {
                    element,
                    choices: CHOICES,
                };
            }
        }
        Form::Deferred
    }
}

/// Whether an append is in another region than one of the reads.
fn waits_on_others(topology: Topology, operations: &[Operation]) -> bool {
    let region = |operation: &Operation| {
        let shard = topology.home_of(operation.list.partition);
        topology.region_of(shard)
    };
    let (reads, appends): (Vec<Operation>, Vec<Operation>) =
        operations.iter().partition(|operation| operation.is_read());
    let differs = |append: &Operation| reads.iter().any(|read| region(read) != region(append));
    appends.iter().any(differs)
}
