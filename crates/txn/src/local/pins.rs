//! Which versions live snapshots still need.

use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_core::check::{deep, ensure};
use manxdb_storage::Version;
use parking_lot::{Mutex, RwLock};

use crate::model::Snapshot;

/// How many pins each version has.
type Live = Mutex<BTreeMap<Version, usize>>;

/// The visible version, the last that has its place in the commit order, and every older one that
/// a snapshot still looks at.
///
/// Snapshots of one version share a counted pin, so that taking a snapshot is a read lock and a
/// counter; the set of live versions changes only when a commit is ordered or published and when
/// the last snapshot of a pin goes.
pub(super) struct Pins {
    current: RwLock<Arc<VersionPin>>,
    /// At or above `current`.
    ordered: RwLock<Arc<VersionPin>>,
    live: Arc<Live>,
}

struct VersionPin {
    version: Version,
    live: Arc<Live>,
}

impl VersionPin {
    fn new(version: Version, live: &Arc<Live>) -> Arc<Self> {
        *live.lock().entry(version).or_default() += 1;
        Arc::new(Self {
            version,
            live: Arc::clone(live),
        })
    }
}

impl Drop for VersionPin {
    fn drop(&mut self) {
        let mut live = self.live.lock();
        let pins = live.get_mut(&self.version);
        assert!(
            pins.is_some() || std::thread::panicking(),
            "what is unpinned was pinned"
        );
        if let Some(pins) = pins {
            *pins -= 1;
            if *pins == 0 {
                live.remove(&self.version);
            }
        }
    }
}

impl Pins {
    pub(super) fn new(visible: Version) -> Self {
        let live = Arc::default();
        let pin = VersionPin::new(visible, &live);
        Self {
            current: RwLock::new(Arc::clone(&pin)),
            ordered: RwLock::new(pin),
            live,
        }
    }

    /// A snapshot of everything published so far.
    pub(super) fn snapshot(&self) -> Snapshot {
        Self::snapshot_of(&self.current)
    }

    /// A snapshot of everything ordered so far.
    pub(super) fn ordered_snapshot(&self) -> Snapshot {
        Self::snapshot_of(&self.ordered)
    }

    fn snapshot_of(pin: &RwLock<Arc<VersionPin>>) -> Snapshot {
        let pin = Arc::clone(&pin.read());
        Snapshot {
            version: pin.version,
            pin: Some(pin),
        }
    }

    /// The newest published version.
    pub(super) fn visible(&self) -> Version {
        self.current.read().version
    }

    /// What holds at any moment.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn check(&self) -> Result<(), String> {
        // Both are kept from moving while the pins are looked at.
        let (current, ordered) = (self.current.read(), self.ordered.read());
        let (shown, written) = (current.version, ordered.version);
        ensure(shown <= written, || {
            format!("{shown:?} is shown, and only {written:?} is written")
        })?;
        let live = self.live.lock();
        for version in [shown, written] {
            ensure(live.contains_key(&version), || {
                format!("new snapshots look at {version:?}, which is not pinned")
            })?;
        }
        ensure(live.values().all(|pins| *pins > 0), || {
            format!("a version without pins is kept: {live:?}")
        })
    }

    /// Makes `version` the one that new snapshots see, unless they see a newer one.
    pub(super) fn publish(&self, version: Version) {
        let shown = Self::advance(
            &self.current,
            || VersionPin::new(version, &self.live),
            version,
        );
        assert!(
            !shown || self.ordered.read().version >= version,
            "what is published has its place in the order"
        );
        if deep() {
            assert_eq!(self.check(), Ok(()));
        }
    }

    /// Says that everything up to `version` is written, in the order of versions.
    pub(super) fn order(&self, version: Version) {
        let is_newer = Self::advance(
            &self.ordered,
            || VersionPin::new(version, &self.live),
            version,
        );
        assert!(is_newer, "groups are written in the order of versions");
    }

    /// Moves `pin` to `version`, unless it is there or behind it; whether it moved.
    fn advance(
        pin: &RwLock<Arc<VersionPin>>,
        new: impl FnOnce() -> Arc<VersionPin>,
        version: Version,
    ) -> bool {
        // Dropped after the lock: dropping takes `live`.
        let _previous = {
            let mut pin = pin.write();
            if pin.version >= version {
                return false;
            }
            std::mem::replace(&mut *pin, new())
        };
        true
    }

    /// The oldest version any snapshot, also one taken from now on, may read at.
    pub(super) fn oldest(&self) -> Version {
        let oldest = self.live.lock().keys().next().copied();
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

    fn publish(pins: &Pins, version: u64) {
        pins.order(Version(version));
        pins.publish(Version(version));
    }

    #[test]
    fn a_version_that_snapshots_look_at_and_nobody_pins_is_found_out() {
        let pins = Pins::new(Version(3));
        pins.order(Version(5));
        assert_eq!(pins.check(), Ok(()));
        pins.live.lock().insert(Version(4), 0);
        assert!(pins.check().unwrap_err().contains("without pins"));
        pins.live.lock().remove(&Version(4));
        let pin = pins.live.lock().remove(&Version(5));
        assert!(pins.check().unwrap_err().contains("is not pinned"));
        pins.live.lock().insert(Version(5), pin.unwrap());
        let ahead = VersionPin::new(Version(7), &pins.live);
        *pins.current.write() = ahead;
        assert!(pins.check().unwrap_err().contains("only"));
    }

    #[test]
    fn a_version_that_is_ordered_is_pinned_and_not_visible() {
        let pins = Pins::new(Version(3));
        pins.order(Version(5));
        let ahead = pins.ordered_snapshot();
        assert_eq!((ahead.version, pins.visible()), (Version(5), Version(3)));
        pins.order(Version(7));
        pins.publish(Version(5));
        pins.publish(Version(7));
        assert_eq!((pins.visible(), pins.oldest()), (Version(7), Version(5)));
        drop(ahead);
        assert_eq!(pins.oldest(), Version(7));
    }

    #[test]
    fn the_oldest_version_follows_the_oldest_snapshot() {
        let pins = Pins::new(Version(3));
        let first = pins.snapshot();
        publish(&pins, 5);
        let second = pins.snapshot();
        let clone = first.clone();
        publish(&pins, 9);
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
        publish(&pins, 9);
        pins.publish(Version(5));
        assert_eq!((pins.visible(), pins.oldest()), (Version(9), Version(9)));
    }
}
