//! What an experiment measured, as it lies on disk.
//!
//! `data.json` holds everything that a figure and a report are made of, one trial a line;
//! `data.csv` holds the same numbers for other tools. Neither holds a clock's time: equal
//! experiments write equal bytes.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use crate::experiment::Scale;
use crate::trial::{Cpu, Outcome, Spread, Trial, Workload};

/// Version of the form of `data.json`.
const FORMAT: u32 = 1;

/// A trial and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What was run.
    pub trial: Trial,
    /// What was measured.
    pub outcome: Outcome,
}

/// All trials of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Data {
    /// Name of the experiment.
    pub experiment: String,
    /// How large it was.
    pub scale: Scale,
    /// The first seed.
    pub seed: u64,
    /// Version of ManxDB that ran it.
    pub version: String,
    /// In the order of the plan.
    pub records: Vec<Record>,
}

#[derive(Serialize, Deserialize)]
struct Head {
    format: u32,
    experiment: String,
    scale: Scale,
    seed: u64,
    version: String,
}

#[derive(Deserialize)]
struct File {
    #[serde(flatten)]
    head: Head,
    records: Vec<Record>,
}

/// A file cannot be read as data.
#[derive(Debug, thiserror::Error)]
pub enum DataError {
    /// It is no JSON of this shape.
    #[error("not data of an experiment: {0}")]
    Malformed(#[from] serde_json::Error),
    /// Another version of the form.
    #[error("written in form {0}, this program reads form {FORMAT}: run the experiment again")]
    Form(u32),
}

impl Data {
    /// As `data.json`.
    #[must_use]
    pub fn to_json(&self) -> String {
        let head = Head {
            format: FORMAT,
            experiment: self.experiment.clone(),
            scale: self.scale,
            seed: self.seed,
            version: self.version.clone(),
        };
        // Strings and finite numbers alone: nothing that JSON could not hold.
        let head = serde_json::to_string(&head).unwrap_or_default();
        let lines = self
            .records
            .iter()
            .map(|record| serde_json::to_string(record).unwrap_or_default());
        let lines: Vec<String> = lines.collect();
        let head = head.trim_end_matches('}');
        format!("{head},\"records\":[\n{}\n]}}\n", lines.join(",\n"))
    }

    /// From `data.json`.
    ///
    /// # Errors
    /// [`DataError`].
    pub fn from_json(text: &str) -> Result<Self, DataError> {
        let file: File = serde_json::from_str(text)?;
        if file.head.format != FORMAT {
            return Err(DataError::Form(file.head.format));
        }
        Ok(Self {
            experiment: file.head.experiment,
            scale: file.head.scale,
            seed: file.head.seed,
            version: file.head.version,
            records: file.records,
        })
    }

    /// As `data.csv`: a line of names, then a line a trial. Times are milliseconds, shares are
    /// from 0 to 1.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = String::from(
            "system,workload,parameter,regions,shards_per_region,clients_per_shard,outstanding,\
             wan_jitter_ms,cpu,warm_up_ms,measured_ms,seed,throughput_tps",
        );
        for kind in ["irt", "crt", "dependent_crt"] {
            for name in ["count", "mean", "p50", "p90", "p95", "p99", "max"] {
                let _ = write!(text, ",{kind}_{name}");
            }
        }
        text.push_str(
            ",refused,oldest_open,busiest_server,busiest_role,mean_server,lan_messages_per_txn,\
             wan_messages_per_txn,events\n",
        );
        for record in &self.records {
            row(&mut text, record);
        }
        text
    }
}

fn row(text: &mut String, Record { trial, outcome }: &Record) {
    let (workload, parameter) = match trial.workload {
        Workload::Tpcc => ("tpcc", String::new()),
        Workload::Payment { cross_region } => ("payment", cross_region.to_string()),
        Workload::Tpca { alpha } => ("tpca", alpha.to_string()),
    };
    let cpu = match trial.cpu {
        Cpu::Modelled => "modelled",
        Cpu::Free => "free",
    };
    let _ = write!(
        text,
        "{},{workload},{parameter},{},{},{},{},{},{cpu},{},{},{},{}",
        trial.system.title(),
        trial.regions,
        trial.shards_per_region,
        trial.clients_per_shard,
        trial.outstanding,
        trial.wan_jitter_ms,
        trial.warm_up_ms,
        trial.measured_ms,
        trial.seed,
        outcome.throughput,
    );
    for spread in [outcome.local, outcome.cross_region, outcome.dependent] {
        let Spread {
            count,
            mean,
            p50,
            p90,
            p95,
            p99,
            max,
        } = spread;
        let _ = write!(text, ",{count},{mean},{p50},{p90},{p95},{p99},{max}");
    }
    let _ = writeln!(
        text,
        ",{},{},{},{},{},{},{},{}",
        outcome.refused,
        outcome.oldest_open_ms,
        outcome.busiest_server,
        outcome.busiest_role,
        outcome.mean_server,
        outcome.lan_messages,
        outcome.wan_messages,
        outcome.events,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::SystemName;
    use crate::trial::Warehouse;

    fn data() -> Data {
        let trial = Trial {
            system: SystemName::Dast,
            regions: 3,
            shards_per_region: 2,
            clients_per_shard: 1,
            outstanding: 4,
            workload: Workload::Payment { cross_region: 0.1 },
            warehouse: Warehouse::Tiny,
            wan_jitter_ms: 0,
            cpu: Cpu::Free,
            warm_up_ms: 100,
            measured_ms: 200,
            seed: u64::MAX,
        };
        let outcome = Outcome {
            throughput: 12.5,
            local: Spread::default(),
            cross_region: Spread {
                count: 3,
                p99: 217.5,
                ..Spread::default()
            },
            dependent: Spread::default(),
            refused: 1,
            refusal: Some("a \"reason\", with a comma".into()),
            oldest_open_ms: 1.0,
            busiest_server: 0.5,
            busiest_role: "replica".into(),
            mean_server: 0.25,
            lan_messages: 9.0,
            wan_messages: 0.5,
            events: 7,
        };
        Data {
            experiment: "crt-ratio".into(),
            scale: Scale::Smoke,
            seed: 7,
            version: "0.1.0".into(),
            records: vec![Record { trial, outcome }; 2],
        }
    }

    #[test]
    fn json_holds_everything() {
        let written = data().to_json();
        assert_eq!(Data::from_json(&written).unwrap(), data());
        assert_eq!(written.lines().count(), 4, "{written}");
        let empty = Data {
            records: Vec::new(),
            ..data()
        };
        assert_eq!(Data::from_json(&empty.to_json()).unwrap(), empty);
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(
            Data::from_json("{}"),
            Err(DataError::Malformed(_))
        ));
        let later = data().to_json().replace("\"format\":1", "\"format\":2");
        assert!(matches!(Data::from_json(&later), Err(DataError::Form(2))));
    }

    #[test]
    fn csv_has_a_column_for_each_name() {
        let csv = data().to_csv();
        let mut lines = csv.lines();
        let columns = |line: &str| line.split(',').count();
        let names = columns(lines.next().unwrap());
        assert!(lines.clone().count() == 2 && lines.all(|line| columns(line) == names));
    }
}
