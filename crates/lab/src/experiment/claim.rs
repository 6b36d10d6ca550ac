//! What is said, what was measured, and whether it is so.
//!
//! All verdicts are made here. A claim that is judged says which values of its number can be true at
//! all; data that cannot be true make no verdict ([`super::review`]); and a number that is what went
//! into the model, or is of another load than the claim's, is no result, whatever it is.

use std::ops::RangeInclusive;

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
pub enum ClaimVerdict {
    /// It is.
    Holds,
    /// It is not.
    Fails,
    /// These data cannot tell.
    Open,
    /// These data cannot be true.
    Implausible,
    /// The number is what went into the model, or is of another load or machine than the claim's.
    NotAResult,
}

impl ClaimVerdict {
    /// All of them, in the order in which they are counted.
    pub const ALL: [Self; 5] = [
        Self::Holds,
        Self::Fails,
        Self::Open,
        Self::Implausible,
        Self::NotAResult,
    ];

    /// In tables.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Holds => "holds",
            Self::Fails => "**does not hold**",
            Self::Open => "open",
            Self::Implausible => "**implausible**",
            Self::NotAResult => "not a result",
        }
    }

    /// Behind the number of claims that have it.
    #[must_use]
    pub fn counted(self) -> &'static str {
        match self {
            Self::Holds => "hold",
            Self::Fails => "do not",
            Self::Open => "open",
            Self::Implausible => "implausible",
            Self::NotAResult => "not a result",
        }
    }

    /// How many claims have each verdict, for people: the first three always, the others if any do.
    #[must_use]
    pub fn counts(claims: &[Claim]) -> String {
        let count = |verdict| {
            let with = claims.iter().filter(|claim| claim.verdict() == verdict);
            with.count()
        };
        let always = [Self::Holds, Self::Fails, Self::Open];
        let shown = Self::ALL
            .into_iter()
            .filter(|verdict| always.contains(verdict) || count(*verdict) > 0);
        let shown = shown.map(|verdict| format!("{} {}", count(verdict), verdict.counted()));
        shown.collect::<Vec<_>>().join(", ")
    }
}

/// A number that decides a claim.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    value: f64,
    plausible: RangeInclusive<f64>,
    text: String,
}

impl Measured {
    /// A number, the values of it that can be true at all, and what is said of it in tables. The range
    /// is not what the claim demands: it is what a correct measurement cannot leave.
    #[must_use]
    pub fn new(value: f64, plausible: RangeInclusive<f64>, text: impl Into<String>) -> Self {
        assert!(!plausible.is_empty(), "some value is plausible");
        Self {
            value,
            plausible,
            text: text.into(),
        }
    }

    /// How often one number goes into another: no two systems here differ by more than 10,000 times.
    #[must_use]
    pub fn ratio(value: f64, text: impl Into<String>) -> Self {
        Self::new(value, 1e-4..=1e4, text)
    }

    /// A time in milliseconds: more than nothing, and no longer than ten minutes.
    #[must_use]
    pub fn millis(value: f64, text: impl Into<String>) -> Self {
        Self::new(value, 1e-3..=6e5, text)
    }

    fn is_plausible(&self) -> bool {
        // What is no number is in no range.
        self.plausible.contains(&self.value)
    }
}

/// A claim. Its verdict is made by the functions of this type alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who says so.
    pub source: Source,
    /// What is said.
    pub says: String,
    /// What was measured.
    pub measured: String,
    verdict: ClaimVerdict,
}

impl Claim {
    /// A claim that holds or does not, unless the number that decides it cannot be true.
    #[must_use]
    pub fn judged(
        source: Source,
        says: impl Into<String>,
        measured: Measured,
        holds: bool,
    ) -> Self {
        let says = says.into();
        if !measured.is_plausible() {
            let (value, range) = (measured.value, &measured.plausible);
            let why = format!(
                "{}; {value} is not between {} and {}",
                measured.text,
                range.start(),
                range.end()
            );
            return Self::with(source, says, why, ClaimVerdict::Implausible);
        }
        let verdict = if holds {
            ClaimVerdict::Holds
        } else {
            ClaimVerdict::Fails
        };
        Self::with(source, says, measured.text, verdict)
    }

    /// A claim that these data cannot judge.
    #[must_use]
    pub fn open(source: Source, says: impl Into<String>, why: impl Into<String>) -> Self {
        Self::with(source, says.into(), why.into(), ClaimVerdict::Open)
    }

    fn with(source: Source, says: String, measured: String, verdict: ClaimVerdict) -> Self {
        Self {
            source,
            says,
            measured,
            verdict,
        }
    }

    /// What is left of the claims about a sweep when one point of it was run.
    #[must_use]
    pub fn of_one_point() -> Vec<Self> {
        let says = "What changes, and what does not, over the whole range.";
        vec![Self::open(Source::Artifact, says, "one point was run")]
    }

    /// Whether it is so.
    #[must_use]
    pub fn verdict(&self) -> ClaimVerdict {
        self.verdict
    }

    /// The same claim when its number went into what it was measured with.
    #[must_use]
    pub fn circular(self, why: &str) -> Self {
        self.not_a_result(&format!("circular: {why}"))
    }

    /// The same claim when what was measured is another load, or on other machines, than the claim is
    /// about.
    #[must_use]
    pub fn of_another_load(self, why: &str) -> Self {
        self.not_a_result(&format!("another load: {why}"))
    }

    fn not_a_result(self, why: &str) -> Self {
        match self.verdict {
            ClaimVerdict::Holds | ClaimVerdict::Fails => {
                self.because(ClaimVerdict::NotAResult, why)
            }
            ClaimVerdict::Open | ClaimVerdict::Implausible | ClaimVerdict::NotAResult => self,
        }
    }

    /// The same claim when these data cannot judge it.
    #[must_use]
    pub fn opened(self, why: &str) -> Self {
        match self.verdict {
            ClaimVerdict::Implausible => self,
            _ => self.because(ClaimVerdict::Open, why),
        }
    }

    /// The same claim when the data cannot be true.
    #[must_use]
    pub fn disbelieved(self, why: &str) -> Self {
        match self.verdict {
            // Nothing was said of the data.
            ClaimVerdict::Open => self,
            _ => self.because(ClaimVerdict::Implausible, why),
        }
    }

    fn because(mut self, verdict: ClaimVerdict, why: &str) -> Self {
        self.measured = format!("{}; {why}", self.measured);
        self.verdict = verdict;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(value: f64) -> Claim {
        let measured = Measured::new(value, 1.0..=2.0, "measured");
        Claim::judged(Source::Target, "says", measured, true)
    }

    #[test]
    fn a_number_that_cannot_be_true_makes_no_claim_hold() {
        assert_eq!(claim(1.5).verdict(), ClaimVerdict::Holds);
        for value in [0.0, 0.9, 2.1, f64::NAN, f64::INFINITY] {
            assert_eq!(claim(value).verdict(), ClaimVerdict::Implausible, "{value}");
        }
    }

    #[test]
    fn what_cannot_be_true_stays_so() {
        let nonsense = claim(0.0);
        assert_eq!(
            nonsense.clone().circular("").verdict(),
            ClaimVerdict::Implausible
        );
        assert_eq!(nonsense.opened("").verdict(), ClaimVerdict::Implausible);
        let other = claim(1.5).of_another_load("of Kvrocks");
        assert_eq!(other.verdict(), ClaimVerdict::NotAResult);
        assert!(other.measured.contains("Kvrocks"));
        assert_eq!(other.disbelieved("").verdict(), ClaimVerdict::Implausible);
    }
}
