//! Gives a tree keys: what is to be committed for them.
//!
//! Keys that are new are entered together, as many as are in a [`Draft`]: the leaves that they belong
//! to, with what is above those as far as it is known. A leaf that gets several keys is written
//! once. One that has no room for them becomes as many nodes as they need, whose entries go up level
//! by level; so what is above several leaves is written once as well. All this is one commit, so
//! that all of the keys are entered or none is.

use std::collections::BTreeMap;

use manxdb_fabric::Address;

use crate::abort::Abort;
use crate::change::Change;
use crate::directory::RecordAddress;
use crate::find::LookupResult;
#[cfg(feature = "mutants")]
use crate::mutants::Mutant;
use crate::read::Seen;
use crate::tree::Tree;
use crate::tree::locate::{Located, Visited};
use crate::tree::node::Node;
use crate::version::Stamp;

/// Why a tree does not get keys.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnterError {
    /// The leaf of this key is not known, or it is full, and what is above it is not known: it is to
    /// be located without a hint and added.
    #[error("the way from the root to the leaf of {} is not known", .0.escape_ascii())]
    Unknown(Vec<u8>),
    /// The tree grows, and there are no more places for this.
    #[error("there is no more room for {0}")]
    NoRoom(&'static str),
    /// The tree does not take such keys.
    #[error("keys have at most {0} bytes, not {1}")]
    TooLong(usize, usize),
}

/// The record under a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// The tree had the key, with the record at this place.
    There(RecordAddress),
    /// The key gets this one, which was the caller's.
    New(Seen),
}

/// What a tree's getting keys comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entered {
    /// The records under the keys, in the order of the keys.
    pub records: Vec<Record>,
    /// To be committed, with what writes the new records or before it; none: the tree had all of the
    /// keys. When somebody else was faster, all leaves are to be located once more.
    pub changes: Vec<Change>,
    /// So many rooms of records were taken,
    pub taken: usize,
    /// and so many of nodes.
    pub nodes: usize,
}

impl Record {
    /// Where it is; none where it is not at a place, which no room is.
    #[must_use]
    pub fn place(&self) -> Option<RecordAddress> {
        match self {
            Self::There(place) => Some(*place),
            Self::New(seen) => RecordAddress::new(seen.at),
        }
    }
}

impl Located {
    /// The place of the record under a key that was located.
    #[must_use]
    pub fn place(&self, key: &[u8]) -> Option<RecordAddress> {
        self.leaf.node.find(key)
    }
}

/// Leaves that were located, which get keys together. None of them lies over another.
#[derive(Debug, Clone)]
pub struct Draft {
    tree: Tree,
    /// Nodes by where they are.
    nodes: BTreeMap<Address, Visited>,
    /// Where the leaves are, by their lower bounds.
    leaves: BTreeMap<Vec<u8>, Address>,
    /// What is above nodes, where that is known.
    above: BTreeMap<Address, Address>,
    #[cfg(feature = "mutants")]
    mutant: Option<Mutant>,
}

/// Entries that a node gets.
type Entries = BTreeMap<Vec<u8>, RecordAddress>;

/// Nodes of one level that get entries.
type Level<'d> = BTreeMap<Address, (&'d Visited, Entries)>;

impl Draft {
    /// Without a leaf.
    #[must_use]
    pub fn new(tree: Tree) -> Self {
        Self {
            tree,
            nodes: BTreeMap::new(),
            leaves: BTreeMap::new(),
            above: BTreeMap::new(),
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }

    /// The same with a defect.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with(mut self, mutant: Option<Mutant>) -> Self {
        self.mutant = mutant;
        self
    }

    /// Adds a leaf with what is above it, or, of a leaf that it has, what is above that.
    ///
    /// # Errors
    /// [`Abort::WriteConflict`]: others have changed the tree since the leaves before were located.
    pub fn add(&mut self, located: Located) -> Result<(), Abort> {
        self.is_apart(&located.leaf)?;
        let (low, at) = (located.leaf.node.low().to_vec(), located.leaf.seen.at);
        self.leaves.insert(low, at);
        let mut above = None;
        for visited in located.above.into_iter().chain([located.leaf]) {
            let Seen { at, stamp, .. } = visited.seen;
            if let Some(above) = above.replace(at) {
                self.above.insert(at, above);
            }
            let before = self.nodes.insert(at, visited);
            if before.is_some_and(|before| before.seen.stamp != stamp) {
                return Err(Abort::WriteConflict(at));
            }
        }
        Ok(())
    }

    /// Whether a leaf lies over none of the others.
    fn is_apart(&self, leaf: &Visited) -> Result<(), Abort> {
        let low = leaf.node.low();
        let is_over = |(other, at): (&Vec<u8>, &Address)| {
            *at != leaf.seen.at && leaf.node.is_above(other) && self.has_at(*at, low)
        };
        if self.leaves.iter().any(is_over) {
            return Err(Abort::WriteConflict(leaf.seen.at));
        }
        Ok(())
    }

    /// Whether a key is below the upper bound of a leaf.
    fn has_at(&self, at: Address, key: &[u8]) -> bool {
        let leaf = self.nodes.get(&at);
        leaf.is_some_and(|leaf| leaf.node.is_above(key))
    }

    /// How many leaves it has.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.leaves.len()
    }

    /// Whether it has the leaf of a key.
    #[must_use]
    pub fn has(&self, key: &[u8]) -> bool {
        self.leaf(key).is_some()
    }

    fn leaf(&self, key: &[u8]) -> Option<&Visited> {
        let upto = (std::ops::Bound::Unbounded, std::ops::Bound::Included(key));
        let (_, at) = self.leaves.range::<[u8], _>(upto).next_back()?;
        let leaf = self.nodes.get(at)?;
        leaf.node.is_above(key).then_some(leaf)
    }

    /// Puts a record under each of some keys that is not there. New records come from `records`, new
    /// nodes become those in `rooms`: fresh ones, or such as were taken out of the tree and nobody
    /// looks for any more ([`crate::rows::collect`]). What is taken from either is used when the
    /// changes are committed, and only then.
    ///
    /// # Errors
    /// [`EnterError`].
    pub fn enter<'k>(
        &self,
        keys: impl IntoIterator<Item = &'k Vec<u8>>,
        records: &mut dyn Iterator<Item = Seen>,
        rooms: &mut dyn Iterator<Item = Seen>,
    ) -> Result<Entered, EnterError> {
        let mut level = Level::new();
        let mut under = Vec::new();
        let mut taken = 0;
        for key in keys {
            let leaf = self.leaf(key);
            let leaf = leaf.ok_or_else(|| EnterError::Unknown(key.clone()))?;
            let (_, entries) = level
                .entry(leaf.seen.at)
                .or_insert_with(|| (leaf, Entries::new()));
            let there = leaf.node.find(key).or_else(|| entries.get(key).copied());
            if let Some(place) = there {
                under.push(Record::There(place));
                continue;
            }
            self.is_fine(key)?;
            #[cfg(feature = "mutants")]
            if self.mutant == Some(Mutant::EntersTheLastKeyAlone) {
                entries.clear();
            }
            let (seen, place) = next(records, "records")?;
            entries.insert(key.clone(), place);
            taken += 1;
            under.push(Record::New(seen));
        }
        level.retain(|_, (_, entries)| !entries.is_empty());
        let is_new = |record: &&Record| matches!(record, Record::New(_));
        assert_eq!(
            under.iter().filter(is_new).count(),
            taken,
            "each record that was taken is under a key"
        );
        let mut growth = Growth::new(self.tree, rooms);
        while !level.is_empty() {
            level = self.grow(level, &mut growth)?;
        }
        Ok(Entered {
            records: under,
            changes: growth.changes,
            taken,
            nodes: growth.taken,
        })
    }

    fn is_fine(&self, key: &[u8]) -> Result<(), EnterError> {
        let longest = self.tree.key_max();
        if key.len() > longest {
            return Err(EnterError::TooLong(longest, key.len()));
        }
        Ok(())
    }

    /// Gives the nodes of a level their entries; what the level above gets for that.
    fn grow<'d>(
        &'d self,
        level: Level<'d>,
        growth: &mut Growth<'_>,
    ) -> Result<Level<'d>, EnterError> {
        let mut next = Level::new();
        for (at, (visited, entries)) in level {
            assert!(!entries.is_empty(), "a node that grows gets an entry");
            let mut node = visited.node.clone();
            for (key, place) in &entries {
                node.put(key, *place);
            }
            let last = entries.into_keys().next_back().unwrap_or_default(); // each gets some
            if at == self.tree.root.address() {
                growth.raise(&visited.seen, node, last)?;
                continue;
            }
            let parts = growth.cut(visited.seen.clone(), node, &last)?;
            let mut new = parts.into_iter().skip(1).peekable();
            if new.peek().is_none() {
                continue;
            }
            let above = self.above.get(&at).and_then(|above| self.nodes.get(above));
            let low = || visited.node.low().to_vec();
            let above = above.ok_or_else(|| EnterError::Unknown(low()))?;
            let (_, entries) = next
                .entry(above.seen.at)
                .or_insert_with(|| (above, Entries::new()));
            entries.extend(new);
        }
        Ok(next)
    }
}

/// What a tree becomes.
struct Growth<'r> {
    tree: Tree,
    rooms: &'r mut dyn Iterator<Item = Seen>,
    /// So many of them.
    taken: usize,
    changes: Vec<Change>,
}

impl<'r> Growth<'r> {
    fn new(tree: Tree, rooms: &'r mut dyn Iterator<Item = Seen>) -> Self {
        Self {
            tree,
            rooms,
            taken: 0,
            changes: Vec::new(),
        }
    }

    /// A new node's place.
    fn room(&mut self) -> Result<(Seen, RecordAddress), EnterError> {
        let room = next(self.rooms, "nodes of the tree")?;
        self.taken += 1;
        Ok(room)
    }

    fn is_full(&self, node: &Node) -> bool {
        node.size() > self.tree.layout.value_max()
    }

    /// Writes a node, of whose entries this is the last one that it got: what it has room for to its
    /// home, the rest to new ones to its right. Under which keys all of them are to be found.
    fn cut(
        &mut self,
        home: Seen,
        node: Node,
        last: &[u8],
    ) -> Result<Vec<(Vec<u8>, RecordAddress)>, EnterError> {
        let mut parts = Vec::new();
        let mut rest = vec![(home, node)];
        while let Some((seen, mut node)) = rest.pop() {
            if self.is_full(&node) {
                let (room, place) = self.room()?;
                let right = node.split(last, place, self.tree.layout.value_max());
                rest.extend([(room, right), (seen, node)]);
                continue;
            }
            let place = RecordAddress::new(seen.at);
            assert!(place.is_some(), "a node is at a place: {}", seen.at);
            parts.extend(place.map(|place| (node.low().to_vec(), place)));
            self.changes.push(change(seen, &node));
        }
        let mut pairs = parts.windows(2);
        assert!(
            !parts.is_empty() && pairs.all(|pair| pair[0].0 < pair[1].0),
            "the parts of a node lie one behind the other"
        );
        Ok(parts)
    }

    /// Writes the root, which stays where it is: what it has no room for goes to nodes under it.
    fn raise(&mut self, root: &Seen, mut node: Node, mut last: Vec<u8>) -> Result<(), EnterError> {
        while self.is_full(&node) {
            let (home, _) = self.room()?;
            let parts = self.cut(home, node.clone(), &last)?;
            assert!(
                parts.len() > 1,
                "a root that is full has become two nodes at least"
            );
            last = parts.last().map(|(low, _)| low.clone()).unwrap_or_default(); // there are two
            node = node.over(parts);
        }
        self.changes.push(change(root.clone(), &node));
        Ok(())
    }
}

/// The next room, and where it is.
fn next(
    rooms: &mut dyn Iterator<Item = Seen>,
    what: &'static str,
) -> Result<(Seen, RecordAddress), EnterError> {
    let none = EnterError::NoRoom(what);
    let seen = rooms.next().ok_or(none.clone())?;
    let place = RecordAddress::new(seen.at).ok_or(none)?; // rooms are places
    Ok((seen, place))
}

fn change(seen: Seen, node: &Node) -> Change {
    Change {
        seen,
        value: Some(node.value()),
    }
}

/// A transaction that has scanned leaves and has then entered keys into them itself relies on what
/// they have become: `changes` were committed as `stamp`. Without that it would take its own keys
/// for another's, and be tried again.
pub fn rely_on_own(reads: &mut Vec<LookupResult>, changes: &[Change], stamp: Stamp) {
    let is_read = |change: &Change, found: &LookupResult| match found {
        LookupResult::Record(seen) => (seen.at, seen.stamp) == (change.seen.at, change.seen.stamp),
        LookupResult::Nothing(_) => false,
    };
    let became = |change: &Change| {
        LookupResult::Record(Seen {
            stamp,
            ..change.seen.clone()
        })
    };
    // As they were when they were read.
    let mut leaves = Vec::new();
    for found in reads.iter_mut() {
        if let Some(change) = changes.iter().find(|change| is_read(change, found)) {
            *found = became(change);
            leaves.push(node(change.seen.value()).unwrap_or_default());
        }
    }
    // Some of what they had may be in new nodes.
    let is_part = |change: &&Change| {
        let new = node(change.value.as_deref()).filter(|new| new.level() == 0);
        let has = |leaf: &Node, key: &[u8]| *key >= *leaf.low() && leaf.is_above(key);
        change.seen.value().is_none()
            && new.is_some_and(|new| leaves.iter().any(|leaf| has(leaf, new.low())))
    };
    reads.extend(changes.iter().filter(is_part).map(became));
}

fn node(value: Option<&[u8]>) -> Option<Node> {
    value.and_then(Node::parse)
}
