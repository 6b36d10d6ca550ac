//! The control plane as a process: gRPC in front of its core, a store behind it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, atomic::AtomicU32, atomic::Ordering};
use std::time::Duration;

use manxdb_core::{NodeId, Token};
use manxdb_jobs::contender::{PlaneAnswer, PlaneAsk, Word as Said};
use manxdb_jobs::control::Report;
use manxdb_jobs::{Contender, Options};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};

use crate::actor::{Actor, Handle, Outlet};
use crate::control::journal;
use crate::control::store::{Store, StoreError, StoreLocation, keys};
use crate::control::store_thread::{STORE, StoreQueue, StoreThreads};
use crate::transport::link::does_not_lead;
use crate::transport::listener::{Refusals, Refused, arrivals};
use crate::transport::security::{Asks, Security, Tls};
use crate::transport::wire::proto::pool_server::{Pool, PoolServer};
use crate::transport::wire::proto::{ReportReply, ReportRequest, Word};
use crate::transport::wire::{MESSAGE_MAX, decode, encode_report, pack};

/// Words that may wait for one peer; more are lost, which the protocol mends.
const WORDS_MAX: usize = 1_024;

/// How often a connection that is silent is queue_end whether it is still there.
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
    actor: Actor<Contender>,
    store_threads: StoreThreads,
    runtime: Option<tokio::runtime::Runtime>,
}

impl ControlPlane {
    /// Serves on `address` over the store at `place`. In a file it leads from the start; in etcd
    /// one of those that share it does, and the others wait.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(
        address: SocketAddr,
        place: &StoreLocation,
        options: Options,
        security: &Security,
        seed: u64,
    ) -> Result<Self, StartError> {
        let listening = |error| StartError::Listen(address, error);
        let mut store = Store::open(place)?;
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
        let core = contender(&mut store, options, address, seed);
        let peers = Peers::default();
        let (store_queue, queue_end) = StoreQueue::queue(store.renewer()?);
        let outlet = {
            let peers = Arc::clone(&peers);
            |_| ToPeers { peers, store_queue }
        };
        let actor = Actor::start("control", core, outlet).map_err(listening)?;
        let store_threads =
            StoreThreads::start(store, queue_end, &actor.handle()).map_err(listening)?;
        let frontend = PoolFrontend {
            handle: actor.handle(),
            peers,
            numbers: Arc::new(AtomicU32::new(0)),
        };
        serve(&runtime, listener, frontend, security)?;
        Ok(Self {
            address,
            actor,
            store_threads,
            runtime: Some(runtime),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The state of the pool.
    pub fn report(&self) -> Option<Report> {
        match self.actor.handle().ask(PlaneAsk::Report).recv().ok()? {
            PlaneAnswer::Report(report) => Some(*report),
            PlaneAnswer::Standing(_) => None, // not what was queue_end
        }
    }

    /// Leads no more, so that another one may at once. Nothing is served afterwards.
    pub fn end(&self) {
        let leads = |answer| match answer {
            PlaneAnswer::Standing(standing) => standing.leads,
            PlaneAnswer::Report(_) => false,
        };
        let ask = |what| self.actor.handle().ask(what).recv();
        let led = ask(PlaneAsk::Standing).is_ok_and(leads);
        let leads_on = ask(PlaneAsk::End).is_ok_and(leads);
        if led && !leads_on {
            self.store_threads.wait_until_resigned();
        }
    }
}

/// The core over a store: alone over a file, one of several over etcd.
fn contender(store: &mut Store, options: Options, address: SocketAddr, seed: u64) -> Contender {
    match store {
        Store::File(file) => Contender::sole(options, STORE, seed, file.durable().clone()),
        Store::Etcd(etcd) => {
            let name = etcd.named(&address.to_string()).to_owned();
            let options = Options {
                description_max: keys::DESCRIPTION_MAX,
                ..options
            };
            Contender::several(options, etcd.lease(), name, STORE, seed)
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        self.end();
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn serve(
    runtime: &tokio::runtime::Runtime,
    listener: TcpListener,
    frontend: PoolFrontend,
    security: &Security,
) -> Result<(), StartError> {
    let service = PoolServer::new(frontend)
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
                    let greeting = tls.accept(stream).into_fallible();
                    async {
                        greeting.await.map_err(|(error, stream)| Refused {
                            stream,
                            why: format!("TLS: {error}"),
                        })
                    }
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

/// The core's outgoing messages: to databases and workers, and to its store.
struct ToPeers {
    peers: Peers,
    store_queue: StoreQueue,
}

impl Outlet<Contender> for ToPeers {
    fn send(&mut self, to: NodeId, said: Said) {
        let message = match said {
            Said::Pool(message) => message,
            Said::ToStore(word) => return self.store_queue.ask(word),
            Said::FromStore(_) => return, // a core never says this
        };
        journal::of_message(&message);
        if let Some(peer) = self.peers.lock().get(&to)
            && let Some(word) = pack(message)
            && peer.try_send(word).is_err()
        {
            tracing::debug!(peer = to.0, "a peer does not read; a word to it is lost");
        }
    }

    fn persist(&mut self, (): (), _: Token) {}
}

/// What peers reach.
struct PoolFrontend {
    handle: Handle<Contender>,
    peers: Peers,
    numbers: Arc<AtomicU32>,
}

impl PoolFrontend {
    async fn ask(&self, what: PlaneAsk) -> Result<PlaneAnswer, Status> {
        let (answer, waiting) = tokio::sync::oneshot::channel();
        self.handle.ask_with(what, move |answered| {
            let _ = answer.send(answered); // who queue_end has gone
        });
        let ending = |_| Status::unavailable("the control plane is ending");
        waiting.await.map_err(ending)
    }

    /// Refuses the connection unless this control plane leads: the peer then tries the next
    /// address.
    async fn refuse_unless_it_leads(&self) -> Result<(), Status> {
        match self.ask(PlaneAsk::Standing).await? {
            PlaneAnswer::Standing(standing) if !standing.leads => {
                Err(Status::failed_precondition(does_not_lead(&standing.leader)))
            }
            PlaneAnswer::Standing(_) | PlaneAnswer::Report(_) => Ok(()),
        }
    }
}

#[tonic::async_trait]
impl Pool for PoolFrontend {
    type TalkStream =
        std::pin::Pin<Box<dyn tokio_stream::Stream<Item = Result<Word, Status>> + Send + 'static>>;

    async fn talk(
        &self,
        request: Request<Streaming<Word>>,
    ) -> Result<Response<Self::TalkStream>, Status> {
        self.refuse_unless_it_leads().await?;
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
                        Ok(message) => handle.hear(peer, Said::Pool(message)),
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
        match self.ask(PlaneAsk::Report).await? {
            PlaneAnswer::Report(report) => Ok(Response::new(encode_report(*report))),
            PlaneAnswer::Standing(_) => Err(Status::internal("not what was queue_end")),
        }
    }
}
