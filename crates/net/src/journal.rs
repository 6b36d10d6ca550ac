//! The journal of a node: what its core wrote down, read back at its next start.
//!
//! | bytes | what |
//! |---|---|
//! | 8 | `MXJOURN4`: the last byte is the version of what is in records |
//! | then each record: 4 | length of the payload, little-endian |
//! | 8 | the term of the writer, little-endian |
//! | 4 | CRC-32 of length and term, little-endian: a changed length is not taken for the end |
//! | 4 | CRC-32 of the payload, little-endian |
//! | … | payload: postcard |
//!
//! A writer has a term, the node's life, that grows with each start: the terms of a journal never
//! fall, and a writer whose term is not above the last one is fenced off. One thread writes and
//! syncs; whatever waits while it syncs goes with the next sync. A record that supersedes all before it
//! begins a new file, which takes the old one's place once it is on disk.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use manxdb_core::{NodeId, Token};
use serde::Serialize;
use serde::de::DeserializeOwned;

const MAGIC: &[u8; 8] = b"MXJOURN4";
/// Length, term and two checksums.
const HEADER_BYTES: usize = 4 + 8 + 4 + 4;
/// The longest payload: a state that fits into a message, and what goes with it.
const PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// Why a node has no journal.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The operating system refused.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Bytes before the end were changed: what follows them cannot be trusted to be complete.
    #[error("{}: damaged at byte {at}; restore the file from a copy: without it the node does not \
             know what it decided", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        at: usize,
    },
    /// Another version has written it.
    #[error("{}: a journal of version {version:?}; this one reads {own:?} alone, and nodes of the two \
             versions do not talk. Start the cluster with the version that wrote it, or a new one",
            .path.display(), version = char::from(*.found), own = char::from(MAGIC[MAGIC.len() - 1]))]
    Version {
        /// The file.
        path: PathBuf,
        /// The last byte of its magic.
        found: u8,
    },
    /// A later life of the node has written here.
    #[error("{}: term {last} has written here, and this is term {own}: another process took over",
            .path.display())]
    Fenced {
        /// The file.
        path: PathBuf,
        /// The term of the last record.
        last: u64,
        /// The term of whoever opens it.
        own: u64,
    },
}

/// Where records go: a [`Journal`], or a store elsewhere. Its calls may wait; a thread of its own makes
/// them.
pub trait RecordStore: Send + 'static {
    /// Keeps these payloads behind all before them. When it returns, they are durable.
    ///
    /// # Errors
    /// It is unknown what is kept: nothing more is acknowledged.
    fn append(&mut self, payloads: &[Vec<u8>]) -> io::Result<()>;

    /// Keeps these payloads in place of all before them.
    ///
    /// # Errors
    /// As [`RecordStore::append`].
    fn replace(&mut self, payloads: &[Vec<u8>]) -> io::Result<()>;
}

/// A journal that can be written to. See the module for its format.
#[derive(Debug)]
pub struct Journal {
    file: File,
    path: PathBuf,
    term: u64,
}

impl Journal {
    /// Opens the journal at `path`, made when missing, for a writer of this term; also what is in it,
    /// oldest first. The last record is cut off when it was not written whole: nobody was told of it.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn open<R: DeserializeOwned>(
        path: &Path,
        term: u64,
    ) -> Result<(Self, Vec<R>), JournalError> {
        let failed = |source| JournalError::Io {
            path: path.to_owned(),
            source,
        };
        let mut options = File::options();
        options.read(true).append(true).create(true);
        let mut file = options.open(path).map_err(failed)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() < MAGIC.len() && MAGIC.starts_with(&bytes) {
            file.set_len(0).map_err(failed)?;
            file.write_all(MAGIC).map_err(failed)?;
            file.sync_all().map_err(failed)?;
            sync_directory_of(path).map_err(failed)?;
            return Ok((Self::of(file, path, term), Vec::new()));
        }
        let damaged = |at| JournalError::Damaged {
            path: path.to_owned(),
            at,
        };
        if !bytes.starts_with(MAGIC) {
            let name = &MAGIC[..MAGIC.len() - 1];
            let found = bytes.strip_prefix(name).and_then(|rest| rest.first());
            return Err(match found {
                Some(found) if found.is_ascii_digit() => JournalError::Version {
                    path: path.to_owned(),
                    found: *found,
                },
                _ => damaged(0),
            });
        }
        let read = read_records(&bytes, MAGIC.len()).map_err(damaged)?;
        if read.last_term >= term && !read.payloads.is_empty() {
            return Err(JournalError::Fenced {
                path: path.to_owned(),
                last: read.last_term,
                own: term,
            });
        }
        if read.end < bytes.len() {
            tracing::warn!(path = %path.display(), at = read.end, "cut off a record that was not written whole");
            let end = u64::try_from(read.end).unwrap_or(u64::MAX);
            file.set_len(end).map_err(failed)?;
            file.sync_all().map_err(failed)?;
        }
        let mut records = Vec::with_capacity(read.payloads.len());
        for (at, payload) in read.payloads {
            records.push(postcard::from_bytes(payload).map_err(|_| damaged(at))?);
        }
        Ok((Self::of(file, path, term), records))
    }

    fn of(file: File, path: &Path, term: u64) -> Self {
        let path = path.to_owned();
        Self { file, path, term }
    }

    fn encode(&self, payloads: &[Vec<u8>]) -> Vec<u8> {
        assert!(!payloads.is_empty(), "a sync is of something");
        let mut bytes = Vec::new();
        for payload in payloads {
            assert!(
                payload.len() <= PAYLOAD_BYTES_MAX,
                "a record can be read back"
            );
            let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
            let start = bytes.len();
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&self.term.to_le_bytes());
            bytes.extend_from_slice(&crc32fast::hash(&bytes[start..]).to_le_bytes());
            bytes.extend_from_slice(&crc32fast::hash(payload).to_le_bytes());
            assert_eq!(bytes.len(), start + HEADER_BYTES, "a header has one length");
            bytes.extend_from_slice(payload);
        }
        bytes
    }
}

impl RecordStore for Journal {
    /// Appends records and syncs them, all or none of them acknowledged.
    fn append(&mut self, payloads: &[Vec<u8>]) -> io::Result<()> {
        self.file.write_all(&self.encode(payloads))?;
        self.file.sync_data()
    }

    /// Has these records in place of all before them. Until the new file is on disk, the old one is
    /// what the next start reads.
    fn replace(&mut self, payloads: &[Vec<u8>]) -> io::Result<()> {
        let next = self.path.with_extension("next");
        let mut file = File::create(&next)?;
        file.write_all(MAGIC)?;
        file.write_all(&self.encode(payloads))?;
        file.sync_all()?;
        std::fs::rename(&next, &self.path)?;
        sync_directory_of(&self.path)?;
        self.file = file;
        Ok(())
    }
}

/// A file that is there now, or has another name, is so after a crash too.
fn sync_directory_of(path: &Path) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    File::open(directory)?.sync_all()
}

struct ReadRecords<'a> {
    /// Each with its place.
    payloads: Vec<(usize, &'a [u8])>,
    last_term: u64,
    /// Where the next record goes.
    end: usize,
}

/// All whole records, or the place of damage.
fn read_records(bytes: &[u8], start: usize) -> Result<ReadRecords<'_>, usize> {
    let mut read = ReadRecords {
        payloads: Vec::new(),
        last_term: 0,
        end: start,
    };
    while let Some(header) = bytes.get(read.end..read.end + HEADER_BYTES) {
        let (length, sum) = (number(&header[..4]), number(&header[12..16]));
        let term = u64::from(number(&header[8..12])) << 32 | u64::from(number(&header[4..8]));
        if crc32fast::hash(&header[..12]) != sum {
            // Space that was made for a record whose bytes never came is zero.
            let is_unwritten = bytes[read.end..].iter().all(|byte| *byte == 0);
            return if is_unwritten {
                Ok(read)
            } else {
                Err(read.end)
            };
        }
        let begin = read.end + HEADER_BYTES;
        let Some(end) = usize::try_from(length).ok().map(|length| begin + length) else {
            return Err(read.end);
        };
        let Some(payload) = bytes.get(begin..end) else {
            break; // not written whole
        };
        if crc32fast::hash(payload) != number(&header[16..]) {
            // Only the last record can have been under way when the machine stopped.
            return if end == bytes.len() {
                Ok(read)
            } else {
                Err(read.end)
            };
        }
        if term < read.last_term {
            return Err(read.end);
        }
        read.last_term = term;
        read.payloads.push((read.end, payload));
        read.end = end;
    }
    assert!(read.end <= bytes.len(), "records are inside of the file");
    Ok(read)
}

/// Of four bytes.
fn number(bytes: &[u8]) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(bytes);
    u32::from_le_bytes(word)
}

/// What the threads of all journals of a process tell its loop.
#[derive(Debug)]
pub(crate) struct JournalReports {
    /// Wakes the loop.
    bell: OwnedFd,
    done: Mutex<Vec<Result<(NodeId, Token), String>>>,
}

impl JournalReports {
    pub(crate) fn new(bell: OwnedFd) -> Self {
        Self {
            bell,
            done: Mutex::new(Vec::new()),
        }
    }

    pub(crate) fn bell(&self) -> &OwnedFd {
        &self.bell
    }

    fn report(&self, what: impl Iterator<Item = Result<(NodeId, Token), String>>) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.extend(what);
        drop(done);
        // A full counter has woken the loop already.
        let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
    }

    /// What was reported since the last time.
    pub(crate) fn take(&self) -> Vec<Result<(NodeId, Token), String>> {
        let mut rung = [0; 8];
        let _ = rustix::io::read(&self.bell, &mut rung);
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *done)
    }
}

/// A record on its way to the disk.
struct Queued {
    payload: Vec<u8>,
    token: Token,
    /// Whether what was written before it says nothing any more.
    supersedes: bool,
}

/// The thread that writes a node's journal; ends with this.
#[derive(Debug)]
pub(crate) struct JournalWriter {
    queue: Option<Sender<Queued>>,
    thread: Option<JoinHandle<()>>,
}

impl JournalWriter {
    pub(crate) fn start(
        node: NodeId,
        journal: impl RecordStore,
        reports: Arc<JournalReports>,
    ) -> io::Result<Self> {
        let (queue, records) = channel();
        let thread = thread::Builder::new().name(format!("journal-{}", node.0));
        let thread = thread.spawn(move || write_all(node, journal, &records, &reports))?;
        Ok(Self {
            queue: Some(queue),
            thread: Some(thread),
        })
    }

    /// Has a record written. A report follows, unless the disk failed before.
    ///
    /// # Errors
    /// The record cannot be put into bytes.
    pub(crate) fn write(
        &self,
        record: &impl Serialize,
        token: Token,
        supersedes: bool,
    ) -> Result<(), String> {
        let payload = postcard::to_stdvec(record).map_err(|error| error.to_string())?;
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(format!("a record of {} bytes", payload.len()));
        }
        let queue = self.queue.as_ref();
        let record = Queued {
            payload,
            token,
            supersedes,
        };
        let sent = queue.is_some_and(|queue| queue.send(record).is_ok());
        if sent {
            Ok(())
        } else {
            Err("its thread has ended".to_owned())
        }
    }
}

impl Drop for JournalWriter {
    fn drop(&mut self) {
        self.queue = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a journal's thread ended with a panic");
        }
    }
}

fn write_all(
    node: NodeId,
    mut journal: impl RecordStore,
    records: &Receiver<Queued>,
    reports: &JournalReports,
) {
    while let Ok(first) = records.recv() {
        let group: Vec<Queued> = std::iter::once(first).chain(records.try_iter()).collect();
        let newest = group.iter().rposition(|record| record.supersedes);
        let tokens: Vec<Token> = group.iter().map(|record| record.token).collect();
        let payloads = group.into_iter().map(|record| record.payload);
        let payloads: Vec<_> = payloads.skip(newest.unwrap_or(0)).collect();
        let written = match newest {
            Some(_) => journal.replace(&payloads),
            None => journal.append(&payloads),
        };
        match written {
            Ok(()) => reports.report(tokens.into_iter().map(|token| Ok((node, token)))),
            Err(error) => {
                // What the disk has now is unknown: nothing more is acknowledged.
                reports.report(std::iter::once(Err(error.to_string())));
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Opened = Result<(Journal, Vec<String>), JournalError>;

    fn open(path: &Path, term: u64) -> Opened {
        Journal::open(path, term)
    }

    fn payload(text: &str) -> Vec<u8> {
        postcard::to_stdvec(text).unwrap()
    }

    fn write(path: &Path, term: u64, texts: &[&str]) {
        let (mut journal, _) = open(path, term).unwrap();
        let payloads: Vec<_> = texts.iter().map(|text| payload(text)).collect();
        journal.append(&payloads).unwrap();
    }

    #[test]
    fn what_was_written_is_read_at_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        assert_eq!(open(&path, 1).unwrap().1, [""; 0]);
        write(&path, 2, &["one", "two"]);
        write(&path, 3, &["three"]);
        assert_eq!(open(&path, 4).unwrap().1, ["one", "two", "three"]);
    }

    #[test]
    fn a_record_that_was_not_written_whole_is_cut_off_and_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        write(&path, 1, &["one", "two"]);
        let whole = std::fs::read(&path).unwrap();
        for cut in 1..=HEADER_BYTES + payload("two").len() {
            std::fs::write(&path, &whole[..whole.len() - cut]).unwrap();
            assert_eq!(open(&path, 2).unwrap().1, ["one"], "cut by {cut}");
        }
        write(&path, 2, &["three"]);
        assert_eq!(open(&path, 3).unwrap().1, ["one", "three"]);
    }

    #[test]
    fn damage_before_the_end_is_told_and_not_taken_for_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        write(&path, 1, &["one", "two"]);
        let whole = std::fs::read(&path).unwrap();
        for at in [
            0,
            MAGIC.len(),
            MAGIC.len() + 4,
            MAGIC.len() + 17,
            MAGIC.len() + HEADER_BYTES,
        ] {
            let mut bytes = whole.clone();
            bytes[at] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            let refused = open(&path, 2).unwrap_err();
            assert!(matches!(refused, JournalError::Damaged { .. }), "{refused}");
        }
    }

    #[test]
    fn a_journal_of_another_version_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        write(&path, 1, &["one"]);
        let mut bytes = std::fs::read(&path).unwrap();
        for (version, says) in [(b'3', "version '3'"), (b'5', "version '5'")] {
            bytes[MAGIC.len() - 1] = version;
            std::fs::write(&path, &bytes).unwrap();
            let refused = open(&path, 2).unwrap_err();
            assert!(
                matches!(refused, JournalError::Version { found, .. } if found == version),
                "{refused}"
            );
            assert!(refused.to_string().contains(says), "{refused}");
        }
    }

    #[test]
    fn a_record_that_supersedes_all_before_it_takes_their_place() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        write(&path, 1, &["one", "two"]);
        let (mut journal, _) = open(&path, 2).unwrap();
        journal.replace(&[payload("all")]).unwrap();
        journal.append(&[payload("three")]).unwrap();
        drop(journal);
        // A file that never took the old one's place is not looked at.
        std::fs::write(path.with_extension("next"), "half").unwrap();
        assert_eq!(open(&path, 3).unwrap().1, ["all", "three"]);
        assert!(open(&path, 2).is_err(), "terms go on");
    }

    #[test]
    fn a_writer_of_an_earlier_term_is_fenced_off() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        write(&path, 7, &["one"]);
        for term in [6, 7] {
            let refused = open(&path, term).unwrap_err();
            assert!(matches!(refused, JournalError::Fenced { last: 7, .. }));
        }
        assert!(open(&path, 8).is_ok());
    }
}
