//! All rows of a plan, for statements that write what they read.

use std::vec::IntoIter;

use manxdb_txn::ReadMode;

use super::memory::row_bytes;
use super::operator::{Demand, Run};
use super::spill::{RowFile, RowReader};
use super::{Reading, pull};
use crate::error::SqlResult;
use crate::plan::Plan;
use crate::types::Row;

/// The rows past this part of a statement's memory go to a file: what is written for each of them
/// takes memory too.
const KEPT_PART: usize = 8;

/// Rows in the order in which they came.
pub(crate) struct Collected {
    kept: IntoIter<Row>,
    /// Those that were too many.
    rest: Option<RowReader>,
}

/// Runs `plan` to its end and keeps all rows.
///
/// # Errors
/// As [`super::run`]; 1038 when they take more than the memory limit and there is no room for
/// temporary files.
pub(crate) fn collect(
    reading: &Reading<'_>,
    plan: &Plan,
    mode: Option<ReadMode>,
) -> SqlResult<Collected> {
    let run = Run::new(reading, &[], mode.unwrap_or(plan.read_mode), None);
    let mut kept = Vec::new();
    let mut kept_bytes = 0;
    let mut rest: Option<RowFile> = None;
    pull(&run, plan, Demand::All, &mut |row| {
        let bytes = row_bytes(&row);
        if rest.is_none() && kept_bytes + bytes > reading.memory_limit / KEPT_PART {
            rest = RowFile::create(&run)?;
        }
        match &mut rest {
            Some(file) => file.push(&run, &row)?,
            None => {
                run.memory.charge(bytes)?;
                kept_bytes += bytes;
                kept.push(row);
            }
        }
        Ok(true)
    })?;
    let rest = match rest {
        Some(file) => Some(file.into_reader(&run)?),
        None => None,
    };
    Ok(Collected {
        kept: kept.into_iter(),
        rest,
    })
}

impl Iterator for Collected {
    type Item = SqlResult<Row>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(row) = self.kept.next() {
            return Some(Ok(row));
        }
        self.rest.as_mut()?.next().transpose()
    }
}
