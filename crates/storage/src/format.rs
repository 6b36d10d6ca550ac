//! The `FORMAT` file of a data directory: which version of the layout, which engine, since when.
//!
//! Four lines of text, the last one the CRC-32 of the lines before it:
//!
//! ```text
//! format: 2
//! engine: rocksdb
//! created: 1767225600
//! checksum: 1a2b3c4d
//! ```
//!
//! `created` is in seconds since 1970, UTC.
//!
//! | format | since |
//! |---|---|
//! | 1 | the first: batches wait in RocksDB's own log for their sorted file |
//! | 2 | they wait in the commit log ([`crate::log`]) |

use std::fs;
use std::path::Path;

use crate::error::StorageError;
use crate::files::{io_error, modified_seconds, write_file};

/// Version of the on-disk layout this build writes, and the newest it reads.
pub const CURRENT: u32 = 2;

/// Name of the file in a data directory.
pub const FILE_NAME: &str = "FORMAT";

/// What a data directory says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Format {
    /// Version of the layout.
    pub version: u32,
    /// Name of the engine that wrote the directory.
    pub engine: String,
    /// When the directory was made, in seconds since 1970, UTC.
    pub created_seconds: u64,
}

impl Format {
    fn body(&self) -> String {
        format!(
            "format: {}\nengine: {}\ncreated: {}\n",
            self.version, self.engine, self.created_seconds
        )
    }

    /// The text of the file.
    #[must_use]
    pub fn render(&self) -> String {
        let body = self.body();
        let checksum = crc32fast::hash(body.as_bytes());
        format!("{body}checksum: {checksum:08x}\n")
    }

    /// Reads the text of the file; `place` is named in errors.
    ///
    /// # Errors
    /// [`StorageError::Format`] when the layout is newer than this build can read,
    /// [`StorageError::Corrupt`] when the text is damaged.
    pub fn parse(text: &str, place: &Path) -> Result<Self, StorageError> {
        let field = |name: &str| {
            let mut lines = text.lines();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        };
        let corrupt = |what: &str| StorageError::Corrupt(format!("{}: {what}", place.display()));
        let version: u32 = field("format")
            .and_then(|value| value.parse().ok())
            .ok_or_else(|| corrupt("has no format version"))?;
        if version > CURRENT {
            return Err(StorageError::Format(format!(
                "{} says format {version}, and this build reads formats up to {CURRENT}: start \
                 the ManxDB release that wrote the directory, or a newer one",
                place.display()
            )));
        }
        let format = Self {
            version,
            engine: field("engine")
                .ok_or_else(|| corrupt("names no engine"))?
                .to_owned(),
            created_seconds: field("created")
                .and_then(|value| value.parse().ok())
                .ok_or_else(|| corrupt("has no creation time"))?,
        };
        if format.render() == text {
            Ok(format)
        } else {
            Err(corrupt("its checksum does not match"))
        }
    }
}

/// Reads the `FORMAT` of `directory`; `None` when there is none.
///
/// # Errors
/// As [`Format::parse`], and [`StorageError::Io`] when the file cannot be read.
pub fn read(directory: &Path) -> Result<Option<Format>, StorageError> {
    let place = directory.join(FILE_NAME);
    match fs::read_to_string(&place) {
        Ok(text) => Format::parse(&text, &place).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(
            StorageError::Corrupt(format!("{}: is not text", place.display())),
        ),
        Err(error) => Err(io_error(format!("cannot read {}", place.display()), error)),
    }
}

/// Writes `format` into `directory`, whole or not at all.
///
/// # Errors
/// [`StorageError::Io`] or [`StorageError::Full`].
pub fn write(directory: &Path, format: &Format) -> Result<(), StorageError> {
    let (place, text) = (directory.join(FILE_NAME), format.render());
    assert_eq!(
        Format::parse(&text, &place).ok().as_ref(),
        Some(format),
        "this build opens the directory that it makes"
    );
    write_file(&place, text.as_bytes())
}

/// Reads the `FORMAT` of `directory`, or makes one for `engine` when the directory is new.
///
/// # Errors
/// As [`read`]; [`StorageError::Format`] when another engine wrote the directory or when it holds
/// data without a `FORMAT`.
pub fn open_or_create(directory: &Path, engine: &str, data: &Path) -> Result<Format, StorageError> {
    if let Some(format) = read(directory)? {
        if format.engine != engine {
            return Err(StorageError::Format(format!(
                "{} was written by the engine '{}' and cannot be opened with '{engine}'",
                directory.display(),
                format.engine
            )));
        }
        return Ok(format);
    }
    if data.exists() {
        return Err(StorageError::Format(format!(
            "{} holds data but no {FILE_NAME} file: restore that file or a backup, or choose \
             another directory",
            directory.display()
        )));
    }
    let format = Format {
        version: CURRENT,
        engine: engine.to_owned(),
        created_seconds: modified_seconds(directory),
    };
    write(directory, &format)?;
    Ok(format)
}

/// Says that `directory` has the current layout, when `format` is an older one.
///
/// # Errors
/// As [`write`].
pub fn upgrade(directory: &Path, format: &Format) -> Result<(), StorageError> {
    if format.version == CURRENT {
        return Ok(());
    }
    assert!(
        format.version < CURRENT,
        "a directory of a newer release is left as it is"
    );
    let upgraded = Format {
        version: CURRENT,
        ..format.clone()
    };
    write(directory, &upgraded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Format {
        Format {
            version: CURRENT,
            engine: "rocksdb".to_owned(),
            created_seconds: 1_767_225_600,
        }
    }

    #[test]
    fn a_directory_keeps_the_format_it_was_made_with() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        let made = open_or_create(directory.path(), "rocksdb", &data).unwrap();
        assert!(made.created_seconds > 0);
        assert_eq!(
            open_or_create(directory.path(), "rocksdb", &data).unwrap(),
            made
        );
    }

    #[test]
    fn a_newer_format_says_what_to_do() {
        let mut newer = sample();
        newer.version = CURRENT + 1;
        let error = Format::parse(&newer.render(), Path::new("d/FORMAT")).unwrap_err();
        assert!(matches!(error, StorageError::Format(_)), "{error:?}");
        let message = error.to_string();
        assert!(message.contains("d/FORMAT says format 3"), "{message}");
        assert!(message.contains("or a newer one"), "{message}");
    }

    #[test]
    fn every_damaged_byte_is_found() {
        let text = sample().render();
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= 0x01;
            let damaged = String::from_utf8(bytes).unwrap();
            assert!(
                Format::parse(&damaged, Path::new("FORMAT")).is_err(),
                "byte {place}"
            );
        }
        assert_eq!(Format::parse(&text, Path::new("FORMAT")).unwrap(), sample());
    }

    #[test]
    fn data_without_a_format_file_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        fs::create_dir(&data).unwrap();
        let error = open_or_create(directory.path(), "rocksdb", &data).unwrap_err();
        assert!(matches!(error, StorageError::Format(_)), "{error:?}");
    }

    #[test]
    fn another_engine_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        open_or_create(directory.path(), "rocksdb", &data).unwrap();
        let error = open_or_create(directory.path(), "other", &data).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("written by the engine 'rocksdb'"),
            "{error}"
        );
    }
}
