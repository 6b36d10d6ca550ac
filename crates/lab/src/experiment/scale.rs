//! How large an experiment is.

use serde::{Deserialize, Serialize};

/// How large an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scale {
    /// Seconds: for tests.
    Smoke,
    /// Minutes on two cores.
    Laptop,
    /// The published parameters: hours.
    Paper,
}

impl Scale {
    /// All of them, by size.
    pub const ALL: [Scale; 3] = [Scale::Smoke, Scale::Laptop, Scale::Paper];

    /// On the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Smoke => "smoke",
            Self::Laptop => "laptop",
            Self::Paper => "paper",
        }
    }

    /// The scale of a name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scale| scale.name() == name)
    }

    /// One of three things, by size.
    pub fn pick<T>(self, smoke: T, laptop: T, paper: T) -> T {
        match self {
            Self::Smoke => smoke,
            Self::Laptop => laptop,
            Self::Paper => paper,
        }
    }
}
