//! Authentication: by a token, a certificate, or both.

use std::net::IpAddr;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};
use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};
use tonic::{Request, Status};

use crate::transport::listener::Refusals;

/// Certificates in PEM.
#[derive(Debug, Clone)]
pub struct Tls {
    /// The authority that signs the peers' certificates.
    pub authority: String,
    /// Our own certificate,
    pub certificate: String,
    /// and its key.
    pub key: String,
    /// The name in the control plane's certificate.
    pub server_name: String,
}

impl Tls {
    /// For the control plane: it asks for a certificate.
    ///
    /// # Errors
    /// Which of the certificates is of no use, and why.
    pub fn acceptor(&self) -> Result<TlsAcceptor, String> {
        let authorities = certificates("the authority's certificate", &self.authority)?;
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            let wrong = |error| format!("the authority's certificate: {error}");
            roots.add(authority).map_err(wrong)?;
        }
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
        let verifier = verifier.map_err(|error| format!("the authority's certificate: {error}"))?;
        let chain = certificates("our certificate", &self.certificate)?;
        let config = ServerConfig::builder()
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, self.private_key()?);
        let mut config =
            config.map_err(|error| format!("our certificate and its key do not fit: {error}"))?;
        config.alpn_protocols.push(b"h2".to_vec());
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// For databases and workers.
    ///
    /// # Errors
    /// Which of the certificates is of no use, and why.
    pub fn client(&self) -> Result<ClientTlsConfig, String> {
        certificates("the authority's certificate", &self.authority)?;
        certificates("our certificate", &self.certificate)?;
        self.private_key()?;
        Ok(ClientTlsConfig::new()
            .identity(Identity::from_pem(&self.certificate, &self.key))
            .ca_certificate(Certificate::from_pem(&self.authority))
            .domain_name(&self.server_name))
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, String> {
        PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(|error| {
            format!("the key of our certificate is no private key in PEM: {error}")
        })
    }
}

/// Reads what should hold at least one certificate.
fn certificates(what: &str, pem: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(format!(
            "{what} is not there: its file holds no PEM certificate"
        )),
        Err(error) => Err(format!("{what} cannot be read as PEM: {error}")),
    }
}

/// Credentials that all processes of a pool share.
#[derive(Debug, Clone, Default)]
pub struct Security {
    /// The secret that every process of a pool presents.
    pub token: Option<String>,
    /// Certificates on both sides.
    pub tls: Option<Tls>,
}

const HEADER: &str = "authorization";

/// Says the token.
#[derive(Debug, Clone)]
pub struct Says(Option<MetadataValue<tonic::metadata::Ascii>>);

impl Says {
    /// Says `token`.
    ///
    /// # Errors
    /// It has characters that no header may have.
    pub fn new(token: Option<&str>) -> Result<Self, String> {
        let value = token.map(|token| format!("Bearer {token}").parse());
        match value.transpose() {
            Ok(value) => Ok(Self(value)),
            Err(_) => Err(
                "the token of the compaction pool has characters that are not ASCII text"
                    .to_owned(),
            ),
        }
    }
}

impl Interceptor for Says {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(value) = &self.0 {
            request.metadata_mut().insert(HEADER, value.clone());
        }
        Ok(request)
    }
}

/// Asks for the token.
#[derive(Debug, Clone)]
pub struct Asks {
    /// The token; `None`: peers need none.
    pub token: Option<String>,
    /// Where refusals are logged.
    pub refusals: Refusals,
}

impl Asks {
    fn check(&self, request: &Request<()>) -> Result<(), &'static str> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        let Some(said) = request.metadata().get(HEADER) else {
            return Err("it said no token");
        };
        match said.as_bytes().strip_prefix(b"Bearer ") {
            Some(said) if equal(said, token.as_bytes()) => Ok(()),
            _ => Err("it said a wrong token"),
        }
    }
}

impl Interceptor for Asks {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let peer: Option<IpAddr> = request.remote_addr().map(|peer| peer.ip());
        match self.check(&request) {
            Ok(()) => {
                self.refusals.forget(peer);
                Ok(request)
            }
            Err(why) => {
                self.refusals.say(peer, why);
                let told = format!("this pool asks for its token (--token-file), and {why}");
                Err(Status::unauthenticated(told))
            }
        }
    }
}

/// Compares in a time that does not depend on the position of a difference.
fn equal(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differing == 0
}
