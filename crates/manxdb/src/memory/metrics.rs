//! What the admin door shows of a memory server.

use std::sync::Arc;

use manxdb_fabric::WORD_LENGTH;
use manxdb_fabric::shm::MemoryServer;
use manxdb_gateway::admin::{AdminSources, Gauge};
use manxdb_gateway::mysql::SERVER_VERSION;
use manxdb_rack::memory::{Counted, Plan, Superblock};
use serde_json::json;

use crate::fault::Fault;
use crate::serve::random_text;

/// Connects the admin door to the memory.
///
/// # Errors
/// The system has no randomness to give.
pub fn sources(memory: Arc<MemoryServer>, superblock: &Superblock) -> Result<AdminSources, Fault> {
    let server = superblock.server;
    let plan = Plan::of(superblock.geometry);
    let plan = plan.map_err(|error| Fault::Config(error.to_string()))?;
    Ok(AdminSources {
        ready: Box::new(|| Ok(())),
        refusal: Box::new(|| None),
        gauges: Box::new(move || gauges(&memory, server, &plan)),
        slow: Box::new(|| json!([])),
        backup: Box::new(|_, _| Err("rows in memory servers cannot be backed up".to_owned())),
        token: random_text()?,
        version: json!({
            "name": "ManxDB",
            "version": env!("CARGO_PKG_VERSION"),
            "mysql_version": SERVER_VERSION,
            "database": superblock.name,
            "memory_server": server,
        }),
    })
}

fn gauges(memory: &MemoryServer, server: u16, plan: &Plan) -> Vec<Gauge> {
    let geometry = plan.geometry();
    let word = |offset: u64| {
        let bytes = memory.read(offset, WORD_LENGTH);
        bytes
            .first_chunk()
            .map_or(0, |word| u64::from_le_bytes(*word))
    };
    let counted = Counted::of(plan, server, &word);
    let numbers = [
        ("manxdb_memory_registered_bytes", geometry.bytes),
        ("manxdb_memory_given_bytes", counted.given),
        ("manxdb_memory_clients", memory.clients().len() as u64),
        ("manxdb_memory_shut_out_total", memory.ended() as u64),
        ("manxdb_memory_logged_total", counted.logged),
    ];
    // The table of places is on some servers only.
    let tables = counted.term.map(|term| {
        [
            ("manxdb_memory_places", u64::from(geometry.places)),
            ("manxdb_memory_places_taken", counted.taken),
            ("manxdb_memory_places_over", counted.over),
            ("manxdb_memory_warden_term", term),
        ]
    });
    let gauge = |(name, number): &(&str, u64)| Gauge {
        name: (*name).to_owned(),
        #[allow(clippy::cast_precision_loss)] // counters beyond 2^53 are not met
        value: *number as f64,
    };
    numbers
        .iter()
        .chain(tables.iter().flatten())
        .map(gauge)
        .collect()
}
