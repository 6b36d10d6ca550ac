//! The objects under keys.

use crate::objects::pending::{
    Pending, SMALL_BYTES, SMALL_ELEMENTS, SMALL_LIST_BYTES, SMALL_LIST_ELEMENTS,
};
use crate::objects::{Hash, List, Set, Stream, StreamHead, ZSet};

/// The type of an object, as its rows name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Bytes.
    Str = 1,
    /// A list.
    List = 2,
    /// A hash.
    Hash = 3,
    /// A set.
    Set = 4,
    /// A sorted set.
    ZSet = 5,
    /// A stream.
    Stream = 6,
}

impl Kind {
    /// All of them, by their places.
    pub const ALL: [Self; 6] = [
        Self::Str,
        Self::List,
        Self::Hash,
        Self::Set,
        Self::ZSet,
        Self::Stream,
    ];

    /// Its place among all.
    pub(super) fn place(self) -> usize {
        usize::from(self as u8) - 1
    }

    /// As TYPE names it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Str => "string",
            Self::List => "list",
            Self::Hash => "hash",
            Self::Set => "set",
            Self::ZSet => "zset",
            Self::Stream => "stream",
        }
    }

    /// The type that a row names.
    #[must_use]
    pub fn of(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    /// Bytes that its key's row has before the elements, or before their number.
    #[must_use]
    pub fn head_bytes(self) -> usize {
        match self {
            Self::Stream => StreamHead::BYTES,
            _ => 0,
        }
    }
}

/// An object.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Bytes.
    Str(Vec<u8>),
    /// A list.
    List(Box<List>),
    /// A hash.
    Hash(Box<Hash>),
    /// A set.
    Set(Box<Set>),
    /// A sorted set.
    ZSet(Box<ZSet>),
    /// A stream.
    Stream(Box<Stream>),
    /// Only in the store; this is what it is there.
    Cold(Kind),
}

impl Value {
    /// An empty object.
    #[must_use]
    pub fn empty(kind: Kind) -> Self {
        match kind {
            Kind::Str => Self::Str(Vec::new()),
            Kind::List => Self::List(Box::default()),
            Kind::Hash => Self::Hash(Box::default()),
            Kind::Set => Self::Set(Box::default()),
            Kind::ZSet => Self::ZSet(Box::default()),
            Kind::Stream => Self::Stream(Box::default()),
        }
    }

    /// Its type.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Self::Str(_) => Kind::Str,
            Self::List(_) => Kind::List,
            Self::Hash(_) => Kind::Hash,
            Self::Set(_) => Kind::Set,
            Self::ZSet(_) => Kind::ZSet,
            Self::Stream(_) => Kind::Stream,
            Self::Cold(kind) => *kind,
        }
    }

    /// Whether it is only in the store.
    #[must_use]
    pub fn is_cold(&self) -> bool {
        matches!(self, Self::Cold(_))
    }

    /// Elements that have a row each when it is large; 1 for bytes.
    #[must_use]
    pub fn elements(&self) -> usize {
        match self {
            Self::Str(_) | Self::Cold(_) => 1,
            Self::List(list) => list.len(),
            Self::Hash(hash) => hash.len(),
            Self::Set(set) => set.len(),
            Self::ZSet(zset) => zset.len(),
            Self::Stream(stream) => stream.rows(),
        }
    }

    /// Whether it is a collection without elements, which no key keeps.
    #[must_use]
    pub fn is_empty_collection(&self) -> bool {
        // A stream without entries still knows which IDs it had.
        !matches!(self, Self::Stream(_)) && self.elements() == 0
    }

    /// Bytes of its elements, without what holds them together.
    #[must_use]
    pub fn payload_bytes(&self) -> usize {
        match self {
            Self::Str(bytes) => bytes.len(),
            Self::Cold(_) => 0,
            Self::List(list) => list.bytes(),
            Self::Hash(hash) => hash.bytes(),
            Self::Set(set) => set.bytes(),
            Self::ZSet(zset) => zset.bytes(),
            Self::Stream(stream) => stream.bytes(),
        }
    }

    /// Bytes that the order of its fields' expiries takes.
    pub(super) fn due_bytes(&self) -> usize {
        match self {
            Self::Hash(hash) => hash.due_bytes(),
            _ => 0,
        }
    }

    /// When the next of its fields expires, in milliseconds since 1970.
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        match self {
            Self::Hash(hash) => hash.next_due(),
            _ => None,
        }
    }

    /// Whether its elements' rows have expiries.
    pub(super) fn has_expiries(&self) -> bool {
        matches!(self, Self::Hash(hash) if hash.has_expiries())
    }

    /// Whether it fits into one row.
    #[must_use]
    pub fn is_small(&self) -> bool {
        let (elements, bytes) = match self {
            Self::List(_) => (SMALL_LIST_ELEMENTS, SMALL_LIST_BYTES),
            _ => (SMALL_ELEMENTS, SMALL_BYTES),
        };
        self.elements() <= elements && self.payload_bytes() <= bytes
    }

    /// What its key's row has before the elements.
    pub(crate) fn head(&self) -> Vec<u8> {
        match self {
            Self::Stream(stream) => stream.head_bytes().to_vec(),
            _ => Vec::new(),
        }
    }

    /// Takes in what its key's row has before the elements. `false` when it has no such thing.
    pub(crate) fn take_head(&mut self, head: &[u8]) -> bool {
        match self {
            Self::Stream(stream) => stream.take_head(head),
            _ => head.is_empty(),
        }
    }

    pub(crate) fn pending_mut(&mut self) -> Option<&mut Pending> {
        match self {
            Self::Str(_) | Self::Cold(_) => None,
            Self::List(list) => Some(list.pending_mut()),
            Self::Hash(hash) => Some(hash.pending_mut()),
            Self::Set(set) => Some(set.pending_mut()),
            Self::ZSet(zset) => Some(zset.pending_mut()),
            Self::Stream(stream) => Some(stream.pending_mut()),
        }
    }

    pub(crate) fn pending(&self) -> Option<&Pending> {
        match self {
            Self::Str(_) | Self::Cold(_) => None,
            Self::List(list) => Some(list.pending()),
            Self::Hash(hash) => Some(hash.pending()),
            Self::Set(set) => Some(set.pending()),
            Self::ZSet(zset) => Some(zset.pending()),
            Self::Stream(stream) => Some(stream.pending()),
        }
    }

    /// The value of the row of element `sub`, when there is that element.
    pub(crate) fn element(&self, sub: &[u8]) -> Option<Vec<u8>> {
        match self {
            Self::Str(_) | Self::Cold(_) => None,
            Self::List(list) => list.row(sub),
            Self::Hash(hash) => hash.row(sub),
            Self::Set(set) => set.row(sub),
            Self::ZSet(zset) => zset.row(sub),
            Self::Stream(stream) => stream.row(sub),
        }
    }

    /// Hands every element's row to `take`: its name and its value.
    pub(crate) fn each_element(&self, take: &mut dyn FnMut(&[u8], &[u8])) {
        match self {
            Self::Str(_) | Self::Cold(_) => {}
            Self::List(list) => list.each_row(take),
            Self::Hash(hash) => hash.each_row(take),
            Self::Set(set) => set.each_row(take),
            Self::ZSet(zset) => zset.each_row(take),
            Self::Stream(stream) => stream.each_row(take),
        }
    }

    /// Takes an element's row in. `false` when its bytes are no such row.
    pub(crate) fn take_row(&mut self, sub: &[u8], value: &[u8]) -> bool {
        match self {
            Self::Str(_) | Self::Cold(_) => false,
            Self::List(list) => list.take_row(sub, value),
            Self::Hash(hash) => hash.take_row(sub, value),
            Self::Set(set) => set.take_row(sub, value),
            Self::ZSet(zset) => zset.take_row(sub, value),
            Self::Stream(stream) => stream.take_row(sub, value),
        }
    }
}
