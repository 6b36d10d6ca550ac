//! Which versions live snapshots still need.

use std::collections::BTreeSet;
use std::sync::Arc;

use manxdb_storage::Version;
use parking_lot::{Mutex, RwLock};

use crate::model::Snapshot;

type Live = Mutex<BTreeSet<Version>>;

/// The visible version, and every older one that a snapshot still looks at.
///
/// All snapshots of one version share one counted pin, so that taking a snapshot is a read lock
/// and a counter; the set of live versions changes only when a commit publishes and when the
/// last snapshot of a version goes.
pub(super) struct Pins {
    current: RwLock<Arc<VersionPin>>,
    live: Arc<Live>,
}

struct VersionPin {
    version: Version,
    live: Arc<Live>,
}

impl VersionPin {
    fn new(version: Version, live: &Arc<Live>) -> Arc<Self> {
        let is_new = live.lock().insert(version);
        // A second pin of a version would take the first one's away when it goes.
        assert!(is_new, "a version is pinned once, and shared");
        Arc::new(Self {
            version,
            live: Arc::clone(live),
        })
    }
}

impl Drop for VersionPin {
    fn drop(&mut self) {
        let was_live = self.live.lock().remove(&self.version);
        assert!(
            was_live || std::thread::panicking(),
            "what is unpinned was pinned"
        );
    }
}

impl Pins {
    pub(super) fn new(visible: Version) -> Self {
        let live = Arc::default();
        Self {
            current: RwLock::new(VersionPin::new(visible, &live)),
            live,
        }
    }

    /// A snapshot of everything published so far.
    pub(super) fn snapshot(&self) -> Snapshot {
        let pin = Arc::clone(&self.current.read());
        Snapshot {
            version: pin.version,
            pin: Some(pin),
        }
    }

    /// The newest published version.
    pub(super) fn visible(&self) -> Version {
        self.current.read().version
    }

    /// Makes `version` the one that new snapshots see, unless they see a newer one.
    pub(super) fn publish(&self, version: Version) {
        // Dropped after the lock: dropping takes `live`.
        let _previous = {
            let mut current = self.current.write();
            if current.version >= version {
                return;
            }
            std::mem::replace(&mut *current, VersionPin::new(version, &self.live))
        };
    }

    /// The oldest version any snapshot, also one taken from now on, may read at.
    pub(super) fn oldest(&self) -> Version {
        let oldest = self.live.lock().first().copied();
        assert!(
            oldest.is_some(),
            "the visible version is pinned by `current` itself"
        );
        oldest.unwrap_or(Version::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_version_follows_the_oldest_snapshot() {
        let pins = Pins::new(Version(3));
        let first = pins.snapshot();
        pins.publish(Version(5));
        let second = pins.snapshot();
        let clone = first.clone();
        pins.publish(Version(9));
        assert_eq!(pins.oldest(), Version(3));
        drop(first);
        assert_eq!(pins.oldest(), Version(3));
        drop(clone);
        assert_eq!(pins.oldest(), Version(5));
        drop(second);
        assert_eq!(pins.oldest(), Version(9));
        assert_eq!(pins.visible(), Version(9));
    }

    #[test]
    fn an_older_version_published_late_changes_nothing() {
        let pins = Pins::new(Version(3));
        pins.publish(Version(9));
        pins.publish(Version(5));
        assert_eq!((pins.visible(), pins.oldest()), (Version(9), Version(9)));
    }
}
