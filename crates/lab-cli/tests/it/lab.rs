//! `manxdb lab`: what it writes, and what it says of bad input.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use std::fs;
use std::path::Path;

use manxdb_lab::systems::SystemName;

use crate::support::{laboratory, output};

const EXPERIMENTS: [&str; 28] = [
    "n-clients",
    "crt-ratio",
    "tpca",
    "scalability",
    "robust",
    "targets",
    "systems",
    "caas-many",
    "caas-fillrandom",
    "caas-crossdc",
    "rsi-scale",
    "rsi-hotset",
    "rsi-cpu",
    "rsi-recovery",
    "olap-join",
    "olap-agg",
    "lobsters-endpoints",
    "lobsters-scale",
    "lobsters-memory",
    "redis-throughput",
    "redis-start",
    "caas-redis",
    "redis-larger-than-memory",
    "curp-latency",
    "curp-throughput",
    "curp-skew",
    "argus-witness",
    "argus-tail",
];

/// The files that depend on the seed alone.
const FILES: [&str; 6] = [
    "data.json",
    "data.csv",
    "figure.svg",
    "figure.png",
    "figure.pdf",
    "report.md",
];

fn lab(arguments: &[&str], out: &Path) -> (Option<i32>, String, String) {
    output(
        laboratory()
            .arg("lab")
            .args(arguments)
            .arg("--out")
            .arg(out),
    )
}

fn read(out: &Path, name: &str) -> Vec<u8> {
    fs::read(out.join("dast/crt-ratio").join(name)).unwrap()
}

/// What the results of a run say, without how busy the machine was meanwhile.
fn read_result(out: &Path, name: &str) -> Vec<u8> {
    let bytes = read(out, name);
    if name != "report.md" {
        return bytes;
    }
    let report = String::from_utf8(bytes).unwrap();
    let (before, load) = report.split_once(" Load beside it: ").unwrap();
    let (_, after) = load.split_once("at the beginning and the end).").unwrap();
    [before, after].concat().into_bytes()
}

#[test]
fn the_list_names_every_experiment() {
    let (code, out, error) = output(laboratory().args(["lab", "list"]));
    assert_eq!((code, error.as_str()), (Some(0), ""));
    for name in EXPERIMENTS {
        assert!(out.lines().any(|line| line.starts_with(name)), "{out}");
    }
}

#[test]
fn results_depend_on_the_seed_and_not_on_threads() {
    let directory = tempfile::tempdir().unwrap();
    let run = |name: &str, seed: &str, threads: &str| {
        let out = directory.path().join(name);
        let flags = ["run", "crt-ratio", "--scale", "smoke", "--seed", seed];
        let (code, said, error) = lab(&[&flags[..], &["--threads", threads]].concat(), &out);
        assert_eq!(code, Some(0), "{error}");
        // The smallest scale has too few samples for a verdict, and says so.
        assert!(said.contains("Throughput falls"), "{said}");
        assert!(said.contains("samples are fewer than"), "{said}");
        out
    };
    let (one, two) = (run("one", "7", "1"), run("two", "7", "2"));
    let other = run("other", "8", "2");
    for name in FILES {
        assert_eq!(read_result(&one, name), read_result(&two, name), "{name}");
        assert_ne!(read_result(&one, name), read_result(&other, name), "{name}");
    }
    let index = fs::read_to_string(one.join("dast/README.md")).unwrap();
    assert!(index.contains("(crt-ratio/report.md)"), "{index}");
    assert!(read(&one, "figure.png").starts_with(b"\x89PNG"));
    assert!(read(&one, "figure.pdf").starts_with(b"%PDF-"));
    let machine = String::from_utf8(read(&one, "run.json")).unwrap();
    for name in [
        "\"finished\": true",
        "\"cores\"",
        "\"wall_seconds\"",
        "\"events\"",
    ] {
        assert!(machine.contains(name), "{machine}");
    }
    // Figure and report come again from the data alone.
    for name in ["figure.svg", "figure.png", "figure.pdf", "report.md"] {
        fs::remove_file(two.join("dast/crt-ratio").join(name)).unwrap();
    }
    let (code, _, error) = lab(&["figure", "crt-ratio"], &two);
    assert_eq!(code, Some(0), "{error}");
    for name in FILES {
        assert_eq!(read_result(&one, name), read_result(&two, name), "{name}");
    }
}

#[test]
fn a_part_of_an_experiment_can_be_run() {
    let directory = tempfile::tempdir().unwrap();
    let part = ["run", "crt-ratio", "--scale", "smoke", "--at"];
    let (code, _, error) = lab(&[&part[..], &["90"]].concat(), directory.path());
    assert_eq!(code, Some(0), "{error}");
    let rows = String::from_utf8(read(directory.path(), "data.csv")).unwrap();
    // A line of names, and one for each system.
    assert_eq!(
        rows.lines().count(),
        1 + SystemName::COMPARED.len(),
        "{rows}"
    );
    let report = String::from_utf8(read(directory.path(), "report.md")).unwrap();
    assert!(report.contains("one point was run"), "{report}");
    let (code, _, error) = lab(&[&part[..], &["91"]].concat(), directory.path());
    assert_eq!(code, Some(1));
    assert!(
        error.contains("no point at [91.0]") && error.contains("10, 90"),
        "{error}"
    );
}

#[test]
fn joins_and_aggregations_of_nodes_are_run_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    for (name, algorithms) in [("olap-join", 4), ("olap-agg", 2)] {
        let (code, said, error) = lab(&["run", name, "--scale", "smoke"], directory.path());
        assert_eq!(code, Some(0), "{error}");
        // Too small to be judged.
        assert!(
            said.contains("  open  ") && !said.contains("holds"),
            "{said}"
        );
        let of = directory.path().join("rack").join(name);
        let rows = fs::read_to_string(of.join("data.csv")).unwrap();
        assert_eq!(rows.lines().count(), 1 + 2 * algorithms, "{rows}");
        assert!(of.join("figure.png").exists());
    }
    let index = fs::read_to_string(directory.path().join("rack/README.md")).unwrap();
    assert!(index.contains("(olap-agg/report.md)"), "{index}");
}

#[test]
fn kills_in_a_rack_are_run_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let (code, said, error) = lab(
        &["run", "rsi-recovery", "--scale", "smoke"],
        directory.path(),
    );
    assert_eq!(code, Some(0), "{error}");
    // Too small to be judged.
    assert!(
        said.contains("  open  ") && !said.contains("holds"),
        "{said}"
    );
    let of = directory.path().join("rack/rsi-recovery");
    let rows = fs::read_to_string(of.join("data.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 4, "{rows}");
    let report = fs::read_to_string(of.join("report.md")).unwrap();
    assert!(report.contains("| another client | 1 | "), "{report}");
    assert!(of.join("figure.png").exists());
}

/// Pages of each system in a table, or one line that says what this machine lacks.
fn sites_of(directory: &Path, name: &str) -> (String, usize) {
    let of = directory.join("lobsters").join(name);
    let rows = fs::read_to_string(of.join("data.csv")).unwrap();
    for name in ["figure.png", "report.md", "run.json"] {
        assert!(of.join(name).exists(), "{name}");
    }
    // ManxDB is here, with rows of people, views and seals, and without.
    for system in [
        ",ManxDB,",
        ",ManxDB annotated,",
        ",ManxDB with views,",
        ",ManxDB sealed,",
        ",ManxDB sealed with views,",
    ] {
        let pages = rows.lines().filter(|row| row.contains(system));
        assert_eq!(pages.count(), 9, "{rows}");
    }
    let lacking = rows
        .lines()
        .filter(|row| row.contains("install the package"));
    let lacking = lacking.count();
    assert_eq!(
        rows.lines().count(),
        1 + 9 * (7 - lacking) + lacking,
        "{rows}"
    );
    (rows, lacking)
}

#[test]
fn pages_of_a_site_are_served_by_every_system_that_is_here_and_drawn() {
    let directory = tempfile::tempdir().unwrap();
    let name = "lobsters-endpoints";
    let flags = ["run", name, "--scale", "smoke", "--at", "3"];
    let (code, said, error) = lab(&flags, directory.path());
    assert_eq!(code, Some(0), "{error}");
    // Too small to be judged.
    assert!(
        said.contains("  open  ") && !said.contains("holds"),
        "{said}"
    );
    sites_of(directory.path(), name);
    let index = fs::read_to_string(directory.path().join("lobsters/README.md")).unwrap();
    assert!(index.contains("(lobsters-endpoints/report.md)"), "{index}");
}

#[test]
fn what_a_machine_lacks_of_mariadb_is_named_and_the_others_run() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = laboratory();
    command.env("MARIADB_PLUGIN_DIR", directory.path());
    command.args(["lab", "run", "lobsters-memory", "--scale", "smoke", "--out"]);
    let (code, _, error) = output(command.arg(directory.path()));
    assert_eq!(code, Some(0), "{error}");
    let (rows, lacking) = sites_of(directory.path(), "lobsters-memory");
    assert!(lacking > 0, "{rows}");
    let report = directory.path().join("lobsters/lobsters-memory/report.md");
    let report = fs::read_to_string(report).unwrap();
    assert!(report.contains("MariaDB MyRocks did not run: "), "{report}");
    assert!(report.contains("mariadb-plugin-rocksdb") || report.contains("mariadb-server-core"));
}

#[test]
fn redis_commands_are_measured_beside_redis_server() {
    let directory = tempfile::tempdir().unwrap();
    let flags = ["run", "redis-throughput", "--scale", "smoke"];
    let (code, said, error) = lab(&flags, directory.path());
    assert_eq!(code, Some(0), "{error}");
    // Too small to be judged.
    assert!(
        said.contains("  open  ") && !said.contains("holds"),
        "{said}"
    );
    let of = directory.path().join("redis/redis-throughput");
    let rows = fs::read_to_string(of.join("data.csv")).unwrap();
    // Two servers, each with both durabilities.
    assert_eq!(rows.lines().count(), 1 + 2 * 2, "{rows}");
    assert!(of.join("figure.png").exists());
    let flags = ["run", "redis-start", "--scale", "smoke"];
    let (code, _, error) = lab(&flags, directory.path());
    assert_eq!(code, Some(0), "{error}");
    let of = directory.path().join("redis/redis-start");
    let rows = fs::read_to_string(of.join("data.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 2, "{rows}");
    assert!(
        rows.lines().skip(1).all(|row| row.ends_with(",2000")),
        "{rows}"
    );
}

#[test]
fn a_redis_server_over_its_store_is_measured_with_a_pool_and_with_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let rows = |name: &str, at: &str, verdict: &str| {
        let flags = ["run", name, "--scale", "smoke", "--at", at];
        let (code, said, error) = lab(&flags, directory.path());
        assert_eq!(code, Some(0), "{error}");
        assert!(said.contains(verdict), "{said}");
        let of = directory.path().join("redis").join(name);
        assert!(of.join("figure.png").exists());
        let rows = fs::read_to_string(of.join("data.csv")).unwrap();
        rows.lines().skip(1).map(str::to_owned).collect::<Vec<_>>()
    };
    // SET and HSET, each with local and pooled compactions; too small to be judged.
    let compacted = rows("caas-redis", "4096", "  open  ");
    assert_eq!(compacted.len(), 4, "{compacted:?}");
    for row in compacted {
        let mut cells = row.rsplit(',');
        let (_came_home, installed) = (cells.next(), cells.next().unwrap());
        let is_pooled = row.starts_with("pooled");
        assert_eq!(installed != "0", is_pooled, "{row}");
    }
    // Whether all is answered is judged whatever the scale.
    assert_eq!(rows("redis-larger-than-memory", "4", "  holds  ").len(), 1);
}

#[test]
fn clusters_of_one_round_trip_are_measured_beside_redis_server() {
    let directory = tempfile::tempdir().unwrap();
    // One row for each system.
    for (name, count) in [
        ("curp-latency", 3),
        ("curp-throughput", 2),
        // And for each of its loads.
        ("curp-skew", 2),
        ("argus-witness", 4),
        ("argus-tail", 4),
    ] {
        let (code, said, error) = lab(&["run", name, "--scale", "smoke"], directory.path());
        assert_eq!(code, Some(0), "{name}: {error}");
        // Too small to be judged.
        assert!(
            said.contains("  open  ") && !said.contains("holds"),
            "{said}"
        );
        let of = directory.path().join("curp").join(name);
        let rows = fs::read_to_string(of.join("data.csv")).unwrap();
        assert_eq!(rows.lines().count(), 1 + count, "{rows}");
        assert!(of.join("figure.png").exists());
        // What this machine lacks is said by name.
        let report = fs::read_to_string(of.join("report.md")).unwrap();
        let data = fs::read_to_string(of.join("data.json")).unwrap();
        let lacks = data.contains("\"lacking\":\"");
        assert_eq!(report.contains("\nskipped: "), lacks, "{report}");
    }
    // Counts do not depend on the machine: what commutes is complete after one round trip.
    let rows = fs::read_to_string(directory.path().join("curp/curp-latency/data.csv")).unwrap();
    let fast = rows.lines().next().unwrap().split(',');
    let fast = fast.clone().position(|name| name == "fast").unwrap();
    let of_user = rows.lines().find(|row| row.contains("CURP f=1 user"));
    let cells: Vec<&str> = of_user.unwrap().split(',').collect();
    let fast: u32 = cells[fast].parse().unwrap();
    assert!((51..=100).contains(&fast), "{rows}");
}

#[test]
fn the_published_machines_are_simulated_beside_what_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    let run = |name: &str| {
        let out = directory.path().join(name);
        // So many clients are simulated alone.
        let flags = ["run", "rsi-scale", "--scale", "smoke", "--at", "70"];
        let (code, said, error) = lab(&flags, &out);
        assert_eq!(code, Some(0), "{error}");
        assert!(said.contains("Simulated: RSI has 56 times"), "{said}");
        fs::read_to_string(out.join("rack/rsi-scale/data.csv")).unwrap()
    };
    let rows = run("one");
    let simulated = rows.lines().filter(|row| row.contains("simulated,70"));
    assert_eq!((simulated.count(), rows.lines().count()), (4, 5), "{rows}");
    assert_eq!(run("other"), rows);
}

#[test]
fn bad_input_is_told_with_the_way_out() {
    let directory = tempfile::tempdir().unwrap();
    let (code, _, error) = lab(&["run", "nonsense"], directory.path());
    assert_eq!(code, Some(2));
    for name in EXPERIMENTS {
        assert!(error.contains(name), "{error}");
    }
    let (code, _, error) = lab(&["run", "tpca", "--scale", "huge"], directory.path());
    assert_eq!(code, Some(2));
    assert!(error.contains("smoke, laptop, paper"), "{error}");
    // A file where the directory should be: nobody can write there, not even root.
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let (code, out, error) = lab(&["run", "tpca", "--scale", "smoke"], &file);
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(
        error.contains("--out") && error.lines().count() == 1,
        "{error}"
    );
    let (code, _, error) = lab(&["figure", "tpca"], directory.path());
    assert_eq!(code, Some(1));
    assert!(error.contains("run the experiment first"), "{error}");
    let results = directory.path().join("dast/tpca");
    fs::create_dir_all(&results).unwrap();
    fs::write(results.join("data.json"), "{}").unwrap();
    let (code, _, error) = lab(&["figure", "tpca"], directory.path());
    assert_eq!(code, Some(1));
    assert!(
        error.contains("data.json: not data of an experiment"),
        "{error}"
    );
}
