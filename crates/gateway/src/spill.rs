//! Temporary files of statements: without a name from the moment they are made, so that whatever way
//! the process ends, nothing of them is left.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use manxdb_sql::executor::{SpillFile, SpillSpace};

/// A directory in which statements have their temporary files.
pub struct SpillDirectory {
    path: PathBuf,
}

impl SpillDirectory {
    /// The directory `path`, which is made when it is needed first.
    #[must_use]
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }
}

impl SpillSpace for SpillDirectory {
    fn create(&self) -> io::Result<Box<dyn SpillFile>> {
        std::fs::create_dir_all(&self.path)?;
        let file = tempfile::tempfile_in(&self.path)?;
        Ok(Box::new(TemporaryFile { file, length: 0 }))
    }
}

struct TemporaryFile {
    file: File,
    length: u64,
}

impl SpillFile for TemporaryFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.length)?;
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn read(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(bytes, offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_no_file_has_a_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("spill");
        let space = SpillDirectory::new(path.clone());
        let mut file = space.create().unwrap();
        file.append(b"some ").unwrap();
        file.append(b"rows").unwrap();
        let mut bytes = [0; 4];
        file.read(5, &mut bytes).unwrap();
        assert_eq!(&bytes, b"rows");
        assert!(file.read(6, &mut bytes).is_err());
        assert_eq!(std::fs::read_dir(&path).unwrap().count(), 0);
    }
}
