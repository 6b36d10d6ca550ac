//! What is compared, and how its lines look.

use manxdb_lab::data::{Data, Record};
use manxdb_lab::experiment::{At, Claim, Kind, Scale, Source, series};
use manxdb_lab::figure::{Axes, Line, Look, Panel, Scale as Along};

use super::Shopping;
use crate::bench::checkout::Outcome;
use crate::cli::{self, CheckoutShape};
use crate::lab::fill::judge;

/// Memory servers, or resource managers: the paper's.
pub const SERVERS: u16 = 3;
/// Servers on which a commit is logged, where it is: one may be lost.
const LOGS: u16 = 2;

/// What a line of a figure, or a row of a table, is about.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct System {
    /// Which.
    kind: cli::System,
    /// Whether commits are logged before they are installed.
    is_logged: bool,
    /// Its name.
    pub name: &'static str,
    look: usize,
}

impl System {
    const fn of(kind: cli::System, name: &'static str, look: usize) -> Self {
        Self {
            kind,
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

    /// A trial of it.
    pub fn trial(
        self,
        scale: Scale,
        clients: u16,
        (products, hot): (u64, u64),
        seed: u64,
    ) -> CheckoutShape {
        CheckoutShape {
            system: self.kind,
            clients,
            servers: SERVERS,
            products,
            hot: Some(hot),
            versions: 2,
            logs: if self.is_logged { LOGS } else { 0 },
            seconds: scale.pick(1, 3, 10),
            orders: scale.pick(100_000, 3_000_000, 20_000_000),
            seed,
        }
    }

    fn has(self, trial: &CheckoutShape) -> bool {
        trial.system == self.kind && (trial.logs > 0) == self.is_logged
    }

    /// Its runs, by where they stand.
    pub fn points(
        self,
        data: &Data<Shopping>,
        at: impl Fn(&CheckoutShape) -> f64,
    ) -> Vec<At<'_, Shopping>> {
        let belongs = |record: &Record<Shopping>| self.has(&record.trial);
        series(&data.records, belongs, |record| at(&record.trial))
    }

    /// How often another's number goes into its own, where both were run.
    pub fn ratios(
        self,
        other: Self,
        data: &Data<Shopping>,
        at: fn(&CheckoutShape) -> f64,
        number: fn(&Outcome) -> f64,
    ) -> Vec<(f64, f64)> {
        ratios(&self.points(data, at), &other.points(data, at), number)
    }
}

/// How often others' number goes into one's own, where both were run.
pub fn ratios<K: Kind>(
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

/// A panel with a line for each system that there are runs of.
pub fn panel(
    data: &Data<Shopping>,
    at: fn(&CheckoutShape) -> f64,
    (title, x_label, y_label): (&str, &str, &str),
    axes: Axes,
    number: fn(&Outcome) -> f64,
) -> Panel {
    let lines = System::ALL.into_iter().map(|system| {
        let look = Look::of(system.look);
        Line {
            name: system.name.into(),
            look: if system.is_logged {
                look.secondary()
            } else {
                look
            },
            points: system
                .points(data, at)
                .iter()
                .map(|at| at.point(number))
                .collect(),
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
pub fn clients(trial: &CheckoutShape) -> f64 {
    f64::from(trial.clients)
}

/// All systems with so many clients, who want all products alike.
pub fn over_clients(scale: Scale, clients: &[u16], products: u64, seed: u64) -> Vec<CheckoutShape> {
    let seeds = (seed..).take(repetitions(scale));
    let trials = seeds.flat_map(|seed| {
        clients.iter().flat_map(move |clients| {
            System::ALL.map(|system| system.trial(scale, *clients, (products, products), seed))
        })
    });
    trials.collect()
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
        (said(ratios, of), holds(ratios))
    })
}

/// Ratios, for people.
fn said(ratios: &[(f64, f64)], of: &str) -> String {
    let each = ratios.iter().map(|(at, ratio)| {
        let digits = if *ratio >= 10.0 { 0 } else { 2 };
        format!("{ratio:.digits$} times at {at} {of}")
    });
    each.collect::<Vec<_>>().join(", ")
}
