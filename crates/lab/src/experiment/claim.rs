//! What somebody says, and what was measured.

/// Who says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The paper's abstract.
    Abstract,
    /// The paper's text or figures.
    Paper,
    /// The README of the paper's artifact.
    Artifact,
    /// Worked out from message delays and prices of the CPU model.
    Derived,
    /// A target of ManxDB.
    Target,
}

impl Source {
    /// In tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Abstract => "the paper's abstract",
            Self::Paper => "the paper",
            Self::Artifact => "the artifact's README",
            Self::Derived => "worked out from delays and prices",
            Self::Target => "ManxDB's target",
        }
    }
}

/// Whether it is so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is.
    Holds,
    /// It is not.
    Fails,
    /// These data cannot tell.
    Open,
}

impl Verdict {
    /// In tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "**does not hold**",
            Self::Open => "open",
        }
    }
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who says so.
    pub source: Source,
    /// What is said.
    pub says: String,
    /// What was measured.
    pub measured: String,
    /// Whether it is so.
    pub verdict: Verdict,
}

impl Claim {
    /// A claim that holds or does not.
    #[must_use]
    pub fn judged(
        source: Source,
        says: impl Into<String>,
        measured: impl Into<String>,
        holds: bool,
    ) -> Self {
        Self {
            source,
            says: says.into(),
            measured: measured.into(),
            verdict: if holds {
                Verdict::Holds
            } else {
                Verdict::Fails
            },
        }
    }

    /// What is left of the claims about a sweep when one point of it was run.
    #[must_use]
    pub fn of_one_point() -> Vec<Self> {
        let says = "What changes, and what does not, over the whole range.";
        vec![Self::open(Source::Artifact, says, "one point was run")]
    }

    /// A claim that these data cannot judge.
    #[must_use]
    pub fn open(source: Source, says: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            source,
            says: says.into(),
            measured: why.into(),
            verdict: Verdict::Open,
        }
    }
}
