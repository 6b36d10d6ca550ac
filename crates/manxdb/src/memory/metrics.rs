//! What the admin listener shows of a memory server.

use std::sync::Arc;

use manxdb_fabric::WORD_LENGTH;
use manxdb_gateway::admin::{AdminSources, Gauge, HealthReport, count};
use manxdb_rack::disk::{Directory, DiskError, FileKind};
use manxdb_rack::memory::{MemoryStats, Plan, Superblock, waits_for_rows};
use serde_json::json;

use super::Registered;
use super::archiver::{ArchiverProcess, NAMES, Numbers};
use crate::config::DiskSettings;
use crate::fault::Fault;
use crate::process::{random_secret, version};

/// Connects the admin listener to the memory.
///
/// # Errors
/// The system has no randomness to give.
pub fn sources(
    memory: Arc<dyn Registered>,
    superblock: &Superblock,
    disk: Option<(&DiskSettings, &ArchiverProcess)>,
) -> Result<AdminSources, Fault> {
    let server = superblock.server;
    let disk = disk
        .map(|(disk, kept)| Ok((Directory::open(&disk.directory)?, kept.numbers())))
        .transpose();
    let disk = disk.map_err(|error: DiskError| Fault::Other(error.to_string()))?;
    let plan = Plan::of(superblock.geometry);
    let plan = plan.map_err(|error| Fault::Config(error.to_string()))?;
    let told = disk.as_ref().map(|(_, numbers)| numbers.clone());
    let seen = Arc::clone(&memory);
    let gauges = move || {
        let mut all = gauges(memory.as_ref(), server, &plan);
        if let Some((directory, numbers)) = &disk {
            all.extend(files(directory));
            all.extend(archiver(numbers));
        }
        all
    };
    let mut version = version();
    version["database"] = json!(superblock.name);
    version["memory_server"] = json!(server);
    Ok(AdminSources::new(
        move || health(seen.as_ref(), told.as_ref()),
        gauges,
        "rows in memory servers cannot be backed up",
        random_secret()?,
        version,
    ))
}

/// How a memory server is: whether its rows are there, and what is in its log archiver's way.
fn health(memory: &dyn Registered, archiver: Option<&Numbers>) -> HealthReport {
    let word = |offset: u64| {
        let bytes = memory.read(offset, WORD_LENGTH);
        bytes
            .first_chunk()
            .map_or(0, |word| u64::from_le_bytes(*word))
    };
    let trouble = archiver.and_then(Numbers::trouble);
    match (waits_for_rows(&word), trouble) {
        (true, Some(trouble)) => HealthReport::unavailable(trouble, ""),
        (true, None) => HealthReport::unavailable(
            "rows are not restored from disk yet",
            "this goes on by itself when all memory servers run; what is in the way is said by the one \
             whose manxdb_memory_archiver_at_work is 1",
        ),
        (false, Some(trouble)) => HealthReport::degraded(trouble, ""),
        (false, None) => HealthReport::ok(),
    }
}

fn gauges(memory: &dyn Registered, server: u16, plan: &Plan) -> Vec<Gauge> {
    let geometry = plan.geometry();
    let word = |offset: u64| {
        let bytes = memory.read(offset, WORD_LENGTH);
        bytes
            .first_chunk()
            .map_or(0, |word| u64::from_le_bytes(*word))
    };
    let counted = MemoryStats::of(plan, server, &word);
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
            ("manxdb_memory_coordinator_term", term),
        ]
    });
    let lots = counted.chunks.map(|(given, all)| {
        [
            ("manxdb_memory_chunks", all),
            ("manxdb_memory_chunks_given", given),
        ]
    });
    let behind = counted.behind;
    let behind = behind.map(|behind| ("manxdb_memory_behind_disk_transactions", behind));
    let tables = tables.into_iter().flatten();
    let lots = lots.into_iter().flatten();
    let all = numbers.into_iter().chain(tables).chain(lots);
    all.chain(behind).map(gauge).collect()
}

/// What the log archiver of this server tells; that it is not at work, if there is none.
fn archiver(numbers: &Numbers) -> Vec<Gauge> {
    let told = numbers.get();
    let known = told.map_or(1, |_| NAMES.len());
    let all = NAMES.into_iter().zip(told.unwrap_or_default());
    all.take(known).map(gauge).collect()
}

fn gauge((name, number): (&str, u64)) -> Gauge {
    Gauge {
        name: name.to_owned(),
        value: count(number),
    }
}

/// Numbers of the directory that rows are written to, by its files; none while it cannot be read.
fn files(directory: &Directory) -> Vec<Gauge> {
    let Ok(sizes) = directory.sizes() else {
        return Vec::new();
    };
    let segments = directory
        .files(FileKind::Batches)
        .map_or(0, |files| files.len());
    let numbers = [
        ("manxdb_memory_disk_batches_bytes", sizes.batches),
        ("manxdb_memory_disk_segments", segments as u64),
        ("manxdb_memory_disk_checkpoint_bytes", sizes.checkpoints),
    ];
    let age = directory
        .files(FileKind::Checkpoint)
        .ok()
        .and_then(|files| {
            let (_, path) = files.last()?;
            let written = std::fs::metadata(path).ok()?.modified().ok()?;
            Some(written.elapsed().ok()?.as_secs_f64())
        });
    let age = age.map(|value| Gauge {
        name: "manxdb_memory_disk_checkpoint_age_seconds".to_owned(),
        value,
    });
    numbers.into_iter().map(gauge).chain(age).collect()
}
