//! What tests agree on with the program that runs them (tests/run.py): how many seeds a test draws,
//! and how a test says that it cannot run here. It depends on nothing.
#![forbid(unsafe_code)]
#![allow(
    clippy::disallowed_methods,
    clippy::print_stderr,
    reason = "the environment says what the run wants, and a file what was skipped"
)]

use std::io::Write as _;

/// Environment variable: the factor by which tests draw more seeds, such as `20`.
pub const SEEDS: &str = "MANXDB_SEEDS";

/// Environment variable: the file to which skipped tests are written, a line each.
pub const SKIPPED: &str = "MANXDB_SKIPPED";

/// How many seeds a test draws that usually draws `usual`. Never fewer: tests assert what the usual
/// number shows.
///
/// # Panics
/// The environment variable is no factor from 1 to 1,000,000: a run that was asked for other seeds must
/// not pass as if it had drawn them.
pub fn seeds(usual: u64) -> u64 {
    scaled(usual, std::env::var(SEEDS).ok().as_deref())
}

fn scaled(usual: u64, factor: Option<&str>) -> u64 {
    let Some(factor) = factor else {
        return usual;
    };
    let factor: u64 = factor.parse().unwrap_or(0);
    assert!(
        (1..=1_000_000).contains(&factor),
        "{SEEDS} is a factor from 1 to 1000000"
    );
    usual.saturating_mul(factor)
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
    fn seeds_are_scaled() {
        assert_eq!(scaled(300, None), 300);
        assert_eq!(scaled(300, Some("1")), 300);
        assert_eq!(scaled(4, Some("20")), 80);
    }

    #[test]
    #[should_panic(expected = "MANXDB_SEEDS is a factor")]
    fn a_factor_below_one_is_refused() {
        scaled(300, Some("0.5"));
    }
}
