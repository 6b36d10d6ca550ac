//! The page that leads to the results of all experiments of a part.

use std::fmt::Write as _;

use super::{ClaimVerdict, Results};

/// The page as Markdown: a line for each experiment, what does not hold, then the figures.
#[must_use]
pub fn index(results: &[Box<dyn Results>]) -> String {
    let mut text = String::from(
        "# Results of the lab\n\nWritten by `manxdb lab`, as are the directories beside it; do not \
         edit.\n\n| experiment | what | scale | claims | files |\n\
         |---|---|---|---|---|\n",
    );
    let mut failing = String::new();
    for found in results {
        let experiment = found.experiment();
        let claims = found.claims();
        let name = experiment.name();
        let _ = writeln!(
            text,
            "| [{name}]({name}/report.md) | {} | {} | {} | [csv]({name}/data.csv), \
             [json]({name}/data.json), [svg]({name}/figure.svg), [machine]({name}/run.json) |",
            experiment.about(),
            found.scale().name(),
            ClaimVerdict::counts(&claims)
        );
        for claim in claims
            .iter()
            .filter(|claim| claim.verdict() == ClaimVerdict::Fails)
        {
            let _ = writeln!(
                failing,
                "- {name}: {} Measured: {}.",
                claim.says, claim.measured
            );
        }
    }
    text.push_str(VERDICTS);
    if !failing.is_empty() {
        let _ = write!(text, "\n## What does not hold\n\n{failing}");
    }
    for found in results {
        let experiment = found.experiment();
        let name = experiment.name();
        let _ = write!(
            text,
            "\n## {name}\n\n[![{}]({name}/figure.png)]({name}/report.md)\n\nAs [PDF]({name}/figure.pdf).\n",
            experiment.about()
        );
    }
    text
}

const VERDICTS: &str = "
A claim *holds* or *does not*; it is *open* when its data were not measured or have too few samples, \
*implausible* when data cannot be true (a latency below what messages take, calls that nobody accounts \
for, a death without a cause), and *not a result* when its number went into the model or is of another \
load than the claim's: the report says which.
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{SIMULATED, Scale};

    #[test]
    fn every_experiment_has_its_line_and_its_figure() {
        let nothing_yet = SIMULATED.map(|one| one.plan(Scale::Smoke, 1).results());
        let page = index(&nothing_yet);
        for experiment in SIMULATED {
            let name = experiment.name();
            assert!(
                page.contains(&format!("| [{name}]({name}/report.md) |")),
                "{page}"
            );
            assert!(page.contains(&format!("({name}/figure.png)")), "{page}");
        }
        assert!(!page.contains("does not hold"), "{page}");
    }
}
