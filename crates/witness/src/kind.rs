//! Which carriers there are, and what they have beyond a witness's carrier.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use manxdb_curp::ids::View;
use manxdb_curp::{ViewTokens, WitnessCarrier};

use crate::counts::Counts;
use crate::error::CarrierError;

/// Where the BPF file system is, unless one says otherwise.
pub const BPFFS: &str = "/sys/fs/bpf";

/// Who answers datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CarrierKind {
    /// A process.
    #[default]
    User,
    /// An XDP program in the interface's driver.
    Xdp,
    /// An XDP program behind the driver.
    XdpGeneric,
}

impl CarrierKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::User, Self::Xdp, Self::XdpGeneric];

    /// Its name on command lines and in cluster files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Xdp => "xdp",
            Self::XdpGeneric => "xdp-generic",
        }
    }

    /// Whether its records lie in the kernel.
    #[must_use]
    pub fn is_in_kernel(self) -> bool {
        self != Self::User
    }

    /// What to take when this one cannot be had.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        match self {
            Self::Xdp => Some(Self::XdpGeneric),
            Self::XdpGeneric => Some(Self::User),
            Self::User => None,
        }
    }
}

impl fmt::Display for CarrierKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CarrierKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.name() == text)
            .ok_or_else(|| format!("'{text}' is no carrier: user, xdp and xdp-generic are"))
    }
}

/// Where a carrier is, and whose.
#[derive(Debug, Clone)]
pub struct Place {
    /// The network interface that datagrams come in at; a process needs none.
    pub interface: String,
    /// Where they are sent to.
    pub address: SocketAddr,
    /// Of which cluster: what another one has left behind is not taken up.
    pub cluster: u64,
    /// The life of a witness that begins now. One whose maps were kept goes on with its own.
    pub life: u64,
    /// Where maps are pinned: a BPF file system.
    pub bpffs: PathBuf,
}

/// A carrier as this crate makes them.
pub trait Carrier: WitnessCarrier {
    /// Which.
    fn kind(&self) -> CarrierKind;

    /// Where datagrams have to be sent.
    fn address(&self) -> SocketAddr;

    /// The life of its records: as long as it is the same, none was lost.
    fn life(&self) -> u64;

    /// What datagrams of a view have to show, if it is served.
    fn tokens(&self, view: View) -> Option<ViewTokens>;

    /// What became of datagrams so far.
    fn counts(&self) -> Counts;

    /// Takes away what would outlive this process, and all records with it.
    ///
    /// # Errors
    /// The kernel's.
    fn remove(&mut self) -> Result<(), CarrierError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_carrier_has_a_name() {
        for kind in CarrierKind::ALL {
            assert_eq!(kind.name().parse(), Ok(kind));
        }
        assert!("ebpf".parse::<CarrierKind>().is_err());
    }
}
