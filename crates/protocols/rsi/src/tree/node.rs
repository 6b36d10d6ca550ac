//! What is in a node, and how that lies in a record's value.
//!
//! ```text
//! LEVEL 1 | BOUNDED 1 | COUNT 2 | RIGHT 8 | low | high | COUNT × (key, PLACE 8)
//! ```
//!
//! Numbers are little-endian; a key is its length in two bytes and itself.

use crate::directory::RecordAddress;
use manxdb_core::check::deep;

/// Bytes before the bounds.
const HEAD: usize = 12;
/// Bytes of a key's length.
const LENGTH: usize = 2;
/// Bytes of a place.
const PLACE: usize = 8;

/// A part of the tree: the places of the records whose keys lie between its bounds, or, above the
/// leaves, of nodes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Node {
    /// Steps to the leaves.
    level: u8,
    /// Its keys are not below it.
    low: Vec<u8>,
    /// Its keys are below it; none: it is the last of its level.
    high: Option<Vec<u8>>,
    /// The next node of its level: there is one if it has an upper bound.
    right: Option<RecordAddress>,
    /// By key. Above the leaves the key is the lower bound of the node at the place.
    entries: Vec<(Vec<u8>, RecordAddress)>,
}

/// Bytes that so many entries with keys of so many bytes take, with bounds as long.
pub(super) const fn room(key: usize, entries: usize) -> usize {
    HEAD + (2 + entries) * (LENGTH + key) + entries * PLACE
}

/// The longest key of which a node of so many bytes takes so many entries.
pub(super) const fn longest_key(bytes: usize, entries: usize) -> usize {
    bytes.saturating_sub(room(0, entries)) / (2 + entries)
}

/// Takes what it can off the front of bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    fn key(&mut self) -> Option<&'a [u8]> {
        let length = u16::from_le_bytes(self.array()?);
        let (key, rest) = self.0.split_at_checked(usize::from(length))?;
        self.0 = rest;
        Some(key)
    }

    fn word(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }
}

fn put_key(bytes: &mut Vec<u8>, key: &[u8]) {
    // Keys that are longer than a node takes are refused where they come in, and those are shorter.
    assert!(
        u16::try_from(key.len()).is_ok(),
        "the length of a key is said in two bytes: {}",
        key.len()
    );
    let length = u16::try_from(key.len()).unwrap_or(u16::MAX);
    bytes.extend(length.to_le_bytes());
    bytes.extend(key);
}

impl Node {
    /// What a record's value says; none: it is no node.
    #[must_use]
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut reader = Reader(value);
        let [level, is_bounded] = reader.array()?;
        let count = u16::from_le_bytes(reader.array()?);
        let right = match reader.word()? {
            0 => None,
            word => Some(RecordAddress::parse(word)?),
        };
        let low = reader.key()?.to_vec();
        let high = reader.key()?.to_vec();
        let mut entries = Vec::with_capacity(usize::from(count).min(value.len() / PLACE));
        for _ in 0..count {
            entries.push((
                reader.key()?.to_vec(),
                RecordAddress::parse(reader.word()?)?,
            ));
        }
        let node = Self {
            level,
            low,
            high: (is_bounded == 1).then_some(high),
            right,
            entries,
        };
        (reader.0.is_empty() && is_bounded <= 1 && node.fits_together()).then_some(node)
    }

    fn fits_together(&self) -> bool {
        let mut pairs = self.entries.windows(2);
        let is_ordered = pairs.all(|pair| pair[0].0 < pair[1].0);
        let is_inside = |key: &Vec<u8>| *key >= self.low && self.is_above(key);
        let ends = self.entries.first().into_iter().chain(self.entries.last());
        let first_is_low = || {
            let first = self.entries.first();
            first.is_some_and(|(key, _)| *key == self.low)
        };
        is_ordered
            && ends.map(|(key, _)| key).all(is_inside)
            && self.right.is_some() == self.high.is_some()
            && (self.level == 0 || first_is_low())
    }

    /// As it is in a record's value.
    #[must_use]
    pub fn value(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.size());
        bytes.push(self.level);
        bytes.push(u8::from(self.high.is_some()));
        // A node of 32 KiB has room for fewer entries than that.
        assert!(
            u16::try_from(self.entries.len()).is_ok(),
            "the number of entries is said in two bytes: {}",
            self.entries.len()
        );
        let count = u16::try_from(self.entries.len()).unwrap_or(u16::MAX);
        bytes.extend(count.to_le_bytes());
        bytes.extend(self.right.map_or(0, RecordAddress::word).to_le_bytes());
        put_key(&mut bytes, &self.low);
        put_key(&mut bytes, self.high.as_deref().unwrap_or_default());
        for (key, place) in &self.entries {
            put_key(&mut bytes, key);
            bytes.extend(place.word().to_le_bytes());
        }
        assert_eq!(
            bytes.len(),
            self.size(),
            "a node is as long as it was counted"
        );
        if deep() {
            assert!(
                self.fits_together(),
                "a node that is written is one: {self:?}"
            );
        }
        bytes
    }

    /// Bytes of its value.
    #[must_use]
    pub fn size(&self) -> usize {
        let high = self.high.as_ref().map_or(0, Vec::len);
        let entries = self.entries.iter().map(entry_size);
        HEAD + 2 * LENGTH + self.low.len() + high + entries.sum::<usize>()
    }

    /// What stands above parts of it, which are under these keys: the root, when it has become them.
    pub(super) fn over(&self, parts: Vec<(Vec<u8>, RecordAddress)>) -> Self {
        assert!(self.level < u8::MAX, "a tree is not so high");
        assert!(
            parts.first().is_some_and(|(low, _)| *low == self.low),
            "what stands above parts begins where they begin"
        );
        Self {
            level: self.level.saturating_add(1),
            low: self.low.clone(),
            high: self.high.clone(),
            right: self.right,
            entries: parts,
        }
    }

    /// Steps to the leaves.
    #[must_use]
    pub fn level(&self) -> u8 {
        self.level
    }

    /// Its keys are not below this.
    #[must_use]
    pub fn low(&self) -> &[u8] {
        &self.low
    }

    /// Its keys are below this; none: it is the last of its level.
    #[must_use]
    pub fn high(&self) -> Option<&[u8]> {
        self.high.as_deref()
    }

    /// The next node of its level.
    #[must_use]
    pub fn right(&self) -> Option<RecordAddress> {
        self.right
    }

    /// Its entries, by key.
    #[must_use]
    pub fn entries(&self) -> &[(Vec<u8>, RecordAddress)] {
        &self.entries
    }

    /// Whether a key is below its upper bound.
    #[must_use]
    pub fn is_above(&self, key: &[u8]) -> bool {
        self.high().is_none_or(|high| key < high)
    }

    /// The place under exactly this key.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<RecordAddress> {
        let number = self.number_of(key).ok()?;
        self.entries.get(number).map(|(_, place)| *place)
    }

    /// The last entry whose key is not above this one, or, if `below`, is below it.
    pub(super) fn child(&self, key: &[u8], below: bool) -> Option<&(Vec<u8>, RecordAddress)> {
        let comes_before = |(low, _): &(Vec<u8>, RecordAddress)| {
            if below { **low < *key } else { **low <= *key }
        };
        let count = self.entries.partition_point(comes_before);
        self.entries.get(count.checked_sub(1)?)
    }

    fn number_of(&self, key: &[u8]) -> Result<usize, usize> {
        self.entries
            .binary_search_by(|(other, _)| (**other).cmp(key))
    }

    /// Adds an entry under a key, unless it has one.
    pub(super) fn put(&mut self, key: &[u8], place: RecordAddress) {
        // It may have it where what was read of the tree is of two moments; then the commit conflicts.
        if let Err(number) = self.number_of(key) {
            self.entries.insert(number, (key.to_vec(), place));
        }
    }

    /// The same node without some of its keys.
    pub(crate) fn without(&self, is_gone: impl Fn(&[u8]) -> bool) -> Self {
        let mut node = self.clone();
        node.entries.retain(|(key, _)| !is_gone(key));
        node
    }

    /// Above the leaves: the node before the one at a place, if it has both.
    pub(crate) fn before(&self, low: &[u8], place: RecordAddress) -> Option<RecordAddress> {
        let number = self.number_of(low).ok()?;
        let (_, found) = self.entries.get(number)?;
        let (_, before) = self.entries.get(number.checked_sub(1)?)?;
        (*found == place).then_some(*before)
    }

    /// The same node with the span of its right neighbour, which is at a place; none: it is another
    /// one's neighbour.
    pub(crate) fn with_right(&self, right: &Self, place: RecordAddress) -> Option<Self> {
        let is_neighbour = self.right == Some(place) && self.high() == Some(right.low());
        is_neighbour.then(|| Self {
            high: right.high.clone(),
            right: right.right,
            ..self.clone()
        })
    }

    /// Gives its upper half to a new node to its right, which will be at `place`. Where the last
    /// entry is the one that was added, and of all keys the last, it gives away as little as leaves
    /// it with at most `room` bytes: keys that come in their order leave full nodes behind.
    pub(super) fn split(&mut self, added: &[u8], place: RecordAddress, room: usize) -> Self {
        let is_last = self.entries.last().is_some_and(|(key, _)| key == added);
        let kept = if is_last && self.high.is_none() {
            self.fitting(room)
        } else {
            self.half()
        };
        assert!(
            0 < kept && kept < self.entries.len(),
            "each half of a node has entries: {kept} of {}",
            self.entries.len()
        );
        let entries = self.entries.split_off(kept);
        let low = entries.first().map(|(key, _)| key.clone());
        let low = low.unwrap_or_default(); // `half` leaves at least one entry
        Self {
            level: self.level,
            low: low.clone(),
            high: self.high.replace(low),
            right: self.right.replace(place),
            entries,
        }
    }

    /// How many entries it may keep in so many bytes, with the next one's key as its upper bound.
    fn fitting(&self, room: usize) -> usize {
        let mut size = HEAD + 2 * LENGTH + self.low.len();
        let fits = |pair: &&[(Vec<u8>, RecordAddress)]| {
            size += entry_size(&pair[0]);
            size + pair[1].0.len() <= room
        };
        let count = self.entries.windows(2).take_while(fits).count();
        count.max(1)
    }

    /// How many entries make up half of it, in bytes; at least one is left on each side.
    fn half(&self) -> usize {
        let all: usize = self.entries.iter().map(entry_size).sum();
        let mut sum = 0;
        let before_half = |entry: &&(Vec<u8>, RecordAddress)| {
            sum += entry_size(entry);
            sum <= all / 2
        };
        let count = self.entries.iter().take_while(before_half).count();
        count.clamp(1, self.entries.len().saturating_sub(1).max(1))
    }
}

fn entry_size((key, _): &(Vec<u8>, RecordAddress)) -> usize {
    LENGTH + key.len() + PLACE
}

#[cfg(test)]
mod tests {
    use manxdb_fabric::{Address, ServerId};
    use proptest::collection::{btree_set, vec};
    use proptest::prelude::*;

    use super::*;

    fn place(number: u64) -> RecordAddress {
        let server = ServerId(1);
        let offset = number * 64;
        RecordAddress::new(Address { server, offset }).unwrap()
    }

    fn node(keys: impl IntoIterator<Item = Vec<u8>>) -> Node {
        let mut node = Node::default();
        for (number, key) in keys.into_iter().enumerate() {
            node.put(&key, place(number as u64));
        }
        node
    }

    proptest! {
        #[test]
        fn a_node_is_what_its_value_says(keys in btree_set(vec(any::<u8>(), 0..40), 2..60)) {
            let whole = node(keys);
            let mut left = whole.clone();
            let right = left.split(b"", place(99), usize::MAX);
            let parts = [(&left, place(98)), (&right, place(99))];
            let above = whole.over(parts.map(|(node, place)| (node.low.clone(), place)).into());
            for node in [&whole, &left, &right, &above] {
                prop_assert_eq!(node.value().len(), node.size());
                prop_assert_eq!(&Node::parse(&node.value()).unwrap(), node);
            }
            prop_assert_eq!(left.high(), Some(right.low()));
            prop_assert_eq!(left.right(), Some(place(99)));
            let entries = [left.entries(), right.entries()].concat();
            prop_assert_eq!(entries, whole.entries());
            let longest = whole.entries().iter().map(entry_size).max().unwrap();
            prop_assert!(left.size().abs_diff(right.size()) <= 2 * longest + whole.size() / 8);
        }

        #[test]
        fn bytes_that_are_no_node_are_none(keys in btree_set(vec(any::<u8>(), 0..9), 1..9), at: usize, to: u8) {
            let mut bytes = node(keys).value();
            let at = at % bytes.len();
            bytes[at] = to;
            if let Some(node) = Node::parse(&bytes) {
                prop_assert_eq!(Node::parse(&node.value()), Some(node));
            }
            bytes.truncate(at);
            prop_assert_eq!(Node::parse(&bytes), None);
        }
    }

    #[test]
    fn keys_in_their_order_leave_full_nodes() {
        let mut left = node((0..10_u8).map(|key| vec![key]));
        let right = left.split(&[9], place(99), left.size());
        assert_eq!((left.entries().len(), right.entries().len()), (9, 1));
    }

    #[test]
    fn the_longest_key_leaves_room_for_entries() {
        for bytes in [200, 1_000, 32 << 10] {
            let key = longest_key(bytes, 4);
            assert!(room(key, 4) <= bytes && bytes < room(key + 1, 4));
        }
    }
}
