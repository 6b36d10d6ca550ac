//! Rows come back: the checkpoint, and over it the last version of each record that batches have.

use std::path::Path;

use manxdb_rsi::{Bootstrap, Replay, Snapshot};

use super::{ArchiveError, LogArchiver, encode};
use crate::disk::{DiskError, Draft, FileKind, Header, History};
use crate::memory::{MemoryError, MemoryRestore, Superblock, Transport};

impl<W: Transport + Clone> LogArchiver<'_, W> {
    /// Writes all rows into memory servers that wait for them. What they have then is a checkpoint
    /// before anybody is let in, and all else is gone: what came behind the last whole batch never
    /// comes back. Who is killed over it is followed by one who does the same. `is_news`: it is said
    /// that rows are being restored, which the last try did not fail at.
    pub(super) fn restore(&self, seed: u64, is_news: bool) -> Result<(), ArchiveError> {
        let Some(mut again) = MemoryRestore::open(self.way, seed)? else {
            return Ok(()); // somebody else was faster
        };
        let superblock = Superblock {
            server: 0,
            ..again.superblock().clone()
        };
        if self.directory.identity(seed)? != superblock.directory {
            let path = self.directory.path().display().to_string();
            return Err(ArchiveError::Elsewhere(path));
        }
        let history = History::look(self.directory, &superblock)?;
        let history = history.ok_or(MemoryError::Waiting)?; // its files were taken away
        if is_news {
            let path = self.directory.path().display();
            (self.note)(&format!("rows are being restored from {path}"));
        }
        let replay = Self::replay(&mut again, &history)?;
        let anew = Bootstrap::behind(replay.cut());
        again.put_tables(&anew)?;
        let formation = again.formation();
        let header = Header {
            kind: FileKind::Checkpoint,
            number: history.next(),
            formation,
            first: 1,
            needs: 0,
            superblock,
        };
        let path = self.directory.path();
        assert!(
            anew.snapshot().includes(replay.cut()),
            "what is restored begins behind all that was replayed"
        );
        let cut = encode(formation, 0, anew.snapshot());
        let mut draft = Draft::begin(self.directory, header, &cut).map_err(DiskError::io(path))?;
        again.copy(|at, bytes| {
            draft.put(at, bytes).map_err(DiskError::io(path))?;
            Ok::<_, ArchiveError>(())
        })?;
        let bytes = draft.finish()?;
        again.end()?;
        (self.note)(&format!(
            "rows are restored from {}: {} MiB",
            path.display(),
            bytes >> 20
        ));
        Ok(())
    }

    fn replay(again: &mut MemoryRestore<W>, history: &History) -> Result<Replay, ArchiveError> {
        let cut =
            history.pieces::<ArchiveError>(&mut |piece| Ok(again.put(piece.at, &piece.bytes)?))?;
        let cut = match cut {
            Some(bytes) => history.decode(&bytes)?.cut,
            None => Snapshot::empty(again.threads()),
        };
        if cut.numbers().len() != usize::from(again.threads()) {
            let file = history.file().unwrap_or(Path::new("")).to_owned();
            return Err(DiskError::Damaged(file, 0).into());
        }
        let before = cut.clone();
        let mut replay = Replay::new(history.formation(), history.first(), cut);
        history.batches::<ArchiveError>(&mut |bytes| Ok(replay.take(history.decode(bytes)?)?))?;
        assert!(
            replay.cut().includes(&before),
            "batches behind a checkpoint take nothing of it back"
        );
        for record in replay.records() {
            again.put_record(record)?;
        }
        Ok(replay)
    }
}
