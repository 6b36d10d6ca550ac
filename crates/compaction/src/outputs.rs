//! Whether a worker's outputs are what they should be.
//!
//! RocksDB installs whatever a worker answers: a flipped bit is found when it is read, long after
//! the inputs are gone, and a missing file ends the database's writes for good. So a database
//! believes nothing that it has not checked itself: the files are there, whole and bit for bit
//! what the worker wrote; their keys lie inside the job's; and no entry is unaccounted for.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::objects::Moved;
use crate::text::{self, Fields, Unreadable};

/// What a worker answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// RocksDB's own description.
    pub description: Vec<u8>,
    /// The files as the worker read them back from storage.
    pub files: Vec<FileSum>,
    /// What the worker moved over the network for it.
    pub moved: Moved,
    /// What the flavour has to say beside them: hints, which the database checks for itself.
    pub notes: Vec<u8>,
}

/// A file and its sum.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSum {
    /// Its name in the attempt's directory.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// CRC-32 of all of it.
    pub sum: u32,
}

/// What the database knows of a job.
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
}

/// How much of each output is read before it is believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reading {
    /// All of it.
    #[default]
    Whole,
    /// Only its size is looked at: for storage that keeps sums of its own.
    SizeOnly,
}

/// Sums all files that a description names, as they are in a directory.
///
/// # Errors
/// [`Refusal`]: the description cannot be read, or a file.
pub fn sum_files(description: &[u8], directory: &Path) -> Result<Vec<FileSum>, Refusal> {
    let mut sums = Vec::new();
    for file in Fields::of(description)?.list("output_files")? {
        let name = text::text_of(file.bytes("file_name")?)?;
        let (bytes, sum) = sum_file(&directory.join(plain(&name)?)).map_err(|error| {
            let name = name.clone();
            Refusal::Missing { name, error }
        })?;
        sums.push(FileSum { name, bytes, sum });
    }
    Ok(sums)
}

fn sum_file(path: &Path) -> io::Result<(u64, u32)> {
    #[allow(clippy::disallowed_methods)] // outputs are files
    let mut file = File::open(path)?;
    let mut hasher = crc32fast::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((bytes, hasher.finalize()));
        }
        hasher.update(&buffer[..read]); // read ≤ len
        bytes += read as u64;
    }
}

/// A name that is a file's own, not a path that leads elsewhere.
pub(crate) fn plain(name: &str) -> Result<&str, Refusal> {
    if is_plain(name) {
        Ok(name)
    } else {
        Err(Refusal::Wrong(format!(
            "output '{name}' is no name of a file"
        )))
    }
}

/// Whether a name is a file's own.
pub(crate) fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.contains(['/', '\\', '\0']) && !name.starts_with('.')
}

/// Checks an answer against the files in `directory`, which only its attempt writes to; what
/// RocksDB is to be told, with that directory in it.
///
/// # Errors
/// [`Refusal`]: the outputs must not be installed.
pub fn verify(
    answer: &Answer,
    expected: &Expected,
    directory: &Path,
    reading: Reading,
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
        let (described, summed) = (files.len(), answer.files.len());
        return wrong(format!(
            "{described} outputs are described, {summed} summed"
        ));
    }
    let mut names = BTreeSet::new();
    let mut entries = 0_u64;
    for (file, sum) in files.iter().zip(&answer.files) {
        let name = text::text_of(file.bytes("file_name")?)?;
        if name != sum.name || !names.insert(name.clone()) {
            return wrong(format!("output {name} is summed as {}, or twice", sum.name));
        }
        verify_file(file, sum, &directory.join(plain(&name)?), reading)?;
        verify_keys(file, &name, expected)?;
        let properties = file.fields("table_properties")?;
        // Deleted ranges are entries of a file and none of a compaction.
        let ranges = properties.number("num_range_deletions")?;
        let points = properties.number("num_entries")?.saturating_sub(ranges);
        entries = entries.saturating_add(points);
    }
    verify_entries(&fields, entries, expected)?;
    let Some(directory) = directory.to_str() else {
        return wrong("the directory's name is not text".to_owned());
    };
    Ok(text::with_bytes(
        &answer.description,
        "output_path",
        directory.as_bytes(),
    )?)
}

fn verify_file(
    file: &Fields<'_>,
    sum: &FileSum,
    path: &Path,
    reading: Reading,
) -> Result<(), Refusal> {
    let missing = |error| {
        let name = sum.name.clone();
        Refusal::Missing { name, error }
    };
    let (bytes, found) = match reading {
        Reading::Whole => sum_file(path).map_err(missing)?,
        Reading::SizeOnly => (path.metadata().map_err(missing)?.len(), sum.sum),
    };
    let described = file.number("file_size")?;
    if bytes != described || bytes != sum.bytes {
        let name = &sum.name;
        return Err(Refusal::Wrong(format!(
            "output {name} has {bytes} bytes, RocksDB described {described}, the worker read {}",
            sum.bytes
        )));
    }
    if found != sum.sum {
        return Err(Refusal::Wrong(format!(
            "output {} is not what the worker wrote: its sum is {found:08x}, not {:08x}",
            sum.name, sum.sum
        )));
    }
    Ok(())
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
