//! Runs the repository's sqllogictest files in process: a fresh instance a file.
#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use manxdb_fixtures::sql::files::{failures_of_all, files, known_gaps};

/// All files; `SLT=word` picks those whose path holds it. Records that fail today stand in
/// `known_gaps.txt`; those that pass by now are printed, to be taken off it.
#[test]
fn the_files_describe_what_happens() {
    let files = files();
    let failures = failures_of_all(&files, manxdb_fixtures::sql::instance);
    let known = known_gaps();
    let ran = |gap: &str| {
        files.iter().any(|path| {
            path.file_name()
                .is_some_and(|name| gap.starts_with(&*name.to_string_lossy()))
        })
    };
    let fixed: Vec<&&str> = known
        .iter()
        .filter(|gap| ran(gap) && !failures.iter().any(|(name, _)| name == **gap))
        .collect();
    if !fixed.is_empty() {
        println!("no longer failing, remove from known_gaps.txt: {fixed:#?}");
    }
}
