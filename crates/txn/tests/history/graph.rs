//! Dependencies between transactions, and the cycles among them.

use std::collections::{BTreeSet, VecDeque};

use super::{Anomalies, Anomaly};

/// Why one transaction must stand before another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dependency {
    WriteWrite,
    WriteRead,
    ReadWriteItem,
    ReadWritePredicate,
    RealTime,
}

use Dependency::{ReadWriteItem, ReadWritePredicate, RealTime, WriteRead, WriteWrite};

/// Transactions are numbers below `size`.
pub struct Graph {
    edges: Vec<BTreeSet<(usize, Dependency)>>,
    read_only: Vec<bool>,
}

impl Graph {
    pub fn new(read_only: Vec<bool>) -> Self {
        Self {
            edges: vec![BTreeSet::new(); read_only.len()],
            read_only,
        }
    }

    pub fn add(&mut self, before: usize, after: usize, why: Dependency) {
        if before != after {
            self.edges[before].insert((after, why));
        }
    }

    /// Names every kind of cycle, each by its weakest explanation.
    pub fn find_cycles(&self, found: &mut Anomalies) {
        let writes = &[WriteWrite];
        let information = &[WriteWrite, WriteRead];
        let items = &[WriteWrite, WriteRead, ReadWriteItem];
        let all = &[WriteWrite, WriteRead, ReadWriteItem, ReadWritePredicate];
        let in_time = &[
            WriteWrite,
            WriteRead,
            ReadWriteItem,
            ReadWritePredicate,
            RealTime,
        ];
        self.close(WriteWrite, writes, Anomaly::DirtyWrite, found);
        self.close(WriteRead, information, Anomaly::CircularInformation, found);
        let single = self.single_anti_dependencies(information, found);
        if !single {
            self.close(ReadWriteItem, items, Anomaly::ItemAntiDependency, found);
        }
        if !self.has_cycle(items) {
            let anomaly = Anomaly::PredicateAntiDependency;
            self.close(ReadWritePredicate, all, anomaly, found);
        }
        if !self.has_cycle(all) {
            self.close(RealTime, in_time, Anomaly::StaleRead, found);
        }
    }

    /// Notes `anomaly` if an edge of kind `last` closes a cycle of `kinds`.
    fn close(
        &self,
        last: Dependency,
        kinds: &[Dependency],
        anomaly: Anomaly,
        found: &mut Anomalies,
    ) -> bool {
        for (from, edges) in self.edges.iter().enumerate() {
            for (to, why) in edges {
                if *why != last {
                    continue;
                }
                if let Some(path) = self.path(*to, from, kinds) {
                    let example = format!("T{from} -{why:?}-> {path}");
                    found.entry(anomaly).or_insert(example);
                    return true;
                }
            }
        }
        false
    }

    /// Cycles with exactly one anti-dependency, told apart by whether its reader wrote.
    fn single_anti_dependencies(&self, information: &[Dependency], found: &mut Anomalies) -> bool {
        let mut any = false;
        for (from, edges) in self.edges.iter().enumerate() {
            for (to, why) in edges {
                if !matches!(why, ReadWriteItem | ReadWritePredicate) {
                    continue;
                }
                let Some(path) = self.path(*to, from, information) else {
                    continue;
                };
                let anomaly = if self.read_only[from] {
                    Anomaly::InconsistentRead
                } else {
                    Anomaly::SingleAntiDependency
                };
                let example = format!("T{from} -{why:?}-> {path}");
                found.entry(anomaly).or_insert(example);
                any = true;
            }
        }
        any
    }

    fn has_cycle(&self, kinds: &[Dependency]) -> bool {
        let mut scratch = Anomalies::new();
        let closes =
            |kind: &Dependency| self.close(*kind, kinds, Anomaly::DirtyWrite, &mut scratch);
        kinds.iter().any(closes)
    }

    /// The shortest way from one transaction to another over edges of `kinds`, in words.
    fn path(&self, from: usize, to: usize, kinds: &[Dependency]) -> Option<String> {
        let mut came: Vec<Option<(usize, Dependency)>> = vec![None; self.edges.len()];
        let mut queue = VecDeque::from([from]);
        let mut seen = BTreeSet::from([from]);
        while let Some(at) = queue.pop_front() {
            if at == to {
                return Some(describe(&came, from, to));
            }
            for (next, why) in &self.edges[at] {
                if kinds.contains(why) && seen.insert(*next) {
                    came[*next] = Some((at, *why));
                    queue.push_back(*next);
                }
            }
        }
        None
    }
}

fn describe(came: &[Option<(usize, Dependency)>], from: usize, to: usize) -> String {
    let mut text = format!("T{to}");
    let mut at = to;
    while let Some((before, why)) = came[at].filter(|_| at != from) {
        text = format!("T{before} -{why:?}-> {text}");
        at = before;
    }
    text
}
