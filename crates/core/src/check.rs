//! Invariants by name, and the level at which they are checked.
//!
//! An invariant that costs a comparison is an `assert!`, on in every build. One that has to walk a
//! structure is checked at the level [`deep`] only: tests and the simulator switch it on, a server
//! that ships leaves it off.

use std::sync::atomic::{AtomicBool, Ordering};

static DEEP: AtomicBool = AtomicBool::new(cfg!(debug_assertions));

/// Whether invariants that walk a structure are checked: at first in debug builds only.
#[must_use]
pub fn deep() -> bool {
    DEEP.load(Ordering::Relaxed)
}

/// Switches the checks of [`deep`] on for this process; there is no way back.
pub fn enable_deep() {
    DEEP.store(true, Ordering::Relaxed);
}

/// Fails with the name of the invariant unless it `holds`, for a core's
/// [`check`](crate::Core::check).
///
/// # Errors
/// What `invariant` says.
pub fn ensure(holds: bool, invariant: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(invariant()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_invariant_is_named() {
        assert_eq!(ensure(true, || "never said".to_owned()), Ok(()));
        let broken = ensure(1 > 2, || "1 is above 2".to_owned());
        assert_eq!(broken, Err("1 is above 2".to_owned()));
    }

    #[test]
    fn the_deep_level_stays_on_once_it_is() {
        enable_deep();
        assert!(deep());
    }
}
