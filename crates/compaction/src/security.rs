//! Who may take part: those who know a token, or have a certificate, or both.

use tonic::metadata::MetadataValue;
use tonic::service::Interceptor;
use tonic::transport::{Certificate, ClientTlsConfig, Identity, ServerTlsConfig};
use tonic::{Request, Status};

/// Certificates in PEM.
#[derive(Debug, Clone)]
pub struct Tls {
    /// Who signs the others' certificates.
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
    #[must_use]
    pub fn server(&self) -> ServerTlsConfig {
        ServerTlsConfig::new()
            .identity(Identity::from_pem(&self.certificate, &self.key))
            .client_ca_root(Certificate::from_pem(&self.authority))
    }

    /// For databases and workers.
    #[must_use]
    pub fn client(&self) -> ClientTlsConfig {
        ClientTlsConfig::new()
            .identity(Identity::from_pem(&self.certificate, &self.key))
            .ca_certificate(Certificate::from_pem(&self.authority))
            .domain_name(&self.server_name)
    }
}

/// What all who take part share.
#[derive(Debug, Clone, Default)]
pub struct Security {
    /// A secret that everybody says.
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
pub struct Asks(pub Option<String>);

impl Interceptor for Asks {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let Some(token) = &self.0 else {
            return Ok(request);
        };
        let said = request.metadata().get(HEADER).map(MetadataValue::as_bytes);
        let said = said.and_then(|said| said.strip_prefix(b"Bearer "));
        if said.is_some_and(|said| equal(said, token.as_bytes())) {
            return Ok(request);
        }
        Err(Status::unauthenticated(
            "this pool asks for its token (--token-file)",
        ))
    }
}

/// Compares without telling by its time how much was equal.
fn equal(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |sum, (a, b)| sum | (a ^ b));
    one.len() == other.len() && differing == 0
}
