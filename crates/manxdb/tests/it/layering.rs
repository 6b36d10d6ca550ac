//! Rules of the repository that no compiler checks: which crate may depend on which, that the
//! deterministic crates stay free of async runtimes, and that no file names one machine.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

/// Rooms whose answers depend on their inputs alone (DESIGN §4).
const DETERMINISTIC: [&str; 6] = [
    "manxdb-ownership",
    "manxdb-views",
    "manxdb-redis",
    "manxdb-storage",
    "manxdb-txn",
    "manxdb-sql",
];

/// Crates that bring threads, timers and an order of execution of their own.
const RUNTIMES: [&str; 10] = [
    "async-executor",
    "async-global-executor",
    "async-std",
    "compio",
    "futures-executor",
    "glommio",
    "mio",
    "monoio",
    "smol",
    "tokio",
];

/// Each crate with the crates that it may depend on.
const BELOW: [(&str, &[&str]); 13] = [
    ("manxdb-ownership", &[]),
    ("manxdb-vault", &[]),
    ("manxdb-redis", &[]),
    ("manxdb-fabric", &[]),
    ("manxdb-etcd", &[]),
    ("manxdb-net", &["manxdb-core"]),
    ("manxdb-witness", &["manxdb-curp"]),
    ("manxdb-compaction-edge", &[]),
    ("manxdb-storage", &["manxdb-compaction-edge", "manxdb-core"]),
    ("manxdb-txn", &["manxdb-core", "manxdb-storage"]),
    ("manxdb-views", &["manxdb-storage"]),
    (
        "manxdb-sql",
        &[
            "manxdb-ownership",
            "manxdb-storage",
            "manxdb-txn",
            "manxdb-vault",
            "manxdb-views",
        ],
    ),
    (
        "manxdb-gateway",
        &[
            "manxdb-redis",
            "manxdb-storage",
            "manxdb-txn",
            "manxdb-sql",
            "manxdb-vault",
        ],
    ),
];

pub(crate) fn repository() -> PathBuf {
    let manifest = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap());
    manifest.ancestors().nth(2).unwrap().to_path_buf()
}

pub(crate) fn answer_of(program: &str, arguments: &[&str]) -> Vec<u8> {
    let done = Command::new(program)
        .args(arguments)
        .current_dir(repository())
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program}: {complaint}");
    done.stdout
}

/// Every crate's name with the names of what it links; what only tests and build scripts use
/// is left out.
fn links() -> BTreeMap<String, BTreeSet<String>> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
    let text = answer_of(&cargo, &["metadata", "--locked", "--format-version", "1"]);
    let metadata: Value = serde_json::from_slice(&text).unwrap();
    let names: BTreeMap<&str, &str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (word(&package["id"]), word(&package["name"])))
        .collect();
    let mut links: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        let linked = links
            .entry(names[word(&node["id"])].to_string())
            .or_default();
        for link in node["deps"].as_array().unwrap() {
            let kinds = link["dep_kinds"].as_array().unwrap();
            if kinds.iter().any(|kind| kind["kind"].is_null()) {
                linked.insert(names[word(&link["pkg"])].to_string());
            }
        }
    }
    links
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// All `start` links, directly or through others.
fn reached(links: &BTreeMap<String, BTreeSet<String>>, start: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![start.to_string()];
    while let Some(name) = open.pop() {
        for next in &links[&name] {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}

#[test]
fn deterministic_crates_depend_on_no_async_runtime() {
    let links = links();
    for krate in DETERMINISTIC {
        let reached = reached(&links, krate);
        let runtimes: Vec<_> = RUNTIMES
            .into_iter()
            .filter(|runtime| reached.contains(*runtime))
            .collect();
        assert!(runtimes.is_empty(), "{krate} depends on {runtimes:?}");
    }
    // The walk sees what is there, also two steps away.
    assert!(reached(&links, "manxdb-sql").contains("rocksdb"));
}

#[test]
fn crates_depend_on_the_crates_below_them_alone() {
    let links = links();
    for (krate, below) in BELOW {
        for known in links[krate]
            .iter()
            .filter(|name| name.starts_with("manxdb"))
        {
            assert!(
                below.contains(&known.as_str()),
                "{krate} depends on {known}"
            );
        }
    }
    assert!(links["manxdb"].contains("manxdb-gateway"));
}

/// What only benchmarks, experiments and simulations need: the program manxdb-lab has it.
const LABORATORY: [&str; 9] = [
    "indicatif",
    "manxdb-lab",
    "manxdb-lab-cli",
    "manxdb-olap",
    "manxdb-sim",
    "mysql",
    "notosans",
    "plotters",
    "resvg",
];

#[test]
fn the_server_links_nothing_of_the_laboratory() {
    let links = links();
    let server = reached(&links, "manxdb");
    let laboratory = reached(&links, "manxdb-lab-cli");
    for name in LABORATORY {
        assert!(!server.contains(name), "the server links {name}");
        // The list names what there is.
        assert!(
            laboratory.contains(name) || name == "manxdb-lab-cli",
            "{name}"
        );
    }
    assert!(laboratory.contains("manxdb"));
}

/// Where `text` has an absolute path into `folder`, as the number of its line.
fn names_folder(text: &str, folder: &str) -> Option<usize> {
    let inside = |before: char| before.is_alphanumeric() || "._-/}".contains(before);
    let place = text
        .match_indices(folder)
        .map(|(place, _)| place)
        .find(|place| !text[..*place].ends_with(inside))?;
    Some(text[..place].split('\n').count())
}

#[test]
fn no_file_names_a_machine_or_a_registry_host() {
    // In halves, so that this file does not find itself.
    let folders = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/tm", "p/"),
    ];
    let hosts = [
        concat!("static.crates", ".io"),
        concat!("index.crates", ".io"),
        concat!("registry.npm", "js.org"),
        concat!("pypi", ".org"),
        concat!("files.python", "hosted.org"),
        concat!("repo1.maven", ".org"),
        concat!("repo.maven.apache", ".org"),
        concat!("deb.debian", ".org"),
        concat!("proxy.golang", ".org"),
    ];
    let listed = String::from_utf8(answer_of("git", &["ls-files", "-z"])).unwrap();
    let mut found = Vec::new();
    let mut read = 0;
    for name in listed.split_terminator('\0') {
        // A file deleted but not yet committed, and one that is not text, have nothing to say.
        let Ok(text) = std::fs::read_to_string(repository().join(name)) else {
            continue;
        };
        read += 1;
        for folder in folders {
            if let Some(line) = names_folder(&text, folder) {
                found.push(format!("{name}:{line} names {folder}"));
            }
        }
        for host in hosts {
            if let Some(place) = text.find(host) {
                let line = text[..place].split('\n').count();
                found.push(format!("{name}:{line} names {host}"));
            }
        }
    }
    assert!(read > 100, "only {read} files were read");
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn a_folder_is_found_as_a_path_of_its_own_only() {
    let folder = concat!("/ro", "ot/");
    assert_eq!(names_folder(&format!("a\n \"{folder}x\""), folder), Some(2));
    assert_eq!(names_folder(&format!("target{folder}x"), folder), None);
    assert_eq!(names_folder("nothing here", folder), None);
}
