//! What is compared, and how its lines look.

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{At, Claim, ExperimentKind, Measured, Scale, Source, series};
use manxdb_lab::figure::{Axes, Line, Look, Panel, Scale as Along};
use manxdb_lab::rack;

use super::{Shopping, Trial};
use crate::bench::checkout::Outcome;
use crate::cli::{self, CheckoutShape};
use crate::lab::fill::judge;

/// Memory servers, or resource managers: the paper's.
pub const SERVERS: u16 = 3;
/// Servers on which a commit is logged, where it is: one may be lost.
const LOGS: u16 = 2;

/// Where a system is run.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    /// In processes of this machine.
    Here(cli::System),
    /// On the machines of the published experiment, in virtual time.
    Simulated(rack::System),
}

/// What a line of a figure, or a row of a table, is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct System {
    /// Which, and where.
    place: Place,
    /// Whether commits are logged before they are installed.
    is_logged: bool,
    /// Its name.
    pub name: &'static str,
    look: usize,
}

impl System {
    const fn of(kind: cli::System, name: &'static str, look: usize) -> Self {
        Self {
            place: Place::Here(kind),
            is_logged: false,
            name,
            look,
        }
    }

    const fn simulated(kind: rack::System, name: &'static str, look: usize) -> Self {
        Self {
            place: Place::Simulated(kind),
            is_logged: false,
            name,
            look,
        }
    }

    /// Our protocol.
    pub const RSI: Self = Self::of(cli::System::Rsi, "rsi", 0);
    /// The same, logged on two servers before it is installed.
    pub const LOGGED: Self = Self {
        is_logged: true,
        ..Self::of(cli::System::Rsi, "rsi, logged on two", 0)
    };
    pub const SERIALIZABLE: Self = Self::of(cli::System::RsiSerializable, "rsi, serializable", 2);
    pub const PUBLISHED: Self = Self::of(
        cli::System::RsiPublished,
        "rsi as published (bit vector)",
        1,
    );
    pub const TWO_SIDED: Self = Self::of(cli::System::TwoSided, "two-sided (2PC, messages)", 3);
    pub const TRAD: Self = Self::of(cli::System::TradSi, "trad-si (2PC, TCP)", 4);

    /// All that may be in a figure.
    pub const ALL: [Self; 6] = [
        Self::RSI,
        Self::LOGGED,
        Self::SERIALIZABLE,
        Self::PUBLISHED,
        Self::TWO_SIDED,
        Self::TRAD,
    ];

    /// One-sided operations alone, as published.
    pub const SIMULATED_RSI: Self = Self::simulated(rack::System::Rsi, "RSI, simulated", 1);
    pub const SIMULATED_TWO_SIDED: Self =
        Self::simulated(rack::System::TwoSided, "two-sided, simulated", 3);
    pub const SIMULATED_ETHERNET: Self = Self::simulated(
        rack::System::TradEthernet,
        "Trad-SI over Ethernet, simulated",
        4,
    );
    /// There is no such network here: a model is all there can be.
    pub const SIMULATED_IPOIB: Self =
        Self::simulated(rack::System::TradIpoib, "Trad-SI over IPoIB, simulated", 2);

    /// Those of the published figure.
    pub const SIMULATED: [Self; 4] = [
        Self::SIMULATED_RSI,
        Self::SIMULATED_TWO_SIDED,
        Self::SIMULATED_ETHERNET,
        Self::SIMULATED_IPOIB,
    ];

    /// All, those that are measured first.
    pub fn everywhere() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().chain(Self::SIMULATED)
    }

    /// The one that a trial is of.
    pub fn of_trial(trial: &Trial) -> Option<Self> {
        Self::everywhere().find(|system| system.has(trial))
    }

    /// A trial of it; none of what is only simulated.
    pub fn trial(
        self,
        scale: Scale,
        clients: u16,
        (products, hot): (u64, u64),
        seed: u64,
    ) -> Option<Trial> {
        let Place::Here(system) = self.place else {
            return None;
        };
        Some(Trial::Measured(CheckoutShape {
            system,
            clients,
            servers: SERVERS,
            products,
            hot: Some(hot),
            versions: 2,
            logs: if self.is_logged { LOGS } else { 0 },
            seconds: scale.pick(1, 3, 10),
            orders: scale.pick(100_000, 3_000_000, 20_000_000),
            seed,
        }))
    }

    fn has(self, trial: &Trial) -> bool {
        match (self.place, trial) {
            (Place::Here(system), Trial::Measured(shape)) => {
                shape.system == system && (shape.logs > 0) == self.is_logged
            }
            (Place::Simulated(system), Trial::Simulated(trial)) => trial.system == system,
            _ => false,
        }
    }

    fn look(self) -> Look {
        let look = Look::of(self.look);
        if self.is_logged || matches!(self.place, Place::Simulated(_)) {
            look.secondary()
        } else {
            look
        }
    }

    /// Its runs, by where they stand.
    pub fn points(
        self,
        data: &Data<Shopping>,
        at: impl Fn(&Trial) -> f64,
    ) -> Vec<At<'_, Shopping>> {
        let belongs = |record: &Record<Shopping>| self.has(&record.trial);
        series(&data.records, belongs, |record| at(&record.trial))
    }

    /// The most of a number that it reaches with any number of clients, and with how many.
    pub fn peak(self, data: &Data<Shopping>, number: fn(&Outcome) -> f64) -> Option<(f64, f64)> {
        let points = self.points(data, clients);
        let each = points.iter().map(|at| (at.x, at.median(number)));
        each.max_by(|one, other| one.1.total_cmp(&other.1))
    }

    /// How often another's number goes into its own, where both were run.
    pub fn ratios(
        self,
        other: Self,
        data: &Data<Shopping>,
        at: fn(&Trial) -> f64,
        number: fn(&Outcome) -> f64,
    ) -> Vec<(f64, f64)> {
        ratios(&self.points(data, at), &other.points(data, at), number)
    }
}

/// How often others' number goes into one's own, where both were run.
pub fn ratios<K: ExperimentKind>(
    own: &[At<'_, K>],
    others: &[At<'_, K>],
    number: impl Fn(&K::Outcome) -> f64,
) -> Vec<(f64, f64)> {
    let found = own.iter().filter_map(|own| {
        let other = others.iter().find(|one| one.x.total_cmp(&own.x).is_eq())?;
        let below = other.median(&number);
        (below > 0.0).then(|| (own.x, own.median(&number) / below))
    });
    found.collect()
}

/// A panel with a line for each system that was measured.
pub fn panel(
    data: &Data<Shopping>,
    at: fn(&Trial) -> f64,
    titles: (&str, &str, &str),
    axes: Axes,
    number: fn(&Outcome) -> f64,
) -> Panel {
    panel_of(&System::ALL, data, at, titles, axes, number)
}

/// A panel with a line for each of these systems that there are runs of.
pub fn panel_of(
    systems: &[System],
    data: &Data<Shopping>,
    at: fn(&Trial) -> f64,
    (title, x_label, y_label): (&str, &str, &str),
    axes: Axes,
    number: fn(&Outcome) -> f64,
) -> Panel {
    let lines = systems.iter().map(|system| {
        let points = system.points(data, at);
        Line {
            name: system.name.into(),
            look: system.look(),
            points: points.iter().map(|at| at.point(number)).collect(),
        }
    });
    Panel {
        title: title.into(),
        x_label: x_label.into(),
        y_label: y_label.into(),
        axes,
        lines: lines.filter(|line| !line.points.is_empty()).collect(),
        marks: Vec::new(),
    }
}

/// Equal ratios alike upwards: systems differ by a factor of a hundred.
pub const RATIOS: Axes = Axes {
    x: Along::Linear,
    y: Along::Log,
};

/// Where a trial stands whose clients are swept.
pub fn clients(trial: &Trial) -> f64 {
    f64::from(trial.clients())
}

/// All systems that can be measured with so many clients, who want all products alike.
pub fn over_clients(scale: Scale, clients: &[u16], products: u64, seed: u64) -> Vec<Trial> {
    let seeds = (seed..).take(repetitions(scale));
    let trials = seeds.flat_map(|seed| {
        clients.iter().flat_map(move |clients| {
            let of =
                move |system: System| system.trial(scale, *clients, (products, products), seed);
            System::ALL.into_iter().filter_map(of)
        })
    });
    trials.collect()
}

/// All systems that are simulated with so many clients: the same in every repetition.
pub fn simulated(scale: Scale, clients: &[u16], seed: u64) -> Vec<Trial> {
    let checkouts = scale.pick(300, 20_000, 100_000);
    let of = |clients: u16| {
        rack::System::ALL.map(|system| {
            Trial::Simulated(rack::Trial {
                system,
                clients,
                checkouts,
                seed,
            })
        })
    };
    clients.iter().copied().flat_map(of).collect()
}

/// How often each trial is run.
pub fn repetitions(scale: Scale) -> usize {
    scale.pick(1, 3, 5)
}

/// A claim about how often another's number goes into one's own; `of` is what is swept.
pub fn compared(
    (source, says): (Source, &str),
    ratios: &[(f64, f64)],
    of: &str,
    holds: impl Fn(&[(f64, f64)]) -> bool,
) -> Claim {
    let ratios = (!ratios.is_empty()).then_some(ratios);
    judge(source, says, ratios, |ratios| {
        let measured = Measured::ratio(farthest(ratios), said(ratios, of));
        (measured, holds(ratios))
    })
}

/// The ratio that is the least like one: if it can be true, all can.
pub fn farthest(ratios: &[(f64, f64)]) -> f64 {
    let far = |ratio: f64| ratio.max(1.0 / ratio);
    let all = ratios.iter().map(|(_, ratio)| *ratio);
    all.max_by(|one, other| far(*one).total_cmp(&far(*other)))
        .unwrap_or(f64::NAN)
}

/// Ratios, for people.
fn said(ratios: &[(f64, f64)], of: &str) -> String {
    let each = ratios.iter().map(|(at, ratio)| {
        let digits = if *ratio >= 10.0 { 0 } else { 2 };
        format!("{ratio:.digits$} times at {at} {of}")
    });
    each.collect::<Vec<_>>().join(", ")
}
