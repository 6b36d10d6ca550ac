//! The bound on the bytes of all views.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::contents::Contents;
use crate::view::View;

/// Views that share a bound.
pub struct Pool<C: Contents> {
    views: RwLock<Vec<Arc<View<C>>>>,
    limit_bytes: AtomicUsize,
}

impl<C: Contents> Pool<C> {
    /// An empty pool.
    #[must_use]
    pub fn new(limit_bytes: usize) -> Self {
        Self {
            views: RwLock::default(),
            limit_bytes: AtomicUsize::new(limit_bytes),
        }
    }

    /// Changes the bound; what is beyond it goes at once.
    pub fn set_limit(&self, bytes: usize) {
        self.limit_bytes.store(bytes, Ordering::Relaxed);
        self.keep_limit();
    }

    /// The bound.
    #[must_use]
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes.load(Ordering::Relaxed)
    }

    /// Adds a view.
    pub fn add(&self, view: Arc<View<C>>) {
        let mut views = self.views.write();
        let is_known = views.iter().any(|known| Arc::ptr_eq(known, &view));
        assert!(!is_known, "a view counts once");
        views.push(view);
    }

    /// Takes out views that are closed.
    pub fn remove_closed(&self) {
        self.views.write().retain(|view| !view.is_closed());
    }

    /// Bytes of all views.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.views.read().iter().map(|view| view.size_bytes()).sum()
    }

    /// Evicts keys, of the view that takes most, until the bound holds.
    pub fn keep_limit(&self) {
        let views = self.views.read();
        let limit = self.limit_bytes();
        let total = || views.iter().map(|view| view.size_bytes()).sum::<usize>();
        while total() > limit {
            let largest = views.iter().max_by_key(|view| view.size_bytes());
            let freed = largest.and_then(|view| view.evict_one());
            if freed.is_none() {
                return;
            }
        }
    }
}
