//! `manxdb bench checkout`, `bench rack-tpcc`, `bench rack-recovery` and `bench olap`: servers, clients and
//! nodes in processes of their own, and books and answers that are right in the end; never how fast it
//! was.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use crate::support::{laboratory, output};
use serde_json::Value;

fn bench(args: &[&str]) -> (Option<i32>, String, String) {
    output(laboratory().arg("bench").args(args))
}

/// A run's JSON: its books are right, or it would not have ended so.
fn json(args: &[&str]) -> Value {
    let (code, out, error) = bench(&[args, &["--json"]].concat());
    assert_eq!((code, error.as_str()), (Some(0), ""), "{args:?}");
    serde_json::from_str(&out).unwrap()
}

#[test]
fn every_system_sells() {
    let systems = [
        "rsi",
        "rsi-serializable",
        "rsi-published",
        "two-sided",
        "trad-si",
    ];
    for system in systems {
        let sizes = ["--products", "2000", "--orders", "300", "--clients", "2"];
        let sold = json(
            &[
                &["checkout", "--system", system, "--seconds", "2"][..],
                &sizes,
            ]
            .concat(),
        );
        assert_eq!(sold["system"], system);
        assert!(sold["committed"].as_u64().unwrap() > 0, "{sold}");
    }
}

#[test]
fn terminals_of_tpcc_commit_and_end_when_their_room_does() {
    for more in [&["--logs", "2"][..], &["--snapshot", "--versions", "2"]] {
        let sizes = ["--rows", "2400", "--seconds", "60", "--servers", "2"];
        let done = json(&[&["rack-tpcc"][..], &sizes, more].concat());
        // As many transactions as surely have room.
        assert_eq!(done["committed"], 2 * 2_400 / 24);
        let kinds = done["kinds"].as_object().unwrap();
        let sum = kinds.values().map(|count| count.as_u64().unwrap());
        assert_eq!(sum.sum::<u64>(), 200, "{done}");
    }
}

/// Small, and with leases that are long beside what a busy machine makes a thread wait.
const RECOVERY: [&str; 9] = [
    "rack-recovery",
    "--products",
    "300",
    "--orders",
    "20000",
    "--seconds",
    "1",
    "--lease-ms",
    "4000",
];

#[test]
fn customers_go_on_when_one_of_them_and_a_memory_server_are_killed() {
    for (victim, client) in [("leader", 0), ("other", 2)] {
        let done = json(&[&RECOVERY[..], &["--kill-client", victim]].concat());
        let outcome = &done["outcome"];
        assert_eq!(outcome["death"]["client"], client, "{outcome}");
        assert_eq!(outcome["loss"]["server"], 0, "{outcome}");
        let counts = outcome["counts"].as_array().unwrap();
        assert_eq!(counts.len(), 3);
        for counts in counts {
            let sum = counts.as_array().unwrap().iter().map(Value::as_u64);
            assert!(sum.map(Option::unwrap).sum::<u64>() > 0, "{outcome}");
        }
    }
}

#[test]
fn rows_are_bought_with_fewer_copies_where_nobody_is_killed() {
    let quiet = ["--kill-client", "none", "--kill-server", "none"];
    for copies in [["1", "0"], ["1", "1"]] {
        let copies = ["--replicas", copies[0], "--logs", copies[1]];
        let args = [&RECOVERY[..], &quiet, &copies].concat();
        let (code, text, error) = bench(&args);
        assert_eq!((code, error.as_str()), (Some(0), ""));
        assert!(text.contains("the books are right"), "{text}");
    }
}

#[test]
fn nodes_find_what_they_must() {
    let joins = ["ghj", "ghj-bloom", "rdma-ghj", "rrj"];
    for algorithm in joins {
        let sizes = ["--nodes", "3", "--rows", "4000", "--selectivity", "0.25"];
        let done = json(&[&["olap", "--algorithm", algorithm][..], &sizes].concat());
        let outcome = &done["outcome"];
        assert_eq!(done["shape"]["algorithm"], algorithm);
        assert_eq!(outcome["found"], 3_000, "{done}");
        assert!(outcome["bytes"].as_u64() > outcome["messages"].as_u64());
    }
    for algorithm in ["agg", "rdma-agg"] {
        let sizes = ["--nodes", "2", "--rows", "9000", "--groups", "50"];
        let done = json(
            &[
                &["olap", "--algorithm", algorithm, "--width", "24"][..],
                &sizes,
            ]
            .concat(),
        );
        assert_eq!(done["outcome"]["found"], 50, "{done}");
    }
    // A node alone sends nothing.
    let alone = json(&["olap", "--nodes", "1", "--rows", "1000"]);
    assert_eq!(alone["outcome"]["bytes"], 0);
    let (code, text, _) = bench(&["olap", "--nodes", "2", "--rows", "1000"]);
    assert_eq!(code, Some(0));
    assert!(text.contains("2000 pairs, the answer is right"), "{text}");
}

#[test]
fn sizes_that_cannot_be_are_refused() {
    let cases: [(&[&str], &str); 13] = [
        (
            &["olap", "--width", "12"],
            "--width 12: rows of 12 bytes: a row has 8 to 1024, a multiple of 8",
        ),
        (
            &["olap", "--selectivity", "1.5"],
            "--selectivity 1.5 is not from 0 to 1",
        ),
        (
            &["olap", "--selectivity", "NaN"],
            "--selectivity NaN is not from 0 to 1",
        ),
        (
            &["olap", "--groups", "5"],
            "--groups is for aggregations, rrj joins",
        ),
        (
            &["olap", "--algorithm", "agg", "--selectivity", "0.5"],
            "--selectivity is for joins, agg aggregates",
        ),
        (
            &["olap-node", "0", "--directory", ".", "--shape", "{"],
            "--shape: EOF",
        ),
        (
            &["rack-tpcc", "--servers", "2", "--logs", "3"],
            "3 copies of logs on 2 memory servers",
        ),
        (
            &["rack-recovery", "--logs", "0"],
            "3 replicas need as many logs",
        ),
        (
            &["rack-recovery", "--replicas", "1", "--logs", "0"],
            "give --kill-client none",
        ),
        (
            &["rack-recovery", "--replicas", "1", "--logs", "1"],
            "give --kill-server none",
        ),
        (
            &["rack-recovery", "--replicas", "3", "--logs", "2"],
            "copies of a log is 2 but must be 3 to 3",
        ),
        (
            &["checkout", "--servers", "2", "--logs", "3"],
            "3 copies of logs on 2 memory servers",
        ),
        (
            &[
                "rack-tpcc-part",
                "terminal",
                "0",
                "--directory",
                ".",
                "--shape",
                "{",
            ],
            "--shape: EOF",
        ),
    ];
    for (args, why) in cases {
        let (code, _, error) = bench(args);
        assert_eq!(code, Some(1), "{args:?}");
        assert!(error.contains(why), "{error}");
    }
    for (flag, value) in [
        ("--warehouses", "0"),
        ("--rows", "10"),
        ("--clients", "201"),
    ] {
        let (code, _, error) = bench(&["rack-tpcc", flag, value]);
        assert_eq!(code, Some(2), "{flag}");
        assert!(error.contains(flag), "{error}");
    }
    for (flag, value) in [("--nodes", "17"), ("--rows", "0"), ("--algorithm", "sort")] {
        let (code, _, error) = bench(&["olap", flag, value]);
        assert_eq!(code, Some(2), "{flag}");
        assert!(error.contains(flag), "{error}");
    }
}
