//! The deterministic crates depend on no async runtime, whatever pulls it in; and cores and the
//! simulator name nothing whose order or value is not decided by a seed.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// By name, and every crate under `crates/protocols`.
const DETERMINISTIC: [&str; 5] = [
    "manxdb-checker",
    "manxdb-core",
    "manxdb-sim",
    "manxdb-txn",
    "manxdb-workloads",
];

/// Runtimes, and what they stand on.
const RUNTIMES: [&str; 12] = [
    "tokio",
    "async-std",
    "async-io",
    "async-executor",
    "smol",
    "mio",
    "polling",
    "futures-executor",
    "embassy-executor",
    "glommio",
    "monoio",
    "actix-rt",
];

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap()
}

/// Crates for other platforms are not asked for: they need not have been downloaded.
fn host() -> String {
    let output = Command::new(env!("CARGO")).arg("-vV").output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let host = shown.lines().find_map(|line| line.strip_prefix("host: "));
    host.unwrap().to_string()
}

/// This crate, in the clone that runs the test and not the one that it was compiled in.
fn home() -> PathBuf {
    std::env::var("CARGO_MANIFEST_DIR").unwrap().into()
}

fn metadata() -> Value {
    let manifest = format!("{}/Cargo.toml", home().display());
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", &host(), "--manifest-path", &manifest])
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo metadata: {error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The dependencies of each package that are linked into it; not those of its tests.
fn linked(metadata: &Value) -> BTreeMap<&str, Vec<&str>> {
    let nodes = list(&metadata["resolve"], "nodes");
    let one = |node| {
        let normal = |dep: &&Value| {
            list(dep, "dep_kinds")
                .iter()
                .any(|kind| kind["kind"].is_null())
        };
        let deps = list(node, "deps").iter().filter(normal);
        (text(node, "id"), deps.map(|dep| text(dep, "pkg")).collect())
    };
    nodes.iter().map(one).collect()
}

#[test]
fn deterministic_crates_depend_on_no_runtime() {
    let metadata = metadata();
    let linked = linked(&metadata);
    let packages = list(&metadata, "packages").iter();
    let names: BTreeMap<&str, &str> = packages
        .clone()
        .map(|package| (text(package, "id"), text(package, "name")))
        .collect();
    let mut checked = BTreeSet::new();
    for package in packages {
        let protocol = text(package, "manifest_path").contains("/crates/protocols/");
        let (name, id) = (text(package, "name"), text(package, "id"));
        if !protocol && !DETERMINISTIC.contains(&name) {
            continue;
        }
        checked.insert(name);
        let mut seen = BTreeSet::new();
        let mut waiting = vec![id];
        while let Some(id) = waiting.pop() {
            if !seen.insert(id) {
                continue;
            }
            assert!(
                !RUNTIMES.contains(&names[id]),
                "{name} depends on {}",
                names[id]
            );
            waiting.extend(&linked[id]);
        }
    }
    for name in DETERMINISTIC {
        assert!(checked.contains(name), "{name} is gone");
    }
    assert!(checked.len() > DETERMINISTIC.len(), "no protocols are left");
    // The walk sees what it should.
    let serde = |id: &&str| names[id] == "serde";
    let core = names
        .iter()
        .find(|(_, name)| **name == "manxdb-core")
        .unwrap();
    assert!(linked[core.0].iter().any(serde));
}

/// What must not be in the sources of a core or of the simulator, whether it is called or not.
const UNDECIDED: [&str; 8] = [
    "HashMap",
    "HashSet",
    "Instant",
    "SystemTime",
    "std::thread",
    "std::net",
    "std::fs",
    "RandomState",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn cores_and_the_simulator_name_nothing_undecided() {
    let home = home();
    let crates = home.parent().unwrap();
    let mut files = Vec::new();
    sources(&crates.join("core/src"), &mut files);
    sources(&crates.join("sim/src"), &mut files);
    for protocol in std::fs::read_dir(crates.join("protocols")).unwrap() {
        sources(&protocol.unwrap().path().join("src"), &mut files);
    }
    assert!(files.len() > 30, "{} files are too few", files.len());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            for word in UNDECIDED {
                let place = format!("{}:{}", file.display(), number + 1);
                assert!(!line.contains(word), "{place} names {word}");
            }
        }
    }
}
