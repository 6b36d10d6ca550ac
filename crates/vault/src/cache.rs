//! Keys that were unwrapped, bounded, without those that were erased since.

use std::collections::HashMap;

use parking_lot::RwLock;

use crate::secret::{KeyId, Secret};

/// Keys held at most: 32 bytes each, and what a table costs.
const KEYS_MAX: usize = 65_536;

#[derive(Debug, Default)]
pub(crate) struct KeyCache(RwLock<Kept>);

#[derive(Debug, Default)]
struct Kept {
    keys: HashMap<KeyId, Secret>,
    /// How often keys were erased: a key that was read from its slot before that is not kept.
    erasures: u64,
}

impl KeyCache {
    pub(crate) fn get(&self, id: KeyId) -> Option<Secret> {
        self.0.read().keys.get(&id).cloned()
    }

    /// To be asked before a slot is read, and given to [`KeyCache::keep`].
    pub(crate) fn erasures(&self) -> u64 {
        self.0.read().erasures
    }

    /// Keeps a key, unless keys were erased since `erasures` was asked.
    pub(crate) fn keep(&self, id: KeyId, key: &Secret, erasures: u64) {
        let mut kept = self.0.write();
        if kept.erasures != erasures {
            return;
        }
        if kept.keys.len() >= KEYS_MAX {
            // Half of them, whichever: those in use come back for one read of a slot each.
            let mut parity = false;
            kept.keys.retain(|_, _| {
                parity = !parity;
                parity
            });
        }
        let before = kept.keys.insert(id, key.clone());
        assert!(
            before.is_none_or(|before| before.bytes() == key.bytes()),
            "an id names one key"
        );
        assert!(kept.keys.len() <= KEYS_MAX, "the cache is bounded");
    }

    /// Forgets keys whose slots are overwritten.
    pub(crate) fn forget(&self, ids: &[KeyId]) {
        let mut kept = self.0.write();
        kept.erasures += 1;
        for id in ids {
            kept.keys.remove(id);
        }
        assert!(
            ids.iter().all(|id| !kept.keys.contains_key(id)),
            "an erased key is not in memory"
        );
    }
}
