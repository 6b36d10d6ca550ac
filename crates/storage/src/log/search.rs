//! Keys in the bytes of the log's files, whatever stands around them.
//!
//! A file of the log is written over and over, and records of an earlier life are valid no more. Their
//! bytes are there all the same, so records are not asked for: every place is looked at where a key of
//! a write can stand.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::record;
use super::spares;
use crate::error::StorageError;
use crate::files::io_error;
use crate::model::Version;
use crate::search::{Judge, KeyPrefixes, SearchedFiles, StoredVersion};

/// Times that the folder is listed: a file may get another name between the list and its reading.
const ROUNDS_MAX: usize = 64;

/// Files of the log, then spare ones.
type Searched = (SearchedFiles, SearchedFiles);

/// Searches all files in `directory`, while others may write.
///
/// # Errors
/// [`StorageError::Io`] when the folder or a file cannot be read; [`StorageError::Behind`] when files
/// change their names faster than they are read.
pub fn search(
    directory: &Path,
    prefixes: &KeyPrefixes,
    judge: &mut Judge<'_>,
) -> Result<Searched, StorageError> {
    let context = |path: &Path| format!("cannot read {}", path.display());
    let mut searched = Searched::default();
    // By what stays when a file gets another name.
    let mut known = BTreeSet::new();
    for _ in 0..ROUNDS_MAX {
        let mut is_new = false;
        let listed = fs::read_dir(directory);
        for entry in listed.map_err(|error| io_error(context(directory), error))? {
            let path = entry
                .map_err(|error| io_error(context(directory), error))?
                .path();
            let (id, bytes) = match read(&path, &known)? {
                FileRead::Known => continue,
                FileRead::Gone => {
                    // Under another name it is found in the next round.
                    is_new = true;
                    continue;
                }
                FileRead::New(id, bytes) => (id, bytes),
            };
            is_new = true;
            known.insert(id);
            let name = path.file_name().and_then(|name| name.to_str());
            let is_spare = name.is_some_and(spares::is_spare);
            let kind = if is_spare {
                &mut searched.1
            } else {
                &mut searched.0
            };
            kind.add(writes(&bytes, prefixes, judge));
        }
        if !is_new {
            assert_eq!(
                searched.0.files + searched.1.files,
                known.len() as u64,
                "each file is searched once, whatever its names were"
            );
            return Ok(searched);
        }
    }
    Err(StorageError::Behind(format!(
        "files in {} changed their names while they were searched: try again",
        directory.display()
    )))
}

/// A file that was listed.
enum FileRead {
    /// It was read under another name.
    Known,
    /// There is none of this name any more.
    Gone,
    /// The number that the file system has for it, and what it has.
    New(u64, Vec<u8>),
}

fn read(path: &Path, known: &BTreeSet<u64>) -> Result<FileRead, StorageError> {
    let context = |error| io_error(format!("cannot read {}", path.display()), error);
    #[allow(
        clippy::disallowed_methods,
        reason = "files belong to storage, and this is storage"
    )]
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(FileRead::Gone),
        Err(error) => return Err(context(error)),
    };
    let id = file.metadata().map_err(context)?.ino();
    if known.contains(&id) {
        return Ok(FileRead::Known);
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(context)?;
    Ok(FileRead::New(id, bytes))
}

/// How many keys with one of `prefixes` stand in `bytes` that `judge` wants.
fn writes(bytes: &[u8], prefixes: &KeyPrefixes, judge: &mut Judge<'_>) -> u64 {
    let mut wanted = 0;
    for (at, prefix) in prefixes.places(bytes) {
        // Another record may have been written over what stood before a key.
        let rest = StoredVersion {
            key: prefix,
            version: Version::ZERO,
            value: None,
        };
        let whole = record::write_with_key_at(bytes, at);
        let whole = whole.filter(|whole| whole.key.len() >= prefix.len());
        let is_wanted = whole.is_some_and(|whole| judge(&whole)) || judge(&rest);
        wanted += u64::from(is_wanted);
    }
    wanted
}

#[cfg(test)]
mod tests {
    use super::super::LogPosition;
    use super::super::record::{encode, seal};
    use super::*;
    use crate::model::WriteBatch;

    fn sealed(writes: Vec<(Version, Vec<u8>, Option<Vec<u8>>)>) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&WriteBatch { writes }, &mut bytes).unwrap();
        let place = LogPosition {
            segment: 7,
            offset: 640,
        };
        seal(place, 0, &mut bytes);
        bytes
    }

    fn found(bytes: &[u8], prefix: &[u8]) -> Vec<(Vec<u8>, u64, Option<Vec<u8>>)> {
        let prefixes = KeyPrefixes::new(vec![prefix.to_vec()]);
        let mut all = Vec::new();
        let wanted = writes(bytes, &prefixes, &mut |found| {
            let value = found.value.map(<[u8]>::to_vec);
            all.push((found.key.to_vec(), found.version.0, value));
            true
        });
        assert_eq!(wanted, all.len() as u64);
        all
    }

    #[test]
    fn writes_are_found_whole_and_where_a_newer_record_lies_over_a_part() {
        let record = sealed(vec![
            (Version(3), b"kanari-1".to_vec(), Some(b"value".to_vec())),
            (Version(4), b"kanari-22".to_vec(), None),
            (Version(5), b"other".to_vec(), Some(b"kanari-1".to_vec())),
        ]);
        let whole = [
            (b"kanari-1".to_vec(), 3, Some(b"value".to_vec())),
            (b"kanari-22".to_vec(), 4, None),
        ];
        let all = found(&record, b"kanari-");
        assert_eq!(all[..2], whole);
        // A value is not told from a key: who asks judges by more than a beginning.
        assert_eq!(all.len(), 3);
        assert_eq!(found(&record, b"kanari-2"), whole[1..]);
        // The head of the second write is gone, its key is not.
        let key = record.windows(9).position(|bytes| bytes == b"kanari-22");
        let mut over = record.clone();
        over[..key.unwrap() - 2].fill(0xEE);
        assert_eq!(found(&over, b"kanari-2"), [(b"kanari-2".to_vec(), 0, None)]);
        // Its key is cut short.
        let mut cut = record.clone();
        cut.truncate(key.unwrap() + 8);
        assert_eq!(found(&cut, b"kanari-2"), [(b"kanari-2".to_vec(), 0, None)]);
    }

    #[test]
    fn no_bytes_make_a_search_panic() {
        for filler in [0, 1, 0xFF] {
            for length in 0..40 {
                let mut bytes = vec![filler; length];
                bytes.extend_from_slice(b"k");
                assert_eq!(found(&bytes, b"k").len(), 1);
                bytes.extend_from_slice(&vec![filler; length]);
                assert_eq!(found(&bytes, b"k").len(), 1);
            }
        }
    }
}
