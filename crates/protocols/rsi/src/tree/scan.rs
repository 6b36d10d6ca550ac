//! Walks over the keys between two.

use manxdb_core::check::ensure;
use manxdb_fabric::OperationOutcome;

use crate::abort::Abort;
use crate::directory::RecordAddress;
use crate::find::LookupResult;
use crate::machine::{Machine, Step};
use crate::tree::locate::{Locate, Located, Seek};
use crate::tree::{Hint, Tree};
use crate::vector::Snapshot;

/// Which keys are sought.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Span {
    /// They are not below this,
    pub low: Vec<u8>,
    /// and below this, if it says so.
    pub high: Option<Vec<u8>>,
    /// The greatest come first.
    pub descending: bool,
    /// No more than this many.
    pub limit: usize,
}

impl Span {
    /// All keys, the least first.
    #[must_use]
    pub fn all() -> Self {
        Self {
            low: Vec::new(),
            high: None,
            descending: false,
            limit: usize::MAX,
        }
    }

    /// Whether a key is in it, whatever its limit.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        *key >= *self.low && self.high.as_ref().is_none_or(|high| *key < **high)
    }

    /// Gives up what a scan has passed when it has come to a key.
    pub fn begin_behind(&mut self, key: &[u8]) {
        if self.descending {
            self.high = Some(key.to_vec());
        } else {
            self.low = after(key);
        }
    }

    /// Gives up what a scan has not passed when it has come to a key.
    pub(crate) fn end_behind(&mut self, key: &[u8]) {
        if self.descending {
            self.low = key.to_vec();
        } else {
            self.high = Some(after(key));
        }
    }

    /// Where the first leaf is.
    fn first(&self) -> Seek {
        match (self.descending, &self.high) {
            (false, _) => Seek::At(self.low.clone()),
            (true, Some(high)) => Seek::Below(high.clone()),
            (true, None) => Seek::Last,
        }
    }

    /// Gives up what a leaf has. The next one may be of an earlier time, before it had given that
    /// away.
    fn pass(&mut self, located: &Located) {
        let node = &located.leaf.node;
        if self.descending {
            self.high = Some(node.low().to_vec());
        } else if let Some(high) = node.high() {
            self.low = high.to_vec();
        }
    }

    /// Where the leaf behind one is, unless no more keys lie there.
    fn next(&self, located: &Located) -> Option<(Seek, Option<Hint>)> {
        let node = &located.leaf.node;
        if self.descending {
            let low = node.low();
            return (*low > *self.low).then(|| (Seek::Below(low.to_vec()), None));
        }
        let (high, right) = (node.high()?, node.right()?);
        self.has(high)
            .then(|| (Seek::At(high.to_vec()), Some(Hint(right))))
    }
}

/// The first key behind one.
#[must_use]
pub fn after(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

/// What lies between two keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Scanned {
    /// In the order that was asked for.
    pub entries: Vec<(Vec<u8>, RecordAddress)>,
    /// The leaves, for a transaction that relies on there being no more.
    pub leaves: Vec<LookupResult>,
    /// There may be more behind the last one.
    pub is_cut: bool,
}

/// Reads leaf after leaf.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Scan {
    tree: Tree,
    span: Span,
    snapshot: Snapshot,
    locate: Locate,
    scanned: Scanned,
}

impl Scan {
    pub(crate) fn new(tree: Tree, span: Span, hint: Option<Hint>, snapshot: Snapshot) -> Self {
        let locate = Locate::new(tree, span.first(), hint, snapshot.clone());
        Self {
            tree,
            span,
            snapshot,
            locate,
            scanned: Scanned::default(),
        }
    }

    fn take(&mut self, located: &Located) -> Step<Result<Scanned, Abort>> {
        let span = &self.span;
        let entries = located.leaf.node.entries().iter();
        let mut wanted: Vec<_> = entries.filter(|(key, _)| span.has(key)).cloned().collect();
        if span.descending {
            wanted.reverse();
        }
        self.scanned.entries.append(&mut wanted);
        self.scanned.leaves.push(located.found());
        let next = span.next(located);
        let before = (self.span.low.clone(), self.span.high.clone());
        self.span.pass(located);
        let limit = self.span.limit;
        let is_full = self.scanned.entries.len() >= limit;
        match next {
            Some((seek, hint)) if !is_full => {
                let is_shorter = self.span.low > before.0 || self.span.high != before.1;
                assert!(is_shorter, "a scan that goes on has passed a leaf");
                self.locate = Locate::new(self.tree, seek, hint, self.snapshot.clone());
                self.ask(Vec::new())
            }
            next => {
                let mut scanned = std::mem::take(&mut self.scanned);
                assert!(
                    !scanned.leaves.is_empty(),
                    "a scan relies on a leaf at least"
                );
                scanned.is_cut = next.is_some() || scanned.entries.len() > limit;
                scanned.entries.truncate(limit);
                Step::Done(Ok(scanned))
            }
        }
    }

    fn ask(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Result<Scanned, Abort>> {
        match self.locate.step(outcomes) {
            Step::Post(operations) => Step::Post(operations),
            Step::Backoff(operations, times) => Step::Backoff(operations, times),
            Step::Done(Err(abort)) => Step::Done(Err(abort)),
            Step::Done(Ok(located)) => self.take(&located),
        }
    }
}

impl Machine for Scan {
    type Output = Result<Scanned, Abort>;

    fn advance(&mut self, outcomes: Vec<OperationOutcome>) -> Step<Self::Output> {
        self.ask(outcomes)
    }

    fn check(&self) -> Result<(), String> {
        let descending = self.span.descending;
        let mut pairs = self.scanned.entries.windows(2);
        let is_in_order = |pair: &[(Vec<u8>, RecordAddress)]| {
            pair[0].0 != pair[1].0 && (pair[0].0 > pair[1].0) == descending
        };
        ensure(pairs.all(is_in_order), || {
            "keys are scanned in order, each once".to_owned()
        })?;
        ensure(
            self.scanned.entries.is_empty() || !self.scanned.leaves.is_empty(),
            || "keys are in leaves that the scan relies on".to_owned(),
        )?;
        self.locate.check()
    }
}
