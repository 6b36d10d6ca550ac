//! Page and metrics of one cluster, as its nodes describe it.
#![allow(clippy::float_cmp, reason = "the same number in two places")]

use std::collections::BTreeSet;

use manxdb_dast::RegionId;
use manxdb_gateway::admin::Gauge;
use manxdb_net::ClusterId;
use manxdb_net::status::NodeStatus;
use serde_json::{Value, json};

use super::measured::{Class, OfLeader, OfManager, OfPair, OfReplica, SlowCall, Waits};
use super::*;
use crate::cluster::example::over_regions;

/// Every metric of a node, with what it means; those of one line belong together.
const METRICS: [(&str, &str); 28] = [
    (
        "manxdb_dast_transaction_seconds",
        "histogram by `class` (local, cross-region): from a call's arrival at the replica that answers it to the answer",
    ),
    (
        "manxdb_dast_last_minute_transactions",
        "by `class`: calls answered in the last minute (50 to 60 s)",
    ),
    (
        "manxdb_dast_last_minute_seconds",
        "by `class` and `quantile` (0.5, 0.99, 1): latencies of those, without the width of Prometheus's buckets",
    ),
    (
        "manxdb_dast_wait_seconds_total",
        "by `class` and `reason`: what calls waited for; of `managers' ledger` at managers, of the others at the replica that answers",
    ),
    (
        "manxdb_dast_last_minute_wait_seconds",
        "the same in the last minute",
    ),
    (
        "manxdb_dast_open_transactions",
        "by `class`: calls that are not answered yet",
    ),
    (
        "manxdb_dast_given_up_total",
        "by `class`: calls that ended without an answer from here, because a region did not answer in time or the replica was put out",
    ),
    (
        "manxdb_dast_takes_part",
        "1 while the replica takes part, 0 while it is out",
    ),
    (
        "manxdb_dast_clock_stretch_seconds",
        "how far the replica's next stamp lies behind the time, because a floor or a ceiling holds its clock back",
    ),
    (
        "manxdb_dast_last_minute_clock_stretch_seconds",
        "the most of the last minute",
    ),
    ("manxdb_dast_leads", "1 while the manager leads its region"),
    (
        "manxdb_dast_view",
        "how often the region's leader was replaced, as the manager knows",
    ),
    (
        "manxdb_dast_epoch",
        "at the leader: changes of who takes part in the region",
    ),
    (
        "manxdb_dast_members",
        "at the leader, by `standing`: replicas that are live, closing (out, and their transactions are collected) and joining",
    ),
    (
        "manxdb_dast_bound_seconds",
        "at the leader, ordered ahead: how far ahead of the region's time everything of the other regions is known; negative: clocks stretch",
    ),
    (
        "manxdb_dast_fenced",
        "at the leader, ordered ahead, by `other` region: 1 while that is fenced, and the others go on without it",
    ),
    (
        "manxdb_dast_lead_seconds",
        "at the leader, ordered ahead, by `other` region: how far ahead of its time the region tells marks to the other one",
    ),
    (
        "manxdb_dast_mark_told_seconds",
        "by `other`: how far the last mark told is ahead of the region's time",
    ),
    (
        "manxdb_dast_mark_heard_seconds",
        "by `other`: how far the last mark heard of the other region is ahead; negative: the region waits for the other one",
    ),
    (
        "manxdb_dast_stream_delay_seconds",
        "by `other`: what parts of the other region's stream take to come",
    ),
    (
        "manxdb_dast_silent_seconds",
        "by `other`: since when nothing came from the other region",
    ),
    (
        "manxdb_dast_records",
        "records kept about transactions; bounded while all is well",
    ),
    (
        "manxdb_dast_node_up",
        "by `node`, `role` and `region`: 1 while the node answers this one",
    ),
    (
        "manxdb_dast_lacking",
        "things that the cluster lacks, as this node sees it",
    ),
    (
        "manxdb_net_messages_sent_total",
        "by `kind`: messages to other processes, with those sent again",
    ),
    (
        "manxdb_net_messages_received_total",
        "messages from other processes",
    ),
    (
        "manxdb_net_bytes_sent_total",
        "bytes written to other processes",
    ),
    (
        "manxdb_net_reconnects_total",
        "connections to other processes that were opened again",
    ),
];

/// A replica of region 0 that answers calls.
fn replica() -> Measured {
    let mut of = OfReplica {
        stretch_micros: 1_500,
        stretch_max_micros: 42_500,
        ..OfReplica::default()
    };
    for micros in [11_000, 12_000, 55_000] {
        of.local.answered.add(micros);
        of.local.minute.add(micros);
    }
    of.local.waits = Waits::from([
        ("ordering gate".to_owned(), 20_000),
        ("row in use".to_owned(), 40_000),
    ]);
    of.local.minute_waits = Waits::from([("row in use".to_owned(), 40_000)]);
    of.local.open = 2;
    of.cross_region.answered.add(120_000);
    of.cross_region.given_up = 3;
    of.slowest.push(SlowCall {
        call: "40.7".to_owned(),
        procedure: "append".to_owned(),
        class: Class::Local,
        micros: 55_000,
        ago_ms: 1_500,
        waits: Waits::from([("row in use".to_owned(), 40_000)]),
    });
    Measured {
        admin: Some("https://127.0.0.1:1".to_owned()),
        minute_ms: 50_000,
        replica: Some(of),
        manager: None,
    }
}

/// The leader of region 0, which waits for region 1.
fn leader() -> Measured {
    let pair = OfPair {
        region: 1,
        lead: 57_500,
        told: Some(55_000),
        heard: Some(-200_000),
        delay: Some(51_000),
        silent: 250_000,
    };
    let leading = OfLeader {
        epoch: 2,
        live: vec![0, 1],
        closing: vec![2],
        joining: None,
        bound_micros: Some(-200_000),
        fenced: Some(1),
        pairs: vec![pair],
    };
    let manager = OfManager {
        view: 3,
        leading: Some(leading),
        ledger_micros: 70_000,
        minute_ledger_micros: 50_000,
    };
    Measured {
        minute_ms: 50_000,
        manager: Some(manager),
        ..Measured::default()
    }
}

fn says(node: u32, state: &str, measured: &Measured) -> Status {
    let notes = [(STATE, state), ("records", "12")];
    let notes = notes.map(|(name, text)| (name.to_owned(), text.to_owned()));
    let counters = [
        ("sent Report", 40),
        ("sent Cut", 50),
        ("received", 60),
        ("bytes sent", 70),
        ("reconnects", 8),
    ];
    Status {
        cluster: ClusterId(0x00C0_FFEE),
        process: 7,
        uptime_ms: 2_000,
        nodes: vec![NodeStatus {
            node: NodeId(node),
            life: 1,
            notes: notes.into_iter().chain([measured.to_note()]).collect(),
        }],
        counters: counters
            .map(|(name, count)| (name.to_owned(), count))
            .to_vec(),
    }
}

/// A cluster of two regions, of which two nodes of the first one answer: as node 0 sees it, or the leader.
fn cluster(own: Role) -> GeoCluster {
    let file = over_regions(2, 1);
    let is_leader = |node: &&Node| {
        dast::topology(&file).role(NodeId(node.number)) == Role::Manager(RegionId(0))
    };
    let leads = file.nodes.iter().find(is_leader).unwrap().number;
    let answers = file.nodes.iter().map(|node| match node.number {
        0 => Some(says(0, dast::TAKES_PART, &replica())),
        number if number == leads => Some(says(number, dast::LEADS, &leader())),
        _ => None,
    });
    let seen = Seen::new(&file, answers.collect());
    let own = if own == Role::Manager(RegionId(0)) {
        leads
    } else {
        0
    };
    let cluster = GeoCluster::new(file, own);
    cluster.last.hold(seen);
    cluster
}

/// The value of a metric, of a node of region 0 if it is of one.
fn value(gauges: &[Gauge], name: &str) -> f64 {
    let name = format!("manxdb_{name}");
    let labelled = match name.strip_suffix('}') {
        Some(labels) => format!("{labels},region=\"0\"}}"),
        None => format!("{name}{{region=\"0\"}}"),
    };
    let found = gauges
        .iter()
        .find(|gauge| gauge.name == name || gauge.name == labelled);
    found
        .unwrap_or_else(|| panic!("no {name} in {gauges:?}"))
        .value
}

/// That the page says at each place what a metric says.
fn same(page: &Value, gauges: &[Gauge], places: &[(&str, &str)]) {
    for (place, metric) in places {
        let shown = page.pointer(place).and_then(Value::as_f64);
        assert_eq!(
            shown,
            Some(value(gauges, metric)),
            "{place} and {metric} in {page:#}"
        );
    }
}

#[test]
fn page_and_metrics_of_a_replica_tell_the_same_numbers() {
    let cluster = cluster(Role::Client);
    let (page, gauges) = (cluster.page(), cluster.gauges());
    let places = [
        (
            "/nodes/0/classes/local/answered",
            "dast_transaction_seconds_count{class=\"local\"}",
        ),
        (
            "/nodes/0/classes/local/sum",
            "dast_transaction_seconds_sum{class=\"local\"}",
        ),
        (
            "/nodes/0/classes/cross-region/answered",
            "dast_transaction_seconds_bucket{class=\"cross-region\",le=\"0.12\"}",
        ),
        (
            "/nodes/0/classes/local/minute/count",
            "dast_last_minute_transactions{class=\"local\"}",
        ),
        (
            "/nodes/0/classes/local/minute/p50",
            "dast_last_minute_seconds{class=\"local\",quantile=\"0.5\"}",
        ),
        (
            "/nodes/0/classes/local/minute/p99",
            "dast_last_minute_seconds{class=\"local\",quantile=\"0.99\"}",
        ),
        (
            "/nodes/0/classes/local/minute/longest",
            "dast_last_minute_seconds{class=\"local\",quantile=\"1\"}",
        ),
        (
            "/nodes/0/classes/local/waits/row in use",
            "dast_wait_seconds_total{class=\"local\",reason=\"row in use\"}",
        ),
        (
            "/regions/0/classes/local/minute_waits/row in use",
            "dast_last_minute_wait_seconds{class=\"local\",reason=\"row in use\"}",
        ),
        (
            "/regions/0/classes/local/open",
            "dast_open_transactions{class=\"local\"}",
        ),
        (
            "/regions/0/classes/cross-region/given_up",
            "dast_given_up_total{class=\"cross-region\"}",
        ),
        ("/nodes/0/stretch", "dast_clock_stretch_seconds"),
        (
            "/nodes/0/stretch_max",
            "dast_last_minute_clock_stretch_seconds",
        ),
        ("/nodes/0/records", "dast_records"),
    ];
    same(&page, &gauges, &places);
    assert_eq!(value(&gauges, "dast_takes_part"), 1.0);
    assert_eq!(
        value(
            &gauges,
            "dast_transaction_seconds_bucket{class=\"local\",le=\"0.012\"}"
        ),
        2.0
    );
    assert_eq!(
        page.pointer("/nodes/0/classes/cross-region/minute/p99"),
        Some(&Value::Null)
    );
    assert_eq!(page["minute_seconds"], 50.0);
    assert_eq!(
        page["nodes"][0]["admin"], "https://127.0.0.1:1",
        "as it says itself"
    );
    assert_eq!(
        page["nodes"][1]["admin"], "http://127.0.0.1:8401",
        "as the file says"
    );
    let slow = &page["slowest"][0];
    assert_eq!(
        (&slow["call"], &slow["took"], &slow["node"]),
        (&json!("40.7"), &json!(0.055), &json!(0))
    );
}

#[test]
fn page_and_metrics_of_a_leader_tell_the_same_numbers() {
    let cluster = cluster(Role::Manager(RegionId(0)));
    let (page, gauges) = (cluster.page(), cluster.gauges());
    let pair = |name: &str| format!("dast_{name}_seconds{{other=\"1\"}}");
    let names = ["lead", "mark_told", "mark_heard", "stream_delay", "silent"].map(pair);
    let places =
        ["lead", "told", "heard", "delay", "silent"].map(|name| format!("/pairs/0/{name}"));
    let pairs = places
        .iter()
        .zip(&names)
        .map(|(place, name)| (place.as_str(), name.as_str()));
    let ledger = "reason=\"managers' ledger\"";
    let ledger = ["wait_seconds_total", "last_minute_wait_seconds"]
        .map(|name| format!("dast_{name}{{class=\"cross-region\",{ledger}}}"));
    let mut all: Vec<(&str, &str)> = pairs.collect();
    all.extend([
        ("/regions/0/view", "dast_view"),
        ("/regions/0/epoch", "dast_epoch"),
        ("/regions/0/live", "dast_members{standing=\"live\"}"),
        ("/regions/0/bound", "dast_bound_seconds"),
        (
            "/regions/0/classes/cross-region/waits/managers' ledger",
            ledger[0].as_str(),
        ),
        (
            "/regions/0/classes/cross-region/minute_waits/managers' ledger",
            ledger[1].as_str(),
        ),
        ("/messages/0/sent", "net_messages_sent_total{kind=\"Cut\"}"),
    ]);
    let mut page = page;
    // Two nodes answer, and both have sent as many.
    page["messages"][0]["sent"] = json!(page["messages"][0]["sent"].as_u64().unwrap() / 2);
    same(&page, &gauges, &all);
    assert_eq!(page["regions"][0]["closing"], json!([2]));
    assert_eq!(page["regions"][0]["fenced"], json!(1));
    assert_eq!(value(&gauges, "dast_fenced{other=\"1\"}"), 1.0);
    assert_eq!(
        (
            value(&gauges, "dast_leads"),
            value(&gauges, "net_messages_received_total")
        ),
        (1.0, 60.0)
    );
}

#[test]
fn what_does_not_answer_is_said_and_what_it_measured_is_not() {
    let cluster = cluster(Role::Client);
    let (page, gauges) = (cluster.page(), cluster.gauges());
    assert_eq!(
        (&page["nodes"][1]["state"], &page["nodes"][1]["classes"]),
        (&Value::Null, &Value::Null)
    );
    assert_eq!(page["regions"][1]["leader"], Value::Null);
    let lacking = page["lacking"].as_array().unwrap();
    let first = lacking[0].as_str().unwrap();
    assert!(
        first.starts_with("unavailable: region 1 has lost its majority"),
        "{first}"
    );
    assert_eq!(
        value(&gauges, "dast_lacking"),
        f64::from(u32::try_from(lacking.len()).unwrap())
    );
    let gone = "dast_node_up{node=\"1\",role=\"replica of shard 0\",region=\"0\"}";
    let here = "dast_node_up{node=\"0\",role=\"replica of shard 0\",region=\"0\"}";
    assert_eq!((value(&gauges, gone), value(&gauges, here)), (0.0, 1.0));
}

/// The name that a sample is listed under.
fn family(sample: &str) -> &str {
    let name = sample.split('{').next().unwrap();
    let ends = ["_bucket", "_sum", "_count"];
    let end = ends.iter().find_map(|end| name.strip_suffix(end));
    end.filter(|name| name.ends_with("_seconds"))
        .unwrap_or(name)
}

#[test]
fn every_metric_is_listed_and_every_listed_one_served() {
    let both = [Role::Client, Role::Manager(RegionId(0))].map(|own| cluster(own).gauges());
    let served: BTreeSet<&str> = both
        .iter()
        .flatten()
        .map(|gauge| family(&gauge.name))
        .collect();
    let listed: BTreeSet<&str> = METRICS.iter().map(|(name, _)| *name).collect();
    assert_eq!(served, listed);
    for gauges in &both {
        let mut families: Vec<_> = gauges.iter().map(|gauge| family(&gauge.name)).collect();
        families.dedup();
        let all: BTreeSet<_> = families.iter().collect();
        assert_eq!(
            all.len(),
            families.len(),
            "metrics of one name stand together: {families:?}"
        );
    }
}

#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana.json");
    let text = std::fs::read_to_string(path).unwrap();
    let words = text.split(|letter: char| !letter.is_ascii_lowercase() && letter != '_');
    let of_nodes =
        words.filter(|word| word.starts_with("manxdb_dast_") || word.starts_with("manxdb_net_"));
    let asked: BTreeSet<&str> = of_nodes.map(family).collect();
    let listed: BTreeSet<&str> = METRICS.iter().map(|(name, _)| *name).collect();
    assert!(
        asked.len() > 8 && asked.is_subset(&listed),
        "{:?}",
        asked.difference(&listed)
    );
}

/// Where the docs have the list of metrics.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/geo-ordering.md");

/// `REFERENCE=write` writes the table into the page.
#[test]
fn the_docs_have_the_list_of_metrics() {
    const BEGIN: &str = "| metric of a node | meaning |\n|---|---|\n";
    let rows = METRICS
        .iter()
        .map(|(name, meaning)| format!("| `{name}` | {meaning} |\n"));
    let table: String = rows.collect();
    let text = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = text
        .split_once(BEGIN)
        .expect("docs/geo-ordering.md has the table of metrics");
    let lines = rest
        .split_inclusive('\n')
        .take_while(|line| line.starts_with('|'));
    let end: usize = lines.map(str::len).sum();
    if std::env::var("REFERENCE").as_deref() == Ok("write") {
        std::fs::write(PAGE, format!("{before}{BEGIN}{table}{}", &rest[end..])).unwrap();
    } else {
        assert_eq!(&rest[..end], table, "REFERENCE=write writes it");
    }
}
