//! Flags of services whose state may be in etcd.

use std::path::PathBuf;

use clap::Args;

/// Which etcd, how a process is let in there, and how its leadership ends.
#[derive(Debug, Args)]
pub struct EtcdArgs {
    /// Members of the etcd that its state is in, instead of a file; tried in turn
    #[arg(long, value_name = "HOST:PORT", value_delimiter = ',')]
    pub etcd: Vec<String>,
    /// Seconds for which a leader that is not heard of keeps the others waiting. It stops serving
    /// when etcd has not heard of it for four fifths of them
    #[arg(long, value_name = "SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(2..=60))]
    pub etcd_lease: u16,
    /// Name of a user of etcd's, if it asks for one
    #[arg(long, value_name = "NAME", requires_all = ["etcd", "etcd_password_file"])]
    pub etcd_user: Option<String>,
    /// File with the user's password
    #[arg(long, value_name = "FILE", requires = "etcd_user")]
    pub etcd_password_file: Option<PathBuf>,
    /// File with the certificate (PEM) that signs those of etcd's members: speak TLS
    #[arg(long, value_name = "FILE", requires = "etcd")]
    pub etcd_tls_ca: Option<PathBuf>,
    /// File with our own certificate (PEM), if etcd asks for one
    #[arg(long, value_name = "FILE", requires_all = ["etcd_tls_ca", "etcd_tls_key"])]
    pub etcd_tls_cert: Option<PathBuf>,
    /// File with its key (PEM)
    #[arg(long, value_name = "FILE", requires = "etcd_tls_cert")]
    pub etcd_tls_key: Option<PathBuf>,
}
