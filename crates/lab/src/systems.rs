//! The systems that experiments compare, and what each is called.
//!
//! A new system is one more line of [`SystemName`], one of its [`SystemName::with`], and an impl of
//! [`Candidate`] beside its own module.

use manxdb_common::Level;
use manxdb_dast::Crossing;
use manxdb_sim::FaultKind;
use serde::{Deserialize, Serialize};

use crate::baselines::{DetockSystem, JanusSystem, SlogByPieceSystem, SlogSystem, TapirSystem};
use crate::candidate::Candidate;
use crate::dast::DastSystem;
use crate::figure::Look;

/// A system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemName {
    /// Local transactions never wait for cross-region ones.
    Dast,
    /// Transactions are ordered by whom they met.
    Janus,
    /// By a log a region, and a global one for what touches several.
    Slog,
    /// The same, but a row is free once the piece that touches it has run.
    #[serde(rename = "slog-by-piece")]
    SlogByPiece,
    /// Transactions validate what they read, and begin again.
    Tapir,
    /// By a log a region, and by whom they come behind in those of others.
    Detock,
    /// DAST with cross-region transactions ordered ahead; not among [`SystemName::ALL`], which
    /// are as they were published.
    Ahead,
}

/// Something that is done with a system by its name, whatever its type is.
pub trait ForSystem {
    /// What comes of it.
    type Outcome;

    /// Does it.
    fn run<S: Candidate>(self) -> Self::Outcome;
}

impl SystemName {
    /// All of them, in the order of legends.
    pub const ALL: [SystemName; 6] = [
        SystemName::Dast,
        SystemName::Janus,
        SystemName::Slog,
        SystemName::SlogByPiece,
        SystemName::Tapir,
        SystemName::Detock,
    ];

    /// Those that figures show beside each other: all, and what is ours.
    pub const COMPARED: [SystemName; 7] = [
        SystemName::Dast,
        SystemName::Janus,
        SystemName::Slog,
        SystemName::SlogByPiece,
        SystemName::Tapir,
        SystemName::Detock,
        SystemName::Ahead,
    ];

    /// In figures and tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Dast => "DAST",
            Self::Janus => "Janus",
            Self::Slog => "SLOG",
            Self::SlogByPiece => "SLOG, rows freed by piece",
            Self::Tapir => "TAPIR",
            Self::Detock => "Detock",
            Self::Ahead => "ManxDB, ordered ahead",
        }
    }

    /// On command lines and in data.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Dast => "dast",
            Self::Janus => "janus",
            Self::Slog => "slog",
            Self::SlogByPiece => "slog-by-piece",
            Self::Tapir => "tapir",
            Self::Detock => "detock",
            Self::Ahead => "ahead",
        }
    }

    /// The names of all of them, for people.
    #[must_use]
    pub fn names() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// In figures, the same in all of them.
    #[must_use]
    pub fn look(self) -> Look {
        Look::of(self as usize)
    }

    /// Does something with the system of this name.
    pub fn with<F: ForSystem>(self, what: F) -> F::Outcome {
        match self {
            Self::Dast | Self::Ahead => what.run::<DastSystem>(),
            Self::Janus => what.run::<JanusSystem>(),
            Self::Slog => what.run::<SlogSystem>(),
            Self::SlogByPiece => what.run::<SlogByPieceSystem>(),
            Self::Tapir => what.run::<TapirSystem>(),
            Self::Detock => what.run::<DetockSystem>(),
        }
    }

    /// The strongest level that it promises: what Janus orders, and what TAPIR commits, agrees with
    /// real time.
    #[must_use]
    pub fn promises(self) -> Level {
        match self {
            Self::Dast | Self::Ahead | Self::Janus | Self::Tapir => Level::Strict,
            Self::Slog | Self::SlogByPiece | Self::Detock => Level::Serializable,
        }
    }

    /// How it orders cross-region transactions, if it is DAST.
    #[must_use]
    pub fn crossing(self) -> Crossing {
        match self {
            Self::Ahead => Crossing::Ahead,
            _ => Crossing::Anticipated,
        }
    }

    /// Whether it lives through a fault of this kind.
    ///
    /// # Errors
    /// What it cannot take, and what can.
    pub fn survives(self, fault: &FaultKind) -> Result<(), String> {
        let loses_memory = matches!(fault, FaultKind::Crash { .. });
        if matches!(self, Self::Dast | Self::Ahead) || !loses_memory {
            return Ok(());
        }
        Err(format!(
            "{} is a baseline whose nodes do not fail: it takes part, cut, delay, loss, duplicate, \
             reorder, pause, slow and wrong clocks; dast takes this one",
            self.name()
        ))
    }
}
