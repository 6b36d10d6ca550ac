//! The page that leads to the results of all experiments in a directory.

use std::fmt::Write as _;

use super::{Experiment, Verdict};
use crate::data::Data;

/// The page as Markdown: a line for each experiment, what does not hold, then the figures.
#[must_use]
pub fn index(results: &[(&Experiment, Data)]) -> String {
    let mut text = String::from(
        "# Results of the lab\n\nWritten by `manxdb lab`, as are the directories beside it; do not \
         edit.\n\n| experiment | what | scale | claims that hold, do not, are open | files |\n\
         |---|---|---|---|---|\n",
    );
    let mut failing = String::new();
    for (experiment, data) in results {
        let claims = experiment.claims(data);
        let count = |verdict| {
            claims
                .iter()
                .filter(|claim| claim.verdict == verdict)
                .count()
        };
        let name = experiment.name;
        let _ = writeln!(
            text,
            "| [{name}]({name}/report.md) | {} | {} | {}, {}, {} | [csv]({name}/data.csv), \
             [json]({name}/data.json), [svg]({name}/figure.svg), [machine]({name}/run.json) |",
            experiment.about,
            data.scale.name(),
            count(Verdict::Holds),
            count(Verdict::Fails),
            count(Verdict::Open)
        );
        for claim in claims
            .iter()
            .filter(|claim| claim.verdict == Verdict::Fails)
        {
            let _ = writeln!(
                failing,
                "- {name}: {} Measured: {}.",
                claim.says, claim.measured
            );
        }
    }
    if !failing.is_empty() {
        let _ = write!(text, "\n## What does not hold\n\n{failing}");
    }
    for (experiment, _) in results {
        let name = experiment.name;
        let _ = write!(
            text,
            "\n## {name}\n\n[![{}]({name}/figure.png)]({name}/report.md)\n",
            experiment.about
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{ALL, Scale};

    #[test]
    fn every_experiment_has_its_line_and_its_figure() {
        let of = |experiment: &'static Experiment| {
            let data = Data {
                experiment: experiment.name.into(),
                scale: Scale::Smoke,
                seed: 1,
                version: "test".into(),
                records: Vec::new(),
            };
            (experiment, data)
        };
        let results: Vec<_> = ALL.iter().map(of).collect();
        let page = index(&results);
        for experiment in &ALL {
            let name = experiment.name;
            assert!(
                page.contains(&format!("| [{name}]({name}/report.md) |")),
                "{page}"
            );
            assert!(page.contains(&format!("({name}/figure.png)")), "{page}");
        }
        assert!(!page.contains("does not hold"), "{page}");
    }
}
