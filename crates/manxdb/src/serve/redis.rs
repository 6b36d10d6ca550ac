//! The Redis server of this process.

use std::net::TcpListener;
use std::sync::Arc;

use manxdb_gateway::admin::{Gauge, count};
use manxdb_gateway::redis::{Listening, RedisCounters, RedisServer, RedisStore};
use manxdb_redis::server::{Settings as ServerSettings, SlowCommand};
use manxdb_storage::MemoryEngine;
use manxdb_txn::{LocalOptions, LocalPath};
use rustls::ServerConfig;
use serde_json::{Value, json};

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
    tls: Arc<ServerConfig>,
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
    let listening = Listening {
        listener,
        tls: Some(tls),
        connections_max: settings.max_connections,
        users: redis.acl_file.clone(),
    };
    RedisServer::start(listening, kept_in, server)
        .map_err(|error| Fault::io("cannot start the Redis listener", error))
}

/// Its numbers for metrics: those of INFO, and who waits for what.
pub fn gauges(counters: &RedisCounters) -> Vec<Gauge> {
    let gauge = |name: &str, value: u64| Gauge {
        name: format!("manxdb_redis_{name}"),
        value: count(value),
    };
    let numbers = counters.numbers();
    numbers
        .map(|(number, value)| gauge(number.name, value))
        .collect()
}

/// What the admin page `/redis` shows.
pub fn shown(counters: &RedisCounters) -> Value {
    let mut sections = serde_json::Map::new();
    for (number, value) in counters.numbers() {
        let section = sections.entry(number.section).or_insert_with(|| json!({}));
        section[number.name] = json!(value);
    }
    let slow: Vec<Value> = counters.slow().iter().map(slow_command).collect();
    json!({ "numbers": sections, "waits": counters.waits(), "slow": slow })
}

fn slow_command(slow: &SlowCommand) -> Value {
    let millis = i64::try_from(slow.at_millis).unwrap_or(i64::MAX);
    let at = jiff::Timestamp::from_millisecond(millis);
    let words = slow.words.iter().map(|word| String::from_utf8_lossy(word));
    json!({
        "id": slow.id,
        "started_at": at.map(|at| at.to_string()).unwrap_or_default(),
        "total_micros": slow.split.total(),
        "command": words.collect::<Vec<_>>().join(" "),
        "address": slow.address,
        "client": String::from_utf8_lossy(&slow.client),
        "split_micros": {
            "load": slow.split.load,
            "run": slow.split.run,
            "append": slow.split.append,
            "sync": slow.split.sync,
        },
    })
}
