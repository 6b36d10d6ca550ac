//! The `CLOSED` file of a data directory: how far the store had got when it was closed in order.
//!
//! RocksDB cannot tell a log whose last records are damaged from one that a crash cut short, and
//! drops the rest of it either way. After an orderly end there is no such rest: a store that then
//! opens at an older version has lost what was acknowledged, and says so.
//!
//! ```text
//! latest: 1234
//! checksum: 1a2b3c4d
//! ```

use std::fs;
use std::path::Path;

use crate::error::StorageError;
use crate::files::{io_error, write_file};
use crate::model::Version;

/// Name of the file in a data directory. There while the store is closed in order.
pub const FILE_NAME: &str = "CLOSED";

fn render(latest: Version) -> String {
    let body = format!("latest: {}\n", latest.0);
    let checksum = crc32fast::hash(body.as_bytes());
    format!("{body}checksum: {checksum:08x}\n")
}

/// The version noted; `None` when the text is not what [`note`] wrote.
fn parse(text: &str) -> Option<Version> {
    let number = text.strip_prefix("latest: ")?.lines().next()?;
    let latest = Version(number.parse().ok()?);
    (render(latest) == text).then_some(latest)
}

/// Notes that the store ends at `latest`. Nothing may be written behind it.
///
/// # Errors
/// [`StorageError::Io`] or [`StorageError::Full`].
pub fn note(directory: &Path, latest: Version) -> Result<(), StorageError> {
    let text = render(latest);
    assert_eq!(
        parse(&text),
        Some(latest),
        "a note is read as it was written"
    );
    write_file(&directory.join(FILE_NAME), text.as_bytes())
}

/// Compares what was noted with what was found, and takes the note away: from here on writes
/// may follow.
///
/// # Errors
/// [`StorageError::Corrupt`] when acknowledged writes are gone; the note then stays.
/// [`StorageError::Io`] when it cannot be read or removed.
pub fn check(directory: &Path, found: Version) -> Result<(), StorageError> {
    let place = directory.join(FILE_NAME);
    let bytes = match fs::read(&place) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io_error(format!("cannot read {}", place.display()), error)),
    };
    match std::str::from_utf8(&bytes).ok().and_then(parse) {
        Some(noted) if found < noted => {
            return Err(StorageError::Corrupt(format!(
                "the log in {} ends at version {}, but the store was closed at version {}: its \
                 last records are damaged. To go on without them, remove {}",
                directory.display(),
                found.0,
                noted.0,
                place.display()
            )));
        }
        Some(_) => {}
        None => tracing::warn!(file = %place.display(), "damaged, and not needed"),
    }
    fs::remove_file(&place)
        .map_err(|error| io_error(format!("cannot remove {}", place.display()), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_lost_its_last_versions_since_it_was_closed_says_so_until_the_note_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        check(directory.path(), Version(3)).unwrap();
        note(directory.path(), Version(9)).unwrap();
        for _ in 0..2 {
            let error = check(directory.path(), Version(8)).unwrap_err();
            assert!(matches!(error, StorageError::Corrupt(_)), "{error:?}");
            assert!(error.to_string().contains("CLOSED"), "{error}");
        }
        check(directory.path(), Version(9)).unwrap();
        // Opened: a crash from here on may end at any version.
        check(directory.path(), Version(2)).unwrap();
    }

    #[test]
    fn a_damaged_note_is_no_reason_not_to_start() {
        let directory = tempfile::tempdir().unwrap();
        for text in [
            "",
            "latest: 9\n",
            "latest: 9\nchecksum: 00000000\n",
            "\u{ff}",
        ] {
            fs::write(directory.path().join(FILE_NAME), text).unwrap();
            check(directory.path(), Version(1)).unwrap();
            assert!(!directory.path().join(FILE_NAME).exists());
        }
    }
}
