//! The one way from data to verdicts: data that cannot be true judge nothing, and neither do data with
//! too few samples.

use super::{Claim, Design, ExperimentKind};
use crate::experiment::data::Data;

/// What is left of an experiment's claims.
pub(super) fn review<K: ExperimentKind>(design: &Design<K>, data: &Data<K>) -> Vec<Claim> {
    let claims = design.judged(data).into_iter();
    if let Some(why) = implausible(design, data) {
        return claims.map(|claim| claim.disbelieved(&why)).collect();
    }
    if let Some(why) = too_few(design, data) {
        return claims.map(|claim| claim.opened(&why)).collect();
    }
    claims.collect()
}

/// Why the data cannot be true, if they cannot.
fn implausible<K: ExperimentKind>(design: &Design<K>, data: &Data<K>) -> Option<String> {
    let of_one = data.records.iter().find_map(|record| {
        let why = K::implausible(&record.trial, &record.outcome).err()?;
        let label = design.label(&record.trial);
        Some(format!("{label}, seed {}: {why}", K::seed(&record.trial)))
    });
    of_one.or_else(|| K::contradiction(data))
}

fn too_few<K: ExperimentKind>(design: &Design<K>, data: &Data<K>) -> Option<String> {
    data.records.iter().find_map(|record| {
        let (samples, floor) = K::samples(&record.outcome);
        let label = design.label(&record.trial);
        (samples < floor).then(|| format!("{label}: {samples} samples are fewer than {floor}"))
    })
}

/// Demands something of an outcome.
///
/// # Errors
/// What is wrong, when it is not so.
pub fn demand(is_so: bool, wrong: impl FnOnce() -> String) -> Result<(), String> {
    if is_so { Ok(()) } else { Err(wrong()) }
}

/// Demands that a number can be true.
///
/// # Errors
/// Which one is not.
pub fn within(what: &str, value: f64, low: f64, high: f64) -> Result<(), String> {
    demand((low..=high).contains(&value), || {
        format!("{what} is {value}, not between {low} and {high}")
    })
}
