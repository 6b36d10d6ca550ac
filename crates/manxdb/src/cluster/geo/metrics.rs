//! What a node has measured, for Prometheus. The list of all metrics, with what each means, is in the tests.

use manxdb_gateway::admin::{Gauge, count, histogram, seconds};

use super::latencies::{BOUNDS_MICROS, Latencies};
use super::measured::{Class, OfClass, OfLeader, OfManager, OfPair, OfReplica, Waits};
use super::{GeoCluster, NodeSeen, Seen};

impl GeoCluster {
    /// What this node has measured, and which others answer it.
    #[must_use]
    pub fn gauges(&self) -> Vec<Gauge> {
        let seen = self.seen();
        let own = seen.nodes.get(self.own as usize);
        let mut gauges = Gauges::default();
        if let Some(node) = own {
            gauges.region = node.node.region.to_string();
            gauges.add_node(node);
        }
        gauges.add_cluster(&seen);
        gauges.all
    }
}

/// Times of a class by reason.
type WaitsOf = fn(&OfClass) -> &Waits;
/// How many calls of a class.
type NumberOf = fn(&OfClass) -> u64;
/// A time of a pair of regions in microseconds, which may be negative; none: it is not known.
type MicrosOf = fn(&OfPair) -> Option<i64>;

/// Gauges so far; those of one name stand together.
#[derive(Default)]
struct Gauges {
    all: Vec<Gauge>,
    /// That of the node.
    region: String,
}

impl Gauges {
    fn add(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels = labels.iter().map(|(label, value)| {
            let value = value
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('\n', "\\n");
            format!("{label}=\"{value}\"")
        });
        let labels: Vec<_> = labels.collect();
        let labels = if labels.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", labels.join(","))
        };
        self.all.push(Gauge {
            name: format!("manxdb_{name}{labels}"),
            value,
        });
    }

    /// Of the node: with its region as the last label.
    fn add_own(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let region = self.region.clone();
        let labels: Vec<_> = labels
            .iter()
            .copied()
            .chain([("region", region.as_str())])
            .collect();
        self.add(&format!("dast_{name}"), &labels, value);
    }

    fn add_node(&mut self, node: &NodeSeen) {
        if let Some(replica) = &node.measured.replica {
            self.add_replica(node, replica);
        }
        if let Some(manager) = &node.measured.manager {
            self.add_manager(node, manager);
        }
        let records = node
            .status
            .as_ref()
            .and_then(|status| super::note(status, "records"));
        if let Some(records) = records.and_then(|records| records.parse().ok()) {
            self.add_own("records", &[], records);
        }
        for (kind, sent) in node.counters("sent ") {
            self.add("net_messages_sent_total", &[("kind", kind)], count(sent));
        }
        for (counter, name) in [
            ("received", "net_messages_received_total"),
            ("bytes sent", "net_bytes_sent_total"),
            ("reconnects", "net_reconnects_total"),
        ] {
            let found = node.counters(counter).find(|(rest, _)| rest.is_empty());
            self.add(name, &[], count(found.map_or(0, |(_, counted)| counted)));
        }
    }

    fn add_replica(&mut self, node: &NodeSeen, replica: &OfReplica) {
        let classes = || Class::ALL.map(|class| (class.name(), replica.of(class)));
        for (class, of) in classes() {
            self.add_histogram(class, &of.answered);
        }
        for (class, of) in classes() {
            let answered = count(of.minute.count());
            self.add_own("last_minute_transactions", &[("class", class)], answered);
        }
        for (class, of) in classes() {
            self.add_quantiles(class, &of.minute);
        }
        let waits: [(&str, WaitsOf); 2] = [
            ("wait_seconds_total", |of| &of.waits),
            ("last_minute_wait_seconds", |of| &of.minute_waits),
        ];
        for (name, waits) in waits {
            for (class, of) in classes() {
                for (reason, micros) in waits(of) {
                    self.add_own(
                        name,
                        &[("class", class), ("reason", reason)],
                        seconds(*micros),
                    );
                }
            }
        }
        let numbers: [(&str, NumberOf); 2] = [
            ("open_transactions", |of| of.open),
            ("given_up_total", |of| of.given_up),
        ];
        for (name, number) in numbers {
            for (class, of) in classes() {
                self.add_own(name, &[("class", class)], count(number(of)));
            }
        }
        let takes_part = node.state() == Some(super::dast::TAKES_PART);
        self.add_own("takes_part", &[], count(u64::from(takes_part)));
        self.add_own(
            "clock_stretch_seconds",
            &[],
            seconds(replica.stretch_micros),
        );
        let most = seconds(replica.stretch_max_micros);
        self.add_own("last_minute_clock_stretch_seconds", &[], most);
    }

    fn add_histogram(&mut self, class: &str, latencies: &Latencies) {
        let (all, sum) = (latencies.count(), latencies.sum_micros());
        let bounds = BOUNDS_MICROS.into_iter();
        let cumulative = bounds.map(|bound| (bound, latencies.up_to(bound)));
        for (end, bound, value) in histogram(cumulative, all, sum) {
            let mut labels = vec![("class", class)];
            labels.extend(bound.as_deref().map(|bound| ("le", bound)));
            self.add_own(&format!("transaction_seconds_{end}"), &labels, value);
        }
    }

    /// None without any.
    fn add_quantiles(&mut self, class: &str, latencies: &Latencies) {
        for (quantile, percent) in [("0.5", 50), ("0.99", 99), ("1", 100)] {
            if let Some(micros) = latencies.percentile_micros(percent) {
                let labels = [("class", class), ("quantile", quantile)];
                self.add_own("last_minute_seconds", &labels, seconds(micros));
            }
        }
    }

    fn add_manager(&mut self, node: &NodeSeen, manager: &OfManager) {
        let class = Class::CrossRegion.name();
        for (name, micros) in [
            ("wait_seconds_total", manager.ledger_micros),
            ("last_minute_wait_seconds", manager.minute_ledger_micros),
        ] {
            let labels = [("class", class), ("reason", manxdb_dast::waits::LEDGER)];
            self.add_own(name, &labels, seconds(micros));
        }
        let leads = node.state() == Some(super::dast::LEADS);
        self.add_own("leads", &[], count(u64::from(leads)));
        self.add_own("view", &[], count(manager.view));
        if let Some(leading) = &manager.leading {
            self.add_leader(leading);
        }
    }

    fn add_leader(&mut self, leading: &OfLeader) {
        self.add_own("epoch", &[], count(leading.epoch));
        for (standing, members) in [
            ("live", leading.live.len()),
            ("closing", leading.closing.len()),
            ("joining", usize::from(leading.joining.is_some())),
        ] {
            let members = count(members as u64);
            self.add_own("members", &[("standing", standing)], members);
        }
        if let Some(bound) = leading.bound_micros {
            self.add_own("bound_seconds", &[], signed_seconds(bound));
        }
        for pair in &leading.pairs {
            let other = pair.region.to_string();
            let is_fenced = count(u64::from(leading.fenced == Some(pair.region)));
            self.add_own("fenced", &[("other", other.as_str())], is_fenced);
        }
        let numbers: [(&str, MicrosOf); 5] = [
            ("lead_seconds", |pair| Some(pair.lead)),
            ("mark_told_seconds", |pair| pair.told),
            ("mark_heard_seconds", |pair| pair.heard),
            ("stream_delay_seconds", |pair| pair.delay),
            ("silent_seconds", |pair| i64::try_from(pair.silent).ok()),
        ];
        for (name, micros) in numbers {
            for pair in &leading.pairs {
                let other = pair.region.to_string();
                if let Some(micros) = micros(pair) {
                    self.add_own(name, &[("other", other.as_str())], signed_seconds(micros));
                }
            }
        }
    }

    fn add_cluster(&mut self, seen: &Seen) {
        for node in &seen.nodes {
            let (number_of, region) = (node.node.number.to_string(), node.node.region.to_string());
            let labels = [
                ("node", number_of.as_str()),
                ("role", node.node.role.as_str()),
                ("region", region.as_str()),
            ];
            self.add(
                "dast_node_up",
                &labels,
                count(u64::from(node.status.is_some())),
            );
        }
        self.add("dast_lacking", &[], count(seen.lacking.len() as u64));
    }
}

/// As [`seconds`], of a time that may be negative.
#[allow(clippy::cast_precision_loss)]
pub(super) fn signed_seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}
