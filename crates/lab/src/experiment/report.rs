//! The report of an experiment: claim by claim, then what its kind has to say.

use std::fmt::Write as _;

use super::{ClaimVerdict, Design, ExperimentKind, Origin};
use crate::experiment::data::Data;

/// The report as Markdown.
pub(super) fn report<K: ExperimentKind>(
    design: &Design<K>,
    data: &Data<K>,
    origin: &Origin,
) -> String {
    let mut text = format!(
        "# {}: {}\n\n{}\n\n",
        design.name, design.about, design.origin
    );
    let _ = writeln!(text, "![{}](figure.svg)\n", design.about);
    let _ = writeln!(
        text,
        "Made by `manxdb lab run {} --scale {} --seed {}`, version {}. The numbers are in \
         [data.csv](data.csv) and, with all parameters, in [data.json](data.json). {}\n",
        design.name,
        data.scale.name(),
        data.seed,
        data.version,
        origin.sentence()
    );
    claims(&mut text, design, data);
    text.push_str(&K::details(design, data));
    text
}

fn claims<K: ExperimentKind>(text: &mut String, design: &Design<K>, data: &Data<K>) {
    let claims = design.claims(data);
    let _ = writeln!(
        text,
        "## Claims\n\nClaims: {}.\n",
        ClaimVerdict::counts(&claims)
    );
    text.push_str("| claim | by | measured | verdict |\n|---|---|---|---|\n");
    for claim in claims {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            claim.says,
            claim.source.title(),
            claim.measured,
            claim.verdict().title()
        );
    }
    text.push('\n');
}

/// The different values of something over all trials, in their order.
pub(super) fn each<K: ExperimentKind>(
    data: &Data<K>,
    value: impl Fn(&K::Trial) -> String,
) -> String {
    let mut values: Vec<String> = Vec::new();
    for record in &data.records {
        let value = value(&record.trial);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values.join(", ")
}
