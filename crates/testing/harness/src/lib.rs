//! What tests agree on with the program that runs them (tests/run.py): how many seeds a test draws,
//! and how a test says that it cannot run here. It depends on nothing.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the environment says what the run wants, and a file what was skipped"
)]

use std::io::Write as _;

/// Environment variable: the factor by which tests draw more or fewer seeds, such as `0.1` or `20`.
pub const SEEDS: &str = "MANXDB_SEEDS";

/// Environment variable: the file to which skipped tests are written, a line each.
pub const SKIPPED: &str = "MANXDB_SKIPPED";

/// How many seeds a test draws that usually draws `usual`: at least one.
///
/// # Panics
/// The environment variable is no positive number: a run that was asked for other seeds must not
/// pass as if it had drawn them.
pub fn seeds(usual: u64) -> u64 {
    scaled(usual, std::env::var(SEEDS).ok().as_deref())
}

fn scaled(usual: u64, factor: Option<&str>) -> u64 {
    let Some(factor) = factor else {
        return usual;
    };
    let factor: f64 = factor.parse().unwrap_or(f64::NAN);
    assert!(
        factor > 0.0 && factor <= 1e6,
        "{SEEDS} is a factor above 0 and up to 1000000"
    );
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some thousands times a factor that was checked"
    )]
    let count = (usual as f64 * factor).round() as u64;
    count.max(1)
}

/// Says that the test of this thread does not run because of `reason`. The program that runs the
/// tests counts it as skipped, not as passed; the test returns next.
///
/// # Panics
/// The file of skipped tests cannot be written: the test would count as passed.
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
    let Some(path) = std::env::var_os(SKIPPED) else {
        return;
    };
    let thread = std::thread::current();
    let line = format!("{}\t{reason}\n", thread.name().unwrap_or("a test"));
    let mut options = std::fs::File::options();
    let written = options
        .create(true)
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(
        written.is_ok(),
        "cannot write {}: {written:?}",
        path.display()
    );
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn seeds_are_scaled_and_never_none() {
        assert_eq!(scaled(300, None), 300);
        assert_eq!(scaled(300, Some("0.1")), 30);
        assert_eq!(scaled(4, Some("0.01")), 1);
        assert_eq!(scaled(4, Some("20")), 80);
    }

    #[test]
    #[should_panic(expected = "MANXDB_SEEDS is a factor")]
    fn a_factor_that_is_none_is_refused() {
        scaled(300, Some("many"));
    }
}
