//! Walking a memtable in either direction while it is written to.
//!
//! Nodes are listed a page at a time, so that no writer waits for a whole scan. A key that is
//! added behind the reader's back belongs to a version that the reader does not look at; the
//! versions it does look at stay as they are. So it does not matter when a node's chain is read.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use super::{Memtable, Node};
use crate::model::{Direction, KeyRange, Version};

/// Nodes of the first page: most ranges are short.
const PAGE_FIRST: usize = 8;
/// Nodes of a later page, at most.
const PAGE_MAX: usize = 128;

/// Every node of a range, whatever its versions.
pub struct Nodes {
    memtable: Arc<Memtable>,
    rest: KeyRange,
    direction: Direction,
    page: Vec<Arc<Node>>,
    /// Of the page, how many were handed out.
    taken: usize,
    page_size: usize,
    is_listed: bool,
}

impl Nodes {
    /// Over `range` of `memtable`.
    pub fn new(memtable: &Arc<Memtable>, range: &KeyRange, direction: Direction) -> Self {
        Self {
            memtable: Arc::clone(memtable),
            rest: range.clone(),
            direction,
            page: Vec::new(),
            taken: 0,
            page_size: PAGE_FIRST,
            is_listed: false,
        }
    }

    /// The next node.
    pub fn next(&mut self) -> Option<&Arc<Node>> {
        if !self.has_any() {
            return None;
        }
        self.taken += 1;
        self.page.get(self.taken - 1)
    }

    /// Whether there is any node left.
    fn has_any(&mut self) -> bool {
        if self.taken == self.page.len() && !self.is_listed {
            self.list();
        }
        self.taken < self.page.len()
    }

    fn list(&mut self) {
        assert_eq!(
            self.taken,
            self.page.len(),
            "a page is listed when all of the one before was handed out"
        );
        self.taken = 0;
        self.page.clear();
        if !self.rest.is_empty() {
            let bounds = (as_slice(&self.rest.start), as_slice(&self.rest.end));
            let ordered = self.memtable.ordered.read();
            let nodes = ordered
                .range::<[u8], _>(bounds)
                .map(|(_, node)| Arc::clone(node));
            match self.direction {
                Direction::Forward => self.page.extend(nodes.take(self.page_size)),
                Direction::Reverse => self.page.extend(nodes.rev().take(self.page_size)),
            }
        }
        self.is_listed = self.page.len() < self.page_size;
        self.page_size = (self.page_size * 4).min(PAGE_MAX);
        if let Some(last) = self.page.last().filter(|_| !self.is_listed) {
            let behind = Bound::Excluded(last.key().to_vec());
            match self.direction {
                Direction::Forward => self.rest.start = behind,
                Direction::Reverse => self.rest.end = behind,
            }
        }
    }
}

/// The keys of a range that have a version at or below one, deletes included.
pub struct MemtableCursor {
    nodes: Nodes,
    at: Version,
    node: Option<Arc<Node>>,
    version: Version,
    is_delete: bool,
    value: Vec<u8>,
    /// The first node since the cursor was told where to go that has a version newer than `at`.
    first_newer: Option<Arc<Node>>,
}

impl MemtableCursor {
    /// Over `range` of `memtable`, read at `at`.
    pub fn new(
        memtable: &Arc<Memtable>,
        range: &KeyRange,
        at: Version,
        direction: Direction,
    ) -> Self {
        Self {
            nodes: Nodes::new(memtable, range, direction),
            at,
            node: None,
            version: Version::ZERO,
            is_delete: false,
            value: Vec::new(),
            first_newer: None,
        }
    }

    /// Goes on with `range`; nodes are listed anew.
    pub fn go_to(&mut self, range: &KeyRange) {
        self.node = None;
        self.first_newer = None;
        self.nodes.rest.clone_from(range);
        self.nodes.page.clear();
        self.nodes.taken = 0;
        self.nodes.page_size = PAGE_FIRST;
        self.nodes.is_listed = false;
    }

    /// Moves to the next key; whether there is one.
    pub fn advance(&mut self) -> bool {
        let ahead = match self.nodes.direction {
            Direction::Forward => Ordering::Less,
            Direction::Reverse => Ordering::Greater,
        };
        loop {
            let Some(node) = self.nodes.next() else {
                self.node = None;
                return false;
            };
            let chain = node.chain.lock();
            if self.first_newer.is_none() && chain.newest() > self.at {
                self.first_newer = Some(Arc::clone(node));
            }
            let Some(stored) = chain.at(self.at) else {
                continue;
            };
            let order = self.node.as_ref().map(|last| last.key().cmp(node.key()));
            assert!(
                order.is_none_or(|order| order == ahead),
                "a walk meets each key once, in order"
            );
            self.version = stored.version;
            self.value.clear();
            self.is_delete = stored.value.is_none();
            self.value
                .extend_from_slice(stored.value.as_deref().unwrap_or_default());
            drop(chain);
            self.node = Some(Arc::clone(node));
            return true;
        }
    }

    /// The key moved to; none before the first and behind the last.
    pub fn key(&self) -> &[u8] {
        self.node.as_ref().map_or(&[], |node| node.key())
    }

    /// The first key since the cursor was told where to go that has a version newer than the one read
    /// at, of those up to where it stands.
    pub fn first_newer(&self) -> Option<&[u8]> {
        self.first_newer.as_ref().map(|node| node.key())
    }

    /// The version found there.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Its value; `None` when it is a delete.
    pub fn value(&self) -> Option<&[u8]> {
        (!self.is_delete).then_some(&self.value)
    }
}

/// A bound as `BTreeMap` takes it.
pub(super) fn as_slice(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}
