//! `GET_LOCK` and its family: named locks of the instance, owned by sessions, counted.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Who holds which name.
#[derive(Debug, Default)]
pub(crate) struct NamedLocks {
    /// Lower-case name to (session, times taken).
    held: Mutex<BTreeMap<String, (u64, u64)>>,
}

impl NamedLocks {
    /// Takes `name` for `session` when it is free or its own already.
    pub(crate) fn try_take(&self, name: &str, session: u64) -> bool {
        let mut held = self.held.lock();
        let (owner, count) = held.entry(name.to_lowercase()).or_insert((session, 0));
        if *owner != session {
            return false;
        }
        *count += 1;
        true
    }

    /// Gives `name` back once: 1 released, 0 another's, `None` nobody's.
    pub(crate) fn release(&self, name: &str, session: u64) -> Option<i64> {
        let name = name.to_lowercase();
        let mut held = self.held.lock();
        let (owner, count) = held.get_mut(&name)?;
        if *owner != session {
            return Some(0);
        }
        *count -= 1;
        if *count == 0 {
            held.remove(&name);
        }
        Some(1)
    }

    /// Gives back everything `session` holds; how many times it had taken.
    pub(crate) fn release_all(&self, session: u64) -> u64 {
        let mut held = self.held.lock();
        let mut released = 0;
        held.retain(|_, (owner, count)| {
            let keep = *owner != session;
            released += if keep { 0 } else { *count };
            keep
        });
        released
    }

    /// The session that holds `name`.
    pub(crate) fn holder(&self, name: &str) -> Option<u64> {
        self.held
            .lock()
            .get(&name.to_lowercase())
            .map(|(owner, _)| *owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_counted_and_belongs_to_one_session() {
        let locks = NamedLocks::default();
        assert!(locks.try_take("A", 1) && locks.try_take("a", 1));
        assert!(!locks.try_take("a", 2));
        assert_eq!(locks.release("a", 2), Some(0));
        assert_eq!(locks.release("a", 1), Some(1));
        assert_eq!(locks.holder("a"), Some(1));
        assert_eq!(locks.release("a", 1), Some(1));
        assert_eq!(locks.release("a", 1), None);
        assert!(locks.try_take("a", 2));
        assert_eq!(locks.release_all(2), 1);
    }
}
