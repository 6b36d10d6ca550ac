//! Finds the leaf that a key belongs to.

use manxdb_core::check::ensure;
use manxdb_fabric::{Address, OperationOutcome};

use crate::abort::Abort;
use crate::directory::RecordAddress;
use crate::find::LookupResult;
use crate::machine::{Machine, Step};
use crate::read::{Read, Seen, Take};
use crate::tree::node::Node;
use crate::tree::{Hint, Tree};
use crate::vector::Snapshot;

/// What is sought.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Seek {
    /// The leaf with this key, if any has it.
    At(Vec<u8>),
    /// The leaf with the last keys below this one.
    Below(Vec<u8>),
    /// The last leaf.
    Last,
}

impl Seek {
    /// Whether it lies to the right of a node.
    fn is_behind(&self, node: &Node) -> bool {
        match (self, node.high()) {
            (_, None) => false,
            (Self::Last, Some(_)) => true,
            (Self::At(key), Some(high)) => **key >= *high,
            (Self::Below(key), Some(high)) => **key > *high,
        }
    }

    /// Whether it lies to the left of a node.
    fn is_before(&self, node: &Node) -> bool {
        match self {
            Self::Last => false,
            Self::At(key) => **key < *node.low(),
            // Nothing is below the very first key.
            Self::Below(key) => **key <= *node.low() && !node.low().is_empty(),
        }
    }

    /// The entry to go down by.
    fn child<'n>(&self, node: &'n Node) -> Option<&'n (Vec<u8>, RecordAddress)> {
        match self {
            Self::Last => node.entries().last(),
            Self::At(key) => node.child(key, false),
            Self::Below(key) => node.child(key, true).or(node.entries().first()),
        }
    }
}

/// A node as a snapshot sees it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Visited {
    /// The record.
    pub seen: Seen,
    /// What it says.
    pub node: Node,
}

/// Nodes on the way to a leaf.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Located {
    pub(super) tree: Tree,
    pub(super) leaf: Visited,
    /// From the root to what is above the leaf; empty where the search began at a leaf.
    pub(super) above: Vec<Visited>,
}

impl Located {
    /// The leaf.
    #[must_use]
    pub fn leaf(&self) -> &Visited {
        &self.leaf
    }

    /// Whether a key belongs to the leaf.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        *key >= *self.leaf.node.low() && self.leaf.node.is_above(key)
    }

    /// What is above the leaf, where that is known.
    pub(crate) fn above(&self) -> Option<&Visited> {
        self.above.last()
    }

    /// Where the next search of a key thereabouts may begin.
    #[must_use]
    pub fn hint(&self) -> Option<Hint> {
        RecordAddress::new(self.leaf.seen.at).map(Hint)
    }

    /// For a transaction that relies on what the leaf holds and what it does not.
    #[must_use]
    pub fn found(&self) -> LookupResult {
        LookupResult::Record(self.leaf.seen.clone())
    }
}

/// Goes down from the root, or begins at a leaf.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Locate {
    tree: Tree,
    seek: Seek,
    snapshot: Snapshot,
    above: Vec<Visited>,
    read: Read,
    at: Address,
    /// What the node that is being read must be.
    expected: Expected,
}

/// What is known of a node before it is read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Expected {
    /// The root: it may be of any level, or never have been written.
    Root,
    /// A leaf that was found before; it may be the root by now, or too new for the snapshot.
    Hinted,
    /// A node of this level with this lower bound.
    Node(u8, Vec<u8>),
}

impl Expected {
    /// Where a snapshot admits no version any more, the oldest that is left has all keys that it
    /// sees, or they are to the right. It is published, and so is what it leads to: it has been
    /// written over by somebody who had seen it, or what led here is its first writer's too.
    fn take(&self) -> Take {
        match self {
            Self::Root => Take::OrOldest,
            Self::Hinted | Self::Node(..) => Take::Written,
        }
    }
}

impl Locate {
    pub(crate) fn new(tree: Tree, seek: Seek, hint: Option<Hint>, snapshot: Snapshot) -> Self {
        let (at, expected) = match hint {
            Some(Hint(place)) => (place.address(), Expected::Hinted),
            None => (tree.root.address(), Expected::Root),
        };
        let read = Read::new(at, tree.layout, snapshot.clone());
        let read = read.taking(expected.take());
        Self {
            tree,
            seek,
            above: Vec::new(),
            read,
            snapshot,
            at,
            expected,
        }
    }

    fn go(&mut self, place: RecordAddress, expected: Expected) -> Step<Result<Located, Abort>> {
        self.at = place.address();
        let read = Read::new(self.at, self.tree.layout, self.snapshot.clone());
        self.read = read.taking(expected.take());
        self.expected = expected;
        self.ask(Vec::new())
    }

    fn start_over(&mut self) -> Step<Result<Located, Abort>> {
        self.above.clear();
        self.go(self.tree.root, Expected::Root)
    }

    fn ask(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Result<Located, Abort>> {
        let is_hinted = self.expected == Expected::Hinted;
        match self.read.step(outcomes) {
            Step::Post(operations) => Step::Post(operations),
            Step::Backoff(operations, times) => Step::Backoff(operations, times),
            Step::Done(Ok(seen)) => self.visit(seen),
            Step::Done(Err(Abort::SnapshotTooOld(_))) if is_hinted => self.start_over(),
            Step::Done(Err(abort)) => Step::Done(Err(abort)),
        }
    }

    fn visit(&mut self, seen: Seen) -> Step<Result<Located, Abort>> {
        let damaged = Step::Done(Err(Abort::Damaged(self.at)));
        let node = match (seen.value(), &self.expected) {
            (None, Expected::Root) => Node::default(),
            (None, Expected::Hinted) => return self.start_over(),
            (None, Expected::Node(..)) => return damaged,
            (Some(value), _) => match Node::parse(value) {
                Some(node) => node,
                None => return damaged,
            },
        };
        match &self.expected {
            Expected::Node(level, low) if (node.level(), node.low()) != (*level, low) => {
                return damaged;
            }
            Expected::Root if !node.low().is_empty() => return damaged,
            Expected::Hinted if self.seek.is_before(&node) => return self.start_over(),
            _ => {}
        }
        if self.seek.is_behind(&node) {
            let (Some(right), Some(high)) = (node.right(), node.high()) else {
                return damaged;
            };
            let expected = Expected::Node(node.level(), high.to_vec());
            return self.go(right, expected);
        }
        if node.level() == 0 {
            return Step::Done(Ok(Located {
                tree: self.tree,
                leaf: Visited { seen, node },
                above: std::mem::take(&mut self.above),
            }));
        }
        let Some((low, place)) = self.seek.child(&node).cloned() else {
            return damaged;
        };
        let expected = Expected::Node(node.level() - 1, low);
        self.above.push(Visited { seen, node });
        self.go(place, expected)
    }
}

impl Machine for Locate {
    type Output = Result<Located, Abort>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        self.ask(outcomes)
    }

    fn check(&self) -> Result<(), String> {
        let mut pairs = self.above.windows(2);
        let is_down = |pair: &[Visited]| pair[0].node.level() == pair[1].node.level() + 1;
        ensure(pairs.all(is_down), || {
            "the way from the root goes down one level at a time".to_owned()
        })?;
        let above = self.above.last().map(|last| last.node.level());
        let is_next = match &self.expected {
            Expected::Root | Expected::Hinted => above.is_none(),
            Expected::Node(level, _) => above.is_none_or(|above| above == level + 1),
        };
        ensure(is_next || self.above.is_empty(), || {
            format!(
                "{:?} is expected under a node of level {above:?}",
                self.expected
            )
        })?;
        let passed = self
            .above
            .iter()
            .find(|above| self.seek.is_behind(&above.node));
        ensure(passed.is_none(), || {
            format!(
                "{:?} lies to the right of {passed:?}, by which it is sought",
                self.seek
            )
        })?;
        ensure(self.read.at() == self.at, || {
            format!("{} is read, and {} expected", self.read.at(), self.at)
        })?;
        self.read.check()
    }
}
