//! What a carrier must grant before anything is built on it.
//!
//! Fabrics differ in what they promise without being asked: over libfabric's shared memory two
//! writes may arrive in either order, over TCP a write is complete when it has left, and most
//! network cards swap words only among themselves, not against processors. A commit that is built
//! on more than it was granted works in every test and loses data in production, so what is needed
//! is asked for at the start, and a carrier that does not grant it is refused.

use std::fmt;

/// What a carrier promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Grants {
    /// The word of an ordered write is never seen before its bytes.
    pub writes_in_order: bool,
    /// What is complete is seen by every reader.
    pub complete_means_visible: bool,
    /// Swaps and additions of all clients are one after another.
    pub atomic_among_clients: bool,
    /// And those of the server's own processor too.
    pub atomic_with_server: bool,
    /// Operations end though the server's program does not run.
    pub needs_no_server: bool,
}

impl Grants {
    /// What transactions need: servers may run a thread for progress, and keep off lock words.
    pub const TRANSACTIONS: Self = Self {
        writes_in_order: true,
        complete_means_visible: true,
        atomic_among_clients: true,
        atomic_with_server: false,
        needs_no_server: false,
    };

    /// Whether all that is needed is granted.
    ///
    /// # Errors
    /// What is missing.
    pub fn include(self, needed: Self) -> Result<(), MissingGrant> {
        let pairs = [
            (needed.writes_in_order, self.writes_in_order),
            (needed.complete_means_visible, self.complete_means_visible),
            (needed.atomic_among_clients, self.atomic_among_clients),
            (needed.atomic_with_server, self.atomic_with_server),
            (needed.needs_no_server, self.needs_no_server),
        ];
        assert_eq!(
            NAMES.len(),
            pairs.len(),
            "a grant without a name would pass for granted"
        );
        let mut missing = NAMES.iter().zip(pairs);
        match missing.find(|(_, (is_needed, is_granted))| *is_needed && !is_granted) {
            None => Ok(()),
            Some((name, _)) => Err(MissingGrant(name)),
        }
    }
}

const NAMES: [&str; 5] = [
    "the order of a write and the word after it",
    "visibility of what is complete",
    "atomic swaps among clients",
    "atomic swaps against the server's processor",
    "progress without the server's program",
];

/// What a carrier does not grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MissingGrant(&'static str);

impl fmt::Display for MissingGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the fabric does not grant {}", self.0)
    }
}

impl std::error::Error for MissingGrant {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_needed_and_not_granted_is_named() {
        let granted = Grants {
            writes_in_order: false,
            ..Grants::TRANSACTIONS
        };
        let missing = granted.include(Grants::TRANSACTIONS).unwrap_err();
        assert!(missing.to_string().contains("the order of a write"));
        assert_eq!(Grants::TRANSACTIONS.include(granted), Ok(()));
        assert_eq!(Grants::default().include(Grants::default()), Ok(()));
    }
}
