//! What an experiment measured, as it lies on disk.
//!
//! `data.json` holds everything that a figure and a report are made of, one trial a line;
//! `data.csv` holds the same numbers for other tools. Neither holds a clock's time: equal
//! experiments write equal bytes.

use serde::{Deserialize, Serialize};

use crate::experiment::{ExperimentKind, Scale};

/// Version of the form of `data.json`.
const FORMAT: u32 = 1;

/// A trial and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Record<K: ExperimentKind> {
    /// What was run.
    pub trial: K::Trial,
    /// What was measured.
    pub outcome: K::Outcome,
}

/// All trials of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Data<K: ExperimentKind> {
    /// Name of the experiment.
    pub experiment: String,
    /// How large it was.
    pub scale: Scale,
    /// The first seed.
    pub seed: u64,
    /// Version of ManxDB that ran it.
    pub version: String,
    /// In the order of the plan.
    pub records: Vec<Record<K>>,
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
#[serde(bound = "")]
struct File<K: ExperimentKind> {
    #[serde(flatten)]
    head: Head,
    records: Vec<Record<K>>,
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
    /// Of another experiment.
    #[error("data of {found}, not of {wanted}")]
    Other {
        /// Whose they are.
        found: String,
        /// Whose they should be.
        wanted: String,
    },
}

impl<K: ExperimentKind> Data<K> {
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

    /// From `data.json` of an experiment.
    ///
    /// # Errors
    /// [`DataError`].
    pub fn from_json(text: &str, experiment: &str) -> Result<Self, DataError> {
        // What they are is told before anything is made of them.
        let head: Head = serde_json::from_str(text)?;
        if head.format != FORMAT {
            return Err(DataError::Form(head.format));
        }
        if head.experiment != experiment {
            return Err(DataError::Other {
                found: head.experiment,
                wanted: experiment.into(),
            });
        }
        let file: File<K> = serde_json::from_str(text)?;
        Ok(Self {
            experiment: file.head.experiment,
            scale: file.head.scale,
            seed: file.head.seed,
            version: file.head.version,
            records: file.records,
        })
    }

    /// As `data.csv`: a line of names, then a line a trial.
    #[must_use]
    pub fn to_csv(&self) -> String {
        let rows = self.records.iter().map(K::row);
        let lines: Vec<String> = std::iter::once(K::columns()).chain(rows).collect();
        lines.join("\n") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::SystemName;
    use crate::trial::{
        Cpu, PaymentSums, Spread, Transactions, Trial, TrialOutcome, Warehouse, Workload,
    };

    type Data = super::Data<Transactions>;

    fn data() -> Data {
        let trial = Trial {
            system: SystemName::Dast,
            regions: 3,
            shards_per_region: 2,
            clients_per_shard: 1,
            outstanding: 4,
            workload: Workload::Payment { cross_region: 0.1 },
            warehouse: Warehouse::Tiny,
            payment_sums: PaymentSums::Published,
            wan_jitter_ms: 0,
            cpu: Cpu::Free,
            warm_up_ms: 100,
            measured_ms: 200,
            seed: u64::MAX,
        };
        let outcome = TrialOutcome {
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
            local_given_up: 0,
            cross_region_given_up: 0,
            aborts: 0,
            left_out_ms: 0.0,
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
        assert_eq!(Data::from_json(&written, "crt-ratio").unwrap(), data());
        assert_eq!(written.lines().count(), 4, "{written}");
        let empty = Data {
            records: Vec::new(),
            ..data()
        };
        assert_eq!(
            Data::from_json(&empty.to_json(), "crt-ratio").unwrap(),
            empty
        );
    }

    #[test]
    fn other_files_are_refused() {
        assert!(matches!(
            Data::from_json("{}", "crt-ratio"),
            Err(DataError::Malformed(_))
        ));
        let later = data().to_json().replace("\"format\":1", "\"format\":2");
        assert!(matches!(
            Data::from_json(&later, "crt-ratio"),
            Err(DataError::Form(2))
        ));
        let other = Data::from_json(&data().to_json(), "tpca");
        assert!(matches!(other, Err(DataError::Other { .. })));
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
