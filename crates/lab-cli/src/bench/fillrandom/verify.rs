//! Whether what is there is what was put.

use rocksdb::{DB, ReadOptions};

use super::database::failed;
use super::load::{Load, key_bytes};
use crate::fault::Fault;

/// What a database holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contents {
    /// Entries.
    pub entries: u64,
    /// CRC-32 of all keys and values, in the order of keys.
    pub hash: u32,
}

/// Reads every entry and compares it with the last put of its key.
///
/// # Errors
/// The first entry that is not as it was put, is missing or was never put; RocksDB's.
pub fn compare(db: &DB, load: Load) -> Result<Contents, Fault> {
    let mut options = ReadOptions::default();
    options.fill_cache(false);
    let mut found = db.raw_iterator_opt(options);
    found.seek_to_first();
    let last = load.last_puts();
    let (mut hasher, mut entries, mut value) = (crc32fast::Hasher::new(), 0, Vec::new());
    for (key, thread, put) in last.entries() {
        load.value(thread, put, &mut value);
        let expected = key_bytes(key);
        if found.item() != Some((&expected[..], &value[..])) {
            found.status().map_err(|error| failed(db.path(), &error))?;
            return Err(wrong(db, found.key(), &expected));
        }
        hasher.update(&expected);
        hasher.update(&value);
        entries += 1;
        found.next();
    }
    found.status().map_err(|error| failed(db.path(), &error))?;
    match found.key() {
        None => Ok(Contents {
            entries,
            hash: hasher.finalize(),
        }),
        Some(key) => Err(Fault::Other(format!(
            "{}: there is a key that was never put: {key:02x?}",
            db.path().display()
        ))),
    }
}

fn wrong(db: &DB, found: Option<&[u8]>, expected: &[u8]) -> Fault {
    let path = db.path().display();
    let what = match found {
        Some(found) if found == expected => "has a value that is not the last one put".to_owned(),
        Some(found) => format!("is not there, {found:02x?} stands in its place"),
        None => "is not there, nor any behind it".to_owned(),
    };
    Fault::Other(format!("{path}: key {expected:02x?} {what}"))
}

#[cfg(test)]
mod tests {
    use rocksdb::WriteOptions;

    use super::*;

    const LOAD: Load = Load {
        threads: 2,
        puts: 300,
        value_bytes: 10,
        seed: 3,
    };

    fn filled(directory: &std::path::Path) -> DB {
        let db = DB::open_default(directory).unwrap();
        super::super::fill(&db, LOAD, true).unwrap();
        db
    }

    /// What a database says after something was done to it.
    fn said(change: impl Fn(&DB, [u8; 16])) -> String {
        let directory = tempfile::tempdir().unwrap();
        let db = filled(directory.path());
        let (key, _, _) = LOAD.last_puts().entries().nth(100).unwrap();
        change(&db, key_bytes(key));
        compare(&db, LOAD).unwrap_err().to_string()
    }

    #[test]
    fn equal_loads_leave_equal_contents() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let of = |directory: &tempfile::TempDir| compare(&filled(directory.path()), LOAD).unwrap();
        let contents = of(&one);
        assert_eq!(contents, of(&two));
        assert!((350..420).contains(&contents.entries), "{contents:?}");
    }

    #[test]
    fn what_is_lost_older_or_new_is_found() {
        let gone = said(|db, key| db.delete_opt(key, &WriteOptions::default()).unwrap());
        assert!(gone.contains("is not there"), "{gone}");
        let older = said(|db, key| db.put(key, "older").unwrap());
        assert!(older.contains("not the last one put"), "{older}");
        let new = said(|db, _| db.put([0xff; 16], "new").unwrap());
        assert!(new.contains("never put"), "{new}");
    }
}
