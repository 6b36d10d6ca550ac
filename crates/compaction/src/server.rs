//! The control plane as a process: gRPC in front of its core, a file behind it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, atomic::AtomicU32, atomic::Ordering};
use std::time::Duration;

use manxdb_core::{NodeId, Token};
use manxdb_jobs::control::Report;
use manxdb_jobs::{Control, Message, Options, Record};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use crate::actor::{Actor, Handle, Outlet};
use crate::door::{Refusals, arrivals};
use crate::journal;
use crate::security::{Asks, Security, Tls};
use crate::store::{Store, StoreError};
use crate::wire::proto::pool_server::{Pool, PoolServer};
use crate::wire::proto::{ReportReply, ReportRequest, Word};
use crate::wire::{MESSAGE_MAX, decode, encode_report, pack};

/// Words that may wait for one peer; more are lost, which the protocol mends.
const WORDS_MAX: usize = 1_024;

/// How often a connection that is silent is asked whether it is still there.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Why a control plane does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Its address, or a thread.
    #[error("the control plane cannot start on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// Its certificates.
    #[error("the certificates of the control plane cannot be used: {0}")]
    Tls(String),
}

type Peers = Arc<Mutex<BTreeMap<NodeId, mpsc::Sender<Word>>>>;

/// A control plane that serves until it is dropped.
pub struct ControlPlane {
    address: SocketAddr,
    actor: Actor<Control>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl ControlPlane {
    /// Serves on `address` over the store at `path`.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        address: SocketAddr,
        path: &Path,
        options: Options,
        security: &Security,
        seed: u64,
    ) -> Result<Self, StartError> {
        let listening = |error| StartError::Listen(address, error);
        let store = Store::open(path)?;
        let core = Control::new(options, seed, store.durable().clone());
        let peers = Peers::default();
        let (records, written) = channel();
        let outlet = {
            let peers = Arc::clone(&peers);
            |_| ToPeers { peers, records }
        };
        let actor = Actor::start("control", core, outlet).map_err(listening)?;
        let handle = actor.handle();
        std::thread::Builder::new()
            .name("control-store".to_owned())
            .spawn(move || write_records(store, &written, &handle))
            .map_err(listening)?;
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("control-grpc")
            .enable_all()
            .build()
            .map_err(listening)?;
        let listener = runtime
            .block_on(TcpListener::bind(address))
            .map_err(listening)?;
        let address = listener.local_addr().map_err(listening)?;
        let doors = Doors {
            handle: actor.handle(),
            peers,
            numbers: Arc::new(AtomicU32::new(0)),
        };
        serve(&runtime, listener, doors, security)?;
        Ok(Self {
            address,
            actor,
            runtime: Some(runtime),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What is going on.
    pub fn report(&self) -> Option<Report> {
        self.actor.handle().ask(()).recv().ok()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn serve(
    runtime: &tokio::runtime::Runtime,
    listener: TcpListener,
    doors: Doors,
    security: &Security,
) -> Result<(), StartError> {
    let service = PoolServer::new(doors)
        .max_decoding_message_size(MESSAGE_MAX)
        .max_encoding_message_size(MESSAGE_MAX);
    let refusals = Refusals::default();
    let asks = Asks {
        token: security.token.clone(),
        refusals: refusals.clone(),
    };
    let service = tonic::service::interceptor::InterceptedService::new(service, asks);
    let router = Server::builder()
        .http2_keepalive_interval(Some(KEEP_ALIVE))
        .http2_keepalive_timeout(Some(KEEP_ALIVE))
        .add_service(service);
    let tls = security.tls.as_ref().map(Tls::acceptor).transpose();
    let tls = tls.map_err(StartError::Tls)?;
    runtime.spawn(async move {
        let served = match tls {
            Some(tls) => {
                let greet = move |stream| {
                    let greeting = tls.accept(stream);
                    async { greeting.await.map_err(|error| format!("TLS: {error}")) }
                };
                let connections = arrivals(listener, refusals, greet);
                router.serve_with_incoming(connections).await
            }
            None => {
                let connections = arrivals(listener, refusals, |stream| async { Ok(stream) });
                router.serve_with_incoming(connections).await
            }
        };
        if let Err(error) = served {
            tracing::error!(%error, "the control plane stopped serving");
        }
    });
    Ok(())
}

/// What the core says and writes.
struct ToPeers {
    peers: Peers,
    records: Sender<(Record, Token)>,
}

impl Outlet<Control> for ToPeers {
    fn send(&mut self, to: NodeId, message: Message) {
        journal::of_message(&message);
        if let Some(peer) = self.peers.lock().get(&to)
            && let Some(word) = pack(message)
            && peer.try_send(word).is_err()
        {
            tracing::debug!(peer = to.0, "a peer does not read; a word to it is lost");
        }
    }

    fn persist(&mut self, record: Record, token: Token) {
        journal::of_record(&record);
        let _ = self.records.send((record, token)); // only at the very end nobody writes
    }
}

/// Pause before records that could not be written are tried again. Until they are on disk the
/// core says nothing that depends on them, and databases compact locally.
const RETRY: Duration = Duration::from_secs(1);

fn write_records(mut store: Store, written: &Receiver<(Record, Token)>, core: &Handle<Control>) {
    while let Ok((first, mut last)) = written.recv() {
        let mut records = vec![first];
        while let Ok((record, token)) = written.try_recv() {
            records.push(record);
            last = token;
        }
        while let Err(error) = store.write(&records) {
            tracing::error!(%error, "the control plane cannot write; it tries again");
            std::thread::sleep(RETRY);
        }
        core.persisted(last);
    }
}

/// What peers reach.
struct Doors {
    handle: Handle<Control>,
    peers: Peers,
    numbers: Arc<AtomicU32>,
}

#[tonic::async_trait]
impl Pool for Doors {
    type TalkStream =
        std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<Word, Status>> + Send + 'static>>;

    async fn talk(
        &self,
        request: Request<Streaming<Word>>,
    ) -> Result<Response<Self::TalkStream>, Status> {
        let peer = NodeId(self.numbers.fetch_add(1, Ordering::Relaxed));
        let (words, waiting) = mpsc::channel(WORDS_MAX);
        self.peers.lock().insert(peer, words);
        let (handle, peers) = (self.handle.clone(), Arc::clone(&self.peers));
        let address = request.remote_addr().map(|address| address.to_string());
        tracing::debug!(peer = peer.0, address, "a peer is there");
        let mut heard = request.into_inner();
        tokio::spawn(async move {
            let why = loop {
                match heard.message().await {
                    Ok(Some(word)) => match decode(word) {
                        Ok(message) => handle.hear(peer, message),
                        Err(error) => break error.to_string(),
                    },
                    Ok(None) => break "it closed the connection".to_owned(),
                    Err(status) => break status.message().to_owned(),
                }
            };
            tracing::info!(why, peer = peer.0, address, "a peer is gone");
            peers.lock().remove(&peer);
        });
        let words = ReceiverStream::new(waiting).map(Ok);
        Ok(Response::new(Box::pin(words)))
    }

    async fn report(&self, _: Request<ReportRequest>) -> Result<Response<ReportReply>, Status> {
        let (answer, waiting) = tokio::sync::oneshot::channel();
        self.handle.ask_with((), move |report| {
            let _ = answer.send(report); // who asked has gone
        });
        match waiting.await {
            Ok(report) => Ok(Response::new(encode_report(report))),
            Err(_) => Err(Status::unavailable("the control plane is ending")),
        }
    }
}
