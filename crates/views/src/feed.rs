//! Commits on their way to the views: staged in commit order, applied before they are published.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use manxdb_storage::Version;
use parking_lot::Mutex;

/// A queue of commits in commit order.
///
/// Staging is cheap, as the lock on the commit order is held meanwhile. Applying is serialised:
/// whoever publishes a version applies all that is staged up to it, or waits for whoever does.
pub struct Feed<P> {
    staged: Mutex<VecDeque<(Version, P)>>,
    /// Held while payloads are applied.
    applying: Mutex<()>,
    applied: AtomicU64,
    #[cfg(feature = "mutants")]
    mutants: Mutex<crate::mutants::Mutants>,
}

impl<P> Default for Feed<P> {
    fn default() -> Self {
        Self {
            staged: Mutex::default(),
            applying: Mutex::default(),
            applied: AtomicU64::new(0),
            #[cfg(feature = "mutants")]
            mutants: Mutex::default(),
        }
    }
}

impl<P> Feed<P> {
    /// Plants defects.
    #[cfg(feature = "mutants")]
    pub fn plant(&self, mutants: crate::mutants::Mutants) {
        *self.mutants.lock() = mutants;
    }

    /// Adds a commit; to be called in commit order.
    pub fn stage(&self, version: Version, payload: P) {
        let mut staged = self.staged.lock();
        let last = staged.back().map(|(last, _)| *last);
        assert!(
            last.is_none_or(|last| last < version),
            "commits are staged in commit order, each once"
        );
        assert!(
            version > self.applied(),
            "a commit is staged before it is published"
        );
        staged.push_back((version, payload));
    }

    /// Gives all that is staged up to `through` to `each`, in commit order, and notes that nothing
    /// up to it is missing.
    pub fn apply(&self, through: Version, each: &mut dyn FnMut(Version, P)) {
        let _applying = self.applying.lock();
        #[cfg(feature = "mutants")]
        if self.mutants.lock().swap_order {
            return self.apply_swapped(through, each);
        }
        let mut last = self.applied();
        while let Some((version, payload)) = self.next_up_to(through) {
            assert!(version > last, "commits are applied in commit order");
            last = version;
            each(version, payload);
        }
        self.applied.fetch_max(through.0, Ordering::SeqCst);
        assert!(self.applied() >= through, "what is applied stays applied");
    }

    fn next_up_to(&self, through: Version) -> Option<(Version, P)> {
        let mut staged = self.staged.lock();
        let (version, _) = staged.front()?;
        if *version > through {
            return None;
        }
        staged.pop_front()
    }

    #[cfg(feature = "mutants")]
    fn apply_swapped(&self, through: Version, each: &mut dyn FnMut(Version, P)) {
        let mut due: Vec<(Version, P)> = Vec::new();
        while let Some(next) = self.next_up_to(through) {
            due.push(next);
        }
        for (version, payload) in due.into_iter().rev() {
            each(version, payload);
        }
        self.applied.fetch_max(through.0, Ordering::SeqCst);
    }

    /// Nothing up to this version is missing in any view.
    #[must_use]
    pub fn applied(&self) -> Version {
        Version(self.applied.load(Ordering::SeqCst))
    }

    /// Says that commits up to `version`, which is published, need not be applied: no view is older,
    /// or they are. What was staged of them, while there were views, is dropped.
    pub fn skip_to(&self, version: Version) {
        let _applying = self.applying.lock();
        while self.next_up_to(version).is_some() {}
        self.applied.fetch_max(version.0, Ordering::SeqCst);
    }

    /// Commits that wait to be applied.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.staged.lock().len()
    }
}
