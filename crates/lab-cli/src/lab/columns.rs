//! Numbers of an outcome as columns of `data.csv`.

use std::fmt::Write as _;

/// A column: its name, and which number of an outcome, or of a part of one, is in it.
pub(super) type Column<T> = (&'static str, fn(&T) -> f64);

/// The names of columns, each behind a comma.
pub(super) fn names<T>(columns: &[Column<T>]) -> String {
    columns.iter().flat_map(|(name, _)| [",", *name]).collect()
}

/// What is in the columns of a row, each behind a comma.
pub(super) fn cells<T>(columns: &[Column<T>], of: &T) -> String {
    let mut cells = String::new();
    for (_, number) in columns {
        // Writing to a String cannot fail.
        let _ = write!(cells, ",{}", number(of));
    }
    cells
}
