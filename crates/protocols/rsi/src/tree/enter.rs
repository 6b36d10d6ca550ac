//! Gives a tree a key: what is to be committed for it.

use crate::commit::Change;
use crate::directory::Place;
use crate::find::Found;
use crate::read::Seen;
use crate::tree::locate::Located;
use crate::tree::node::Node;
use crate::version::Stamp;

/// Why a tree does not get a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EnterError {
    /// The leaf is full, and what is above it is not known: to be located without a hint.
    #[error("a leaf is to be split that was not reached from the root")]
    FromTheRoot,
    /// Nodes are to be split, and there are no places for new ones.
    #[error("the tree grows, and there is no more room for its nodes")]
    NoRoom,
    /// The tree does not take such keys.
    #[error("keys have at most {0} bytes, not {1}")]
    TooLong(usize, usize),
}

/// What a tree's getting a key comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entered {
    /// It had it: the place of the record that is under it.
    There(Place),
    /// These changes are to be committed, by themselves. When somebody else was faster, it is to
    /// be located once more.
    Changes(Vec<Change>),
}

impl Located {
    /// The place of the record under a key that was located.
    #[must_use]
    pub fn place(&self, key: &[u8]) -> Option<Place> {
        self.leaf.node.find(key)
    }

    /// Puts a record's place under a key that was located and is not there. New nodes become those
    /// in `rooms`: fresh ones, or such as were taken out of the tree and nobody looks for any more
    /// ([`crate::rows::collect`]). Those taken from it are used when the changes are committed, and
    /// only then.
    ///
    /// # Errors
    /// [`EnterError`].
    pub fn enter(
        &self,
        key: &[u8],
        place: Place,
        rooms: &mut dyn Iterator<Item = Seen>,
    ) -> Result<Entered, EnterError> {
        if let Some(place) = self.place(key) {
            return Ok(Entered::There(place));
        }
        let longest = self.tree.key_max();
        if key.len() > longest {
            return Err(EnterError::TooLong(longest, key.len()));
        }
        let size = self.tree.layout.value_max();
        let mut changes = Vec::new();
        let mut above = self.above.iter().rev();
        let mut visited = &self.leaf;
        let (mut key, mut place) = (key.to_vec(), place);
        loop {
            let mut node = visited.node.clone();
            node.put(&key, place);
            if node.size() <= size {
                changes.push(change(&visited.seen, &node));
                return Ok(Entered::Changes(changes));
            }
            let mut room = || {
                let seen = rooms.next().ok_or(EnterError::NoRoom)?;
                let place = Place::new(seen.at).ok_or(EnterError::NoRoom)?; // rooms are places
                Ok((seen, place))
            };
            let (right_room, right_place) = room()?;
            let right = node.split(&key, right_place, size);
            if visited.seen.at == self.tree.root.address() {
                let (left_room, left_place) = room()?;
                let root = Node::above((&node, left_place), (&right, right_place));
                changes.push(change(&left_room, &node));
                changes.push(change(&right_room, &right));
                changes.push(change(&visited.seen, &root));
                return Ok(Entered::Changes(changes));
            }
            changes.push(change(&right_room, &right));
            changes.push(change(&visited.seen, &node));
            let Some(parent) = above.next() else {
                return Err(EnterError::FromTheRoot);
            };
            (key, place) = (right.low().to_vec(), right_place);
            visited = parent;
        }
    }
}

fn change(seen: &Seen, node: &Node) -> Change {
    Change {
        seen: seen.clone(),
        value: Some(node.value()),
    }
}

/// A transaction that has scanned leaves and has then entered keys into them itself relies on what
/// they have become: `changes` were committed as `stamp`. Without that it would take its own keys
/// for another's, and be tried again.
pub fn rely_on_own(reads: &mut Vec<Found>, changes: &[Change], stamp: Stamp) {
    let is_read = |change: &Change, found: &Found| match found {
        Found::Record(seen) => (seen.at, seen.stamp) == (change.seen.at, change.seen.stamp),
        Found::Nothing(_) => false,
    };
    let became = |change: &Change| {
        Found::Record(Seen {
            stamp,
            ..change.seen.clone()
        })
    };
    let mut had_one = false;
    for found in reads.iter_mut() {
        if let Some(change) = changes.iter().find(|change| is_read(change, found)) {
            *found = became(change);
            had_one = true;
        }
    }
    if had_one {
        // Half of what it had read may be in a new node.
        let new = changes
            .iter()
            .filter(|change| change.seen.value().is_none());
        reads.extend(new.map(became));
    }
}
