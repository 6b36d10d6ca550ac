//! An object store as this crate uses it, from threads that may block: copies are uploaded, and
//! downloads are complete and verified, until a [`Stop`] ends them.

mod transfer;

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use object_store::path::Path as Key;
use object_store::{Error, ObjectStore};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use self::transfer::MovedSoFar;
pub use self::transfer::{Moved, Transfer};

/// A request that takes longer has failed.
const PATIENCE: Duration = Duration::from_secs(30);
/// After a failure no new transfer begins for this long: meanwhile databases compact locally.
const REST: Duration = Duration::from_secs(5);

/// An object, as its uploader describes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Object {
    /// Its name, relative to where the database's objects are.
    pub key: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// CRC-32 of all of it.
    pub sum: u32,
}

/// Why something did not come or go.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// It is not there.
    #[error("object {0} is not in the store")]
    Missing(String),
    /// The object differs from the uploaded one.
    #[error("object {key} is not what was put into the store: {what}")]
    Differs {
        /// Which.
        key: String,
        /// In what.
        what: String,
    },
    /// The store does not answer, is full, or refuses.
    #[error("the object store fails at {key}: {why}")]
    Away {
        /// At which.
        key: String,
        /// In its words.
        why: String,
    },
    /// A file here.
    #[error("{path}: {error}")]
    Local {
        /// Which.
        path: String,
        /// Why.
        error: io::Error,
    },
    /// The name could lead out of the prefix.
    #[error("'{0}' is no name of an object")]
    Name(String),
    /// A [`Stop`] ended the transfer.
    #[error("it was stopped")]
    Stopped,
}

/// Says of a path what went wrong with it.
pub fn local(path: &Path) -> impl Fn(io::Error) -> ObjectError + use<> {
    let path = path.display().to_string();
    move |error| ObjectError::Local {
        path: path.clone(),
        error,
    }
}

/// An object store, or a part of one.
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
    /// Names of objects make directories, which stay when they are empty.
    has_directories: bool,
    // Taken out only to be dropped.
    runtime: Option<Runtime>,
    rests_until: Mutex<Option<Instant>>,
}

impl Objects {
    /// All objects below `prefix` of a store.
    ///
    /// # Errors
    /// The prefix is no name, or the system has no thread left.
    pub fn new(store: Arc<dyn ObjectStore>, prefix: &str) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("objects")
            .enable_all()
            .build();
        Ok(Self {
            store,
            has_directories: false,
            prefix: Key::parse(prefix).map_err(|error| error.to_string())?,
            runtime: Some(runtime.map_err(|error| error.to_string())?),
            rests_until: Mutex::new(None),
        })
    }

    /// The same, of a store that is a file system.
    #[must_use]
    pub fn with_directories(mut self) -> Self {
        self.has_directories = true;
        self
    }

    /// Whether it failed a moment ago.
    pub fn rests(&self) -> bool {
        self.rests_until
            .lock()
            .is_some_and(|until| Instant::now() < until)
    }

    /// The way to the objects below `base`.
    ///
    /// # Errors
    /// [`ObjectError::Name`].
    pub fn transfer(
        self: &Arc<Self>,
        base: &str,
        stop: &Arc<Stop>,
    ) -> Result<Transfer, ObjectError> {
        Ok(Transfer {
            base: join(&self.prefix, base)?,
            objects: Arc::clone(self),
            stop: Arc::clone(stop),
            moved: MovedSoFar::default(),
        })
    }

    /// Waits for one request. It runs on threads of the store's own: the one that waits is not
    /// needed for it.
    fn wait<T>(
        &self,
        key: &str,
        stop: &Stop,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, ObjectError> {
        let done = self.ask(key, stop, request);
        if let Err(ObjectError::Away { .. }) = &done {
            *self.rests_until.lock() = Some(Instant::now() + REST);
        }
        done
    }

    fn ask<T>(
        &self,
        key: &str,
        stop: &Stop,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, ObjectError> {
        let Some(runtime) = &self.runtime else {
            return Err(ObjectError::Stopped); // it is being dropped
        };
        runtime.block_on(async {
            tokio::select! {
                biased;
                () = stop.stopped() => Err(ObjectError::Stopped),
                done = tokio::time::timeout(PATIENCE, request) => match done {
                    Ok(done) => done.map_err(|error| meaning(key, &error)),
                    Err(_) => {
                        let why = format!("no answer within {} s", PATIENCE.as_secs());
                        Err(ObjectError::Away { key: key.to_owned(), why })
                    }
                },
            }
        })
    }
}

impl Drop for Objects {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background(); // requests that nobody waits for
        }
    }
}

fn meaning(key: &str, error: &Error) -> ObjectError {
    let key = key.to_owned();
    match error {
        Error::NotFound { .. } => ObjectError::Missing(key),
        other => ObjectError::Away {
            key,
            why: chain(other),
        },
    }
}

/// An error with its sources, each text once.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        below = cause.source();
    }
    text
}

/// A key below another, which it cannot leave.
fn join(base: &Key, relative: &str) -> Result<Key, ObjectError> {
    let inside = Key::parse(relative).map_err(|_| ObjectError::Name(relative.to_owned()))?;
    Ok(base.parts().chain(inside.parts()).collect())
}

/// Ends transfers on other threads.
#[derive(Debug)]
pub struct Stop(watch::Sender<bool>);

impl Default for Stop {
    fn default() -> Self {
        Self(watch::Sender::new(false))
    }
}

impl Stop {
    /// From now on every transfer fails at once.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }

    async fn stopped(&self) {
        let mut seen = self.0.subscribe();
        if seen.wait_for(|is_over| *is_over).await.is_err() {
            std::future::pending::<()>().await; // cannot be: the sender is `self`
        }
    }
}
