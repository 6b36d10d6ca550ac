//! Transfers of objects in requests and parts, with verification of downloads.

use std::collections::BTreeSet;
use std::fs::File;
use std::future::Future;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object_store::path::Path as Key;
use object_store::{Error, ObjectStoreExt as _, WriteMultipart};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio_stream::StreamExt as _;

use crate::file_io::read_at;

use super::{Object, ObjectError, Objects, Stop, join, local};

/// Bytes in one request: small enough to be over within [`PATIENCE`](super::PATIENCE) on a slow network.
const CHUNK: u64 = 8 << 20;
/// Parts of one object on their way at a time.
const PARTS: usize = 3;
/// Objects removed in one go.
const REMOVED_AT_ONCE: usize = 500;

/// Bytes that went over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Moved {
    /// From the store.
    pub fetched: u64,
    /// To the store.
    pub put: u64,
}

#[derive(Debug, Default)]
pub(super) struct MovedSoFar {
    fetched: AtomicU64,
    put: AtomicU64,
}

/// Moves the objects of one job, or of one database.
pub struct Transfer {
    pub(super) objects: Arc<Objects>,
    pub(super) base: Key,
    pub(super) stop: Arc<Stop>,
    pub(super) moved: MovedSoFar,
}

type Request<'a, T> = Pin<Box<dyn Future<Output = object_store::Result<T>> + 'a>>;

impl Transfer {
    /// Where its objects are.
    pub fn place(&self) -> String {
        self.base.to_string()
    }

    /// Bytes moved so far.
    pub fn moved(&self) -> Moved {
        Moved {
            fetched: self.moved.fetched.load(Ordering::Relaxed),
            put: self.moved.put.load(Ordering::Relaxed),
        }
    }

    fn wait<T>(&self, key: &str, request: Request<'_, T>) -> Result<T, ObjectError> {
        self.objects.wait(key, &self.stop, request)
    }

    /// Puts bytes.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn put_bytes(&self, key: &str, bytes: Vec<u8>) -> Result<Object, ObjectError> {
        let at = join(&self.base, key)?;
        let object = Object {
            key: key.to_owned(),
            bytes: bytes.len() as u64,
            sum: crc32fast::hash(&bytes),
        };
        self.wait(key, Box::pin(self.objects.store.put(&at, bytes.into())))?;
        self.moved.put.fetch_add(object.bytes, Ordering::Relaxed);
        Ok(object)
    }

    /// Puts a file.
    ///
    /// # Errors
    /// [`ObjectError`]; then it is not there.
    pub fn put_file(&self, key: &str, path: &Path) -> Result<Object, ObjectError> {
        let cannot = local(path);
        let file = File::open(path).map_err(&cannot)?;
        let bytes = file.metadata().map_err(&cannot)?.len();
        if bytes <= CHUNK {
            return self.put_bytes(key, read_at(&file, 0, bytes).map_err(&cannot)?);
        }
        let at = join(&self.base, key)?;
        let upload = self.wait(key, Box::pin(self.objects.store.put_multipart(&at)))?;
        let part_bytes = usize::try_from(CHUNK).unwrap_or(usize::MAX);
        let mut upload = WriteMultipart::new_with_chunk_size(upload, part_bytes);
        match self.put_parts(key, &file, bytes, &mut upload) {
            Ok(sum) => {
                self.wait(key, Box::pin(upload.finish()))?;
                let key = key.to_owned();
                Ok(Object { key, bytes, sum })
            }
            Err(error) => {
                // If the store fails at this too, a lifecycle rule of its own removes the
                // incomplete upload.
                let _ = self.wait(key, Box::pin(upload.abort()));
                Err(error)
            }
        }
    }

    fn put_parts(
        &self,
        key: &str,
        file: &File,
        bytes: u64,
        upload: &mut WriteMultipart,
    ) -> Result<u32, ObjectError> {
        let mut hasher = crc32fast::Hasher::new();
        let mut done = 0;
        while done < bytes {
            let length = CHUNK.min(bytes - done);
            let part = read_at(file, done, length).map_err(local(Path::new(key)))?;
            hasher.update(&part);
            self.wait(key, Box::pin(upload.wait_for_capacity(PARTS)))?;
            // It starts a request.
            let _runtime = self.objects.runtime.as_ref().map(Runtime::enter);
            upload.put(part.into());
            self.moved.put.fetch_add(length, Ordering::Relaxed);
            done += length;
        }
        Ok(hasher.finalize())
    }

    /// A range of an object.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn fetch_range(&self, key: &str, from: u64, bytes: u64) -> Result<Vec<u8>, ObjectError> {
        let at = join(&self.base, key)?;
        let range = from..from.saturating_add(bytes);
        let got = self.wait(key, Box::pin(self.objects.store.get_range(&at, range)))?;
        if got.len() as u64 != bytes {
            return Err(ObjectError::Differs {
                key: key.to_owned(),
                what: format!("it ends {} bytes after {from}, not {bytes}", got.len()),
            });
        }
        self.moved.fetched.fetch_add(bytes, Ordering::Relaxed);
        Ok(got.into())
    }

    /// A whole object, as it was put.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn fetch(&self, object: &Object) -> Result<Vec<u8>, ObjectError> {
        self.check_size(object)?;
        let mut bytes = Vec::new();
        while (bytes.len() as u64) < object.bytes {
            let from = bytes.len() as u64;
            bytes.extend(self.fetch_range(&object.key, from, CHUNK.min(object.bytes - from))?);
        }
        check_sum(object, crc32fast::hash(&bytes))?;
        Ok(bytes)
    }

    /// A whole object as a file, which is on disk when this returns.
    ///
    /// # Errors
    /// [`ObjectError`]; there may be a file all the same.
    pub fn fetch_file(&self, object: &Object, path: &Path) -> Result<(), ObjectError> {
        self.check_size(object)?;
        self.fetch_part(object, 0, path)?
            .sync_all()
            .map_err(local(path))
    }

    /// Downloads `part.bytes` bytes of an object from byte `skip` on into a file, and verifies
    /// their sum.
    ///
    /// # Errors
    /// [`ObjectError`]; a file may exist all the same.
    pub fn fetch_part(&self, part: &Object, skip: u64, path: &Path) -> Result<File, ObjectError> {
        let cannot = local(path);
        let file = File::create(path).map_err(&cannot)?;
        let mut hasher = crc32fast::Hasher::new();
        let mut done = 0;
        while done < part.bytes {
            let length = CHUNK.min(part.bytes - done);
            let bytes = self.fetch_range(&part.key, skip.saturating_add(done), length)?;
            hasher.update(&bytes);
            file.write_all_at(&bytes, done).map_err(&cannot)?;
            done += length;
        }
        check_sum(part, hasher.finalize())?;
        Ok(file)
    }

    fn check_size(&self, object: &Object) -> Result<(), ObjectError> {
        let at = join(&self.base, &object.key)?;
        let found = self.wait(&object.key, Box::pin(self.objects.store.head(&at)))?;
        if found.size == object.bytes {
            return Ok(());
        }
        Err(ObjectError::Differs {
            key: object.key.clone(),
            what: format!("it has {} bytes, not {}", found.size, object.bytes),
        })
    }

    /// Names of all objects below a name.
    ///
    /// # Errors
    /// [`ObjectError`].
    pub fn list(&self, below: &str) -> Result<Vec<String>, ObjectError> {
        let at = join(&self.base, below)?;
        let base = self.base.clone();
        let request = async move {
            let mut keys = Vec::new();
            let mut found = self.objects.store.list(Some(&at));
            while let Some(one) = found.next().await {
                let location = one?.location;
                if let Some(parts) = location.prefix_match(&base) {
                    let parts: Vec<_> = parts.map(|part| part.as_ref().to_owned()).collect();
                    keys.push(parts.join("/"));
                }
            }
            Ok::<_, Error>(keys)
        };
        match self.wait(below, Box::pin(request)) {
            Err(ObjectError::Missing(_)) => Ok(Vec::new()), // stores with directories
            other => other,
        }
    }

    /// Removes objects; those that are not there are no error.
    ///
    /// # Errors
    /// [`ObjectError`]: some may be left.
    pub fn remove(&self, keys: &[String]) -> Result<(), ObjectError> {
        for some in keys.chunks(REMOVED_AT_ONCE) {
            let locations: Result<Vec<Key>, _> =
                some.iter().map(|key| join(&self.base, key)).collect();
            let locations = tokio_stream::iter(locations?.into_iter().map(Ok));
            let request = async {
                let mut removed = self.objects.store.delete_stream(Box::pin(locations));
                while let Some(one) = removed.next().await {
                    match one {
                        Ok(_) | Err(Error::NotFound { .. }) => {}
                        Err(error) => return Err(error),
                    }
                }
                Ok(())
            };
            let first = some.first().map_or("", String::as_str);
            self.wait(first, Box::pin(request))?;
        }
        if self.objects.has_directories {
            self.remove_directories(keys);
        }
        Ok(())
    }

    /// Removes directories that are empty without these objects, innermost first. The store keeps
    /// those that are not.
    fn remove_directories(&self, keys: &[String]) {
        let mut directories = BTreeSet::new();
        for key in keys {
            let ends = key.match_indices('/').map(|(end, _)| &key[..end]); // of the key
            directories.extend(ends);
        }
        for directory in directories.into_iter().rev() {
            let Ok(at) = join(&self.base, directory) else {
                continue;
            };
            let (objects, stop) = (&self.objects, &self.stop);
            let done = objects.ask(directory, stop, objects.store.delete(&at));
            if let Err(error) = done {
                tracing::trace!(%error, "a directory stays");
            }
        }
    }
}

fn check_sum(object: &Object, found: u32) -> Result<(), ObjectError> {
    if found == object.sum {
        return Ok(());
    }
    Err(ObjectError::Differs {
        key: object.key.clone(),
        what: format!("its sum is {found:08x}, not {:08x}", object.sum),
    })
}
