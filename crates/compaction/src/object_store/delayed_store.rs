//! An object store behind an added network delay, for experiments on one machine.
//!
//! Each request is delayed once, by a round trip. There is no delay for its size, and connections
//! cost nothing, as if one were always open.

use std::fmt::{self, Display};
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use tokio::time::{Sleep, sleep};
use tokio_stream::Stream;

/// A store whose answers are late.
#[derive(Debug)]
pub(super) struct DelayedStore {
    inner: Arc<dyn ObjectStore>,
    round_trip: Duration,
}

impl DelayedStore {
    /// `inner`, to which it takes `delay` one way.
    pub(super) fn new(inner: Arc<dyn ObjectStore>, delay: Duration) -> Self {
        Self {
            inner,
            round_trip: delay * 2,
        }
    }

    async fn way(&self) {
        sleep(self.round_trip).await;
    }

    fn later<T: 'static>(&self, answers: Answers<T>) -> Answers<T> {
        Box::pin(Later {
            way: Some(Box::pin(sleep(self.round_trip))),
            answers,
        })
    }
}

impl Display for DelayedStore {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.round_trip.as_millis();
        write!(formatter, "{}, {millis} ms round trip", self.inner)
    }
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T>> + Send>>;

/// Several answers to one request: the first one is late, and the others come with it.
struct Later<T> {
    way: Option<Pin<Box<Sleep>>>,
    answers: Answers<T>,
}

impl<T> Stream for Later<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<T>>> {
        if let Some(way) = &mut self.way {
            ready!(way.as_mut().poll(context));
            self.way = None;
        }
        self.answers.as_mut().poll_next(context)
    }
}

/// An upload in parts, each of which is a request.
#[derive(Debug)]
struct DelayedUpload {
    inner: Box<dyn MultipartUpload>,
    round_trip: Duration,
}

#[tonic::async_trait]
impl MultipartUpload for DelayedUpload {
    fn put_part(&mut self, data: PutPayload) -> UploadPart {
        let (part, way) = (self.inner.put_part(data), self.round_trip);
        Box::pin(async move {
            sleep(way).await;
            part.await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        sleep(self.round_trip).await;
        self.inner.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        sleep(self.round_trip).await;
        self.inner.abort().await
    }
}

#[tonic::async_trait]
impl ObjectStore for DelayedStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.way().await;
        self.inner.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.way().await;
        let inner = self.inner.put_multipart_opts(location, options).await?;
        Ok(Box::new(DelayedUpload {
            inner,
            round_trip: self.round_trip,
        }))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.way().await;
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(&self, locations: Answers<Path>) -> Answers<Path> {
        self.later(self.inner.delete_stream(locations))
    }

    fn list(&self, prefix: Option<&Path>) -> Answers<ObjectMeta> {
        self.later(self.inner.list(prefix))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.way().await;
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.way().await;
        self.inner.copy_opts(from, to, options).await
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use object_store::ObjectStoreExt as _;
    use object_store::memory::InMemory;
    use tokio_stream::StreamExt as _;

    /// Milliseconds of one way.
    const DELAY: u64 = 4;

    /// Runs `requests` requests one after the other: they may take longer than the delays, never
    /// shorter.
    async fn takes<T>(requests: u32, what: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let done = what.await;
        assert!(began.elapsed() >= Duration::from_millis(2 * DELAY) * requests);
        done
    }

    async fn make_every_request() {
        let store = DelayedStore::new(Arc::new(InMemory::new()), Duration::from_millis(DELAY));
        let (key, other) = (Path::from("a/b"), Path::from("c"));
        let bytes = PutPayload::from_static(b"bytes");
        takes(1, store.put(&key, bytes)).await.unwrap();
        let got = takes(1, store.get_range(&key, 1..3)).await.unwrap();
        assert_eq!(&got[..], b"yt");
        assert_eq!(takes(1, store.head(&key)).await.unwrap().size, 5);
        let upload = takes(1, store.put_multipart(&other));
        let mut upload = upload.await.unwrap();
        takes(1, upload.put_part("part".into())).await.unwrap();
        takes(1, upload.complete()).await.unwrap();
        let listed = takes(1, store.list(None).collect::<Vec<_>>()).await;
        assert_eq!(listed.len(), 2);
        let keys = tokio_stream::iter([Ok(key), Ok(other)]);
        let removed = store.delete_stream(Box::pin(keys));
        assert_eq!(takes(1, removed.collect::<Vec<_>>()).await.len(), 2);
        assert_eq!(store.list(None).collect::<Vec<_>>().await.len(), 0);
    }

    #[test]
    fn every_request_takes_both_ways_and_comes_through() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        runtime.unwrap().block_on(make_every_request());
    }
}
