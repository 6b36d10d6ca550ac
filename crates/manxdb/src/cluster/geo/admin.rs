//! The admin listener of a node.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use manxdb_gateway::admin::{AdminServer, AdminSources};
use manxdb_gateway::tls;
use rustls::ServerConfig;

use super::GeoCluster;
use super::pulse::Pulse;
use crate::cli::ClusterNode;
use crate::fault::Fault;
use crate::process::{listen, random_secret, version};

/// An admin listener that has its address and does not answer yet.
#[derive(Debug)]
pub struct Admin {
    listener: TcpListener,
    address: SocketAddr,
    /// None: it speaks plain HTTP.
    tls: Option<Arc<ServerConfig>>,
}

impl Admin {
    /// Listens at `address`, for HTTPS alone if the flags say so: with the certificate that they name, or
    /// else with one of the node's own in `data`.
    ///
    /// # Errors
    /// The address is taken, or none of this machine's, or the certificate cannot be used.
    pub fn listen(address: SocketAddr, args: &ClusterNode, data: &Path) -> Result<Self, Fault> {
        let listener = listen(address, "the admin page", "admin-listen")?;
        let address = listener
            .local_addr()
            .map_err(|error| Fault::io("cannot find out where the admin page is", error))?;
        let tls = match (&args.tls_cert, &args.tls_key) {
            _ if !args.admin_tls => None,
            (Some(chain), Some(key)) => Some(tls::from_files(chain, key)?),
            _ => {
                let names = ["localhost".to_owned(), address.ip().to_string()];
                Some(tls::self_signed(data, &names)?)
            }
        };
        Ok(Self {
            listener,
            address,
            tls,
        })
    }

    /// Where browsers find it.
    #[must_use]
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Answers until the server is dropped. Everything that it shows is a number, a state or the name of a
    /// procedure, nothing that a client has written: nobody has to log in.
    ///
    /// # Errors
    /// The system has no thread or randomness to give.
    pub fn serve(self, cluster: GeoCluster, pulse: Arc<Pulse>) -> Result<AdminServer, Fault> {
        let cluster = Arc::new(cluster);
        let page = Arc::clone(&cluster);
        let sources = AdminSources {
            geo: Some(Box::new(move || page.page())),
            ..AdminSources::new(
                move || pulse.health(),
                move || cluster.gauges(),
                "the rows of a cluster over regions are in memory",
                random_secret()?,
                version(),
            )
        };
        AdminServer::start(self.listener, self.tls, sources)
            .map_err(|error| Fault::io("cannot start the admin listener", error))
    }
}
