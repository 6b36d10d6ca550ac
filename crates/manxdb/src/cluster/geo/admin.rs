//! The admin listener of a node.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use manxdb_gateway::admin::{AdminServer, AdminSources};
use manxdb_gateway::mysql::SERVER_VERSION;
use manxdb_gateway::tls;
use serde_json::json;

use super::GeoCluster;
use super::pulse::Pulse;
use crate::cli::ClusterNode;
use crate::fault::Fault;
use crate::process::random_secret;

/// An admin listener that has its address and does not answer yet.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    address: SocketAddr,
    certificate: Option<Certificate>,
}

/// What is shown to browsers.
#[derive(Debug)]
enum Certificate {
    /// One of the node's own.
    Own,
    /// The chain and key in these files.
    Given(PathBuf, PathBuf),
}

impl Admin {
    /// Listens at `address`, for HTTPS alone if the flags say so.
    ///
    /// # Errors
    /// The address is taken, or none of this machine's.
    pub fn listen(address: SocketAddr, args: &ClusterNode) -> Result<Self, Fault> {
        let listener = bind(address)?;
        let address = listener
            .local_addr()
            .map_err(|error| Fault::io("cannot find out where the admin page is", error))?;
        let certificate = match (&args.tls_cert, &args.tls_key) {
            (Some(chain), Some(key)) => Certificate::Given(chain.clone(), key.clone()),
            _ => Certificate::Own,
        };
        Ok(Self {
            listener,
            address,
            certificate: args.admin_tls.then_some(certificate),
        })
    }

    /// Where browsers find it.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.certificate.is_some() {
            "https"
        } else {
            "http"
        };
        format!("{scheme}://{}", self.address)
    }

    /// Answers until the server is dropped. Everything that it shows is a number, a state or the name of a
    /// procedure, nothing that a client has written: nobody has to log in.
    ///
    /// # Errors
    /// The system has no thread or randomness to give, or the certificate in `data` cannot be used.
    pub fn serve(
        self,
        data: &Path,
        cluster: GeoCluster,
        pulse: Arc<Pulse>,
    ) -> Result<AdminServer, Fault> {
        let names = ["localhost".to_owned(), self.address.ip().to_string()];
        let tls = match &self.certificate {
            None => None,
            Some(Certificate::Own) => Some(tls::self_signed(data, &names)?),
            Some(Certificate::Given(chain, key)) => Some(tls::from_files(chain, key)?),
        };
        let cluster = Arc::new(cluster);
        let page = Arc::clone(&cluster);
        let sources = AdminSources {
            health: Box::new(move || pulse.health()),
            gauges: Box::new(move || cluster.gauges()),
            slow: Box::new(|| json!([])),
            redis: None,
            log_in: None,
            ownership: None,
            views: None,
            replication: None,
            geo: Some(Box::new(move || page.page())),
            backup: Box::new(|_, _| {
                Err("the rows of a cluster over regions are in memory".to_owned())
            }),
            token: random_secret()?,
            version: json!({
                "name": "ManxDB",
                "version": env!("CARGO_PKG_VERSION"),
                "mysql_version": SERVER_VERSION,
            }),
        };
        AdminServer::start(self.listener, tls, sources)
            .map_err(|error| Fault::io("cannot start the admin listener", error))
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, Fault> {
    TcpListener::bind(address).map_err(|error| Fault::Listen {
        address,
        listener: "the admin page",
        flag: "admin-listen",
        reason: match error.kind() {
            std::io::ErrorKind::AddrInUse => "the port is in use".to_owned(),
            _ => error.to_string(),
        },
    })
}
