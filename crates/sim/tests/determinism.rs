//! The deterministic crates depend on no async runtime, whatever pulls it in.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
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

fn metadata() -> Value {
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked"])
        .args(["--filter-platform", &host(), "--manifest-path", manifest])
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
