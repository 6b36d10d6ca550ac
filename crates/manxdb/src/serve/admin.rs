//! What the admin listener shows of this server.

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use manxdb_gateway::admin::{AdminSources, Gauge, HealthReport, count, histogram, seconds};
use manxdb_gateway::mysql::check_password;
use manxdb_gateway::redis::RedisCounters;
use manxdb_gateway::tls;
use manxdb_sql::session::{
    Instance, KindLatency, LATENCY_BOUNDS_MICROS, MetricsSnapshot, STATEMENT_KINDS, SlowStatement,
};
use serde_json::{Value, json};

use super::health::StoreHealth;
use super::owners::OwnersHere;
use super::pass_on::{FindMaster, Whereabouts};
use super::store::Store;
use crate::cluster::replication::Replication;
use crate::config::Settings;
use crate::fault::Fault;
use crate::process::{random_secret, version};

/// File in the data directory that holds the secret of the admin listener.
pub const TOKEN_FILE: &str = "admin-token";
/// File in the data directory with the certificate that the admin listener shows; none where it speaks
/// plain HTTP. `manxdb backup` takes no other one for the server.
pub const CERTIFICATE_FILE: &str = "admin-cert.pem";

/// What the admin listener shows of a server with rows. The pool of compactions is the caller's to add.
///
/// # Errors
/// The token cannot be written.
pub fn sources(
    data: &Path,
    store: Arc<Store>,
    instance: Arc<Instance>,
    health: Arc<StoreHealth>,
    redis: Option<Arc<RedisCounters>>,
    replication: Option<Arc<Replication>>,
    stopping: Arc<AtomicBool>,
) -> Result<AdminSources, Fault> {
    let token = random_secret()?;
    write_token(data, &token)?;
    let replication_page = replication.clone();
    let (redis_page, redis_health) = (redis.clone(), redis.clone());
    let health_stats = Arc::clone(&health);
    let store_health = Arc::clone(&store);
    let accounts = Arc::clone(&instance);
    let (store_stats, instance_stats) = (Arc::clone(&store), Arc::clone(&instance));
    let owners = Arc::clone(&instance);
    let view_instance = Arc::clone(&instance);
    Ok(AdminSources {
        health: Box::new(move || {
            if stopping.load(Ordering::SeqCst) {
                HealthReport::unavailable("shutting down", "")
            } else {
                let redis = redis_health.as_ref().map(|redis| redis_writes(redis));
                let report = store_health.health(&health);
                report.or_worse(redis.unwrap_or_else(HealthReport::ok))
            }
        }),
        gauges: Box::new(move || {
            let mut gauges = gauges(&store_stats, &instance_stats);
            gauges.push(Gauge {
                name: "manxdb_statements_refused".to_owned(),
                value: f64::from(u8::from(health_stats.read_refusal().is_some())),
            });
            gauges.push(Gauge {
                name: "manxdb_writes_refused".to_owned(),
                value: f64::from(u8::from(health_stats.write_refusal().is_some())),
            });
            if let Some(counters) = &redis {
                gauges.extend(super::redis::gauges(counters));
            }
            if let Some(replication) = &replication {
                gauges.extend(replication.gauges());
            }
            gauges
        }),
        slow: Box::new(move || {
            let newest_first = instance.slow_statements().into_iter().rev();
            newest_first.map(|slow| slow_statement(&slow)).collect()
        }),
        redis: redis_page.map(|counters| -> Box<dyn Fn() -> Value + Send + Sync> {
            Box::new(move || super::redis::shown(&counters))
        }),
        log_in: Some(Box::new(move |name, password, host| {
            let account = check_password(&accounts, name, host, password);
            account.is_some_and(|account| account.sees_others)
        })),
        ownership: Some(Box::new(OwnersHere { instance: owners })),
        views: Some(Box::new(move || views(&view_instance))),
        compaction: None,
        replication: replication_page.map(shown),
        geo: None,
        backup: Box::new(move |directory, label| store.back_up(directory, label)),
        token,
        version: version(),
    })
}

/// What a server that is not the master of its cluster shows: the cluster, and whether statements come to the
/// master through it. No rows are here, so that nobody has to log in.
///
/// # Errors
/// The system has no randomness to give.
pub fn follower_sources(
    replication: Arc<Replication>,
    find: FindMaster,
) -> Result<AdminSources, Fault> {
    let seen = Arc::clone(&replication);
    let health = move || match find() {
        Whereabouts::At(_) => HealthReport::ok(),
        Whereabouts::Here => {
            HealthReport::unavailable("this server is to be master, and loads its rows", "")
        }
        Whereabouts::Unknown => HealthReport::unavailable(
            "there is no master that this server knows",
            "manxdb cluster status says what the cluster lacks",
        ),
    };
    Ok(AdminSources {
        replication: Some(shown(replication)),
        ..AdminSources::new(
            health,
            move || seen.gauges(),
            "this server is not the master, and has no rows",
            random_secret()?,
            version(),
        )
    })
}

/// A cluster as a page.
fn shown(replication: Arc<Replication>) -> Box<dyn Fn() -> Value + Send + Sync> {
    Box::new(move || replication.page())
}

/// Whether the writes of Redis clients are taken.
fn redis_writes(redis: &RedisCounters) -> HealthReport {
    redis.write_refusal().map_or_else(HealthReport::ok, |why| {
        let why = format!("only to read for Redis clients: {why}");
        HealthReport::degraded(why, "")
    })
}

/// Says in the data directory what certificate the admin listener shows, if it does.
///
/// # Errors
/// The certificate cannot be read, or the file not be written.
pub fn tell_certificate(settings: &Settings) -> Result<(), Fault> {
    let told = settings.data.join(CERTIFICATE_FILE);
    let done = if settings.admin_tls {
        let own = settings.data.join(tls::CERTIFICATE_FILE);
        let given = settings.tls.as_ref().map(|(certificate, _)| certificate);
        std::fs::copy(given.unwrap_or(&own), &told).map(|_| ())
    } else {
        match std::fs::remove_file(&told) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
            done => done,
        }
    };
    done.map_err(|error| Fault::io(format!("cannot write {}", told.display()), error))
}

/// A new secret each start, readable by the server's own user only.
fn write_token(data: &Path, token: &str) -> Result<(), Fault> {
    use std::os::unix::fs::OpenOptionsExt as _;
    let path = data.join(TOKEN_FILE);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options
        .open(&path)
        .and_then(|mut file| file.write_all(token.as_bytes()))
        .map_err(|error| Fault::io(format!("cannot write {}", path.display()), error))
}

fn gauges(store: &Store, instance: &Instance) -> Vec<Gauge> {
    let mut gauges = store.gauges();
    let mut add = |name: &str, value: f64| {
        gauges.push(Gauge {
            name: name.to_owned(),
            value,
        });
    };
    let seen = instance.metrics();
    for (name, value) in [
        ("manxdb_sql_sessions", seen.connections),
        ("manxdb_sql_sessions_opened_total", seen.connections_total),
        ("manxdb_sql_commits_total", seen.commits),
        ("manxdb_sql_rollbacks_total", seen.rollbacks),
        ("manxdb_sql_conflicts_total", seen.conflicts),
        ("manxdb_sql_retries_total", seen.retries),
        ("manxdb_sql_plan_cache_hits_total", seen.plan_cache_hits),
        ("manxdb_sql_plan_cache_misses_total", seen.plan_cache_misses),
        ("manxdb_sql_slow_statements_total", seen.slow_statements),
        ("manxdb_sql_rows_sent_total", seen.rows_sent),
        (
            "manxdb_sql_statements_total",
            seen.kinds.iter().map(KindLatency::count).sum(),
        ),
        ("manxdb_sql_errors_total", seen.errors.values().sum()),
    ] {
        add(name, count(value));
    }
    for (part, micros) in seen.time.parts() {
        add(
            &format!("manxdb_sql_time_seconds_total{{part=\"{part}\"}}"),
            seconds(micros.unsigned_abs()),
        );
    }
    gauges.extend(statement_histograms(&seen));
    gauges
}

/// Durations of statements by kind, as one histogram for each kind that was asked.
fn statement_histograms(seen: &MetricsSnapshot) -> Vec<Gauge> {
    const NAME: &str = "manxdb_sql_statement_seconds";
    let mut samples = Vec::new();
    let kinds = seen.kinds.iter().zip(STATEMENT_KINDS);
    for (latency, (_, kind, _)) in kinds.filter(|(latency, _)| latency.count() > 0) {
        let mut below = 0;
        let bounds = LATENCY_BOUNDS_MICROS.map(i64::unsigned_abs).into_iter();
        let cumulative = bounds.zip(latency.buckets).map(|(bound, counted)| {
            below += counted;
            (bound, below)
        });
        for (end, bound, value) in histogram(cumulative, latency.count(), latency.sum_micros) {
            let bound = bound.map_or_else(String::new, |bound| format!(",le=\"{bound}\""));
            let name = format!("{NAME}_{end}{{kind=\"{kind}\"{bound}}}");
            samples.push(Gauge { name, value });
        }
    }
    samples
}

/// Materialized views, and the bytes that they may take together.
fn views(instance: &Instance) -> Value {
    let (views, memory) = instance.views_overview();
    let views = views.iter().map(|view| {
        json!({
            "name": format!("{}.{}", view.database, view.name),
            "state": view.state,
            "keys": view.keys,
            "bytes": view.bytes,
            "hits": view.hits,
            "misses": view.misses,
            "evictions": view.evictions,
            "delta_rows": view.delta_rows,
            "fill_rows": view.fill_rows,
        })
    });
    json!({ "views_memory": memory, "views": views.collect::<Value>() })
}

fn slow_statement(slow: &SlowStatement) -> Value {
    let started = jiff::Timestamp::from_microsecond(slow.started_at_micros);
    json!({
        "started_at": started.map(|at| at.to_string()).unwrap_or_default(),
        "total_micros": slow.total_micros,
        "statement": slow.text,
        "database": slow.database,
        "account": slow.identity,
        "connection": slow.connection,
        "rows": slow.rows,
        "error": slow.error,
        "split_micros": Value::from_iter(slow.split.parts()),
    })
}
