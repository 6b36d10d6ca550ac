//! Verification of a worker's outputs.
//!
//! RocksDB installs every answer of a worker unread: a flipped bit is found when the block is read,
//! long after the inputs are gone, and a missing file ends the database's writes for good. So a
//! database verifies everything itself:
//!
//! | property | evidence |
//! |---|---|
//! | each file is bit for bit what was computed | the CRC-32C that RocksDB makes of the bytes before a disk has them (`file_checksum`), compared with the bytes that the database reads |
//! | each block was written by RocksDB | RocksDB reads all of them, and compares the file's identity with the described one ([`crate::database::blocks`]) |
//! | keys lie within the job's range | the bounds that the worker states |
//! | every entry is accounted for | the worker's counts, the inputs', and those in the outputs' own properties |
//!
//! Keys are in order: RocksDB compares each key with the one before when it writes a file
//! (`OutputValidator`), and a file that is bit for bit what RocksDB wrote is not checked again.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crc_fast::CrcAlgorithm;

use crate::answer::{Answer, OutputFile, is_plain};
use crate::database::blocks::{Unread, read_through};
use crate::edge::TableFunctions;
use crate::rocksdb_files::manifest::catalogue::CatalogueEntry;
use crate::rocksdb_files::table::{Content, anatomy};
use crate::rocksdb_files::text::{self, Fields, Unreadable};

/// The database's knowledge about a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Expected {
    /// Level of the outputs.
    pub output_level: u64,
    /// Smallest and largest user key of the inputs, where they are known.
    pub keys: Option<(Vec<u8>, Vec<u8>)>,
    /// Entries of the inputs without deleted ranges, where they are known; none for a part of a
    /// split job.
    pub entries: Option<u64>,
}

/// Why outputs are not installed.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// The description cannot be read.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// A file cannot be read.
    #[error("output {name} cannot be read: {error}")]
    Missing {
        /// Which.
        name: String,
        /// Why.
        error: io::Error,
    },
    /// Something is not as it should be.
    #[error("{0}")]
    Wrong(String),
    /// It could not be found out here: no fault of the worker's.
    #[error("the outputs could not be checked: {0}")]
    Unchecked(String),
}

/// The files that a description names.
///
/// # Errors
/// [`Refusal`]: the description cannot be read, or a name is none of a file.
pub fn listed(description: &[u8]) -> Result<Vec<OutputFile>, Refusal> {
    let files = Fields::of(description)?.list("output_files")?;
    let listed = files.iter().map(|file| -> Result<OutputFile, Refusal> {
        let name = text::text_of(file.bytes("file_name")?)?;
        Ok(OutputFile {
            name: plain(&name)?.to_owned(),
            bytes: file.number("file_size")?,
            copy_sum: None,
        })
    });
    listed.collect()
}

/// Size of a file, and CRC-32C of all of it.
fn sum_file(path: &Path) -> io::Result<(u64, u32)> {
    #[allow(clippy::disallowed_methods)] // outputs are files
    let mut file = File::open(path)?;
    let mut sum = crc_fast::Digest::new(CrcAlgorithm::Crc32Iscsi);
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            let sum = u32::try_from(sum.finalize()).map_err(io::Error::other)?;
            return Ok((bytes, sum));
        }
        sum.update(&buffer[..read]); // read ≤ len
        bytes += read as u64;
    }
}

/// Checks that a name names a file in its directory, not a path out of it.
pub(crate) fn plain(name: &str) -> Result<&str, Refusal> {
    if is_plain(name) {
        Ok(name)
    } else {
        Err(Refusal::Wrong(format!(
            "output '{name}' is no name of a file"
        )))
    }
}

/// Verifies an answer against the files in `directory`, which only its attempt writes to. Returns
/// the description for RocksDB, with `directory` in it.
///
/// # Errors
/// [`Refusal`]: the outputs must not be installed.
pub fn verify(
    answer: &Answer,
    expected: &Expected,
    directory: &Path,
    tables: &TableFunctions,
) -> Result<Vec<u8>, Refusal> {
    let fields = Fields::of(&answer.description)?;
    let wrong = |what: String| Err(Refusal::Wrong(what));
    let level = fields.number("output_level")?;
    if level != expected.output_level {
        let asked = expected.output_level;
        return wrong(format!("outputs are for level {level}, asked was {asked}"));
    }
    let files = fields.list("output_files")?;
    if files.len() != answer.files.len() {
        let (described, listed) = (files.len(), answer.files.len());
        return wrong(format!(
            "{described} outputs are described, {listed} listed"
        ));
    }
    let mut names = BTreeSet::new();
    let (mut points, mut entries) = (0_u64, Vec::new());
    for (file, listed) in files.iter().zip(&answer.files) {
        let name = text::text_of(file.bytes("file_name")?)?;
        if name != listed.name || !names.insert(name.clone()) {
            return wrong(format!(
                "output {name} is listed as {}, or twice",
                listed.name
            ));
        }
        let path = directory.join(plain(&name)?);
        verify_file(file, listed, &path)?;
        verify_keys(file, &name, expected)?;
        points = points.saturating_add(verify_counts(file, &name, &path)?);
        entries.push(entry(file, &name)?);
    }
    verify_entries(&fields, points, expected)?;
    read_through(directory, &entries, tables).map_err(|unread| match unread {
        Unread::Damaged(why) => Refusal::Wrong(format!("RocksDB cannot read the outputs: {why}")),
        Unread::Away(why) => Refusal::Unchecked(why),
    })?;
    let Some(directory) = directory.to_str() else {
        return wrong("the directory's name is not text".to_owned());
    };
    let described = text::with_bytes(&answer.description, "output_path", directory.as_bytes())?;
    Ok(without_sums(&described)?)
}

/// The description without file checksums. The database does not use them: its manifest then says
/// the same about outputs as about its own files.
fn without_sums(description: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let files = Fields::of(description)?.list("output_files")?;
    let mut described = description.to_vec();
    for file in files {
        for (key, value) in [
            ("file_checksum", &b""[..]),
            ("file_checksum_func_name", UNKNOWN),
        ] {
            described = text::with_raw(&described, key, file.raw(key)?, value)?;
        }
    }
    Ok(described)
}

/// RocksDB's name of no sum,
const UNKNOWN: &[u8] = b"Unknown";
/// and of CRC-32C.
const CRC32C: &[u8] = b"FileChecksumCrc32c";

fn verify_file(file: &Fields<'_>, listed: &OutputFile, path: &Path) -> Result<(), Refusal> {
    let name = &listed.name;
    let (bytes, found) = sum_file(path).map_err(|error| {
        let name = name.clone();
        Refusal::Missing { name, error }
    })?;
    let described = file.number("file_size")?;
    if bytes != described || bytes != listed.bytes {
        return Err(Refusal::Wrong(format!(
            "output {name} has {bytes} bytes, RocksDB described {described}, the worker {}",
            listed.bytes
        )));
    }
    let (sum, made_by) = (
        file.bytes("file_checksum")?,
        file.bytes("file_checksum_func_name")?,
    );
    let Some(written) = <[u8; 4]>::try_from(sum).ok().filter(|_| made_by == CRC32C) else {
        return Err(Refusal::Wrong(format!(
            "output {name} has no sum that was made as it was written"
        )));
    };
    let written = u32::from_be_bytes(written);
    if found != written {
        return Err(Refusal::Wrong(format!(
            "output {name} is not what the worker wrote: its sum is {found:08x}, not {written:08x}"
        )));
    }
    Ok(())
}

/// Entries of a file without deleted ranges: these are entries of a file and none of a compaction.
fn verify_counts(file: &Fields<'_>, name: &str, path: &Path) -> Result<u64, Refusal> {
    let described = file.fields("table_properties")?;
    let described = Content {
        entries: described.number("num_entries")?,
        ranges: described.number("num_range_deletions")?,
    };
    let missing = |error| {
        let name = name.to_owned();
        Refusal::Missing { name, error }
    };
    let file = File::open(path).map_err(missing)?;
    let bytes = file.metadata().map_err(missing)?.len();
    let anatomy = anatomy(&file, bytes).map_err(missing)?;
    // Compressed properties are not read; then only the worker's counts remain.
    match anatomy.and_then(|anatomy| anatomy.content) {
        Some(content) if content != described => Err(Refusal::Wrong(format!(
            "output {name} has {} entries and {} deleted ranges, described were {} and {}",
            content.entries, content.ranges, described.entries, described.ranges
        ))),
        _ => Ok(described.entries.saturating_sub(described.ranges)),
    }
}

/// A file as the catalogue for RocksDB names it.
fn entry(file: &Fields<'_>, name: &str) -> Result<CatalogueEntry, Refusal> {
    let wrong = |what: &str| Refusal::Wrong(format!("{what} of output {name}"));
    let number = name.strip_suffix(".sst").and_then(|name| name.parse().ok());
    let id = file.raw("unique_id")?.trim_matches(['{', '}']);
    let id = id.split_once(':');
    let id = id.and_then(|(high, low)| Some([high.parse().ok()?, low.parse().ok()?]));
    Ok(CatalogueEntry {
        number: number.ok_or_else(|| wrong("no number is the name"))?,
        bytes: file.number("file_size")?,
        keys: (
            file.bytes("smallest_internal_key")?,
            file.bytes("largest_internal_key")?,
        ),
        unique_id: id.ok_or_else(|| wrong("two numbers are not the identity"))?,
    })
}

/// Bytes of an internal key behind the user key: sequence number and kind.
const TRAILER: usize = 8;

fn verify_keys(file: &Fields<'_>, name: &str, expected: &Expected) -> Result<(), Refusal> {
    let user_key = |field| -> Result<Vec<u8>, Refusal> {
        let mut key = file.bytes(field)?;
        let Some(length) = key.len().checked_sub(TRAILER) else {
            return Err(Refusal::Wrong(format!(
                "{field} of output {name} is too short"
            )));
        };
        key.truncate(length);
        Ok(key)
    };
    let (smallest, largest) = (
        user_key("smallest_internal_key")?,
        user_key("largest_internal_key")?,
    );
    let Some((first, last)) = &expected.keys else {
        return Ok(());
    };
    if smallest < *first || largest > *last || smallest > largest {
        return Err(Refusal::Wrong(format!(
            "keys of output {name} lie outside of the job's"
        )));
    }
    Ok(())
}

fn verify_entries(fields: &Fields<'_>, entries: u64, expected: &Expected) -> Result<(), Refusal> {
    let stats = fields.fields("stats")?;
    let written = stats.number("num_output_records")?;
    if entries != written {
        return Err(Refusal::Wrong(format!(
            "outputs hold {entries} entries, the worker counted {written}"
        )));
    }
    let read = stats.number("num_input_records")?;
    match expected.entries {
        Some(there) if there != read => Err(Refusal::Wrong(format!(
            "the worker read {read} entries of {there}"
        ))),
        _ if written > read => Err(Refusal::Wrong(format!(
            "{written} entries were made of {read}"
        ))),
        _ => Ok(()),
    }
}
