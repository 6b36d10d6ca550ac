//! Which servers have which memory.

use manxdb_core::check::ensure;
use std::sync::Arc;

use manxdb_fabric::{Address, ServerId};

use crate::block::Layout;
use crate::log::Log;
use crate::replicas::epoch_log::{EpochLog, Event, Learn};
use crate::vector::Vector;

/// What a region is for, which decides how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RegionKind {
    /// Records of one layout, one behind the other, each at a multiple of 64 bytes.
    Records(Layout),
    /// Words that are 0 until somebody swaps in what they are for good: directories.
    Entries,
    /// Lines, each of which one thread writes: the vector.
    Lines,
    /// Words that only ever go up, changed by swaps; and beside them some that those write who can be
    /// shut out: the table of places ([`crate::client_slots`]).
    Places,
    /// What threads log. Its replicas are written by their own addresses ([`Map::log`]).
    Logs,
}

/// A region on one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Replica {
    /// Where it begins.
    pub at: Address,
    /// It has all that the region has. One that has not is written as the others are, and is never
    /// a primary.
    pub is_whole: bool,
}

/// Memory that several servers have.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReplicatedRegion {
    pub(super) kind: RegionKind,
    pub(super) bytes: u64,
    /// Whole ones first; the first is the primary.
    pub(super) replicas: Vec<Replica>,
}

impl ReplicatedRegion {
    /// What it is for.
    #[must_use]
    pub fn kind(&self) -> RegionKind {
        self.kind
    }

    /// Its length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Where it lies; the primary first.
    #[must_use]
    pub fn replicas(&self) -> &[Replica] {
        &self.replicas
    }

    /// Where something lies on each server that has it, the primary first; nowhere when all
    /// replicas that were whole are lost.
    pub(super) fn at(&self, offset: u64) -> impl Iterator<Item = Address> + '_ {
        let is_there = self.replicas.first().is_some_and(|first| first.is_whole);
        let count = if is_there { self.replicas.len() } else { 0 };
        let replicas = self.replicas.iter().take(count);
        replicas.map(move |replica| replica.at.plus(offset))
    }

    fn check(&self, number: usize, wanted: usize) -> Result<(), String> {
        let replicas = &self.replicas;
        ensure(replicas.len() <= wanted, || {
            format!(
                "region {number} has {} replicas of {wanted}",
                replicas.len()
            )
        })?;
        let mut pairs = replicas.windows(2);
        ensure(
            pairs.all(|pair| pair[0].is_whole || !pair[1].is_whole),
            || format!("whole replicas of region {number} come first"),
        )?;
        let is_alone = |one: &Replica| {
            let others = replicas
                .iter()
                .filter(|other| other.at.server == one.at.server);
            others.count() == 1
        };
        ensure(replicas.iter().all(is_alone), || {
            format!("each replica of region {number} is on a server of its own")
        })
    }

    fn is_on(&self, server: ServerId) -> bool {
        let mut replicas = self.replicas.iter();
        replicas.any(|replica| replica.at.server == server)
    }
}

/// Memory of a server that no region has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct FreeBytes {
    server: ServerId,
    next: u64,
    end: u64,
}

/// Which servers have which regions, in one epoch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Map {
    /// Events that made it.
    version: u64,
    /// How many of them were losses.
    epoch: u64,
    /// Replicas that a region is to have.
    wanted: usize,
    rooms: Vec<FreeBytes>,
    regions: Vec<ReplicatedRegion>,
}

/// A map that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// A server's number is a region's.
    #[error("memory servers have numbers below {}, not {}", Map::FIRST, .0.0)]
    NoServer(ServerId),
    /// Not so many servers have so much room.
    #[error("no {wanted} servers have {bytes} bytes left for another region")]
    Full {
        /// Replicas.
        wanted: usize,
        /// Of each.
        bytes: u64,
    },
    /// More regions than addresses can name.
    #[error("there are at most {} regions", Map::REGIONS_MAX)]
    TooMany,
}

impl Map {
    /// Servers have numbers below this one, regions from it on.
    pub const FIRST: u16 = 512;
    /// A place has ten bits for both.
    pub const REGIONS_MAX: u16 = 512;

    /// No regions yet; servers with memory from one offset to another, and how many of them are to
    /// have each region.
    ///
    /// # Errors
    /// [`MapError::NoServer`].
    pub fn new(servers: &[(ServerId, u64, u64)], wanted: usize) -> Result<Self, MapError> {
        let is_region = |(server, ..): &&(ServerId, u64, u64)| server.0 >= Self::FIRST;
        if let Some((server, ..)) = servers.iter().find(is_region) {
            return Err(MapError::NoServer(*server));
        }
        let room = |(server, next, end): &(ServerId, u64, u64)| FreeBytes {
            server: *server,
            next: *next,
            end: *end,
        };
        Ok(Self {
            version: 0,
            epoch: 0,
            wanted: wanted.max(1),
            rooms: servers.iter().map(room).collect(),
            regions: Vec::new(),
        })
    }

    /// No regions, and no servers that could be lost: every address is a server's own.
    fn fixed() -> Self {
        Self {
            version: 0,
            epoch: 0,
            wanted: 1,
            rooms: Vec::new(),
            regions: Vec::new(),
        }
    }

    /// Adds a region, whose memory is all zero; where everybody finds it. Primaries take turns.
    ///
    /// # Errors
    /// [`MapError`].
    pub fn add(&mut self, kind: RegionKind, bytes: u64) -> Result<Address, MapError> {
        let number = u16::try_from(self.regions.len()).map_err(|_| MapError::TooMany)?;
        if number >= Self::REGIONS_MAX {
            return Err(MapError::TooMany);
        }
        let servers = self.rooms.len();
        let first = usize::from(number).checked_rem(servers).unwrap_or(0);
        let turns = (0..servers).map(|turn| (first + turn) % servers);
        let with_room =
            turns.filter(|place| self.rooms.get(*place).is_some_and(|room| room.has(bytes)));
        let chosen: Vec<usize> = with_room.take(self.wanted).collect();
        if chosen.len() < self.wanted {
            let wanted = self.wanted;
            return Err(MapError::Full { wanted, bytes });
        }
        let mut replicas = Vec::with_capacity(chosen.len());
        for place in chosen {
            replicas.extend(self.rooms.get_mut(place).map(|room| Replica {
                at: room.take(bytes),
                is_whole: true,
            }));
        }
        self.regions.push(ReplicatedRegion {
            kind,
            bytes,
            replicas,
        });
        let checked = self.check();
        assert!(
            checked.is_ok(),
            "with a new region a map is one: {checked:?}"
        );
        Ok(Address {
            server: ServerId(Self::FIRST + number),
            offset: 0,
        })
    }

    /// How many servers were lost.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// How many events have made it what it is.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What an event makes of it.
    #[must_use]
    pub fn after(&self, event: Event) -> Self {
        let mut next = match event {
            Event::Lost(server) => self.without(server),
            Event::Filled(region) => self.filled(usize::from(region)),
        };
        next.version += 1;
        let checked = next.check();
        assert!(checked.is_ok(), "after {event:?} a map is one: {checked:?}");
        next
    }

    /// All regions, by their numbers.
    #[must_use]
    pub fn regions(&self) -> &[ReplicatedRegion] {
        &self.regions
    }

    /// What is true of every map: regions lie apart, each with its replicas on servers of their own.
    pub(crate) fn check(&self) -> Result<(), String> {
        ensure(self.epoch <= self.version, || {
            format!("{} of {} events are losses", self.epoch, self.version)
        })?;
        let mut taken: Vec<(ServerId, u64, u64)> = Vec::new();
        for (number, region) in self.regions.iter().enumerate() {
            region.check(number, self.wanted)?;
            let spans = region.replicas.iter();
            taken.extend(spans.map(|one| (one.at.server, one.at.offset, region.bytes)));
        }
        taken.sort_unstable();
        for pair in taken.windows(2) {
            let ((server, from, bytes), (next, begin, _)) = (pair[0], pair[1]);
            ensure(server != next || from + bytes <= begin, || {
                format!("regions at server {} overlap at {begin:#x}", server.0)
            })?;
        }
        for (server, from, bytes) in taken {
            let room = self.rooms.iter().find(|room| room.server == server);
            let is_behind = room.is_some_and(|room| from + bytes <= room.next);
            ensure(is_behind, || {
                format!("what a region has at server {} is not free", server.0)
            })?;
        }
        Ok(())
    }

    /// Servers that are not lost.
    pub fn servers(&self) -> impl Iterator<Item = ServerId> + '_ {
        self.rooms.iter().map(|room| room.server)
    }

    /// The map of the next epoch, without a server: the next replica of each region is its primary,
    /// and servers with room get new ones, which lack what the others have. Lines, logs and places
    /// are written anew before the epoch begins, and so their replicas are whole
    /// ([`crate::Restore`], [`crate::membership`]).
    fn without(&self, lost: ServerId) -> Self {
        let mut next = self.clone();
        next.epoch += 1;
        next.rooms.retain(|room| room.server != lost);
        let Self {
            wanted,
            rooms,
            regions,
            ..
        } = &mut next;
        for region in regions {
            region.replicas.retain(|replica| replica.at.server != lost);
            if !region.replicas.is_empty() && region.replicas.len() < *wanted {
                let others = rooms.iter_mut().filter(|room| !region.is_on(room.server));
                let others = others.filter(|room| room.has(region.bytes));
                // The first of those with the most room, so that everybody chooses the same.
                let most =
                    others.max_by_key(|room| (room.end - room.next, u16::MAX - room.server.0));
                region.replicas.extend(most.map(|room| Replica {
                    at: room.take(region.bytes),
                    is_whole: matches!(
                        region.kind,
                        RegionKind::Lines | RegionKind::Logs | RegionKind::Places
                    ),
                }));
            }
        }
        next
    }

    /// The same when a region's replicas have all that it has.
    fn filled(&self, region: usize) -> Self {
        let mut next = self.clone();
        for replica in next
            .regions
            .get_mut(region)
            .into_iter()
            .flat_map(|found| &mut found.replicas)
        {
            replica.is_whole = true;
        }
        next
    }

    /// The region that an address is in, and where in it; none: it is a server's own.
    pub(super) fn find(&self, at: Address) -> Option<(Option<&ReplicatedRegion>, u64)> {
        let number = at.server.0.checked_sub(Self::FIRST)?;
        Some((self.regions.get(usize::from(number)), at.offset))
    }

    /// Where servers have what is at an address, the primary first.
    pub(crate) fn all(&self, at: Address) -> Vec<Address> {
        match self.find(at) {
            None => vec![at],
            Some((region, offset)) => {
                let found = region.into_iter().flat_map(|region| region.at(offset));
                found.collect()
            }
        }
    }

    /// The same of servers that have all of the region.
    pub(super) fn whole(&self, at: Address) -> Vec<Address> {
        let mut places = self.all(at);
        if let Some((Some(region), _)) = self.find(at) {
            let is_whole = |replica: &&Replica| replica.is_whole;
            // Whole ones come first.
            places.truncate(region.replicas.iter().take_while(is_whole).count());
        }
        places
    }

    /// The log that lies at an address of a region, on all servers that have it ([`Log::new`]).
    #[must_use]
    pub fn log(&self, at: Address, bytes: u64, slots: u64) -> Option<Log> {
        Log::new(self.all(at), bytes, slots)
    }

    /// A log whose places are addresses of regions, on the servers that have them; none when no server has
    /// it any more.
    #[must_use]
    pub fn log_on_servers(&self, log: &Log) -> Option<Log> {
        let places = log.places().iter().flat_map(|at| self.all(*at));
        Log::new(places.collect(), log.bytes(), log.slots())
    }

    /// The vector's replicas as vectors of their own.
    pub(super) fn vectors(&self, vector: Vector) -> Vec<Vector> {
        let places = self.all(vector.base()).into_iter();
        places.map(|base| vector.based(base)).collect()
    }
}

/// What one knows of the memory: a map that could be used once, and where later ones are noted.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Chart {
    /// Where events are agreed on and noted; nowhere: no server is ever lost.
    pub epoch_log: Option<EpochLog>,
    /// The map as far as one has heard.
    pub map: Arc<Map>,
}

impl Chart {
    /// Of memory without replicas, whose servers are as they are.
    #[must_use]
    pub fn fixed() -> Self {
        Self {
            epoch_log: None,
            map: Arc::new(Map::fixed()),
        }
    }

    /// Of replicated memory, by its first map or a later one.
    #[must_use]
    pub fn new(epoch_log: EpochLog, map: Arc<Map>) -> Self {
        let epoch_log = Some(epoch_log);
        Self { epoch_log, map }
    }

    /// Finds the map that may be used; none: it is this one for good.
    pub(crate) fn learn(&self) -> Option<Learn> {
        let epoch_log = self.epoch_log?;
        Some(epoch_log.learn((*self.map).clone()))
    }
}

/// Whether an address is in a region, not at a server.
pub(crate) fn is_region(at: Address) -> bool {
    at.server.0 >= Map::FIRST
}

impl FreeBytes {
    fn has(&self, bytes: u64) -> bool {
        let end = self.next.checked_add(bytes);
        end.is_some_and(|end| end <= self.end)
    }

    /// From here on; it was asked whether it has as much.
    fn take(&mut self, bytes: u64) -> Address {
        assert!(
            self.has(bytes),
            "server {} has {bytes} bytes behind {:#x}",
            self.server.0,
            self.next
        );
        let at = Address {
            server: self.server,
            offset: self.next,
        };
        self.next += bytes.next_multiple_of(crate::directory::PLACE);
        at
    }
}

#[cfg(test)]
mod tests;
