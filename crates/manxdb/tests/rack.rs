//! `manxdb bench checkout` and `bench rack-tpcc`: servers and clients in processes of their own, and
//! books that are right in the end; never how fast it was.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

mod support;

use serde_json::Value;
use support::{manxdb, output};

fn bench(args: &[&str]) -> (Option<i32>, String, String) {
    output(manxdb().arg("bench").args(args))
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

#[test]
fn sizes_that_cannot_be_are_refused() {
    let cases: [(&[&str], &str); 3] = [
        (
            &["rack-tpcc", "--servers", "2", "--logs", "3"],
            "3 copies of logs on 2 memory servers",
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
}
