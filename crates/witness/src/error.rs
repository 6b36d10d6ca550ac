//! Why there is no carrier: what is missing, and how to get it.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A carrier cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CarrierError {
    /// The kernel is too old.
    #[error(
        "this kernel is {found}, and witnesses in the data plane need Linux {}.{} or newer: run a newer \
         kernel, or take --carrier user",
        .wanted.0, .wanted.1
    )]
    Kernel {
        /// Its release.
        found: String,
        /// The first that will do.
        wanted: (u32, u32),
    },
    /// The kernel was built without what is needed.
    #[error(
        "this kernel has no eBPF ({0}): run one with CONFIG_BPF_SYSCALL and CONFIG_XDP_SOCKETS, as the \
         distributions build it, or take --carrier user"
    )]
    KernelWithoutBpf(io::Error),
    /// The process may not.
    #[error(
        "this process lacks {}: start it as root, or from a unit with CapabilityBoundingSet=CAP_BPF \
         CAP_PERFMON CAP_NET_ADMIN (manxdb-witness.service has it), or take --carrier user",
        .missing.join(" and ")
    )]
    Right {
        /// Capabilities.
        missing: Vec<&'static str>,
    },
    /// Nothing can be pinned.
    #[error("{} is no BPF file system: mount -t bpf bpf {}", .0.display(), .0.display())]
    FileSystem(PathBuf),
    /// No such interface.
    #[error("there is no network interface {0} here: `ip link` shows those there are")]
    Interface(String),
    /// The driver does not run XDP programs.
    #[error(
        "the driver of {0} runs no XDP programs (native XDP): take --carrier xdp-generic, which needs no \
         driver, or an interface whose driver does, such as ixgbe, i40e, ice, mlx5, ena, virtio_net or veth"
    )]
    Driver(String),
    /// Another program is attached.
    #[error(
        "the interface {0} has another XDP program, or one in the other mode: `ip link show {0}` shows it, \
         `ip link set dev {0} xdp off` and `xdpgeneric off` take it away"
    )]
    Taken(String),
    /// Only IPv4 is spoken.
    #[error(
        "{0} is no IPv4 address: witnesses in the data plane answer IPv4 alone; give one with --listen"
    )]
    Address(SocketAddr),
    /// Another machine than the programs are made for.
    #[error("the programs are for little-endian machines, and this is none: take --carrier user")]
    Machine,
    /// A socket cannot be had.
    #[error("cannot listen on {address}: {source} (another address: --listen)")]
    Socket {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The kernel refused something else.
    #[error("cannot {what}: {why}")]
    Refused {
        /// What was being done.
        what: &'static str,
        /// The kernel's words.
        why: String,
    },
}

impl CarrierError {
    pub(crate) fn refused<E: std::error::Error>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |error| Self::Refused {
            what,
            why: with_causes(&error),
        }
    }
}

/// An error with all that led to it, since libraries say only the outermost.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let more = inner.to_string();
        if !words.contains(&more) {
            words.push_str(": ");
            words.push_str(&more);
        }
        cause = inner.source();
    }
    words
}
