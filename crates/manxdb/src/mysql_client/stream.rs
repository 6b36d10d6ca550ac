//! The bytes of a connection: TCP, or TLS over it.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme, StreamOwned,
};

use super::error::ClientError;
use crate::cli::TlsMode;

/// How long one address may take to answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// TCP or TLS.
pub enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
    /// Between the two, while one becomes the other.
    Gone,
}

impl Stream {
    /// Connects to the first address of `host` that answers.
    pub fn connect(host: &str, port: u16) -> Result<Self, ClientError> {
        let unreachable = |source| ClientError::Unreachable {
            address: format!("{host}:{port}"),
            source,
        };
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in (host, port).to_socket_addrs().map_err(unreachable)? {
            match TcpStream::connect_timeout(&address, CONNECT_TIMEOUT) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    return Ok(Self::Plain(stream));
                }
                Err(error) => last = error,
            }
        }
        Err(unreachable(last))
    }

    /// Bounds each read, or none.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.set_read_timeout(timeout),
            Self::Tls(tls) => tls.sock.set_read_timeout(timeout),
            Self::Gone => Ok(()),
        }
    }

    /// Whether bytes travel encrypted.
    pub fn is_secure(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// The certificate that the server has shown, and proved to have the key of.
    pub fn server_certificate(&self) -> Option<&CertificateDer<'static>> {
        match self {
            Self::Tls(tls) => tls.conn.peer_certificates()?.first(),
            Self::Plain(_) | Self::Gone => None,
        }
    }

    /// Speaks TLS from now on.
    pub fn start_tls(
        &mut self,
        host: &str,
        mode: TlsMode,
        authority: Option<&Path>,
    ) -> Result<(), ClientError> {
        let config = client_config(mode, authority)?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| ClientError::Tls(format!("'{host}' is no name a certificate can have")))?;
        let mut connection = ClientConnection::new(config, name).map_err(tls_error)?;
        let Self::Plain(mut socket) = std::mem::replace(self, Self::Gone) else {
            return Err(ClientError::Malformed);
        };
        while connection.is_handshaking() {
            connection
                .complete_io(&mut socket)
                .map_err(|error| ClientError::Tls(error.to_string()))?;
        }
        *self = Self::Tls(Box::new(StreamOwned::new(connection, socket)));
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
            Self::Gone => Err(io::ErrorKind::NotConnected.into()),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
            Self::Gone => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
            Self::Gone => Ok(()),
        }
    }
}

fn tls_error(error: Error) -> ClientError {
    ClientError::Tls(error.to_string())
}

fn client_config(
    mode: TlsMode,
    authority: Option<&Path>,
) -> Result<Arc<ClientConfig>, ClientError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(tls_error)?;
    let config = match mode {
        TlsMode::VerifyIdentity => builder.with_root_certificates(roots(authority)?),
        TlsMode::VerifyCa => {
            let roots = Arc::new(roots(authority)?);
            let chain = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider))
                .build()
                .map_err(|error| ClientError::Tls(error.to_string()))?;
            let verifier = Lenient {
                chain: Some(chain),
                provider,
            };
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        }
        TlsMode::Disabled | TlsMode::Preferred | TlsMode::Required => {
            let verifier = Lenient {
                chain: None,
                provider,
            };
            builder
                .dangerous()
                .with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    Ok(Arc::new(config.with_no_client_auth()))
}

fn roots(authority: Option<&Path>) -> Result<RootCertStore, ClientError> {
    let Some(path) = authority else {
        let message = "checking the server's certificate needs --tls-ca FILE";
        return Err(ClientError::Tls(message.to_owned()));
    };
    let unusable = |error: &dyn std::fmt::Display| {
        ClientError::Tls(format!("--tls-ca {}: {error}", path.display()))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|e| unusable(&e))? {
        let certificate = certificate.map_err(|e| unusable(&e))?;
        roots.add(certificate).map_err(|e| unusable(&e))?;
    }
    if roots.is_empty() {
        return Err(unusable(&"no certificate in it"));
    }
    Ok(roots)
}

/// Checks less than a browser does: the chain but not the name, or neither. Whoever holds the
/// certificate must still prove to have its key.
#[derive(Debug)]
struct Lenient {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Lenient {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}
