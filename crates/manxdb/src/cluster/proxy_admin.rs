//! What the admin listener shows of a proxy.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use manxdb_curp_client::{ClientCounts, ClientMeter};
use manxdb_gateway::admin::{AdminServer, AdminSources, Gauge, HealthReport, count};

use super::file::ClusterFile;
use super::replication::{Counts, Replication};
use crate::fault::Fault;
use crate::process::{random_secret, version};

/// A proxy whose commands wait for so long, none of them answered, has no master.
const PATIENCE: Duration = Duration::from_secs(5);

/// Serves health and metrics of a proxy until the server is dropped.
///
/// # Errors
/// The address is taken, or the system has no thread or randomness to give.
pub fn serve(
    address: SocketAddr,
    file: &ClusterFile,
    meter: Arc<ClientMeter>,
) -> Result<AdminServer, Fault> {
    let listener = TcpListener::bind(address).map_err(|error| Fault::Listen {
        address,
        listener: "the admin page",
        flag: "admin-listen",
        reason: error.to_string(),
    })?;
    let watch = Mutex::new(Watch::default());
    let seen = Arc::clone(&meter);
    let counts = Counts::Proxy(Arc::clone(&meter));
    let cluster = Arc::new(Replication::new(file.clone(), counts));
    let page = Arc::clone(&cluster);
    let health = move || {
        let mut watch = watch
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        watch.look(&seen.counts(), Instant::now())
    };
    let gauges = move || {
        let mut gauges = gauges(&meter.counts());
        gauges.extend(cluster.gauges());
        gauges
    };
    let sources = AdminSources {
        replication: Some(Box::new(move || page.page())),
        ..AdminSources::new(
            health,
            gauges,
            "a proxy has no rows to be backed up",
            random_secret()?,
            version(),
        )
    };
    AdminServer::start(listener, None, sources)
        .map_err(|error| Fault::io("cannot start the admin listener", error))
}

/// Since when nothing was answered while something waited.
#[derive(Debug, Default)]
struct Watch {
    answered: u64,
    since: Option<Instant>,
}

impl Watch {
    fn look(&mut self, counts: &ClientCounts, now: Instant) -> HealthReport {
        let answered = counts.fast + counts.reads + counts.conflicts + counts.synced;
        if counts.waiting == 0 || answered != self.answered {
            self.since = None;
        }
        self.answered = answered;
        let since = match (counts.waiting, self.since) {
            (0, _) => return HealthReport::ok(),
            (_, Some(since)) => since,
            (_, None) => *self.since.insert(now),
        };
        if now.duration_since(since) < PATIENCE {
            return HealthReport::ok();
        }
        HealthReport::unavailable(
            format!("{} commands wait for a master", counts.waiting),
            "manxdb cluster status says what the cluster lacks",
        )
    }
}

fn gauges(counts: &ClientCounts) -> Vec<Gauge> {
    let named = counts.named().into_iter();
    let gauge = |(name, counted): (&'static str, u64)| {
        let name = match name {
            "waiting" => "manxdb_curp_waiting_commands".to_owned(),
            "clients" => "manxdb_curp_clients".to_owned(),
            "unknown" => "manxdb_curp_unknown_outcomes_total".to_owned(),
            "retries" => "manxdb_curp_retries_total".to_owned(),
            way => format!("manxdb_curp_commands_total{{way=\"{way}\"}}"),
        };
        let value = count(counted);
        Gauge { name, value }
    };
    named.map(gauge).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_without_answers_is_unavailable_after_a_while() {
        let start = Instant::now();
        let mut watch = Watch::default();
        let mut counts = ClientCounts {
            waiting: 1,
            ..ClientCounts::default()
        };
        let mut look = |counts: &ClientCounts, seconds| {
            let report = watch.look(counts, start + Duration::from_secs(seconds));
            report.to_string().starts_with("unavailable")
        };
        assert!(!look(&counts, 0));
        assert!(!look(&counts, 4));
        assert!(look(&counts, 6));
        counts.fast += 1;
        assert!(!look(&counts, 7), "something was answered");
        assert!(!look(&counts, 9));
        assert!(look(&counts, 13));
        counts.waiting = 0;
        assert!(!look(&counts, 30), "nothing waits");
    }

    #[test]
    fn metrics_tell_the_ways_apart() {
        let counts = ClientCounts {
            fast: 7,
            ..ClientCounts::default()
        };
        let text: Vec<_> = gauges(&counts)
            .into_iter()
            .map(|gauge| gauge.name)
            .collect();
        assert_eq!(text[0], "manxdb_curp_commands_total{way=\"fast\"}");
        assert_eq!(text.len(), counts.named().len());
    }
}
