//! A copy of all memory that was given away, in one file.
//!
//! ```text
//! header | 0: the cut | 1: address, bytes | 2: address, bytes | … | n: nothing
//! ```
//! Each of them is summed as batches are. What is not in it is zero.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write as _};
use std::io::{Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use manxdb_core::check::deep;
use manxdb_fabric::{Address, ServerId, WORD_LENGTH};

use super::DiskError;
use super::directory::Directory;
use super::frame::Frame;
use super::header::{FileKind, Header};

/// Bytes of a piece, at most: what of them is zero is left out.
const PIECE: usize = 64 << 10;
const _: () = assert!(
    PIECE.is_multiple_of(WORD_LENGTH),
    "a piece ends with a word: what is not in it is zero"
);

/// A piece of memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckpointPiece {
    /// Where it lies: on a server, or in a region.
    pub at: Address,
    /// What lies there.
    pub bytes: Vec<u8>,
}

/// A checkpoint that is being written.
pub struct Draft {
    directory: Directory,
    header: Header,
    path: PathBuf,
    file: BufWriter<File>,
    count: u64,
    bytes: u64,
}

impl Draft {
    /// Begins one of a cut, in place of whatever was begun before.
    ///
    /// # Errors
    /// What the system says.
    pub fn begin(directory: &Directory, header: Header, cut: &[u8]) -> io::Result<Self> {
        assert_eq!(
            header.kind,
            FileKind::Checkpoint,
            "a draft becomes a checkpoint"
        );
        assert_eq!(header.needs, 0, "a checkpoint needs no batch that is lost");
        let path = directory.draft(&Directory::name(header.kind, header.number));
        let mut file = BufWriter::new(File::create(&path)?);
        file.write_all(&header.encode())?;
        let mut draft = Self {
            directory: directory.clone(),
            header,
            path,
            file,
            count: 0,
            bytes: 0,
        };
        draft.frame(cut)?;
        Ok(draft)
    }

    fn frame(&mut self, body: &[u8]) -> io::Result<()> {
        assert!(
            body.len() <= PIECE + 2 * WORD_LENGTH || self.count == 0,
            "a piece is as long as one may be: {} bytes",
            body.len()
        );
        let frame = Frame::encode(self.count, 0, body);
        self.count += 1;
        self.bytes += frame.len() as u64;
        self.file.write_all(&frame)
    }

    /// Adds what lies at an address.
    ///
    /// # Errors
    /// What the system says; it is to be begun anew.
    pub fn put(&mut self, at: Address, bytes: &[u8]) -> io::Result<()> {
        assert!(
            bytes.len().is_multiple_of(WORD_LENGTH) && at.offset.is_multiple_of(WORD_LENGTH as u64),
            "memory is made of words: {} bytes at {at}",
            bytes.len()
        );
        for (number, part) in (0..).zip(bytes.chunks(PIECE)) {
            if part.iter().any(|byte| *byte != 0) {
                let at = at.plus(number * PIECE as u64);
                let mut body = u64::from(at.server.0).to_le_bytes().to_vec();
                body.extend(at.offset.to_le_bytes());
                body.extend(part);
                assert!(
                    !deep() || parse(&body).is_some_and(|read| read.at == at && read.bytes == part),
                    "a piece comes back to where it lay"
                );
                self.frame(&body)?;
            }
        }
        Ok(())
    }

    /// Ends it: it is on disk for good, and what is needed no more beside it goes. Its bytes.
    ///
    /// # Errors
    /// What the system says; it is to be begun anew.
    pub fn finish(mut self) -> Result<u64, DiskError> {
        let path = self.path.clone();
        assert!(self.count > 0, "a checkpoint has a cut");
        self.frame(&[]).map_err(DiskError::io(&path))?;
        let file = self.file.into_inner();
        let file = file.map_err(|error| DiskError::Io(path.clone(), error.into_error()))?;
        let name = Directory::name(self.header.kind, self.header.number);
        let done = file.sync_all();
        let done = done.and_then(|()| self.directory.rename(&path, &name));
        done.map_err(DiskError::io(&path))?;
        self.directory.remove_before(self.header.number)?;
        Ok(self.bytes)
    }
}

/// Frames of a checkpoint, in order.
struct Frames<'p> {
    path: &'p Path,
    file: BufReader<File>,
    offset: u64,
    count: u64,
}

impl<'p> Frames<'p> {
    fn open(path: &'p Path) -> Result<Self, DiskError> {
        let mut file = File::open(path).map_err(DiskError::io(path))?;
        let offset = Header::BYTES as u64;
        file.seek(SeekFrom::Start(offset))
            .map_err(DiskError::io(path))?;
        Ok(Self {
            path,
            file: BufReader::new(file),
            offset,
            count: 0,
        })
    }

    fn next(&mut self) -> Result<Vec<u8>, DiskError> {
        let frame = Frame::read(&mut self.file).map_err(DiskError::io(self.path))?;
        let frame = frame.filter(|frame| frame.number == self.count);
        let frame = frame.ok_or_else(|| self.damaged())?;
        self.count += 1;
        self.offset += frame.bytes();
        Ok(frame.body)
    }

    fn damaged(&self) -> DiskError {
        DiskError::Damaged(self.path.to_owned(), self.offset)
    }
}

/// The cut that a checkpoint is of.
pub(super) fn read_cut(path: &Path) -> Result<Vec<u8>, DiskError> {
    Frames::open(path)?.next()
}

/// All pieces, in order; the cut.
pub(super) fn read<E: From<DiskError>>(
    path: &Path,
    each: &mut dyn FnMut(CheckpointPiece) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let mut frames = Frames::open(path)?;
    let cut = frames.next()?;
    loop {
        let before = frames.offset;
        let body = frames.next()?;
        if body.is_empty() {
            return Ok(cut);
        }
        let piece = parse(&body).ok_or_else(|| DiskError::Damaged(path.to_owned(), before))?;
        each(piece)?;
    }
}

fn parse(body: &[u8]) -> Option<CheckpointPiece> {
    let (server, rest) = body.split_first_chunk::<WORD_LENGTH>()?;
    let (offset, bytes) = rest.split_first_chunk::<WORD_LENGTH>()?;
    let at = Address {
        server: ServerId(u16::try_from(u64::from_le_bytes(*server)).ok()?),
        offset: u64::from_le_bytes(*offset),
    };
    let bytes = bytes.to_vec();
    Some(CheckpointPiece { at, bytes })
}
