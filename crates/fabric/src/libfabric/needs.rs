//! What is asked of a provider, and what is said of one that does not grant it.

use std::fmt::Display;

/// What may be asked of a provider, as bits; beside endpoints that reach many others, reliably.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Needs(pub(super) u32);
const _: () = assert!(
    Needs::REMOTE_MEMORY.0 ^ Needs::ATOMICS.0 ^ Needs::DELIVERY.0 ^ Needs::ORDER.0 == 15,
    "each need is a bit of its own, as shim.c has them"
);

impl Needs {
    pub(super) const NONE: Self = Self(0);
    pub(super) const REMOTE_MEMORY: Self = Self(1);
    pub(super) const ATOMICS: Self = Self(2);
    pub(super) const DELIVERY: Self = Self(4);
    pub(super) const ORDER: Self = Self(8);

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// All of them, but for [`Needs::ORDER`], which is done without.
    pub(super) fn all() -> Self {
        NEEDS
            .iter()
            .fold(Self::NONE, |all, (need, _)| all.with(*need))
    }
}

/// Why a provider is not used.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// There is none of this name for this machine (and this address).
    #[error("libfabric has no provider '{provider}' here (see `fi_info -l`): {reason}")]
    Absent {
        /// The name.
        provider: String,
        /// What libfabric says.
        reason: String,
    },
    /// It lacks something that transactions are built on.
    #[error("libfabric's provider '{provider}' does not grant {what}")]
    NotGranted {
        /// The name.
        provider: String,
        /// What it lacks.
        what: &'static str,
    },
    /// It grants all of it, and cannot be used all the same.
    #[error("libfabric's provider '{provider}' fails in {step}: {reason}")]
    Failed {
        /// The name.
        provider: String,
        /// The call that failed.
        step: &'static str,
        /// What libfabric says.
        reason: String,
    },
}

/// Needs, one by one, so that the first that is not granted can be named.
const NEEDS: [(Needs, &str); 3] = [
    (Needs::REMOTE_MEMORY, "remote memory access (FI_RMA)"),
    (Needs::ATOMICS, "atomic operations (FI_ATOMIC)"),
    (
        Needs::DELIVERY,
        "completion on delivery (FI_DELIVERY_COMPLETE)",
    ),
];

/// Asks for one need after another, to name the first without which the provider would be there;
/// `reason` is what it said to all of them.
pub(super) fn first_missing<E: Display>(
    provider: &str,
    ask: impl Fn(Needs) -> Result<(), E>,
    reason: E,
) -> Refused {
    let provider = provider.to_owned();
    if let Err(reason) = ask(Needs::NONE) {
        let reason = reason.to_string();
        return Refused::Absent { provider, reason };
    }
    let mut needs = Needs::NONE;
    for (need, what) in NEEDS {
        needs = needs.with(need);
        if ask(needs).is_err() {
            return Refused::NotGranted { provider, what };
        }
    }
    Refused::Failed {
        provider,
        step: "fi_getinfo",
        reason: reason.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said of a provider that grants no more than this.
    fn refused(granted: Needs) -> String {
        let reason = "no data";
        let ask = |asked: Needs| match asked.0 & !granted.0 {
            0 => Ok(()),
            _ => Err(reason),
        };
        first_missing("poor", ask, reason).to_string()
    }

    #[test]
    fn what_is_missing_first_is_named() {
        let memory = Needs::REMOTE_MEMORY;
        for (granted, missing) in [
            (Needs::NONE, "remote memory access (FI_RMA)"),
            (memory, "atomic operations (FI_ATOMIC)"),
            (
                memory.with(Needs::ATOMICS),
                "completion on delivery (FI_DELIVERY_COMPLETE)",
            ),
        ] {
            let expected = format!("libfabric's provider 'poor' does not grant {missing}");
            assert_eq!(refused(granted), expected);
        }
    }

    #[test]
    fn a_provider_that_grants_all_and_fails_says_how() {
        let said = "libfabric's provider 'poor' fails in fi_getinfo: no data";
        assert_eq!(refused(Needs::all()), said);
    }

    #[test]
    fn one_that_is_not_there_is_absent() {
        let absent = first_missing("none", |_| Err("no data"), "no data").to_string();
        assert!(absent.starts_with("libfabric has no provider 'none' here"));
        assert!(absent.ends_with("no data"));
    }
}
