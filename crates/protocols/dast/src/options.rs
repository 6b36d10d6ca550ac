//! What can be set, and why it is what it is.

use manxdb_core::Nanos;
use serde::{Deserialize, Serialize};

/// How cross-region transactions get their places in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Crossing {
    /// Every touched region anticipates a timestamp and the home region takes the largest
    /// (DAST §4.3): two round trips between regions.
    #[default]
    Anticipated,
    /// The home region gives the place ahead of time, and regions tell each other marks: one round
    /// trip between regions, and no aborts.
    Ahead,
}

impl Crossing {
    /// All of them.
    pub const ALL: [Crossing; 2] = [Crossing::Anticipated, Crossing::Ahead];

    /// On command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Anticipated => "anticipated",
            Self::Ahead => "ahead",
        }
    }

    /// The mode of this name.
    ///
    /// # Errors
    /// That there is none, and which there are.
    pub fn of_name(name: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|mode| mode.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("no such mode; there are {names}")
        })
    }
}

/// What may be lost without everything else coming to a stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Survive {
    /// One node of each shard and of each region's managers.
    #[default]
    Zone,
    /// A region of three or more: streams carry every transaction to all regions, a region's bound
    /// counts only what two of its managers hold, and the others end the stream of one that is silent.
    Region,
}

impl Survive {
    /// All of them.
    pub const ALL: [Survive; 2] = [Survive::Zone, Survive::Region];

    /// On command lines.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Zone => "zone",
            Self::Region => "region",
        }
    }

    /// What may be lost, by its name.
    ///
    /// # Errors
    /// That there is nothing of this name, and what there is.
    pub fn of_name(name: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|survive| survive.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(" and ");
            format!("nothing of this name; there are {names}")
        })
    }

    /// Whether a cluster can survive this.
    ///
    /// # Errors
    /// What it lacks.
    pub fn with(self, crossing: Crossing, regions: u32) -> Result<(), String> {
        if self == Self::Zone {
            return Ok(());
        }
        if crossing != Crossing::Ahead {
            return Err("this is for crossing ahead".to_owned());
        }
        if regions < FENCE_REGIONS_LEAST {
            return Err(format!(
                "of {regions} regions the rest is no majority; to survive the loss of a region takes \
                 {FENCE_REGIONS_LEAST} or more"
            ));
        }
        Ok(())
    }
}

/// With fewer regions those that are left are no majority.
pub const FENCE_REGIONS_LEAST: u32 = 3;

/// A lead from what somebody asks for, in milliseconds.
///
/// # Errors
/// That it is none, and what would be one.
pub fn lead_of_millis(millis: f64) -> Result<Nanos, String> {
    let most = LEAD_MAX.as_millis_f64();
    if millis > 0.0 && millis <= most {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // held within bounds
        return Ok(Nanos((millis * 1e6) as u64));
    }
    Err(format!(
        "{millis} ms is no lead: it is more than 0 and at most {most} ms, and what does is half a \
         round trip between regions and three intervals of reports, 57.5 ms for 100 ms"
    ))
}

/// The longest lead that a mark may have: a promise that far ahead delays every cross-region
/// transaction that comes after it.
pub const LEAD_MAX: Nanos = Nanos::from_secs(10);

/// How a cluster behaves. The same on all its nodes.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// How cross-region transactions get their places.
    pub crossing: Crossing,
    /// What may be lost. [`Survive::Region`] only with [`Crossing::Ahead`] and three regions or
    /// more.
    pub survive: Survive,
    /// How far ahead of its clock a region tells marks to another one, until it has measured what
    /// a message takes between them; up to [`LEAD_MAX`]. Only with [`Crossing::Ahead`].
    pub first_lead: Nanos,
    /// How often a replica reports its clock. A local transaction waits for at most one such
    /// interval beside its round trips; a region sends two messages a node and interval.
    pub report_every: Nanos,
    /// How often a manager looks after its group and for silent nodes.
    pub manager_tick: Nanos,
    /// How long a replica may be silent before it is out.
    pub suspect_after: Nanos,
    /// How often what should have happened is asked for again.
    pub retry_every: Nanos,
    /// How long the home region waits for the timestamps of the others before it gives a
    /// cross-region transaction up.
    pub give_up_after: Nanos,
    /// How long another region may be silent before the others end its stream: longer than its managers
    /// take to replace one that leads. Only with [`Survive::Region`].
    pub fence_after: Nanos,
    /// How often regions tell each other how far they are.
    pub progress_every: Nanos,
    /// How long a client waits before it asks another coordinator.
    pub client_patience: Nanos,
    /// What a region expects between giving a timestamp and hearing the decision, until it has
    /// measured it.
    pub first_estimate: Nanos,
    /// The least it expects, however fast decisions were: floors must reach all nodes of the region
    /// before their clocks do, or local transactions wait.
    pub least_estimate: Nanos,
    /// Replicas keep the order in which transactions ran, for checkers.
    pub keeps_order: bool,
    /// Replicas say what transactions wait for ([`crate::waits`]); costs time, not order.
    pub explains: bool,
    /// Planted defects.
    #[cfg(feature = "mutants")]
    pub mutant: Option<crate::mutants::Mutant>,
}

/// What all nodes of a cluster have in common.
pub type Shared = manxdb_common::Shared<Options>;

impl Default for Options {
    fn default() -> Self {
        Self {
            crossing: Crossing::Anticipated,
            survive: Survive::Zone,
            first_lead: Nanos::from_micros(57_500),
            report_every: Nanos::from_micros(2_500),
            manager_tick: Nanos::from_millis(5),
            suspect_after: Nanos::from_millis(50),
            retry_every: Nanos::from_millis(250),
            give_up_after: Nanos::from_millis(1_500),
            fence_after: Nanos::from_millis(300),
            progress_every: Nanos::from_millis(10),
            client_patience: Nanos::from_secs(2),
            first_estimate: Nanos::from_millis(110),
            least_estimate: Nanos::from_millis(20),
            keeps_order: false,
            explains: false,
            #[cfg(feature = "mutants")]
            mutant: None,
        }
    }
}

impl Options {
    /// For regions this far apart, there and back: what is expected of a decision is near what it
    /// will take, from the first one on.
    #[must_use]
    pub fn of_distance(round_trip: Nanos) -> Self {
        Self {
            first_estimate: round_trip + Nanos::from_millis(10),
            ..Self::default()
        }
        .with_lead_for(round_trip)
    }

    fn with_lead_for(self, round_trip: Nanos) -> Self {
        let lead = Nanos(round_trip.0 / 2 + self.lead_slack().0);
        Self {
            first_lead: Nanos(lead.0.min(LEAD_MAX.0)),
            ..self
        }
    }

    /// What a lead is longer than the way between two regions: a mark has to be at the replicas
    /// before their clocks are. A manager's idea of the time is a message behind the clocks that
    /// it hears of, the mark is a message on its way to them, and the next one comes an interval
    /// later; an interval of reports stands for each. With whole streams another manager's word
    /// that it has the mark is one message more.
    #[must_use]
    pub fn lead_slack(&self) -> Nanos {
        self.report_every * if self.has_whole_streams() { 4 } else { 3 }
    }

    /// Whether streams between regions carry what does not touch the receiver, too, and all of its
    /// managers keep them.
    #[must_use]
    pub fn has_whole_streams(&self) -> bool {
        self.crossing == Crossing::Ahead && self.survive == Survive::Region
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lead_is_more_than_nothing_and_at_most_ten_seconds() {
        assert_eq!(lead_of_millis(57.5), Ok(Nanos::from_micros(57_500)));
        assert_eq!(lead_of_millis(10_000.0), Ok(LEAD_MAX));
        for wrong in [0.0, -1.0, 10_000.1, f64::NAN] {
            let said = lead_of_millis(wrong).unwrap_err();
            assert!(said.contains("at most 10000 ms"), "{said}");
        }
    }

    #[test]
    fn modes_have_names() {
        for mode in Crossing::ALL {
            assert_eq!(Crossing::of_name(mode.name()), Ok(mode));
        }
        let said = Crossing::of_name("behind").unwrap_err();
        assert!(said.contains("anticipated, ahead"), "{said}");
    }

    #[test]
    fn a_region_is_survived_with_three_or_more_that_order_ahead() {
        for survive in Survive::ALL {
            assert_eq!(Survive::of_name(survive.name()), Ok(survive));
            assert_eq!(survive.with(Crossing::Ahead, 3), Ok(()));
        }
        assert_eq!(Survive::Zone.with(Crossing::Anticipated, 1), Ok(()));
        let two = Survive::Region.with(Crossing::Ahead, 2).unwrap_err();
        assert!(two.contains("3 or more"), "{two}");
        let other = Survive::Region.with(Crossing::Anticipated, 3).unwrap_err();
        assert!(other.contains("crossing ahead"), "{other}");
        assert!(Survive::of_name("sea").is_err());
    }

    #[test]
    fn a_lead_covers_the_way_and_what_comes_after_it() {
        let options = Options::of_distance(Nanos::from_millis(100));
        assert_eq!(options.first_lead, Nanos::from_micros(57_500));
        assert_eq!(options.first_lead, Options::default().first_lead);
        let far = Options::of_distance(Nanos::from_secs(60));
        assert_eq!(far.first_lead, LEAD_MAX);
        let region = Options {
            survive: Survive::Region,
            ..options
        };
        assert_eq!(region.lead_slack(), options.lead_slack(), "not ahead");
        let ahead = Options {
            crossing: Crossing::Ahead,
            ..region
        };
        assert_eq!(ahead.lead_slack(), Nanos::from_millis(10));
    }
}
