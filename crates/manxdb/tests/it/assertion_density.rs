//! How many invariants each crate checks, by 1,000 lines of product code, and that it never
//! becomes fewer.
//!
//! Counted are `assert!`, `assert_eq!` and `assert_ne!`, which are on in a release, and `ensure(`,
//! the invariants of a core's `check`, which tests and the simulator call after each step. A
//! `debug_assert!` counts for nothing: a release would go on with what it denies. Lines are all
//! lines of `src` but for tests, as the figures of other projects in the style guide are counted.
//!
//! To see the table: `cargo test --test it assertion_density -- --nocapture`.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use crate::sources::{modules_of, source_files, test_modules};

/// What each crate has at least, in tenths of an assertion by 1,000 lines. A floor only rises: who
/// adds code adds what it relies on. Those of the protocols, of storage, of transactions, of the
/// fabric and of rack are at [`WANTED`] at least.
const FLOORS: [(&str, u32); 15] = [
    ("fabric", 200),
    ("gateway", 9),
    ("manxdb", 7),
    ("protocols/curp", 215),
    ("protocols/dast", 200),
    ("protocols/jobs", 200),
    ("protocols/rsi", 200),
    ("protocols/vr", 270),
    ("rack", 200),
    ("sql", 1),
    ("storage", 200),
    ("txn", 200),
    ("vault", 200),
    ("views", 200),
    ("witness", 160),
];

/// What they are to have at least: 20 assertions by 1,000 lines, in tenths.
const WANTED: u32 = 200;

/// What a crate has.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Density {
    lines: u32,
    /// On in a release.
    asserts: u32,
    /// In a core's `check`.
    ensures: u32,
}

impl Density {
    fn tenths(self) -> u32 {
        (self.asserts + self.ensures) * 10_000 / self.lines.max(1)
    }

    fn plus(self, other: Self) -> Self {
        Self {
            lines: self.lines + other.lines,
            asserts: self.asserts + other.asserts,
            ensures: self.ensures + other.ensures,
        }
    }
}

/// Looks at one file: up to its tests, which stand at its end.
fn density_of(text: &str) -> Density {
    let mut density = Density::default();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let begins = |next: &&str| next.starts_with("mod ") && next.ends_with('{');
        if line == "#[cfg(test)]" && lines.peek().is_some_and(begins) {
            break;
        }
        density.lines += 1;
        let code = line.trim_start();
        if code.starts_with("//") {
            continue;
        }
        let is_own = |at: usize| {
            !code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_')
        };
        let count = |what: &str| {
            let found = code.match_indices(what).filter(|(at, _)| is_own(*at));
            u32::try_from(found.count()).unwrap()
        };
        density.asserts += count("assert!(") + count("assert_eq!(") + count("assert_ne!(");
        if !code.contains("fn ensure(") {
            density.ensures += count("ensure(");
        }
    }
    density
}

fn is_product(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    // The conformance suite of the fabric is a test that its implementations run.
    !path.iter().any(|folder| folder == "tests")
        && name != "tests.rs"
        && name != "conformance.rs"
        && !name.ends_with("_tests.rs")
}

fn density_below(folder: &Path) -> Density {
    let files = source_files(folder);
    let files: Vec<_> = files
        .iter()
        .map(|file| (modules_of(file, folder), file))
        .collect();
    let tests = test_modules(&files);
    let product = files.iter().filter(|(parts, file)| {
        let is_test = (1..=parts.len()).any(|length| tests.contains(&parts[..length]));
        !is_test && is_product(file.strip_prefix(folder).unwrap())
    });
    product
        .map(|(_, file)| density_of(&fs::read_to_string(file).unwrap()))
        .fold(Density::default(), Density::plus)
}

/// The crates by their folders below `crates`, in order.
fn crates() -> Vec<(String, Density)> {
    let manifest = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap());
    let root = manifest.ancestors().nth(1).unwrap().to_path_buf();
    let mut found = Vec::new();
    for parent in [root.clone(), root.join("protocols")] {
        for entry in fs::read_dir(parent).unwrap() {
            let folder = entry.unwrap().path();
            if folder.join("Cargo.toml").exists() {
                let name = folder.strip_prefix(&root).unwrap();
                let density = density_below(&folder.join("src"));
                found.push((name.to_string_lossy().into_owned(), density));
            }
        }
    }
    found.sort_by(|(one, _), (two, _)| one.cmp(two));
    found
}

#[test]
fn no_crate_has_fewer_assertions_than_its_floor() {
    let mut table = String::new();
    let mut below = Vec::new();
    for (name, density) in crates() {
        let floor = FLOORS.iter().find(|(crate_name, _)| *crate_name == name);
        let floor = floor.map_or(0, |(_, floor)| *floor);
        let Density {
            lines,
            asserts,
            ensures,
        } = density;
        let (whole, tenth) = (density.tenths() / 10, density.tenths() % 10);
        writeln!(
            table,
            "{name:24} {lines:6} lines {asserts:4} asserts {ensures:4} checks {whole:3}.{tenth} by 1,000 lines, floor {}.{}",
            floor / 10,
            floor % 10
        )
        .unwrap();
        if density.tenths() < floor {
            below.push(name);
        }
    }
    println!(
        "{table}wanted: {} in protocols, storage, txn, fabric and rack",
        WANTED / 10
    );
    assert!(below.is_empty(), "below their floors: {below:?}\n{table}");
}

#[test]
fn no_floor_of_a_crate_that_keeps_data_is_below_what_is_wanted() {
    let is_one = |name: &str| {
        let kept = ["storage", "txn", "fabric", "rack"];
        name.starts_with("protocols/") || kept.contains(&name)
    };
    let floors = FLOORS.iter();
    let low: Vec<_> = floors
        .filter(|(name, floor)| is_one(name) && *floor < WANTED)
        .collect();
    assert!(low.is_empty(), "{low:?}");
}

#[test]
fn each_floor_is_that_of_a_crate() {
    let crates = crates();
    for (name, _) in FLOORS {
        assert!(
            crates.iter().any(|(crate_name, _)| crate_name == name),
            "{name}"
        );
    }
}

#[test]
fn assertions_of_a_release_are_counted_and_no_others() {
    let text = "\
//! assert!(it is a comment);
fn one() {
    assert!(true, \"counted\");
    debug_assert!(true, \"not on in a release\");
    assert_eq!(1, 1); assert_ne!(1, 2);
    ensure(true, String::new)?;
}
#[cfg(test)]
mod tests {
    assert!(true);
}
";
    let expected = Density {
        lines: 7,
        asserts: 3,
        ensures: 1,
    };
    assert_eq!(density_of(text), expected);
    assert_eq!(expected.tenths(), 4 * 10_000 / 7);
}
