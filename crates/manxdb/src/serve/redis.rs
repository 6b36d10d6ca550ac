//! The Redis server of this process.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use manxdb_gateway::admin::Gauge;
use manxdb_gateway::redis::{RedisCounters, RedisServer, RedisStore};
use manxdb_redis::server::Settings as ServerSettings;
use manxdb_storage::MemoryEngine;
use manxdb_txn::{LocalOptions, LocalPath};

use super::store::Store;
use crate::cli::DurabilityChoice;
use crate::config::{RedisSettings, Settings};
use crate::fault::Fault;
use crate::process::random_secret;

/// Starts it.
///
/// # Errors
/// What is in the way.
pub fn start(
    listener: TcpListener,
    redis: &RedisSettings,
    settings: &Settings,
    store: &Store,
) -> Result<RedisServer, Fault> {
    let kept_in = match (redis.is_stored, store) {
        (true, Store::Local(engine, path)) => RedisStore {
            engine: engine.clone(),
            path: Arc::clone(path),
        },
        (true, Store::Memory(_)) => {
            return Err(Fault::Config(
                "redis_engine is \"rocksdb\", but commit_path is \"rsi\": Redis keys are on one \
                 node only"
                    .to_owned(),
            ));
        }
        (true, Store::Replicated(_)) => {
            return Err(Fault::Config(
                "redis_engine is \"rocksdb\", but commit_path is \"curp\": Redis keys are on one \
                 node only"
                    .to_owned(),
            ));
        }
        (false, _) => {
            let engine = Arc::new(MemoryEngine::new());
            let path = LocalPath::open(engine.clone(), LocalOptions::default())
                .map_err(manxdb_sql::error::SqlError::from)?;
            RedisStore {
                engine,
                path: Arc::new(path),
            }
        }
    };
    let run_id: String = random_secret()?.chars().take(40).collect();
    let server = ServerSettings {
        memory_bytes: redis.memory_bytes,
        password: redis.password.clone(),
        is_synced: redis.is_stored && settings.durability == DurabilityChoice::Sync,
        port: redis.listen.port(),
        run_id: format!("{run_id:0<40}"),
        ..ServerSettings::default()
    };
    RedisServer::start(listener, kept_in, server, settings.max_connections)
        .map_err(|error| Fault::io("cannot start the Redis listener", error))
}

/// Its numbers for metrics.
pub fn gauges(counters: &RedisCounters) -> Vec<Gauge> {
    let numbers = [
        ("commands", &counters.commands),
        ("connections", &counters.connections),
        ("keys", &counters.keys),
        ("memory_bytes", &counters.memory_bytes),
        ("values_loaded", &counters.loads),
        ("values_evicted", &counters.evictions),
        ("log_appends", &counters.rounds),
    ];
    #[allow(clippy::cast_precision_loss)] // counters beyond 2^53 are not met
    let gauge = |(name, counter): (&str, &std::sync::atomic::AtomicU64)| Gauge {
        name: format!("manxdb_redis_{name}"),
        value: counter.load(Ordering::Relaxed) as f64,
    };
    numbers.into_iter().map(gauge).collect()
}
