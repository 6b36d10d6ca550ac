//! What lies where in memory, by name: proof that no two areas overlap, and that what is accessed
//! lies in one.
//!
//! A [`Plan`] is computed by adding up lengths. Were one too short, two areas would share bytes, and
//! each would be damaged by the other with nobody noticing; so every plan is checked when it is made.

use manxdb_core::check::ensure;
use manxdb_fabric::{Address, ServerId, WORD};
use manxdb_rsi::{LowWatermark, Map};

use super::chunks::{Chunk, UnusedMemory};
use super::plan::{FORMATION, NEXT, Plan, SUPERBLOCK, bytes, ring};

/// Bytes that are used for one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MemoryArea {
    pub(super) name: &'static str,
    /// At a server, or in a region.
    pub(super) at: Address,
    pub(super) bytes: u64,
}

impl MemoryArea {
    fn new(name: &'static str, at: Address, bytes: u64) -> Self {
        Self { name, at, bytes }
    }

    fn end(&self) -> u64 {
        self.at.offset.saturating_add(self.bytes)
    }

    fn has(&self, at: Address, bytes: u64) -> bool {
        let end = at.offset.checked_add(bytes);
        self.at.server == at.server
            && self.at.offset <= at.offset
            && end.is_some_and(|end| end <= self.end())
    }
}

impl Plan {
    /// All areas of a plan.
    pub(super) fn areas(&self) -> Vec<MemoryArea> {
        let area = MemoryArea::new;
        let geometry = self.geometry;
        let mut areas = vec![
            area("the table", self.table, self.client_slots().bytes()),
            area("the vector", self.vector_at, self.vector.bytes()),
            area(
                "the root of the tree",
                self.keyspace.tree.root().address(),
                bytes(self.keyspace.tree.layout()),
            ),
            area("the bound of snapshots", self.bound.0, self.bound.1),
            area(
                "the words of who heeds it",
                self.heeding,
                LowWatermark::bytes(geometry.places),
            ),
        ];
        let (records, length) = self.free_extent_records();
        areas.push(area("the free-extent records", records, length));
        let kept = self.kept.zip(self.kept_at);
        areas.extend(kept.map(|(kept, at)| area("the durable positions", at, kept.bytes())));
        let logs = self.logs.iter().flatten();
        areas.extend(logs.map(|at| area("a log", *at, ring(geometry))));
        let rings = self.rings.iter();
        areas.extend(rings.map(|at| area("a ring for old versions", *at, geometry.log_bytes)));
        self.unused_areas(&mut areas);
        areas
    }

    fn unused_areas(&self, areas: &mut Vec<MemoryArea>) {
        let at = |server, offset| {
            let server = ServerId(server);
            Address { server, offset }
        };
        for server in 0..self.geometry.servers {
            let superblock = at(server, 0);
            areas.push(MemoryArea::new("the superblock", superblock, SUPERBLOCK));
            let formation = at(server, FORMATION);
            areas.push(MemoryArea::new("the formation", formation, WORD));
        }
        match &self.unused {
            UnusedMemory::Servers(begin) => {
                let unused = self.geometry.bytes - begin;
                for server in 0..self.geometry.servers {
                    let next = at(server, NEXT);
                    areas.push(MemoryArea::new("the end of what is given away", next, WORD));
                    let begin = at(server, *begin);
                    areas.push(MemoryArea::new("memory for rows", begin, unused));
                }
            }
            UnusedMemory::ChunkRegions(regions) => {
                let count = regions.records.len() as u64;
                let words = count * regions.chunks * WORD;
                areas.push(MemoryArea::new("the words of chunks", regions.words, words));
                let record = Chunk::RECORDS * bytes(self.keyspace.records);
                let node = Chunk::NODES * bytes(self.keyspace.tree.layout());
                let kinds = [
                    ("a chunk region of records", &regions.records, record),
                    ("a chunk region of nodes", &regions.nodes, node),
                ];
                for (name, bases, each) in kinds {
                    let length = regions.chunks * each;
                    let bases = bases.iter();
                    areas.extend(bases.map(|base| MemoryArea::new(name, *base, length)));
                }
            }
        }
    }

    /// Bytes that there are at a server, or in a region; none: there is no such server or region.
    fn length_at(&self, server: ServerId) -> Option<u64> {
        if server.0 < self.geometry.servers {
            return Some(self.geometry.bytes);
        }
        let (_, map) = self.first.as_ref()?;
        let number = server.0.checked_sub(Map::FIRST)?;
        Some(map.regions().get(usize::from(number))?.bytes())
    }

    /// What is true of every plan: its areas begin at words, lie in memory that there is, and no two
    /// of them overlap.
    pub(super) fn check_areas(&self) -> Result<(), String> {
        self.check_these(self.areas())
    }

    fn check_these(&self, mut areas: Vec<MemoryArea>) -> Result<(), String> {
        for area in &areas {
            ensure(area.at.offset.is_multiple_of(WORD), || {
                format!("{} begins at a word, not at {}", area.name, area.at)
            })?;
            let length = self.length_at(area.at.server);
            ensure(length.is_some_and(|length| area.end() <= length), || {
                format!("{} at {} lies in memory that there is", area.name, area.at)
            })?;
        }
        areas.sort_by_key(|area| area.at);
        for pair in areas.windows(2) {
            let (one, next) = (pair[0], pair[1]);
            ensure(
                one.at.server != next.at.server || one.end() <= next.at.offset,
                || format!("{} at {} reaches into {}", one.name, one.at, next.name),
            )?;
        }
        Ok(())
    }

    /// Whether so many bytes from an address on lie in one area.
    pub(super) fn is_in_an_area(&self, at: Address, bytes: u64) -> bool {
        self.areas().iter().any(|area| area.has(at, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::geometry::Geometry;
    use super::super::geometry::tests::GEOMETRY;
    use super::*;

    fn plans() -> [Plan; 3] {
        let replicated = Geometry {
            replicas: 2,
            bytes: 64 << 20,
            ..GEOMETRY
        };
        let kept = Geometry {
            log_slots: 4,
            ..replicated
        };
        [GEOMETRY, replicated, kept].map(|geometry| Plan::of(geometry).unwrap())
    }

    #[test]
    fn no_two_areas_of_a_plan_overlap() {
        for plan in plans() {
            assert_eq!(plan.check_areas(), Ok(()));
        }
    }

    /// Each area in turn is made longer by one word, as if a length had been added up wrongly.
    #[test]
    fn an_area_that_reaches_into_the_next_one_is_named() {
        for plan in plans() {
            let areas = plan.areas();
            let mut found = 0;
            for number in 0..areas.len() {
                let mut wrong = areas.clone();
                let others = areas
                    .iter()
                    .filter(|other| other.at.server == wrong[number].at.server);
                let behind = others.filter(|other| other.at.offset > wrong[number].at.offset);
                let next = behind.map(|other| other.at.offset).min();
                let Some(next) = next else { continue };
                wrong[number].bytes = next - wrong[number].at.offset + WORD;
                let broken = plan.check_these(wrong).unwrap_err();
                assert!(broken.contains("reaches into"), "{broken}");
                found += 1;
            }
            assert!(found > 0, "areas lie one behind the other");
        }
    }

    #[test]
    fn an_area_beyond_the_end_of_memory_is_named() {
        for plan in plans() {
            let mut areas = plan.areas();
            areas[0].bytes = u64::MAX;
            let broken = plan.check_these(areas).unwrap_err();
            assert!(broken.contains("lies in memory that there is"), "{broken}");
        }
    }

    #[test]
    fn what_lies_across_two_areas_is_in_none() {
        for plan in plans() {
            let table = plan.client_slots().bytes();
            assert!(plan.is_in_an_area(plan.table, table));
            assert!(!plan.is_in_an_area(plan.table, table + WORD));
        }
    }
}
