//! A client of etcd: the few calls of its published API that a service needs whose leader is chosen
//! there.
//!
//! The client tries the members in turn, each for [`PATIENCE`]. A call may have taken effect
//! although no member answered, so a writer states its preconditions in its transaction.

// Clocks and sockets: no protocol core links this crate.
#![allow(clippy::disallowed_methods)]
#![warn(unreachable_pub)]

pub mod fence;

use std::time::Duration;

use tokio::runtime::Runtime;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status};

/// The generated types and services.
#[allow(missing_docs, clippy::pedantic, clippy::disallowed_methods)]
pub mod api {
    tonic::include_proto!("etcdserverpb");
}

use api::auth_client::AuthClient;
use api::compare::{CompareResult, CompareTarget, TargetUnion};
use api::kv_client::KvClient;
use api::lease_client::LeaseClient;
use api::{
    AuthenticateRequest, Compare, DeleteRangeRequest, KeyValue, LeaseGrantRequest,
    LeaseKeepAliveRequest, LeaseRevokeRequest, PutRequest, RangeRequest, RangeResponse, RequestOp,
    TxnRequest, TxnResponse, request_op,
};

/// A member that does not answer for this long is passed over.
pub const PATIENCE: Duration = Duration::from_secs(2);

/// Answers are read up to this size, in bytes: a page of the largest values.
const ANSWER_MAX: usize = 64 << 20;

/// Why a call to etcd failed.
#[derive(Debug, thiserror::Error)]
pub enum EtcdError {
    /// No member answers.
    #[error("no member of etcd answers ({0})")]
    Away(String),
    /// It does not let us in.
    #[error(
        "etcd at {0} does not let us in: {1} (look at --etcd-user, --etcd-password-file and the user's roles)"
    )]
    NotLetIn(String, String),
    /// It will not do it, also when asked again.
    #[error("etcd at {0} refuses: {1}")]
    Refused(String, String),
    /// What we were told cannot be used.
    #[error("{0}")]
    Setting(String),
}

/// Certificates in PEM.
#[derive(Debug, Clone)]
pub struct EtcdTls {
    /// The authority that signs etcd's certificates.
    pub authority: String,
    /// Our own certificate and its key, if etcd asks for one.
    pub own: Option<(String, String)>,
}

/// Where etcd is, and how to be let in.
#[derive(Debug, Clone, Default)]
pub struct EtcdAddress {
    /// Its members, as `HOST:PORT`.
    pub members: Vec<String>,
    /// Name and password.
    pub user: Option<(String, String)>,
    /// For TLS.
    pub tls: Option<EtcdTls>,
}

impl EtcdAddress {
    fn endpoints(&self) -> Result<Vec<Endpoint>, EtcdError> {
        if self.members.is_empty() {
            return Err(EtcdError::Setting("no member of etcd is given".to_owned()));
        }
        let members = self.members.iter();
        members.map(|member| self.endpoint(member)).collect()
    }

    fn endpoint(&self, member: &str) -> Result<Endpoint, EtcdError> {
        let wrong = |why: &dyn std::error::Error| {
            let why = chain(why);
            EtcdError::Setting(format!(
                "'{member}' is no address of etcd (HOST:PORT): {why}"
            ))
        };
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{member}"));
        let endpoint = endpoint.map_err(|error| wrong(&error))?;
        if endpoint.uri().port().is_none() {
            return Err(EtcdError::Setting(format!(
                "'{member}' is no address of etcd: give HOST:PORT (etcd's usual port is 2379)"
            )));
        }
        let endpoint = endpoint.connect_timeout(PATIENCE).tcp_nodelay(true);
        match &self.tls {
            Some(tls) => endpoint
                .tls_config(tls.config())
                .map_err(|error| wrong(&error)),
            None => Ok(endpoint),
        }
    }
}

impl EtcdTls {
    fn config(&self) -> ClientTlsConfig {
        let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&self.authority));
        match &self.own {
            Some((certificate, key)) => config.identity(Identity::from_pem(certificate, key)),
            None => config,
        }
    }
}

/// A connection to one member, with the token that it gave.
#[derive(Debug, Clone)]
struct Session {
    channel: Channel,
    token: Option<MetadataValue<Ascii>>,
}

impl Session {
    async fn open(endpoint: &Endpoint, user: Option<&(String, String)>) -> Result<Self, Status> {
        let channel = endpoint.connect().await;
        let channel = channel.map_err(|error| Status::unavailable(chain(&error)))?;
        let Some((name, password)) = user.cloned() else {
            let token = None;
            return Ok(Self { channel, token });
        };
        let mut users = AuthClient::new(channel.clone());
        let asked = users.authenticate(AuthenticateRequest { name, password });
        let token = asked.await?.into_inner().token.parse();
        let token = token.map_err(|_| Status::internal("its token is no text"))?;
        let token = Some(token);
        Ok(Self { channel, token })
    }

    /// A request that names us, and that a member without a leader refuses at once.
    fn request<T>(&self, body: T) -> Request<T> {
        let mut request = Request::new(body);
        let metadata = request.metadata_mut();
        if let Some(token) = &self.token {
            metadata.insert("token", token.clone());
        }
        metadata.insert("hasleader", MetadataValue::from_static("true"));
        request
    }

    fn keys(&self) -> KvClient<Channel> {
        KvClient::new(self.channel.clone()).max_decoding_message_size(ANSWER_MAX)
    }

    fn leases(&self) -> LeaseClient<Channel> {
        LeaseClient::new(self.channel.clone())
    }
}

/// A client, for one thread.
pub struct Etcd {
    runtime: Runtime,
    address: EtcdAddress,
    endpoints: Vec<Endpoint>,
    /// The member that is talked to.
    at: usize,
    session: Option<Session>,
}

impl Etcd {
    /// A client; it connects with the first call.
    ///
    /// # Errors
    /// [`EtcdError::Setting`]: an address or a certificate is not usable, or the system has no
    /// resources for a runtime.
    pub fn new(address: &EtcdAddress) -> Result<Self, EtcdError> {
        let endpoints = address.endpoints()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| EtcdError::Setting(error.to_string()))?;
        Ok(Self {
            runtime,
            address: address.clone(),
            endpoints,
            at: 0,
            session: None,
        })
    }

    /// Does a call at the member that is talked to, or at the next ones.
    fn call<T>(
        &mut self,
        what: impl AsyncFn(Session) -> Result<T, Status>,
    ) -> Result<T, EtcdError> {
        let mut why = Vec::new();
        // A connection of before may be gone without its member being away.
        let tries = self.endpoints.len() + usize::from(self.session.is_some());
        for _ in 0..tries {
            let was_open = self.session.is_some();
            let status = match self.attempt(&what) {
                Ok(done) => return Ok(done),
                Err(status) => status,
            };
            self.session = None;
            let member = self.member();
            if !was_open {
                self.at = (self.at + 1) % self.endpoints.len();
            }
            match class(&status) {
                Class::Elsewhere => why.push(format!("{member}: {}", status.message())),
                Class::Again if was_open => {} // a token of before
                Class::Again | Class::NotLetIn => {
                    return Err(EtcdError::NotLetIn(member, status.message().to_owned()));
                }
                Class::Refused => {
                    return Err(EtcdError::Refused(member, status.message().to_owned()));
                }
            }
        }
        why.dedup();
        Err(EtcdError::Away(why.join("; ")))
    }

    fn member(&self) -> String {
        let member = self.address.members.get(self.at);
        member.cloned().unwrap_or_default()
    }

    fn attempt<T>(
        &mut self,
        what: impl AsyncFn(Session) -> Result<T, Status>,
    ) -> Result<T, Status> {
        let Self {
            runtime,
            address,
            endpoints,
            at,
            session,
        } = self;
        let Some(endpoint) = endpoints.get(*at) else {
            return Err(Status::unavailable("there is no such member")); // `at` is below their number
        };
        let attempt = async {
            let open = match session.take() {
                Some(open) => open,
                None => Session::open(endpoint, address.user.as_ref()).await?,
            };
            *session = Some(open.clone());
            what(open).await
        };
        let limited = runtime.block_on(async { tokio::time::timeout(PATIENCE, attempt).await });
        limited.unwrap_or_else(|_| Err(Status::unavailable("it does not answer")))
    }

    /// The value at a key.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn get(&mut self, key: &[u8]) -> Result<Option<KeyValue>, EtcdError> {
        let page = self.range(key, &[], 1)?;
        Ok(page.kvs.into_iter().next())
    }

    /// Keys from `from` to before `to`, at most `limit` of them. A linearizable read.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn range(
        &mut self,
        from: &[u8],
        to: &[u8],
        limit: i64,
    ) -> Result<RangeResponse, EtcdError> {
        let range = RangeRequest {
            key: from.to_vec(),
            range_end: to.to_vec(),
            limit,
        };
        self.call(async |session: Session| {
            let reply = session.keys().range(session.request(range.clone())).await?;
            Ok(reply.into_inner())
        })
    }

    /// A transaction.
    ///
    /// # Errors
    /// [`EtcdError`]: it may have been done all the same.
    pub fn txn(&mut self, txn: &TxnRequest) -> Result<TxnResponse, EtcdError> {
        self.call(async |session: Session| {
            let reply = session.keys().txn(session.request(txn.clone())).await?;
            Ok(reply.into_inner())
        })
    }

    /// Grants a lease of at least `seconds`; returns its id.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn grant(&mut self, seconds: i64) -> Result<i64, EtcdError> {
        let grant = LeaseGrantRequest { ttl: seconds };
        self.call(async |session: Session| {
            let reply = session.leases().lease_grant(session.request(grant)).await?;
            Ok(reply.into_inner().id)
        })
    }

    /// Begins a lease anew; whether there is such a lease.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn renew(&mut self, lease: i64) -> Result<bool, EtcdError> {
        let renewal = LeaseKeepAliveRequest { id: lease };
        self.call(async |session: Session| {
            let request = session.request(tokio_stream::once(renewal));
            let reply = session.leases().lease_keep_alive(request).await?;
            let answer = reply.into_inner().message().await?;
            let answer = answer.ok_or_else(|| Status::unavailable("it closed the stream"))?;
            Ok(answer.ttl > 0)
        })
    }

    /// Ends a lease; keys that stand on it go.
    ///
    /// # Errors
    /// [`EtcdError`].
    pub fn revoke(&mut self, lease: i64) -> Result<(), EtcdError> {
        let revoke = LeaseRevokeRequest { id: lease };
        self.call(async |session: Session| {
            let request = session.request(revoke);
            session.leases().lease_revoke(request).await.map(|_| ())
        })
    }
}

/// Reactions to a status.
enum Class {
    /// Another member, or the same one later.
    Elsewhere,
    /// A new token.
    Again,
    /// Another user.
    NotLetIn,
    /// Nothing.
    Refused,
}

fn class(status: &Status) -> Class {
    let says = |what: &str| status.message().contains(what);
    match status.code() {
        Code::Unauthenticated => Class::Again,
        // A token of before its users were changed.
        Code::InvalidArgument if says("revision of auth store is old") => Class::Again,
        Code::PermissionDenied => Class::NotLetIn,
        Code::InvalidArgument if says("authentication failed") || says("user name is empty") => {
            Class::NotLetIn
        }
        Code::FailedPrecondition if says("authentication") => Class::NotLetIn,
        Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::OutOfRange
        | Code::NotFound
        | Code::ResourceExhausted
        | Code::Unimplemented => Class::Refused,
        _ => Class::Elsewhere,
    }
}

/// That a key was created at this revision; 0: that there is none.
#[must_use]
pub fn created_at(key: Vec<u8>, revision: i64) -> Compare {
    Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Create.into(),
        key,
        target_union: Some(TargetUnion::CreateRevision(revision)),
    }
}

/// That a key has this value.
#[must_use]
pub fn has_value(key: Vec<u8>, value: Vec<u8>) -> Compare {
    Compare {
        result: CompareResult::Equal.into(),
        target: CompareTarget::Value.into(),
        key,
        target_union: Some(TargetUnion::Value(value)),
    }
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut below = error.source();
    while let Some(cause) = below {
        text = format!("{text}: {cause}");
        below = cause.source();
    }
    text
}

fn operation(request: request_op::Request) -> RequestOp {
    RequestOp {
        request: Some(request),
    }
}

/// Puts a value; `lease` 0: for ever.
#[must_use]
pub fn put(key: Vec<u8>, value: Vec<u8>, lease: i64) -> RequestOp {
    let put = PutRequest { key, value, lease };
    operation(request_op::Request::RequestPut(put))
}

/// Removes a key.
#[must_use]
pub fn delete(key: Vec<u8>) -> RequestOp {
    let delete = DeleteRangeRequest { key };
    operation(request_op::Request::RequestDeleteRange(delete))
}

/// Reads a key.
#[must_use]
pub fn read(key: Vec<u8>) -> RequestOp {
    let range = RangeRequest {
        key,
        ..RangeRequest::default()
    };
    operation(request_op::Request::RequestRange(range))
}
