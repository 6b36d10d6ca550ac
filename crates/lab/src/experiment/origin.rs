//! Of which sources, machine and load results are.

use std::fmt::Write as _;

use serde_json::Value;

/// Of which sources, machine and load results are, as far as `run.json` says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    commit: Option<String>,
    machine: Option<String>,
    load: Option<String>,
    optimized: Option<bool>,
    /// Of an earlier run that was gone on with: how many of its records there are, and of which commit.
    earlier: Option<(u64, Option<String>)>,
}

const UNKNOWN: &str = "not recorded";

impl Origin {
    /// From `run.json`; what is not in it was not recorded.
    #[must_use]
    pub fn of(run: &str) -> Self {
        let run: Value = serde_json::from_str(run).unwrap_or_default();
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let machine = &run["machine"];
        let processor = text(&machine["processor"]);
        let machine = processor.map(|processor| {
            let (cores, memory) = (&machine["cores"], &machine["memory_mib"]);
            format!("{processor}, {cores} cores, {memory} MiB")
        });
        let load = run["load"].as_array().map(|load| {
            let each: Vec<String> = load.iter().map(Value::to_string).collect();
            format!(
                "{} (runnable processes, at the beginning and the end)",
                each.join(" and ")
            )
        });
        let resumed = &run["resumed"];
        let earlier = resumed["records"].as_u64().filter(|records| *records > 0);
        Self {
            commit: text(&run["commit"]),
            machine,
            load,
            optimized: run["optimized"].as_bool(),
            earlier: earlier.map(|records| (records, text(&resumed["commit"]))),
        }
    }

    /// The commit, as far as it is known.
    #[must_use]
    pub fn commit(&self) -> Option<&str> {
        self.commit.as_deref()
    }

    /// Whether an optimized program made them, as far as it is known.
    #[must_use]
    pub fn optimized(&self) -> Option<bool> {
        self.optimized
    }

    /// A sentence for reports.
    #[must_use]
    pub fn sentence(&self) -> String {
        let or = |value: &Option<String>| value.clone().unwrap_or_else(|| UNKNOWN.to_owned());
        let mut said = format!(
            "Commit: {}. Machine: {}. Load beside it: {}.",
            or(&self.commit),
            or(&self.machine),
            or(&self.load)
        );
        if let Some((records, commit)) = &self.earlier {
            let commit = or(commit);
            let _ = write!(
                said,
                " {records} of its trials are of an earlier run, commit: {commit}."
            );
        }
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_recorded_is_said_to_be_unknown() {
        let unknown = "Commit: not recorded. Machine: not recorded. Load beside it: not recorded.";
        assert_eq!(Origin::of("").sentence(), unknown);
        let run = r#"{"commit":"abc","machine":{"processor":"P","cores":2,"memory_mib":3},"load":[0.5,1.5]}"#;
        let said = Origin::of(run).sentence();
        let resumed = Origin::of(r#"{"commit":"b","resumed":{"records":3,"commit":"a"}}"#);
        let says = " 3 of its trials are of an earlier run, commit: a.";
        assert!(resumed.sentence().ends_with(says), "{resumed:?}");
        assert!(
            said.starts_with(
                "Commit: abc. Machine: P, 2 cores, 3 MiB. Load beside it: 0.5 and 1.5"
            )
        );
    }
}
