//! What decides a run.

use manxdb_lab::experiment::Scale;
use serde::{Deserialize, Serialize};

use super::system::System;

/// Pages a second at request scale 1: 46 a minute.
pub const PAGES_AT_ONE: f64 = 46.0 / 60.0;
/// The published experiments' request scale.
pub const REQUESTS: f64 = 1_000.0;
/// The published experiments' size of the site: 15,014 users.
pub const SITE: f64 = 2.59;
/// Of the pages that arrive, the share that a system must serve as they arrive to keep up.
pub const KEPT: f64 = 0.98;
/// Of what the slowest system keeps up with, what all are asked for.
pub const SHARE: f64 = 0.8;

/// Whose pages show their reader's notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Comparison {
    /// Nobody's: like for like.
    None,
    /// Everybody's: like for like.
    All,
    /// ManxDB's alone, as in the published comparison K9db's alone.
    AsPublished,
}

impl Comparison {
    /// All of them, in the order of panels.
    pub const ALL: [Self; 3] = [Self::None, Self::All, Self::AsPublished];

    /// Where it stands among them, from 1.
    pub fn number(self) -> f64 {
        match self {
            Self::None => 1.0,
            Self::All => 2.0,
            Self::AsPublished => 3.0,
        }
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::None => "without notifications",
            Self::All => "with notifications",
            Self::AsPublished => "as published: notifications on ManxDB only",
        }
    }

    /// In `data.csv`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::All => "all",
            Self::AsPublished => "as-published",
        }
    }

    /// Whether the pages of a system show them.
    pub fn shows(self, system: System) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::AsPublished => system.is_manxdb(),
        }
    }
}

/// How many pages arrive.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Rate {
    /// So many times 46 a minute.
    Given(f64),
    /// [`SHARE`] of what the slowest system keeps up with.
    Bisected(Probe),
    /// The same of the first trial of a sweep that runs, which is that of the largest site.
    OfLargest(Probe),
}

/// How what a system keeps up with is found.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// How long each rate is tried.
    pub seconds: f64,
    /// How often the range is halved: from a quarter of what the system does flat out to all of it.
    pub steps: u32,
}

/// What decides a run: servers that are filled alike and take turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Which systems.
    pub systems: Vec<System>,
    /// Whose pages show notifications.
    pub comparison: Comparison,
    /// Size of the site: 1 is 5,797 users.
    pub site: f64,
    /// How many pages arrive.
    pub rate: Rate,
    /// How long each system is flat out, on eight connections; 0: not at all.
    pub flat_out_seconds: f64,
    /// How long pages arrive at each system, in all turns together.
    pub seconds: f64,
    /// How often each has its turn.
    pub turns: u32,
    /// At most so many pages are served at a time.
    pub connections: u16,
    /// INSERTs under way at once when a server is filled.
    pub inflight: u16,
    /// Memory that each server has for what it reads from disk.
    pub cache_mib: u32,
    /// Whether clients add up what a cache of all answers would hold.
    pub answers: bool,
    /// Of rows and requests.
    pub seed: u64,
}

impl Trial {
    /// What all trials of a scale have in common.
    pub fn of(scale: Scale, seed: u64) -> Self {
        Self {
            systems: System::ALL.to_vec(),
            comparison: Comparison::None,
            site: scale.pick(0.01, 0.25, SITE),
            rate: Rate::Given(REQUESTS),
            flat_out_seconds: 0.0,
            seconds: scale.pick(0.6, 20.0, 120.0),
            turns: scale.pick(1, 2, 2),
            connections: 32,
            inflight: 4,
            cache_mib: scale.pick(64, 1_024, 8_192),
            answers: false,
            seed,
        }
    }

    /// How rates are found at a scale.
    pub fn probe(scale: Scale) -> Probe {
        Probe {
            seconds: scale.pick(0.3, 3.0, 10.0),
            steps: scale.pick(1, 4, 5),
        }
    }

    /// What the trials of one sweep over sizes of the site share.
    pub fn sweep(&self) -> String {
        let shared = Self {
            site: 0.0,
            ..self.clone()
        };
        format!("{shared:?}")
    }
}

/// How often each trial is run.
pub fn repetitions(scale: Scale) -> usize {
    scale.pick(1, 1, 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_request_scale_is_766_pages_a_second() {
        assert!((REQUESTS * PAGES_AT_ONE - 766.67).abs() < 0.01);
    }

    #[test]
    fn notifications_are_on_manxdbs_pages_alone_as_published() {
        for system in System::ALL {
            assert!(!Comparison::None.shows(system) && Comparison::All.shows(system));
            assert_eq!(Comparison::AsPublished.shows(system), system.is_manxdb());
        }
    }

    #[test]
    fn trials_of_a_sweep_share_all_but_the_site() {
        let one = Trial::of(Scale::Smoke, 1);
        let larger = Trial {
            site: 1.0,
            ..one.clone()
        };
        let other = Trial::of(Scale::Smoke, 2);
        assert_eq!(one.sweep(), larger.sweep());
        assert_ne!(one.sweep(), other.sweep());
    }
}
