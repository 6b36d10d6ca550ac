//! The way of a database or a worker to the control plane: one stream, opened again whenever it
//! breaks, to the next of the addresses that answers.

use std::time::Duration;

use manxdb_core::{Core, NodeId, Token};
use manxdb_jobs::Message;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;

use crate::actor::{Handle, Outlet};
use crate::security::{Says, Security};
use crate::wire::proto::pool_client::PoolClient;
use crate::wire::proto::{ReportReply, ReportRequest, Word};
use crate::wire::{decode, encode};

/// The control plane, whichever of them leads.
pub const CONTROL: NodeId = NodeId(0);

/// Words that may wait for a connection; more are lost, which the protocol mends.
const WORDS_MAX: usize = 1_024;
const CONNECT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(200);
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Where a control plane may be, and how to be let in.
#[derive(Debug, Clone)]
pub struct Route {
    endpoints: Vec<Endpoint>,
    says: Says,
}

impl Route {
    /// Addresses such as `10.0.0.7:7411`, tried in turn.
    ///
    /// # Errors
    /// One of them is no address, or the token or a certificate is of no use.
    pub fn new(addresses: &[String], security: &Security) -> Result<Self, String> {
        if addresses.is_empty() {
            return Err("no address of a control plane was given".to_owned());
        }
        let scheme = if security.tls.is_some() {
            "https"
        } else {
            "http"
        };
        let endpoint = |address: &String| {
            let wrong = |error: tonic::transport::Error| {
                format!("'{address}' is no address of a control plane (HOST:PORT): {error}")
            };
            let mut endpoint = Endpoint::from_shared(format!("{scheme}://{address}"))
                .map_err(wrong)?
                .connect_timeout(CONNECT)
                .http2_keep_alive_interval(KEEP_ALIVE)
                .keep_alive_timeout(KEEP_ALIVE)
                .keep_alive_while_idle(true)
                .tcp_nodelay(true);
            if let Some(tls) = &security.tls {
                endpoint = endpoint.tls_config(tls.client()).map_err(wrong)?;
            }
            Ok(endpoint)
        };
        let endpoints: Result<Vec<_>, String> = addresses.iter().map(endpoint).collect();
        Ok(Self {
            endpoints: endpoints?,
            says: Says::new(security.token.as_deref())?,
        })
    }

    /// Asks what is going on.
    ///
    /// # Errors
    /// Why none of the control planes answers.
    pub fn report(&self) -> Result<ReportReply, String> {
        let runtime = runtime().map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let mut why = String::new();
            for endpoint in &self.endpoints {
                match self.report_of(endpoint).await {
                    Ok(report) => return Ok(report),
                    Err(error) => why = format!("{}: {error}", endpoint.uri()),
                }
            }
            Err(why)
        })
    }

    async fn report_of(&self, endpoint: &Endpoint) -> Result<ReportReply, String> {
        let channel = endpoint.connect().await.map_err(chain)?;
        let mut client = PoolClient::with_interceptor(channel, self.says.clone());
        let reply = client.report(ReportRequest {}).await;
        reply
            .map(tonic::Response::into_inner)
            .map_err(|status| status.message().to_owned())
    }
}

/// An error with what is below it: the outer one alone says only that transport failed.
fn chain(error: impl std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        text = format!("{text}: {cause}");
        below = cause.source();
    }
    text
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// What a core says on its way out.
pub struct ToControl(mpsc::Sender<Word>);

impl<C: Core<Message = Message>> Outlet<C> for ToControl {
    fn send(&mut self, _: NodeId, message: Message) {
        let _ = self.0.try_send(encode(message)); // lost: it is said again
    }

    fn persist(&mut self, _: C::Record, _: Token) {}
}

/// Words on their way, before there is a connection.
pub struct Waiting(mpsc::Receiver<Word>);

/// The two ends of a queue of words.
#[must_use]
pub fn queue() -> (ToControl, Waiting) {
    let (words, waiting) = mpsc::channel(WORDS_MAX);
    (ToControl(words), Waiting(waiting))
}

/// A stream to the control plane that is held open until this is dropped.
pub struct Link {
    _end: tokio::sync::oneshot::Sender<()>,
}

impl Link {
    /// Carries `waiting` out and what is said to `core` in.
    ///
    /// # Errors
    /// The system has no thread left.
    pub fn start<C>(route: Route, waiting: Waiting, core: Handle<C>) -> std::io::Result<Self>
    where
        C: Core<Message = Message> + 'static,
        Handle<C>: Send,
    {
        let runtime = runtime()?;
        let (end, ended) = tokio::sync::oneshot::channel();
        std::thread::Builder::new()
            .name("compaction-link".to_owned())
            .spawn(move || {
                runtime.block_on(async {
                    tokio::select! {
                        () = carry(&route, waiting.0, &core) => {}
                        _ = ended => {}
                    }
                });
            })?;
        Ok(Self { _end: end })
    }
}

async fn carry<C: Core<Message = Message>>(
    route: &Route,
    mut words: mpsc::Receiver<Word>,
    core: &Handle<C>,
) {
    let mut was_connected = true;
    for endpoint in route.endpoints.iter().cycle() {
        match talk(endpoint, &route.says, &mut words, core).await {
            Ok(()) => {
                tracing::warn!(control = %endpoint.uri(), "the control plane is gone");
                was_connected = true;
            }
            Err(error) if was_connected => {
                tracing::warn!(control = %endpoint.uri(), %error, "no control plane answers");
                was_connected = false;
            }
            Err(_) => {} // said once
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// One connection, until it breaks.
async fn talk<C: Core<Message = Message>>(
    endpoint: &Endpoint,
    says: &Says,
    words: &mut mpsc::Receiver<Word>,
    core: &Handle<C>,
) -> Result<(), String> {
    let channel = endpoint.connect().await.map_err(chain)?;
    let mut client = PoolClient::with_interceptor(channel, says.clone());
    let (out, outgoing) = mpsc::channel(WORDS_MAX);
    // What waited for a connection is old: the next beat says what is true now.
    while words.try_recv().is_ok() {}
    let opened = client.talk(ReceiverStream::new(outgoing)).await;
    let mut heard = opened
        .map_err(|status| status.message().to_owned())?
        .into_inner();
    tracing::info!(control = %endpoint.uri(), "talking to the control plane");
    loop {
        tokio::select! {
            word = words.recv() => match word {
                Some(word) => {
                    if out.send(word).await.is_err() {
                        return Ok(());
                    }
                }
                None => return Ok(()),
            },
            word = heard.next() => match word {
                Some(Ok(word)) => match decode(word) {
                    Ok(message) => core.hear(CONTROL, message),
                    Err(error) => return Err(error.to_string()),
                },
                _ => return Ok(()),
            },
        }
    }
}
