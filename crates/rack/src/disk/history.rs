//! Reading what was written: all of it, in order, or why it cannot be had.

use std::fs;
use std::path::{Path, PathBuf};

use super::DiskError;
use super::checkpoint::{self, CheckpointPiece};
use super::directory::Directory;
use super::frame::Frame;
use super::header::{FileKind, Header};
use crate::memory::Superblock;
use manxdb_rsi::Batch;

/// What a directory has: a checkpoint, perhaps, and the batches behind it.
#[derive(Debug)]
pub struct History {
    formation: u64,
    /// The first segment number that nobody has used.
    next: u64,
    checkpoint: Option<(PathBuf, Header)>,
    segments: Vec<(PathBuf, Header)>,
}

/// Where batches end.
#[derive(Debug, PartialEq, Eq)]
pub struct Tail {
    /// The last one that was on disk for good when something behind it was written.
    pub synced: u64,
    /// Those behind it, in order: of them it is only known that they are in files.
    pub behind: Vec<Vec<u8>>,
    /// The last one of all.
    pub last: Option<Vec<u8>>,
}

impl History {
    /// Looks at what files say of themselves. None: there are none.
    ///
    /// # Errors
    /// [`DiskError`]: they are of another database, damaged, or not of one piece.
    pub fn look(directory: &Directory, own: &Superblock) -> Result<Option<Self>, DiskError> {
        let mut checkpoints = directory.files(FileKind::Checkpoint)?;
        let newest = checkpoints.pop();
        let first = newest.as_ref().map_or(0, |(number, _)| *number);
        let segments = directory.files(FileKind::Batches)?;
        let next = segments
            .last()
            .map_or(1, |(number, _)| number + 1)
            .max(first);
        let segments = segments.into_iter().filter(|(number, _)| *number >= first);
        let read = |(number, path): (u64, PathBuf), kind| {
            let header = read_header(&path, (kind, number), own)?;
            Ok::<_, DiskError>((path, header))
        };
        let checkpoint = newest
            .map(|found| read(found, FileKind::Checkpoint))
            .transpose()?;
        let segments = segments.map(|found| read(found, FileKind::Batches));
        let segments = segments.collect::<Result<Vec<_>, _>>()?;
        let mut all = checkpoint.iter().chain(&segments);
        let Some((_, one)) = all.next() else {
            return Ok(None);
        };
        let formation = one.formation;
        if let Some((path, _)) = all.find(|(_, other)| other.formation != formation) {
            return Err(DiskError::Formation(path.clone()));
        }
        let replaced = checkpoint.as_ref().map_or(1, |(_, header)| header.first);
        let is_of_use = |(_, header): &(PathBuf, Header)| header.needs < replaced;
        Ok(Some(Self {
            formation,
            next,
            checkpoint,
            segments: segments.into_iter().filter(is_of_use).collect(),
        }))
    }

    /// Under which the database was formed.
    #[must_use]
    pub fn formation(&self) -> u64 {
        self.formation
    }

    /// The first number of a segment that is free.
    #[must_use]
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The first batch that is needed beside the checkpoint.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.checkpoint
            .as_ref()
            .map_or(1, |(_, header)| header.first)
    }

    /// The number of the first segment that is needed beside the checkpoint.
    #[must_use]
    pub fn first_segment(&self) -> u64 {
        self.checkpoint
            .as_ref()
            .map_or(0, |(_, header)| header.number)
    }

    /// A batch of these files, or a cut.
    ///
    /// # Errors
    /// [`DiskError::Unrecognized`]: it is summed as ours are, and no batch.
    pub fn decode(&self, bytes: &[u8]) -> Result<Batch, DiskError> {
        let file = self.file().unwrap_or(Path::new("")); // not reached: there is one
        let strange = || DiskError::Unrecognized(file.to_owned());
        Batch::decode(bytes)
            .map(|(batch, _)| batch)
            .ok_or_else(strange)
    }

    /// Bytes of the checkpoint, and of the batches behind it.
    #[must_use]
    pub fn bytes(&self) -> (u64, u64) {
        let length =
            |(path, _): &(PathBuf, Header)| fs::metadata(path).map_or(0, |data| data.len());
        let segments = self.segments.iter().map(length).sum();
        (self.checkpoint.as_ref().map_or(0, length), segments)
    }

    /// A file that says which database it is of, for people.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        let first = self.checkpoint.iter().chain(&self.segments).next();
        first.map(|(path, _)| path.as_path())
    }

    /// All pieces of the checkpoint, after the cut that it says it is of; nothing without one.
    ///
    /// # Errors
    /// [`DiskError::Damaged`], and whatever `each` says.
    pub fn pieces<E: From<DiskError>>(
        &self,
        each: &mut dyn FnMut(CheckpointPiece) -> Result<(), E>,
    ) -> Result<Option<Vec<u8>>, E> {
        match &self.checkpoint {
            None => Ok(None),
            Some((path, _)) => checkpoint::read(path, each).map(Some),
        }
    }

    /// The cut that the checkpoint is of.
    ///
    /// # Errors
    /// [`DiskError`].
    pub fn cut(&self) -> Result<Option<Vec<u8>>, DiskError> {
        let checkpoint = self.checkpoint.as_ref();
        checkpoint
            .map(|(path, _)| checkpoint::read_cut(path))
            .transpose()
    }

    /// All batches behind the checkpoint, in order; where they end.
    ///
    /// # Errors
    /// [`DiskError::Damaged`], [`DiskError::Missing`], and whatever `each` says.
    pub fn batches<E: From<DiskError>>(
        &self,
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Tail, E> {
        let first = self.first();
        let mut reading = Reading {
            expected: first,
            tail: Tail {
                synced: first - 1,
                behind: Vec::new(),
                last: None,
            },
        };
        let others = self.segments.iter().skip(1).map(|(_, next)| next.first);
        let ends = others.map(Some).chain([None]);
        for ((path, header), end) in self.segments.iter().zip(ends) {
            if header.first > reading.expected {
                let (from, to) = (reading.expected, header.first - 1);
                return Err(DiskError::Missing(path.clone(), from, to).into());
            }
            reading.segment(path, end, each)?;
        }
        Ok(reading.tail)
    }
}

/// What was read so far.
struct Reading {
    /// The next batch.
    expected: u64,
    tail: Tail,
}

impl Reading {
    /// Reads a segment up to the first batch of the next one, or to the end of the last one.
    fn segment<E: From<DiskError>>(
        &mut self,
        path: &Path,
        end: Option<u64>,
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let bytes = fs::read(path).map_err(DiskError::io(path))?;
        let mut rest = bytes.get(Header::BYTES..).unwrap_or_default();
        let mut offset = Header::BYTES as u64;
        while end != Some(self.expected) {
            if end.is_some() && rest.is_empty() {
                return Ok(()); // what is missing is missed by the next one
            }
            let mut behind = rest;
            let frame = Frame::read(&mut behind).map_err(DiskError::io(path))?;
            let Some(frame) = frame.filter(|frame| frame.number <= self.expected) else {
                let damaged = DiskError::Damaged(path.to_owned(), offset);
                return if end.is_some() || self.was_synced(rest) {
                    Err(damaged.into())
                } else {
                    Ok(()) // the end of what was written
                };
            };
            offset += frame.bytes();
            assert_eq!(
                offset,
                (bytes.len() - behind.len()) as u64,
                "a frame has the bytes that were read of it"
            );
            rest = behind;
            self.take(frame, each)?;
        }
        Ok(())
    }

    /// Whether something whole behind says that the next batch had been on disk for good.
    fn was_synced(&self, rest: &[u8]) -> bool {
        Frame::search(rest, |frame| frame.synced >= self.expected).is_some()
    }

    fn take<E>(
        &mut self,
        frame: Frame,
        each: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        if frame.number < self.expected {
            return Ok(()); // it is known already, or only says what is on disk
        }
        assert_eq!(
            frame.number, self.expected,
            "batches are read one after the other"
        );
        each(&frame.body)?;
        self.expected += 1;
        let before = frame.synced.saturating_sub(self.tail.synced);
        let before = usize::try_from(before).unwrap_or(usize::MAX);
        let gone = before.min(self.tail.behind.len());
        self.tail.behind.drain(..gone);
        self.tail.synced += gone as u64;
        self.tail.behind.push(frame.body.clone());
        assert_eq!(
            self.tail.synced + self.tail.behind.len() as u64 + 1,
            self.expected,
            "each batch is on disk for good, or behind those that are"
        );
        self.tail.last = Some(frame.body);
        Ok(())
    }
}

fn read_header(path: &Path, is: (FileKind, u64), own: &Superblock) -> Result<Header, DiskError> {
    use std::io::Read as _;
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| {
        let mut file = file.take(Header::BYTES as u64);
        file.read_to_end(&mut bytes)
    });
    read.map_err(DiskError::io(path))?;
    let header = Header::decode(&bytes, path)?;
    header.fits(own, path)?;
    if (header.kind, header.number) == is {
        Ok(header)
    } else {
        Err(DiskError::Damaged(path.to_owned(), 0)) // it has somebody else's name
    }
}
