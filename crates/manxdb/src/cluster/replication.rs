//! What the admin listener of a process shows of the cluster that it belongs to: a page, and the same
//! numbers as metrics.

use std::sync::Arc;

use manxdb_curp_client::ClientMeter;
use manxdb_gateway::admin::{self, Gauge};
use manxdb_net::Status;
use serde_json::{Value, json};

use super::answers::{PATIENCE, Recent, ask_all, note};
use super::curp;
use super::curp_status::{NodeOverview, Overview, judge};
use super::file::ClusterFile;

/// The ways in which a server's commits are completed, as a CURP client names them, and the notes that count
/// them.
const SQL_WAYS: [(&str, &str); 3] = [
    ("fast", "sql commits fast"),
    ("conflicts", "sql commits at backups"),
    ("synced", "sql commits after a refusal"),
];

/// Who counts how the commands of this process were completed.
pub enum Counts {
    /// A server's primary, in the notes of its node of this number.
    Server(u32),
    /// A proxy.
    Proxy(Arc<ClientMeter>),
}

/// A cluster, as this process sees it.
pub struct Replication {
    file: ClusterFile,
    counts: Counts,
    last: Recent<Answers>,
}

/// What the nodes say, in the order of the cluster file.
type Answers = Vec<Option<Status>>;

impl Replication {
    /// Of the cluster of `file`.
    #[must_use]
    pub fn new(file: ClusterFile, counts: Counts) -> Self {
        Self {
            file,
            counts,
            last: Recent::default(),
        }
    }

    fn answers(&self) -> Arc<Answers> {
        self.last.get(|| ask_all(&self.file, PATIENCE))
    }

    /// How commands of this process were completed since it started, by way.
    fn ways(&self, answers: &[Option<Status>]) -> Vec<(&'static str, u64)> {
        match &self.counts {
            Counts::Proxy(meter) => {
                let counts = meter.counts();
                vec![
                    ("fast", counts.fast),
                    ("reads", counts.reads),
                    ("conflicts", counts.conflicts),
                    ("synced", counts.synced),
                ]
            }
            Counts::Server(number) => {
                let own = answers.get(*number as usize).and_then(Option::as_ref);
                let count = |name| -> Option<u64> { note(own?, name)?.parse().ok() };
                let ways = SQL_WAYS.iter();
                ways.map(|(way, name)| (*way, count(name).unwrap_or(0)))
                    .collect()
            }
        }
    }

    /// What `/replication` shows.
    #[must_use]
    pub fn page(&self) -> Value {
        let answers = self.answers();
        let overview = Overview::of(&self.file, &answers);
        let own = match &self.counts {
            Counts::Server(number) => Some(*number),
            Counts::Proxy(_) => None,
        };
        let nodes = overview.nodes.iter().map(|node| {
            json!({
                "number": node.number,
                "role": node.role,
                "address": node.address.to_string(),
                "state": node.state,
                "applied": node.applied,
                "backlog": node.backlog,
                "not_on_disk": node.not_on_disk,
            })
        });
        let ways = self.ways(&answers).into_iter();
        let lacking = judge(&self.file, &answers);
        json!({
            "own": own,
            "durability": curp::durability(&self.file),
            "faults": curp::options(&self.file).faults,
            "epoch": overview.view.map(|(epoch, _)| epoch),
            "witness_list": overview.view.map(|(_, list)| list),
            "lacking": lacking.iter().map(ToString::to_string).collect::<Value>(),
            "commands": ways.map(|(way, count)| (way.to_owned(), json!(count))).collect::<serde_json::Map<_, _>>(),
            "not_synced": overview.not_synced,
            "not_collected": overview.not_collected,
            "updates_before_sync": overview.updates.map(|(before, _)| before),
            "updates_after_sync": overview.updates.map(|(_, after)| after),
            "nodes": nodes.collect::<Value>(),
        })
    }

    /// The same as metrics; those of the ways only where nobody else tells them.
    #[must_use]
    pub fn gauges(&self) -> Vec<Gauge> {
        let answers = self.answers();
        let ways = match &self.counts {
            Counts::Server(_) => self.ways(&answers),
            Counts::Proxy(_) => Vec::new(),
        };
        let mut gauges = Vec::new();
        for (way, count) in ways {
            add(
                &mut gauges,
                format!("commands_total{{way=\"{way}\"}}"),
                Some(count),
            );
        }
        of_cluster(
            &mut gauges,
            &Overview::of(&self.file, &answers),
            judge(&self.file, &answers).len(),
        );
        gauges
    }
}

/// Nothing is told of what is not known.
fn add(gauges: &mut Vec<Gauge>, name: String, value: Option<u64>) {
    gauges.extend(value.map(|value| Gauge {
        name: format!("manxdb_curp_{name}"),
        value: admin::count(value),
    }));
}

/// A number of a node, if it is known.
type NodeNumber = fn(&NodeOverview) -> Option<u64>;

fn of_cluster(gauges: &mut Vec<Gauge>, overview: &Overview, lacking: usize) {
    let updates = overview.updates;
    for (name, value) in [
        ("lacking", Some(lacking as u64)),
        ("epoch", overview.view.map(|(epoch, _)| epoch)),
        ("not_synced_commands", overview.not_synced),
        ("not_collected_records", overview.not_collected),
        (
            "updates_total{when=\"before sync\"}",
            updates.map(|(before, _)| before),
        ),
        (
            "updates_total{when=\"after sync\"}",
            updates.map(|(_, after)| after),
        ),
    ] {
        add(gauges, name.to_owned(), value);
    }
    for node in &overview.nodes {
        let state = node.state.as_deref().unwrap_or("does not answer");
        let (number, role) = (node.number, &node.role);
        let name = format!("node_up{{node=\"{number}\",role=\"{role}\",state=\"{state}\"}}");
        add(gauges, name, Some(u64::from(node.state.is_some())));
    }
    let numbers: [(&str, NodeNumber); 3] = [
        ("applied_commands", |node| node.applied),
        ("backlog_commands", |node| node.backlog),
        ("not_on_disk_records", |node| node.not_on_disk),
    ];
    for (name, number) in numbers {
        for node in &overview.nodes {
            let name = format!("{name}{{node=\"{}\"}}", node.number);
            add(gauges, name, number(node));
        }
    }
}

#[cfg(test)]
mod tests {
    use manxdb_core::NodeId;
    use manxdb_net::ClusterId;
    use manxdb_net::status::NodeStatus;

    use super::*;

    /// A coordinator, two servers, a witness that answers and a place for one that nobody has taken.
    const FILE: &str = r#"
        protocol = "curp"
        id = "00000000000000aa"
        regions = 1
        shards_per_region = 1
        process = 1
        suspect_ms = 500.0
        tpcc_scale = "tiny"
        distances = { lan_ms = 0.0, wan_ms = 0.0, wan_jitter_ms = 0.0 }
        curp = { faults = 1, servers = 2, witnesses = 2, room = 1, proxies = 0, sql = true, durability = "fsync", key_secret = "000102030405060708090a0b0c0d0e0f" }
        node = [
            { number = 0, role = "coordinator", region = 0, address = "127.0.0.1:1", process = 1 },
            { number = 1, role = "server", region = 0, address = "127.0.0.1:2", process = 1 },
            { number = 2, role = "server", region = 0, address = "127.0.0.1:3", process = 1 },
            { number = 3, role = "witness", region = 0, address = "127.0.0.1:4", process = 1 },
            { number = 4, role = "witness", region = 0, address = "127.0.0.1:5", process = 0 },
        ]
    "#;

    #[allow(clippy::unnecessary_wraps, reason = "as an answer comes")]
    fn says(node: u32, notes: &[(&str, &str)]) -> Option<Status> {
        let notes = notes
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
        Some(Status {
            cluster: ClusterId(0xaa),
            process: 7,
            uptime_ms: 1,
            nodes: vec![NodeStatus {
                node: NodeId(node),
                life: 1,
                notes: notes.collect(),
            }],
            counters: Vec::new(),
        })
    }

    fn cluster(answers: Vec<Option<Status>>) -> Replication {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("cluster.toml");
        std::fs::write(&path, FILE).unwrap();
        let (file, _) = ClusterFile::read(&path).unwrap();
        let seen = Replication::new(file, Counts::Server(1));
        seen.last.hold(answers);
        seen
    }

    fn coordinator() -> Option<Status> {
        let notes = [
            ("state", "coordinates"),
            ("view", "3.1"),
            ("master", "1"),
            ("backups", "2"),
            ("witnesses", "3"),
            ("spares", ""),
        ];
        says(0, &notes)
    }

    fn master() -> Option<Status> {
        let notes = [
            ("state", "is master"),
            ("applied", "40"),
            ("not synced", "5"),
            ("backlog", "2:4"),
            ("fast", "31"),
            ("synced first", "9"),
            ("records not collected", "6"),
            ("not on disk", "2"),
            ("sql commits fast", "30"),
            ("sql commits at backups", "8"),
            ("sql commits after a refusal", "1"),
        ];
        says(1, &notes)
    }

    fn value(gauges: &[Gauge], name: &str) -> Option<f64> {
        let found = gauges.iter().find(|gauge| gauge.name == name);
        found.map(|gauge| gauge.value)
    }

    #[test]
    fn page_and_metrics_tell_the_same_numbers() {
        let backup = says(
            2,
            &[
                ("state", "follows"),
                ("applied", "38"),
                ("not on disk", "0"),
            ],
        );
        let seen = cluster(vec![
            coordinator(),
            master(),
            backup,
            says(3, &[("state", "records")]),
            None,
        ]);
        let (page, gauges) = (seen.page(), seen.gauges());
        for (pointer, metric, expected) in [
            ("/epoch", "epoch", 3),
            ("/commands/fast", "commands_total{way=\"fast\"}", 30),
            (
                "/commands/conflicts",
                "commands_total{way=\"conflicts\"}",
                8,
            ),
            ("/commands/synced", "commands_total{way=\"synced\"}", 1),
            (
                "/updates_before_sync",
                "updates_total{when=\"before sync\"}",
                31,
            ),
            (
                "/updates_after_sync",
                "updates_total{when=\"after sync\"}",
                9,
            ),
            ("/not_synced", "not_synced_commands", 5),
            ("/not_collected", "not_collected_records", 6),
            ("/nodes/2/applied", "applied_commands{node=\"2\"}", 38),
            ("/nodes/2/backlog", "backlog_commands{node=\"2\"}", 4),
            ("/nodes/1/not_on_disk", "not_on_disk_records{node=\"1\"}", 2),
        ] {
            assert_eq!(
                page.pointer(pointer),
                Some(&json!(expected)),
                "{pointer} in {page}"
            );
            let told = value(&gauges, &format!("manxdb_curp_{metric}"));
            assert_eq!(told, Some(f64::from(expected)), "{metric} in {gauges:?}");
        }
        assert_eq!(
            page["nodes"][1]["applied"],
            Value::Null,
            "of an earlier time"
        );
        let states = page["nodes"].as_array().unwrap().iter();
        let states: Vec<_> = states.map(|node| node["state"].as_str().unwrap()).collect();
        assert_eq!(states, ["coordinates", "master", "backup", "witness"]);
        assert_eq!(page["durability"], "fsync");
        assert_eq!(
            (&page["lacking"], value(&gauges, "manxdb_curp_lacking")),
            (&json!([]), Some(0.0))
        );
    }

    #[test]
    fn what_does_not_answer_is_lacking_and_what_is_not_known_is_not_told() {
        let seen = cluster(vec![
            coordinator(),
            None,
            None,
            says(3, &[("state", "records")]),
            None,
        ]);
        let (page, gauges) = (seen.page(), seen.gauges());
        let lacking = page["lacking"].as_array().unwrap();
        assert_eq!(lacking.len(), 3, "{page}");
        let first = lacking[0].as_str().unwrap();
        assert!(
            first.starts_with("unavailable: there is no master"),
            "{first}"
        );
        assert_eq!(page["nodes"][1]["state"], Value::Null);
        assert_eq!(page["not_synced"], Value::Null);
        let gone = "manxdb_curp_node_up{node=\"1\",role=\"server\",state=\"does not answer\"}";
        assert_eq!(value(&gauges, gone), Some(0.0), "{gauges:?}");
        assert_eq!(value(&gauges, "manxdb_curp_not_synced_commands"), None);
        let names = gauges.iter().map(|gauge| gauge.name.split('{').next());
        let mut families: Vec<_> = names.collect();
        families.dedup();
        let count = families.len();
        families.sort_unstable();
        families.dedup();
        assert_eq!(families.len(), count, "metrics of one name stand together");
    }
}
