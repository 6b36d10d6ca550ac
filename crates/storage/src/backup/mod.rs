//! Backups of a running store, several in one directory that share what did not change.
//!
//! ```text
//! <directory>/<label>/backup.json   files of this backup: path, place, size, CRC-32
//! <directory>/<label>/…             small files that are its own
//! <directory>/shared/…              sorted files, named by number, CRC-32 and size
//! ```
//!
//! A backup is a checkpoint of the engine: a consistent prefix of the committed writes, taken
//! while serving. It appears under its label with one rename when everything is on disk; what a
//! crash leaves behind starts with `.partial-` and is removed by the next backup of that label.
//! On the same file system the sorted files are hard links to those of the store: made in an
//! instant, but no protection from losing the disk. Copy the directory elsewhere, or make it on
//! another file system, where files are copied.

mod manifest;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use manxdb_core::check::deep;

use crate::engine::Engine;
use crate::error::StorageError;
use crate::files::{self, io_error};
use crate::format;
use crate::model::Version;
pub use manifest::{BackupFile, Manifest};

const SHARED: &str = "shared";
const PARTIAL: &str = ".partial-";
const LABEL_BYTES_MAX: usize = 100;

/// What [`verify`] found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Labels of the backups looked at.
    pub backups: Vec<String>,
    /// Files read.
    pub files: usize,
    /// Bytes read.
    pub bytes: u64,
    /// What is wrong, each naming the backup and the file. Empty when all is well.
    pub problems: Vec<String>,
}

/// Backs up a running store into `directory` under `label`.
///
/// # Errors
/// [`StorageError::Format`] when the label is taken or unusable, [`StorageError::Full`] and
/// [`StorageError::Io`] from the system; nothing appears under the label then.
pub fn create(
    engine: &dyn Engine,
    directory: &Path,
    label: &str,
) -> Result<Manifest, StorageError> {
    check_label(label)?;
    let place = directory.join(label);
    assert_eq!(
        place
            .strip_prefix(directory)
            .map(|inner| inner.components().count()),
        Ok(1),
        "a backup is a folder of its directory, whatever its label"
    );
    if place.exists() {
        return Err(StorageError::Format(format!(
            "backup '{label}' exists already in {}: choose another label",
            directory.display()
        )));
    }
    let shared = directory.join(SHARED);
    fs::create_dir_all(&shared)
        .map_err(|error| io_error(format!("cannot create {}", shared.display()), error))?;
    let partial = directory.join(format!("{PARTIAL}{label}"));
    remove_if_there(&partial)?;
    // Read first: the checkpoint holds at least this much.
    let complete_to = engine.latest()?;
    engine.checkpoint(&partial)?;
    let made = assemble(directory, &partial, label, complete_to)
        .and_then(|manifest| publish(directory, &partial, &place).map(|()| manifest));
    assert!(
        !deep()
            || made.is_err()
            || made.as_ref().ok() == read_manifest(&place).ok().flatten().as_ref(),
        "a backup that was made is found by its label"
    );
    if made.is_err() {
        // The error that stopped the backup is the one to report.
        let _ = fs::remove_dir_all(&partial);
    }
    made
}

fn check_label(label: &str) -> Result<(), StorageError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ':');
    let usable = !label.is_empty()
        && label.len() <= LABEL_BYTES_MAX
        && !label.starts_with('.')
        && label != SHARED
        && label.chars().all(plain);
    if usable {
        return Ok(());
    }
    Err(StorageError::Format(format!(
        "'{label}' cannot name a backup: use up to {LABEL_BYTES_MAX} letters, digits and -_.: \
         not starting with a dot, and not '{SHARED}'"
    )))
}

fn remove_if_there(path: &Path) -> Result<(), StorageError> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(io_error(format!("cannot remove {}", path.display()), error))
        }
        _ => Ok(()),
    }
}

/// Moves sorted files of a checkpoint to the shared folder and lists everything.
fn assemble(
    directory: &Path,
    partial: &Path,
    label: &str,
    complete_to: Version,
) -> Result<Manifest, StorageError> {
    let known = known_files(directory)?;
    let mut manifest = Manifest::new(label, files::modified_seconds(partial), complete_to.0);
    for path in files::below(partial)? {
        let file = if path.extension().is_some_and(|end| end == "sst") {
            share(directory, partial, path, &known, &mut manifest.added_bytes)?
        } else {
            let place = partial.join(&path);
            let (size_bytes, crc32) = files::checksum(&place)?;
            sync(&place)?;
            manifest.added_bytes += size_bytes;
            BackupFile {
                stored: Path::new(label).join(&path),
                path,
                size_bytes,
                crc32,
            }
        };
        manifest.files.push(file);
    }
    let sizes = manifest.files.iter().map(|file| file.size_bytes);
    assert!(
        manifest.added_bytes <= sizes.sum::<u64>(),
        "a backup adds no more than it holds"
    );
    let paths: BTreeSet<&Path> = manifest.files.iter().map(|file| &*file.path).collect();
    assert_eq!(
        paths.len(),
        manifest.files.len(),
        "a restore writes each file once"
    );
    // Removing a backup removes its folder, and of the shared files those that no other one names.
    let has_place =
        |file: &BackupFile| file.stored.starts_with(SHARED) || file.stored.starts_with(label);
    assert!(
        manifest.files.iter().all(has_place),
        "a backup keeps its files in its own folder or in the shared one"
    );
    let (place, text) = (partial.join(manifest::FILE_NAME), manifest.render()?);
    assert_eq!(
        Manifest::parse(&text, &place).ok().as_ref(),
        Some(&manifest),
        "a backup can be restored by what its manifest says"
    );
    files::write_file(&place, text.as_bytes())?;
    Ok(manifest)
}

/// Shared files of earlier backups by the path they have in a data directory.
fn known_files(directory: &Path) -> Result<BTreeMap<PathBuf, Vec<BackupFile>>, StorageError> {
    let mut known: BTreeMap<PathBuf, Vec<BackupFile>> = BTreeMap::new();
    for manifest in list(directory)? {
        for file in manifest.files {
            if file.stored.starts_with(SHARED) {
                known.entry(file.path.clone()).or_default().push(file);
            }
        }
    }
    Ok(known)
}

fn share(
    directory: &Path,
    partial: &Path,
    path: PathBuf,
    known: &BTreeMap<PathBuf, Vec<BackupFile>>,
    added_bytes: &mut u64,
) -> Result<BackupFile, StorageError> {
    let place = partial.join(&path);
    let earlier = known.get(&path).into_iter().flatten();
    for file in earlier {
        if is_same_file(&place, &directory.join(&file.stored)) {
            remove_file(&place)?;
            return Ok(file.clone());
        }
    }
    let (size_bytes, crc32) = files::checksum(&place)?;
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stored = Path::new(SHARED).join(format!("{stem}-{crc32:08x}-{size_bytes}.sst"));
    let target = directory.join(&stored);
    // A file of this name is reused only when it still holds what its name says.
    if files::checksum(&target).is_ok_and(|found| found == (size_bytes, crc32)) {
        remove_file(&place)?;
    } else {
        sync(&place)?;
        fs::rename(&place, &target)
            .map_err(|error| io_error(format!("cannot make {}", target.display()), error))?;
        *added_bytes += size_bytes;
    }
    Ok(BackupFile {
        path,
        stored,
        size_bytes,
        crc32,
    })
}

/// Whether two names are hard links to one file, which sorted files never change.
fn is_same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => (a.dev(), a.ino()) == (b.dev(), b.ino()),
        _ => false,
    }
}

fn remove_file(place: &Path) -> Result<(), StorageError> {
    fs::remove_file(place)
        .map_err(|error| io_error(format!("cannot remove {}", place.display()), error))
}

fn sync(place: &Path) -> Result<(), StorageError> {
    files::sync(place).map_err(|error| io_error(format!("cannot sync {}", place.display()), error))
}

fn publish(directory: &Path, partial: &Path, place: &Path) -> Result<(), StorageError> {
    sync(&directory.join(SHARED))?;
    for entry in folders(partial)? {
        sync(&entry)?;
    }
    sync(partial)?;
    fs::rename(partial, place)
        .map_err(|error| io_error(format!("cannot make {}", place.display()), error))?;
    sync(directory)
}

fn folders(directory: &Path) -> Result<Vec<PathBuf>, StorageError> {
    let context = |error| io_error(format!("cannot list {}", directory.display()), error);
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(context)? {
        let entry = entry.map_err(context)?;
        if entry.file_type().map_err(context)?.is_dir() {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

/// The backups in `directory`, oldest first.
///
/// # Errors
/// [`StorageError::Io`] when the directory cannot be listed, [`StorageError::Corrupt`] when a
/// manifest is damaged.
pub fn list(directory: &Path) -> Result<Vec<Manifest>, StorageError> {
    let mut found = Vec::new();
    for folder in folders(directory)? {
        if let Some(manifest) = read_manifest(&folder)? {
            found.push(manifest);
        }
    }
    found.sort_by_key(|manifest| (manifest.created_seconds, manifest.complete_to));
    Ok(found)
}

/// The manifest in the folder of a backup; `None` when the folder is none.
fn read_manifest(folder: &Path) -> Result<Option<Manifest>, StorageError> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    if name.starts_with('.') || name == SHARED {
        return Ok(None);
    }
    let place = folder.join(manifest::FILE_NAME);
    match fs::read_to_string(&place) {
        Ok(text) => Manifest::parse(&text, &place).map(Some),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => Err(
            StorageError::Corrupt(format!("{}: is not text", place.display())),
        ),
        Err(error) => Err(io_error(format!("cannot read {}", place.display()), error)),
    }
}

/// Reads every file of every backup in `directory` and compares sizes and checksums.
///
/// # Errors
/// [`StorageError::Io`] when the directory cannot be listed. Damage is no error but a line in
/// [`Report::problems`].
pub fn verify(directory: &Path) -> Result<Report, StorageError> {
    let mut report = Report::default();
    let mut seen: BTreeMap<PathBuf, Result<(u64, u32), String>> = BTreeMap::new();
    for folder in folders(directory)? {
        let manifest = match read_manifest(&folder) {
            Ok(Some(manifest)) => manifest,
            Ok(None) => continue,
            Err(error) => {
                report.problems.push(error.to_string());
                continue;
            }
        };
        for file in &manifest.files {
            let found = seen.entry(file.stored.clone()).or_insert_with(|| {
                let read = files::checksum(&directory.join(&file.stored));
                report.files += 1;
                report.bytes += read.as_ref().map_or(0, |(size, _)| *size);
                read.map_err(|error| error.to_string())
            });
            let problem = match found {
                Ok(found) if *found == (file.size_bytes, file.crc32) => continue,
                Ok((size, _)) if *size != file.size_bytes => {
                    format!("{size} bytes instead of {}", file.size_bytes)
                }
                Ok(_) => "its checksum does not match".to_owned(),
                Err(error) => error.clone(),
            };
            report.problems.push(format!(
                "backup '{}', file {}: {problem}",
                manifest.label,
                file.stored.display()
            ));
        }
        report.backups.push(manifest.label);
    }
    assert_eq!(
        report.files,
        seen.len(),
        "a file is read once, however many backups have it"
    );
    Ok(report)
}

/// Copies the backup `label` of `directory` to `target`, checking every byte on the way.
///
/// # Errors
/// [`StorageError::Format`] when there is no such backup or `target` holds anything,
/// [`StorageError::Corrupt`] when a file of the backup is damaged; `target` is left empty then.
pub fn restore(directory: &Path, label: &str, target: &Path) -> Result<Manifest, StorageError> {
    check_label(label)?;
    let Some(manifest) = read_manifest(&directory.join(label))? else {
        let labels: Vec<String> = list(directory)?.into_iter().map(|m| m.label).collect();
        return Err(StorageError::Format(format!(
            "there is no backup '{label}' in {}; there is: {}",
            directory.display(),
            labels.join(", ")
        )));
    };
    // Refuses a data directory this release could not open.
    format::read(&directory.join(label))?;
    let is_new = !target.exists();
    fs::create_dir_all(target)
        .map_err(|error| io_error(format!("cannot create {}", target.display()), error))?;
    let holds_anything = fs::read_dir(target)
        .map_err(|error| io_error(format!("cannot list {}", target.display()), error))?
        .next()
        .is_some();
    if holds_anything {
        return Err(StorageError::Format(format!(
            "{} is not empty: restore into a new directory",
            target.display()
        )));
    }
    let copied = copy_files(directory, &manifest, target);
    if copied.is_err() {
        // The error that stopped the restore is the one to report.
        let _ = fs::remove_dir_all(target);
        if !is_new {
            let _ = fs::create_dir(target);
        }
    }
    copied.map(|()| manifest)
}

fn copy_files(directory: &Path, manifest: &Manifest, target: &Path) -> Result<(), StorageError> {
    // `FORMAT` goes last: without it nothing opens a restore that was cut short.
    let is_format = |file: &&BackupFile| file.path == Path::new(format::FILE_NAME);
    let (last, first): (Vec<_>, Vec<_>) = manifest.files.iter().partition(is_format);
    for file in first.into_iter().chain(last) {
        let to = target.join(&file.path);
        let folder = to.parent().unwrap_or(target);
        fs::create_dir_all(folder)
            .map_err(|error| io_error(format!("cannot create {}", folder.display()), error))?;
        let copied = files::copy(&directory.join(&file.stored), &to)?;
        if copied != (file.size_bytes, file.crc32) {
            return Err(StorageError::Corrupt(format!(
                "backup '{}', file {}: its checksum does not match",
                manifest.label,
                file.stored.display()
            )));
        }
        sync(folder)?;
    }
    sync(target)
}

/// Removes the backup `label` and the shared files no other backup needs. Not while a backup is
/// being made into the same directory: then only the backup itself goes.
///
/// # Errors
/// [`StorageError::Format`] when there is no such backup, [`StorageError::Corrupt`] when the
/// manifest of another backup cannot be read (its files cannot be told then).
pub fn remove(directory: &Path, label: &str) -> Result<(), StorageError> {
    check_label(label)?;
    let place = directory.join(label);
    if read_manifest(&place)?.is_none() {
        return Err(StorageError::Format(format!(
            "there is no backup '{label}' in {}",
            directory.display()
        )));
    }
    remove_if_there(&place)?;
    let needed: Vec<PathBuf> = known_files(directory)?
        .into_values()
        .flatten()
        .map(|file| file.stored)
        .collect();
    let being_made = folders(directory)?.iter().any(|folder| {
        let name = folder.file_name().unwrap_or_default();
        name.to_string_lossy().starts_with(PARTIAL)
    });
    if being_made {
        return Ok(());
    }
    let shared = directory.join(SHARED);
    for path in files::below(&shared)? {
        if !needed.contains(&Path::new(SHARED).join(&path)) {
            remove_file(&shared.join(path))?;
        }
    }
    Ok(())
}
