//! The way of a database or a worker to the control plane: one stream, opened again whenever it
//! breaks, to the next of the addresses that answers. One that does not lead says so at once, and
//! the next one is tried at once.

use std::time::Duration;

use manxdb_core::{Core, NodeId, Token};
use manxdb_jobs::Message;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};

use crate::actor::{Handle, Outlet};
use crate::transport::security::{Says, Security, Tls};
use crate::transport::wire::proto::pool_client::PoolClient;
use crate::transport::wire::proto::{ReportReply, ReportRequest, Word};
use crate::transport::wire::{MESSAGE_MAX, decode, pack};

/// The control plane, whichever of them leads.
pub const CONTROL: NodeId = NodeId(0);

/// Words that may wait for a connection; more are lost, which the protocol mends.
const WORDS_MAX: usize = 1_024;
const CONNECT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(200);
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// A control plane answers calls and beats at once; the link leaves one that is silent for this
/// long and tries the next.
const SILENCE: Duration = Duration::from_secs(3);

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
        let tls = security.tls.as_ref().map(Tls::client).transpose()?;
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
            if let Some(tls) = &tls {
                endpoint = endpoint
                    .tls_config(tls.clone())
                    .map_err(|error| chain(&error))?;
            }
            Ok(endpoint)
        };
        let endpoints: Result<Vec<_>, String> = addresses.iter().map(endpoint).collect();
        Ok(Self {
            endpoints: endpoints?,
            says: Says::new(security.token.as_deref())?,
        })
    }

    /// Asks the leader for the state of the pool; if there is none, the last control plane that
    /// answers.
    ///
    /// # Errors
    /// Why no control plane answers.
    pub fn report(&self) -> Result<ReportReply, String> {
        let runtime = runtime().map_err(|error| error.to_string())?;
        runtime.block_on(async {
            let mut best = Err("no control plane is known".to_owned());
            for endpoint in &self.endpoints {
                match self.report_of(endpoint).await {
                    Ok(report) if report.leads => return Ok(report),
                    Ok(report) => best = Ok(report),
                    Err(_) if best.is_ok() => {}
                    Err(error) => best = Err(format!("{}: {error}", endpoint.uri())),
                }
            }
            best
        })
    }

    async fn report_of(&self, endpoint: &Endpoint) -> Result<ReportReply, String> {
        let mut client = connect(endpoint, &self.says).await?;
        let reply = answered(client.report(ReportRequest {})).await;
        reply.map_err(|status| refused(endpoint, &status))
    }
}

/// The answer to a call, if it arrives within [`SILENCE`]: keep-alives show that a process exists,
/// not that it works.
async fn answered<T>(
    call: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
) -> Result<T, tonic::Status> {
    match tokio::time::timeout(SILENCE, call).await {
        Ok(reply) => reply.map(tonic::Response::into_inner),
        Err(_) => Err(tonic::Status::deadline_exceeded("it does not answer")),
    }
}

type Client = PoolClient<InterceptedService<Channel, Says>>;

async fn connect(endpoint: &Endpoint, says: &Says) -> Result<Client, String> {
    let channel = endpoint.connect().await.map_err(|error| chain(&error))?;
    let client = PoolClient::with_interceptor(channel, says.clone());
    Ok(client
        .max_decoding_message_size(MESSAGE_MAX)
        .max_encoding_message_size(MESSAGE_MAX))
}

/// The message of a control plane, or of a layer below it.
fn said(status: &tonic::Status) -> String {
    match std::error::Error::source(status) {
        Some(below) => format!("{}: {}", status.message(), chain(below)),
        None => status.message().to_owned(),
    }
}

/// Why a call failed, with a way out.
fn refused(endpoint: &Endpoint, status: &tonic::Status) -> String {
    let is_plain = endpoint.uri().scheme_str() == Some("http");
    let said = said(status);
    if is_plain && std::error::Error::source(status).is_some() {
        return format!(
            "{said} (the control plane may ask for TLS: --tls-ca, --tls-cert and --tls-key)"
        );
    }
    said
}

/// The status by which a control plane that does not lead refuses.
#[must_use]
pub fn does_not_lead(leader: &str) -> String {
    match leader {
        "" => "this control plane does not lead, and nobody else that it knows of".to_owned(),
        leader => format!("this control plane does not lead, {leader} does"),
    }
}

/// An error with its sources: the outer one alone only says that the transport failed.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
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

/// Outgoing messages of a core.
pub struct ToControl(mpsc::Sender<Word>);

impl<C: Core<Message = Message>> Outlet<C> for ToControl {
    fn send(&mut self, _: NodeId, message: Message) {
        if let Some(word) = pack(message) {
            let _ = self.0.try_send(word); // lost: it is said again
        }
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
    /// Sends `waiting` to the control plane, and hands arriving messages to `core`.
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

/// Why there is no connection, or no more.
enum Parted {
    /// It was there.
    Ended(String),
    /// There was none.
    Refused(String),
    /// Another control plane leads.
    Elsewhere(String),
    /// The core has ended and sends nothing any more: an orderly end.
    Over,
}

async fn carry<C: Core<Message = Message>>(
    route: &Route,
    mut words: mpsc::Receiver<Word>,
    core: &Handle<C>,
) {
    let mut last = vec![String::new(); route.endpoints.len()];
    let (mut place, mut passed) = (0, 0);
    while let (Some(endpoint), Some(last)) = (route.endpoints.get(place), last.get_mut(place)) {
        place = (place + 1) % route.endpoints.len();
        let parted = talk(endpoint, route, &mut words, core).await;
        let is_elsewhere = matches!(parted, Parted::Elsewhere(_));
        let why = match parted {
            Parted::Ended(why) => {
                last.clear();
                format!("the connection ended: {why}")
            }
            Parted::Refused(why) | Parted::Elsewhere(why) => why,
            Parted::Over => return,
        };
        // Said once: it is tried again and again.
        if why != *last {
            tracing::warn!(control = %endpoint.uri(), why, "no control plane here");
            *last = why;
        }
        // The one that leads is among the others, unless all have said that they do not.
        passed += 1;
        if !is_elsewhere || passed >= route.endpoints.len() {
            passed = 0;
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// One connection, for as long as there is one.
async fn talk<C: Core<Message = Message>>(
    endpoint: &Endpoint,
    route: &Route,
    words: &mut mpsc::Receiver<Word>,
    core: &Handle<C>,
) -> Parted {
    let mut client = match connect(endpoint, &route.says).await {
        Ok(client) => client,
        Err(why) => return Parted::Refused(why),
    };
    let (out, outgoing) = mpsc::channel(WORDS_MAX);
    // Messages that waited for a connection are old: the next beat carries the current state.
    while words.try_recv().is_ok() {}
    let opened = answered(client.talk(ReceiverStream::new(outgoing))).await;
    let heard = match opened {
        Ok(heard) => heard,
        Err(status) if status.code() == tonic::Code::FailedPrecondition => {
            return Parted::Elsewhere(said(&status));
        }
        Err(status) => return Parted::Refused(refused(endpoint, &status)),
    };
    tracing::info!(control = %endpoint.uri(), "talking to the control plane");
    let has_others = route.endpoints.len() > 1;
    exchange(&out, heard, has_others, words, core).await
}

/// Carries words both ways.
async fn exchange<C: Core<Message = Message>>(
    out: &mpsc::Sender<Word>,
    mut heard: tonic::Streaming<Word>,
    has_others: bool,
    words: &mut mpsc::Receiver<Word>,
    core: &Handle<C>,
) -> Parted {
    let ended = |why: &str| Parted::Ended(why.to_owned());
    let mut silent_since = tokio::time::Instant::now();
    loop {
        tokio::select! {
            word = words.recv() => match word {
                Some(word) => {
                    if out.send(word).await.is_err() {
                        return ended("it was closed");
                    }
                }
                None => return Parted::Over,
            },
            word = heard.next() => {
                silent_since = tokio::time::Instant::now();
                match word.map(|word| word.map(decode)) {
                    Some(Ok(Ok(Message::NotLeader { leader }))) => {
                        return Parted::Elsewhere(does_not_lead(&leader));
                    }
                    Some(Ok(Ok(message))) => core.hear(CONTROL, message),
                    Some(Ok(Err(error))) => return ended(&error.to_string()),
                    Some(Err(status)) => return ended(&said(&status)),
                    None => return ended("it was closed"),
                }
            },
            () = tokio::time::sleep_until(silent_since + SILENCE), if has_others => {
                return ended("it says nothing");
            },
        }
    }
}
