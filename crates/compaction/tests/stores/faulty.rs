//! An object store that fails, or does wrong, when it is told to.

use std::fmt::{self, Display};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt as _, PutMultipartOptions, PutOptions, PutPayload, PutResult,
    Result,
};
use parking_lot::Mutex;
use tokio_stream::Stream;

/// What it does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// It does not answer anything.
    Down,
    /// It answers, but takes nothing more.
    Full,
    /// It takes no sorted files of jobs: outputs.
    FullForOutputs,
    /// It gives no outputs back.
    OutputsAway,
    /// It keeps outputs with one bit flipped,
    FlippedOutputs,
    /// without their last byte,
    ShortOutputs,
    /// or not at all.
    LostOutputs,
    /// It keeps inputs with one bit flipped.
    FlippedInputs,
}

/// A store with faults.
#[derive(Debug)]
pub struct Faulty {
    inner: Arc<dyn ObjectStore>,
    fault: Mutex<Fault>,
    /// Requests that were answered.
    pub answered: AtomicU64,
}

type Listed = Pin<Box<dyn Stream<Item = Result<ObjectMeta>> + Send>>;
type Deleted = Pin<Box<dyn Stream<Item = Result<Path>> + Send>>;

impl Faulty {
    pub fn new(inner: Arc<dyn ObjectStore>) -> Arc<Self> {
        Arc::new(Self {
            inner,
            fault: Mutex::new(Fault::None),
            answered: AtomicU64::new(0),
        })
    }

    pub fn set(&self, fault: Fault) {
        *self.fault.lock() = fault;
    }

    fn fault(&self, location: &Path, is_put: bool) -> Result<Fault> {
        let fault = *self.fault.lock();
        let fails = match fault {
            Fault::Down => true,
            Fault::Full => is_put,
            Fault::FullForOutputs => is_put && is_output(location),
            Fault::OutputsAway => !is_put && is_output(location),
            _ => false,
        };
        if fails {
            return Err(Error::Generic {
                store: "faulty",
                source: "507 insufficient storage, or no answer".into(),
            });
        }
        self.answered.fetch_add(1, Ordering::Relaxed);
        Ok(fault)
    }
}

fn is_output(location: &Path) -> bool {
    let location = location.as_ref();
    location.contains("/jobs/") && crate::is_table(location)
}

fn is_input(location: &Path) -> bool {
    location.as_ref().contains("/files/")
}

/// What is kept of what was put.
fn tampered(fault: Fault, location: &Path, payload: PutPayload) -> Option<PutPayload> {
    let mut bytes: Vec<u8> = payload.iter().flat_map(|part| part.to_vec()).collect();
    let middle = bytes.len() / 2;
    match fault {
        Fault::LostOutputs if is_output(location) => return None,
        Fault::FlippedOutputs if is_output(location) => bytes[middle] ^= 1,
        Fault::FlippedInputs if is_input(location) => bytes[middle] ^= 1,
        Fault::ShortOutputs if is_output(location) => {
            bytes.pop();
        }
        _ => return Some(payload),
    }
    Some(bytes.into())
}

impl Display for Faulty {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(formatter)
    }
}

#[tonic::async_trait]
impl ObjectStore for Faulty {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let fault = self.fault(location, true)?;
        match tampered(fault, location, payload) {
            Some(payload) => self.inner.put_opts(location, payload, options).await,
            None => {
                // Answered as if it were there.
                let elsewhere = Path::from("lost");
                self.inner.put(&elsewhere, PutPayload::new()).await
            }
        }
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.fault(location, true)?;
        self.inner.put_multipart_opts(location, options).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.fault(location, false)?;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: Pin<Box<dyn Stream<Item = Result<Path>> + Send>>,
    ) -> Deleted {
        match self.fault(&Path::default(), false) {
            Ok(_) => self.inner.delete_stream(locations),
            Err(error) => Box::pin(tokio_stream::once(Err(error))),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> Listed {
        match self.fault(&Path::default(), false) {
            Ok(_) => self.inner.list(prefix),
            Err(error) => Box::pin(tokio_stream::once(Err(error))),
        }
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.fault(&Path::default(), false)?;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.fault(to, true)?;
        self.inner.copy_opts(from, to, options).await
    }
}
