//! docs/reference/errors.md has a row for every error number in the sources, with its SQLSTATE, and no
//! others: a number stands before its SQLSTATE wherever an error is made.

use std::collections::BTreeSet;

use crate::layering::repository;
use crate::sources::source_files;

/// A number and its SQLSTATE.
type ErrorNumber = (u32, String);

/// All `1062, "23000"` of a text, in one line or in two.
fn numbers_of(code: &str) -> BTreeSet<ErrorNumber> {
    let mut found = BTreeSet::new();
    let quotes = code.match_indices('"').map(|(at, _)| at);
    for at in quotes {
        let Some((state, closing)) = code.get(at + 1..at + 6).zip(code.get(at + 6..at + 7)) else {
            continue;
        };
        let is_state = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
        if closing != "\"" || !state.bytes().all(is_state) {
            continue;
        }
        let Some(before) = code[..at].trim_end().strip_suffix(',') else {
            continue;
        };
        let digits = before.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (before, number) = before.split_at(before.len() - digits);
        let is_whole = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        if (4..=5).contains(&digits) && is_whole {
            found.insert((number.parse().unwrap(), state.to_owned()));
        }
    }
    found
}

/// Rows of the page whose second cell is an SQLSTATE.
fn rows_of(page: &str) -> BTreeSet<ErrorNumber> {
    let cells = page
        .lines()
        .map(|line| line.split(" | ").collect::<Vec<_>>());
    cells
        .filter_map(|cells| {
            let number = cells.first()?.strip_prefix("| ")?.parse().ok()?;
            let state = cells.get(1).filter(|state| state.len() == 5)?;
            Some((number, (*state).to_owned()))
        })
        .collect()
}

#[test]
fn every_error_number_is_in_the_reference() {
    let mut made = BTreeSet::new();
    for name in ["sql", "gateway", "manxdb"] {
        for path in source_files(&repository().join("crates").join(name).join("src")) {
            made.extend(numbers_of(&std::fs::read_to_string(path).unwrap()));
        }
    }
    assert!(
        made.len() > 150,
        "{} numbers: the search is broken",
        made.len()
    );
    let page = repository().join("docs/reference/errors.md");
    let told = rows_of(&std::fs::read_to_string(page).unwrap());
    let missing: Vec<_> = made.difference(&told).collect();
    let stale: Vec<_> = told.difference(&made).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "docs/reference/errors.md lacks {missing:?} and has {stale:?}, which nothing answers"
    );
}

#[test]
fn a_number_is_found_in_one_line_and_in_two() {
    let code = "new(1062, \"23000\", x); new(\n    1048,\n    \"23000\",\n); v[0], \"ABCDE\"; 3.1415, \"00000\"";
    let found: Vec<u32> = numbers_of(code)
        .into_iter()
        .map(|(number, _)| number)
        .collect();
    assert_eq!(found, [1048, 1062]);
}
