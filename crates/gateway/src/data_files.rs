//! The files of the server that statements read and write, kept within one directory.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Opens a file for reading. An empty `directory` allows every place; a relative `name` is taken
/// from the directory.
///
/// # Errors
/// `PermissionDenied` outside the directory, also by links, and for what is no plain file.
pub fn open(directory: &str, name: &str) -> io::Result<Box<dyn Read>> {
    let path = Path::new(directory).join(name).canonicalize()?;
    check_within(directory, &path)?;
    let file = File::open(&path)?;
    if !file.metadata()?.is_file() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(Box::new(file))
}

/// Creates a file that must not exist, readable by its owner and group.
///
/// # Errors
/// `AlreadyExists`; `PermissionDenied` outside the directory.
pub fn create(directory: &str, name: &str) -> io::Result<Box<dyn Write>> {
    let path = Path::new(directory).join(name);
    let (Some(parent), Some(file)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::PermissionDenied.into());
    };
    let path: PathBuf = parent.canonicalize()?.join(file);
    check_within(directory, &path)?;
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o640);
    let file = options.write(true).create_new(true).open(path)?;
    Ok(Box::new(file))
}

/// `path` has no links or `..` in it any more.
fn check_within(directory: &str, path: &Path) -> io::Result<()> {
    if directory.is_empty() || path.starts_with(Path::new(directory).canonicalize()?) {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn kind<T>(result: io::Result<T>) -> io::ErrorKind {
        result.map(|_| ()).unwrap_err().kind()
    }

    #[test]
    fn a_file_is_created_once_and_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path().to_str().unwrap();
        create(at, "rows.txt").unwrap().write_all(b"1\n").unwrap();
        let mut text = String::new();
        open(at, "rows.txt")
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, "1\n");
        assert_eq!(kind(create(at, "rows.txt")), io::ErrorKind::AlreadyExists);
        assert_eq!(kind(open(at, "other.txt")), io::ErrorKind::NotFound);
    }

    #[test]
    fn nothing_outside_the_directory_is_reached() {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("inner");
        fs::create_dir(&inner).unwrap();
        fs::write(outer.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink(outer.path().join("secret"), inner.join("link")).unwrap();
        std::os::unix::fs::symlink(outer.path(), inner.join("up")).unwrap();
        let at = inner.to_str().unwrap();
        let absolute = outer.path().join("secret");
        let denied = io::ErrorKind::PermissionDenied;
        for name in ["../secret", "link", "up/secret", absolute.to_str().unwrap()] {
            assert_eq!(kind(open(at, name)), denied, "{name}");
        }
        for name in ["../new", "up/new", "/new", ".."] {
            assert_eq!(kind(create(at, name)), denied, "{name}");
        }
        assert_eq!(kind(open(at, ".")), denied);
        assert!(open("", absolute.to_str().unwrap()).is_ok());
    }
}
