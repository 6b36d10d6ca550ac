//! The audit beside the vault: the same records as in the store, in two places that no backup has. A store that
//! comes back from a backup is behind it, and learns from it who was forgotten since.
//!
//! ```text
//! line 1   manxdb-audit 1 ‖ key id ‖ sealed seed    digits, parted by a space
//! line n   a record as JSON
//! ```
//! It is appended to only, place after place. What a crash leaves of a line is overwritten.

use std::io;
use std::sync::Arc;

use manxdb_ownership::proof::{AuditRecord, GENESIS};
use manxdb_vault::{Disk, Place};

const HEAD: &str = "manxdb-audit 1 ";
/// Bytes of one read.
const CHUNK: usize = 1 << 20;

/// The audit in two places, and where it ends.
pub(super) struct Ledger {
    disk: Arc<dyn Disk>,
    /// Bytes that count.
    length: u64,
    /// Number of the last record.
    pub(super) seq: u64,
    /// Its hash.
    pub(super) hash: String,
    /// What line 1 says behind its name.
    pub(super) head: Option<String>,
}

/// What is whole in one place.
struct Whole {
    bytes: usize,
    head: Option<String>,
    records: Vec<AuditRecord>,
}

impl Ledger {
    /// Reads it: the longer of the two places counts, as far as its records follow each other, and the other
    /// is filled from it.
    ///
    /// # Errors
    /// The disk's.
    pub(super) fn open(disk: Arc<dyn Disk>) -> io::Result<(Self, Vec<AuditRecord>)> {
        let mut best: Option<(Whole, Vec<u8>)> = None;
        for place in Place::BOTH {
            let bytes = read(disk.as_ref(), place)?;
            let whole = whole(&bytes);
            if best
                .as_ref()
                .is_none_or(|(other, _)| other.bytes < whole.bytes)
            {
                best = Some((whole, bytes));
            }
        }
        let Some((whole, bytes)) = best else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let bytes = bytes.get(..whole.bytes).unwrap_or_default();
        for place in Place::BOTH {
            let there = read(disk.as_ref(), place)?;
            if !there.starts_with(bytes) {
                disk.write(place, 0, bytes)?;
                disk.sync(place)?;
            }
        }
        let last = whole.records.last();
        let ledger = Self {
            length: bytes.len() as u64,
            seq: last.map_or(0, |record| record.seq),
            hash: last.map_or_else(|| GENESIS.to_string(), |record| record.hash.clone()),
            head: whole.head,
            disk,
        };
        Ok((ledger, whole.records))
    }

    /// Writes line 1 of a new one.
    pub(super) fn begin(&mut self, head: String) -> io::Result<()> {
        assert!(self.head.is_none(), "a ledger is begun once");
        self.write(&format!("{HEAD}{head}\n"))?;
        self.head = Some(head);
        Ok(())
    }

    /// Writes records behind the last. On disk in both places then.
    pub(super) fn append(&mut self, records: &[AuditRecord]) -> io::Result<()> {
        let mut lines = String::new();
        for record in records {
            lines.push_str(&serde_json::to_string(record).map_err(io::Error::other)?);
            lines.push('\n');
        }
        let Some(last) = records.last() else {
            return Ok(());
        };
        assert!(last.seq > self.seq, "records are written once");
        self.write(&lines)?;
        (self.seq, self.hash) = (last.seq, last.hash.clone());
        Ok(())
    }

    fn write(&mut self, text: &str) -> io::Result<()> {
        for place in Place::BOTH {
            self.disk.write(place, self.length, text.as_bytes())?;
            self.disk.sync(place)?;
        }
        self.length += text.len() as u64;
        Ok(())
    }
}

fn read(disk: &dyn Disk, place: Place) -> io::Result<Vec<u8>> {
    let length = usize::try_from(disk.length(place)?).map_err(io::Error::other)?;
    let mut bytes = vec![0; length];
    let mut done = 0;
    for chunk in bytes.chunks_mut(CHUNK) {
        let count = disk.read(place, done as u64, chunk)?;
        if count < chunk.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        done += count;
    }
    Ok(bytes)
}

/// The lines that are whole and follow each other.
fn whole(bytes: &[u8]) -> Whole {
    let mut whole = Whole {
        bytes: 0,
        head: None,
        records: Vec::new(),
    };
    let mut hash = GENESIS.to_string();
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let Some(text) = line
            .strip_suffix(b"\n")
            .and_then(|line| std::str::from_utf8(line).ok())
        else {
            break;
        };
        if whole.head.is_none() {
            let Some(head) = text.strip_prefix(HEAD) else {
                break;
            };
            whole.head = Some(head.to_string());
        } else {
            let record: Option<AuditRecord> = serde_json::from_str(text).ok();
            let next = whole.records.len() as u64 + 1;
            let follows = |record: &AuditRecord| record.seq == next && record.follows(&hash);
            let Some(record) = record.filter(|record| follows(record)) else {
                break;
            };
            hash.clone_from(&record.hash);
            whole.records.push(record);
        }
        whole.bytes += line.len();
    }
    whole
}
