//! `manxdb sim`: equal flags make equal bytes, the parts of every latency add up to it, and what
//! is wrong with a flag is said.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, clippy::panic)]

use crate::support::{laboratory, output};

const SMALL: [&str; 7] = [
    "sim",
    "--clients",
    "2",
    "--seconds",
    "0.6",
    "--warm-up",
    "0.2",
];

/// What a run prints and writes: text, JSON and CSV.
fn run(flags: &[&str]) -> (Option<i32>, [String; 3]) {
    let directory = tempfile::tempdir().unwrap();
    let (json, calls) = (
        directory.path().join("run.json"),
        directory.path().join("calls.csv"),
    );
    let mut command = laboratory();
    command.args(SMALL).args(flags);
    command.arg("--json").arg(&json).arg("--calls").arg(&calls);
    let (code, text, error) = output(&mut command);
    assert_eq!(error, "");
    let read = |path| std::fs::read_to_string(path).unwrap();
    (code, [text, read(&json), read(&calls)])
}

#[test]
fn every_workload_runs_and_is_judged_and_equal_flags_make_equal_bytes() {
    for flags in [
        &["--tpcc-scale", "tiny", "--timeline", "slowest-cross"] as &[_],
        &["--workload", "tpcc", "--tpcc-scale", "tiny"],
        &["--workload", "tpca", "--theta", "1.0", "--cpu", "free"],
        &[
            "--tpcc-scale",
            "tiny",
            "--crossing",
            "ahead",
            "--lead-ms",
            "60",
        ],
        &[
            "--workload",
            "append",
            "--level",
            "strict",
            "--wan-jitter-ms",
            "20",
        ],
    ] {
        let (code, one) = run(flags);
        assert_eq!(code, Some(0), "{flags:?}: {}", one[0]);
        assert!(one[0].contains("checked: every call ended"), "{}", one[0]);
        assert_eq!(run(flags).1, one, "{flags:?}");
    }
    let tiny = ["--tpcc-scale", "tiny"];
    let other = [&tiny[..], &["--seed", "2"]].concat();
    assert_ne!(run(&tiny).1, run(&other).1);
}

#[test]
fn the_parts_of_every_call_add_up_to_its_latency() {
    let (_, [_, _, calls]) = run(&["--tpcc-scale", "tiny", "--wan-jitter-ms", "30"]);
    // Microseconds with three digits behind the point are nanoseconds.
    let nanos = |field: &str| field.replace('.', "").parse::<u64>().unwrap();
    let mut lines = calls.lines();
    assert!(
        lines
            .next()
            .unwrap()
            .starts_with("call,class,procedure,home,asked,latency,")
    );
    let mut count = 0;
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let parts: u64 = fields[6..].iter().copied().map(nanos).sum();
        assert_eq!(parts, nanos(fields[5]), "{line}");
        count += 1;
    }
    assert!(count > 50, "{count} calls");
}

#[test]
fn whoever_stops_reading_does_not_make_it_fail() {
    let mut command = laboratory();
    command.args(SMALL).args(["--tpcc-scale", "tiny"]);
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_killed_replica_is_lived_through() {
    let faults = ["--tpcc-scale", "tiny", "--fault", "300ms+200ms crash n1"];
    let (code, [text, _, _]) = run(&faults);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("fault: 300ms+200ms crash n1"), "{text}");
}

#[test]
fn what_is_wrong_with_a_flag_is_said_and_what_would_be_right() {
    for (flags, says) in [
        (
            &["--theta", "0.5"] as &[&str],
            "--theta is for --workload tpca, not for payment",
        ),
        (
            &["--workload", "tpcc", "--crt-percent", "5"],
            "--crt-percent is for --workload payment or tpca or append, not for tpcc",
        ),
        (
            &["--crt-percent", "101"],
            "--crt-percent 101 is not 0 to 100",
        ),
        (
            &["--workload", "tpca", "--theta", "4.5"],
            "--theta 4.5 is not 0 to 4",
        ),
        (
            &["--workload", "append", "--lists", "0"],
            "--lists 0 is not 1 to 64",
        ),
        (
            &["--crossing", "ahead", "--lead-ms", "0"],
            "--lead-ms: 0 ms is no lead: it is more than 0 and at most 10000 ms, and what does is \
             half a round trip between regions and three intervals of reports, 57.5 ms for 100 ms",
        ),
        (
            &["--crossing", "ahead", "--lead-ms", "10001"],
            "--lead-ms: 10001 ms is no lead: it is more than 0 and at most 10000 ms, and what does \
             is half a round trip between regions and three intervals of reports, 57.5 ms for 100 ms",
        ),
        (
            &["--lead-ms", "60"],
            "--lead-ms is for --crossing ahead: anticipated timestamps have no lead",
        ),
        (
            &["janus", "--crossing", "ahead"],
            "--crossing ahead is of dast, not of janus, which has one way to order",
        ),
        (
            &["--survive", "region", "--regions", "3"],
            "--survive region: this is for crossing ahead",
        ),
        (
            &["--survive", "region", "--crossing", "ahead"],
            "--survive region: of 2 regions the rest is no majority; to survive the loss of a region \
             takes 3 or more",
        ),
        (&["--wan-ms", "-1"], "--wan-ms -1 is not 0 to 60000"),
        (&["--seconds", "0"], "--seconds 0 is not 0.001 to 86400"),
        (
            &["--regions", "1", "--crt-percent", "5"],
            "--crt-percent is of calls that touch several regions: with --regions 1 it is 0",
        ),
        (
            &["--level", "session", "--outstanding", "2"],
            "--outstanding 2 makes calls of one session overlap, which have no order to keep: \
             with --level session or strict it is 1",
        ),
        (
            &["--clients", "2000"],
            "--clients 2000 makes 8000 clients beside 18 servers; a run has at most 5000 nodes, \
             so --clients 1245 at most here",
        ),
        (
            &["--fault", "1s crash n1"],
            "--fault '1s crash n1': '1s crash n1' is no fault such as 1s+20ms crash n3",
        ),
        (
            &["--fault", "1s+1s crash n18"],
            "--fault '1s+1s crash n18': there is no server n18; replicas are n0 to n11, managers \
             n12 to n17",
        ),
        (
            &["--fault", "1s+1s part r0 r2"],
            "--fault '1s+1s part r0 r2': there is no region r2; they are r0 to r1",
        ),
        (
            &["--fault", "20s+1s crash n1"],
            "--fault '20s+1s crash n1': it begins after the run's end at 11.000000000s",
        ),
        (
            &["--timeline", "slowest"],
            "--timeline: 'slowest' is no call: CLIENT.NUMBER such as 18.5, or fastest, median, \
             p90, p95, p99 or slowest, and -local or -cross, such as slowest-local",
        ),
    ] {
        let (code, text, error) = output(laboratory().arg("sim").args(flags));
        assert_eq!((code, text.as_str()), (Some(1), ""), "{flags:?}");
        assert_eq!(error, format!("manxdb: {says}\n"));
    }
    let unknown = [&SMALL[..], &["--tpcc-scale", "tiny", "--timeline", "99.1"]].concat();
    let (code, _, error) = output(laboratory().args(unknown));
    assert_eq!(code, Some(1));
    assert_eq!(
        error,
        "manxdb: --timeline: there is no client 99: they are 18 to 25\n"
    );
}

#[test]
fn modes_that_there_are_not_are_refused_with_those_that_there_are() {
    for (flags, says) in [
        (
            ["--crossing", "behind"],
            "no such mode; there are anticipated, ahead",
        ),
        (
            ["--survive", "sea"],
            "nothing of this name; there are zone and region",
        ),
    ] {
        let (code, _, error) = output(laboratory().arg("sim").args(flags));
        assert_ne!(code, Some(0), "{flags:?}");
        assert!(error.contains(says), "{flags:?}: {error}");
    }
}
