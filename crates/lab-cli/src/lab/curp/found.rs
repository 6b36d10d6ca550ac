//! What claims, figures and reports take from data.

use std::fmt::Write as _;

use manxdb_lab::experiment::data::{Data, Record};
use manxdb_lab::experiment::{Claim, Measured, Source, series};
use manxdb_lab::figure::{Line, Look, Point};

use super::Replicating;
use super::trial::{Carrier, Load, Measure, System, Trial};

/// Fewer repetitions judge no time and no rate: the machine may be anybody's too.
pub(in crate::lab) const REPETITIONS_MIN: usize = 3;

/// Which runs are meant.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// What serves.
    pub system: System,
    /// One way, in microseconds.
    pub lan_us: u32,
    /// Commands under way.
    pub clients: u32,
    /// In hundredths; nothing: whatever it is.
    pub theta: Option<u32>,
    /// Which of its loads.
    pub load: Load,
}

impl Wanted {
    fn is(&self, trial: &Trial) -> bool {
        (trial.system, trial.lan_us, trial.clients) == (self.system, self.lan_us, self.clients)
            && self.theta.is_none_or(|theta| theta == trial.theta)
            && trial.loads.contains(&self.load)
    }

    /// The same of another system.
    pub fn of(self, system: System) -> Self {
        Self { system, ..self }
    }

    /// The median of a number over the repetitions.
    ///
    /// # Errors
    /// Why there is none: it was not run, or this machine lacks what it needs.
    pub fn median(
        &self,
        data: &Data<Replicating>,
        number: impl Fn(&Measure) -> f64,
    ) -> Result<f64, String> {
        let records = data.records.iter().filter(|record| self.is(&record.trial));
        let lacking = records.clone().find_map(|one| one.outcome.lacking.as_ref());
        if let Some(why) = lacking {
            return Err(format!("{} did not run: {why}", self.system.title()));
        }
        let measures = records.filter_map(|record| record.outcome.of(self.load));
        let mut values: Vec<f64> = measures.map(number).collect();
        values.sort_by(f64::total_cmp);
        let middle = |place: usize| values.get(place).copied();
        let low = middle(values.len().saturating_sub(1) / 2);
        low.zip(middle(values.len() / 2))
            .map(|(low, high)| f64::midpoint(low, high))
            .ok_or_else(|| "these runs are not among the data".to_owned())
    }

    /// How often another system's time or rate goes into this one's.
    ///
    /// # Errors
    /// As [`Self::ratio`], or too few repetitions: what else the machine did decides one.
    pub fn timed_ratio(
        &self,
        data: &Data<Replicating>,
        other: System,
        number: impl Fn(&Measure) -> f64 + Copy,
    ) -> Result<f64, String> {
        let ratio = self.ratio(data, other, number)?;
        let of = |wanted: &Self| {
            let records = data.records.iter();
            records.filter(|one| wanted.is(&one.trial)).count()
        };
        let repetitions = of(self).min(of(&self.of(other)));
        if repetitions < REPETITIONS_MIN {
            return Err(format!(
                "{ratio:.2} times, {repetitions} repetitions: {REPETITIONS_MIN} at least judge a time"
            ));
        }
        Ok(ratio)
    }

    /// How often another system's number goes into this one's.
    ///
    /// # Errors
    /// As [`Self::median`].
    pub fn ratio(
        &self,
        data: &Data<Replicating>,
        other: System,
        number: impl Fn(&Measure) -> f64 + Copy,
    ) -> Result<f64, String> {
        let (own, other) = (
            self.median(data, number)?,
            self.of(other).median(data, number)?,
        );
        Ok(own / other)
    }
}

/// A claim about numbers that may not be there.
pub(super) fn judge<T: Copy>(
    source: Source,
    says: &str,
    found: Result<T, String>,
    judged: impl Fn(T) -> (Measured, bool),
) -> Claim {
    match found {
        Ok(found) => {
            let (measured, holds) = judged(found);
            Claim::judged(source, says, measured, holds)
        }
        Err(why) => Claim::open(source, says, why),
    }
}

/// The points of a system along a parameter, as a line.
pub(super) fn line(
    data: &Data<Replicating>,
    (name, look): (String, Look),
    wanted: &dyn Fn(&Trial) -> bool,
    at: &dyn Fn(&Trial) -> f64,
    (load, number): (Load, &dyn Fn(&Measure) -> f64),
) -> Line {
    let belongs =
        |record: &Record<Replicating>| record.outcome.of(load).is_some() && wanted(&record.trial);
    let all = series(&data.records, belongs, |record| at(&record.trial));
    let points = all
        .iter()
        .map(|at| at.point(|outcome| outcome.number(load, number)));
    let points: Vec<Point> = points.collect();
    Line { name, look, points }
}

/// The lines of systems along a parameter; those without a point are left out.
pub(super) fn lines(
    data: &Data<Replicating>,
    systems: &[System],
    at: &dyn Fn(&Trial) -> f64,
    what: (Load, &dyn Fn(&Measure) -> f64),
) -> Vec<Line> {
    let of = |system: System| {
        let look = look(system);
        let look = if system.faults() > 1 {
            look.secondary()
        } else {
            look
        };
        let wanted = |trial: &Trial| trial.system == system;
        line(data, (system.title(), look), &wanted, at, what)
    };
    let lines = systems.iter().copied().map(of);
    lines.filter(|line| !line.points.is_empty()).collect()
}

/// How the line of a system looks, whatever its number of faults.
pub(super) fn look(system: System) -> Look {
    match system {
        System::Unreplicated => Look::of(4),
        System::Curp {
            carrier: Carrier::User,
            ..
        } => Look::of(0),
        System::Curp {
            carrier: Carrier::XdpGeneric,
            ..
        } => Look::of(2),
        System::Curp {
            carrier: Carrier::Xdp,
            ..
        } => Look::of(2).secondary(),
        System::Synced { .. } => Look::of(1),
        System::RedisAlways => Look::of(3),
    }
}

/// Medians of all repetitions.
pub(super) fn table(data: &Data<Replicating>) -> String {
    let mut text = String::from(
        "## Numbers\n\nMedians of the repetitions. Latencies are of all commands; fast is the share of updates \
         that all witnesses completed, in one round trip; CPU is of a command, in µs.\n\n| system | load | Zipf | clients \
         | way (µs) | commands/s | p50 (µs) | p99 (µs) | updates p50 (µs) | fast | CPU master | backups | \
         witnesses | client | messages | bytes |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let mut told: Vec<Trial> = Vec::new();
    for record in &data.records {
        let trial = Trial {
            seed: 0,
            ..record.trial.clone()
        };
        if told.contains(&trial) {
            continue;
        }
        for load in &trial.loads {
            row(&mut text, data, &trial, *load);
        }
        told.push(trial);
    }
    text
}

fn row(text: &mut String, data: &Data<Replicating>, trial: &Trial, load: Load) {
    let wanted = Wanted {
        system: trial.system,
        lan_us: trial.lan_us,
        clients: trial.clients,
        theta: Some(trial.theta),
        load,
    };
    let median = |number: &dyn Fn(&Measure) -> f64| wanted.median(data, number);
    #[allow(clippy::cast_precision_loss)] // far below 2^53
    let each = |seconds: f64, measure: &Measure| seconds * 1e6 / measure.commands.max(1) as f64;
    type Number<'a> = &'a dyn Fn(&Measure) -> f64;
    let numbers: [(Number<'_>, usize); 11] = [
        (&|one| one.rate(), 0),
        (&|one| one.all.p50, 1),
        (&|one| one.all.p99, 1),
        (&|one| one.updates.p50, 1),
        (&|one| one.fast_share(), 3),
        (&|one| each(one.cpu.master, one), 1),
        (&|one| each(one.cpu.backups, one), 1),
        (&|one| each(one.cpu.witnesses, one), 1),
        (&|one| each(one.cpu.client, one), 1),
        (&|one| one.messages_each(), 2),
        (&|one| one.bytes_each(), 0),
    ];
    let Ok(_) = median(numbers[0].0) else {
        return;
    };
    let theta = if load == Load::Set {
        "even".to_owned()
    } else {
        format!("{:.2}", f64::from(trial.theta) / 100.0)
    };
    let _ = write!(
        text,
        "| {} | {} | {theta} | {} | {} |",
        trial.system.title(),
        load.title(),
        trial.clients,
        trial.lan_us
    );
    for (number, digits) in numbers {
        // Of redis-server not everything is known.
        let is_theirs = trial.system.is_redis() && digits >= 2;
        match median(number) {
            Ok(value) if !is_theirs => {
                let _ = write!(text, " {value:.digits$} |");
            }
            _ => text.push_str(" |"),
        }
    }
    text.push('\n');
}

/// What this machine lacks, by system.
pub(super) fn lacking(data: &Data<Replicating>) -> String {
    let mut text = String::new();
    let mut told = Vec::new();
    for record in &data.records {
        let Some(why) = &record.outcome.lacking else {
            continue;
        };
        let line = format!("{} did not run: {why}", record.trial.system.title());
        if !told.contains(&line) {
            let _ = writeln!(text, "\nskipped: {line}");
            told.push(line);
        }
    }
    text
}
