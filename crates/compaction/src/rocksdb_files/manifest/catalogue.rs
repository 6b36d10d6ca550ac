//! The catalogue of a database that has a few sorted files and nothing else, so that RocksDB reads
//! them.

use super::log;

/// Fields of a record, and their ends ([`super::edit`] reads the same).
const COMPARATOR: u64 = 1;
const LOG_NUMBER: u64 = 2;
const NEXT_FILE: u64 = 3;
const LAST_SEQUENCE: u64 = 4;
const NEW_FILE_4: u64 = 103;
/// Fields of a new file.
const END: u64 = 1;
const UNIQUE_ID: u64 = 12;
const EPOCH: u64 = 13;

/// A file as a catalogue names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CatalogueEntry {
    /// The number that is its name.
    pub number: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its smallest and largest key, as RocksDB keeps them.
    pub keys: (Vec<u8>, Vec<u8>),
    /// RocksDB's identity of the file, made of what its properties say.
    pub unique_id: [u64; 2],
}

/// The manifest of a database of these files. All are on level 0, which asks for no order of keys
/// among files: so the order by bytes serves for databases of every order.
#[must_use]
pub(crate) fn manifest_of(entries: &[CatalogueEntry]) -> Vec<u8> {
    let mut bytes = Vec::new();
    log::append(&mut bytes, &header(entries));
    for (place, entry) in entries.iter().enumerate() {
        log::append(&mut bytes, &new_file(entry, place as u64 + 1));
    }
    bytes
}

fn header(entries: &[CatalogueEntry]) -> Vec<u8> {
    let largest = entries.iter().map(|entry| entry.number).max().unwrap_or(0);
    let mut record = Vec::new();
    number(&mut record, COMPARATOR);
    sized(&mut record, b"leveldb.BytewiseComparator");
    for (field, value) in [
        (LOG_NUMBER, 0),
        (NEXT_FILE, largest.saturating_add(2)),
        (LAST_SEQUENCE, entries.len() as u64),
    ] {
        number(&mut record, field);
        number(&mut record, value);
    }
    record
}

/// `sequence` tells files of level 0 apart: later ones are newer.
fn new_file(entry: &CatalogueEntry, sequence: u64) -> Vec<u8> {
    let mut record = Vec::new();
    for value in [NEW_FILE_4, 0, entry.number, entry.bytes] {
        number(&mut record, value);
    }
    sized(&mut record, &entry.keys.0);
    sized(&mut record, &entry.keys.1);
    number(&mut record, sequence);
    number(&mut record, sequence);
    let mut epoch = Vec::new();
    number(&mut epoch, sequence);
    number(&mut record, EPOCH);
    sized(&mut record, &epoch);
    number(&mut record, UNIQUE_ID);
    let id = entry.unique_id.map(u64::to_le_bytes);
    sized(&mut record, &id.concat());
    number(&mut record, END);
    record
}

/// Seven bits a byte, lowest first; the highest bit says that more follow.
fn number(record: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        record.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    record.push(value.to_le_bytes()[0]);
}

fn sized(record: &mut Vec<u8>, bytes: &[u8]) {
    number(record, bytes.len() as u64);
    record.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rocksdb_files::manifest::Manifest;

    #[test]
    fn what_is_written_is_read_again_also_over_borders_of_blocks() {
        let entry = |number: u64| CatalogueEntry {
            number,
            bytes: number << 20,
            keys: (vec![1; 9_000 + 8], vec![2; 70_000 + 8]),
            unique_id: [u64::MAX, number],
        };
        let entries: Vec<CatalogueEntry> = (1..9).map(entry).collect();
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            std::fs::write(directory.path().join(name), bytes).unwrap();
        };
        write("MANIFEST-000001", &manifest_of(&entries));
        write("CURRENT", b"MANIFEST-000001\n");
        let mut manifest = Manifest::new(directory.path());
        manifest.refresh().unwrap();
        let family = manifest.families().next().unwrap();
        let numbers: Vec<u64> = family.files.keys().copied().collect();
        assert_eq!(numbers, (1..9).collect::<Vec<_>>());
        assert!(
            family.files.values().all(|file| file.level == 0
                && (file.smallest.len(), file.largest.len()) == (9_000, 70_000))
        );
    }
}
