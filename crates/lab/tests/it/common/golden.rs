//! Data of experiments at the smallest scale, as this code makes them: kept, so that a change of what is
//! simulated is seen where it is made, and not in results that nobody made again.

use std::path::Path;

/// Compares data with those kept, byte for byte. With `LAB_GOLDEN=write` in the environment they are
/// kept instead: results in `docs/results` have to be made again then.
pub fn check(name: &str, csv: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let file = directory.join(format!("{name}.csv"));
    if std::env::var_os("LAB_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(&file, csv).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    let differs = kept
        .lines()
        .zip(csv.lines())
        .find(|(kept, now)| kept != now);
    assert!(
        kept == csv,
        "{} is not what this code makes; the first line that differs, kept and made: {differs:?}. If \
         that is meant: LAB_GOLDEN=write cargo test -p manxdb-lab, and make docs/results again",
        file.display()
    );
}
