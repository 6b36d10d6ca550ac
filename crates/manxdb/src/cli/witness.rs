//! The command line of witnesses.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use manxdb_witness::CarrierKind;
use manxdb_witness::kind::BPFFS;

/// Below the help.
pub const WITNESS_HELP: &str = "\
With --cluster FILE it is a witness of that cluster, whose coordinator says what it is a witness of.\n\
Without, it serves the one view that its flags name: to see whether an interface can carry a witness,\n\
and for measurements.\n\n\
Carriers: `user` answers in this process. `xdp` answers in the driver of a network interface, before any\n\
process runs, and `xdp-generic` behind the driver: every interface can do that, `lo` too. Both need Linux\n\
5.18, CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN, and a BPF file system (mount -t bpf bpf /sys/fs/bpf). What\n\
is missing is named and ends the process with exit code 1, unless --fallback lets it take the next best\n\
carrier.\n\n\
In the kernel records outlive this process: one that starts again with the same flags goes on with them,\n\
and `manxdb witness --remove`, with the same flags, takes them away. Durability: memory. What is\n\
acknowledged is in the memory of f + 1 machines, and on no disk; a machine that restarts has forgotten it.\n\
There is no authentication but for a view's tokens: keep the ports within a network that you trust.\n\
SIGTERM and SIGINT end the process.";

/// Who answers datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CarrierChoice {
    /// A process
    User,
    /// An XDP program in the interface's driver
    Xdp,
    /// An XDP program behind the driver
    XdpGeneric,
}

impl CarrierChoice {
    /// As the witness's crate has it.
    #[must_use]
    pub fn kind(self) -> CarrierKind {
        match self {
            Self::User => CarrierKind::User,
            Self::Xdp => CarrierKind::Xdp,
            Self::XdpGeneric => CarrierKind::XdpGeneric,
        }
    }
}

/// Flags of a witness.
#[derive(Debug, Args)]
pub struct WitnessArgs {
    /// Be a witness of this cluster: its file, or the data directory that holds it
    #[arg(long, value_name = "FILE")]
    pub cluster: Option<PathBuf>,
    /// The node's number in the cluster file [default: the first witness]
    #[arg(long, value_name = "NUMBER", requires = "cluster")]
    pub node: Option<u32>,
    /// Who answers datagrams [default: what the cluster file says, else user]
    #[arg(long, value_enum)]
    pub carrier: Option<CarrierChoice>,
    /// The network interface at which datagrams come in; --carrier user needs none
    #[arg(long, value_name = "IF")]
    pub interface: Option<String>,
    /// Take the next best carrier when this one cannot be had: xdp, xdp-generic, user
    #[arg(long)]
    pub fallback: bool,
    /// The BPF file system that maps are pinned in
    #[arg(long, value_name = "DIR", default_value = BPFFS)]
    pub bpffs: PathBuf,
    /// Take away what a witness with these flags has left in the kernel, with all its records, and end
    #[arg(long)]
    pub remove: bool,
    /// Where datagrams are sent to
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:7411",
        conflicts_with = "cluster",
        help_heading = "Without a cluster"
    )]
    pub listen: SocketAddr,
    /// The view that it serves: the master's life and the version of the witness list
    #[arg(long, value_name = "EPOCH.WLV", default_value = "1.1", value_parser = view, conflicts_with = "cluster", help_heading = "Without a cluster")]
    pub view: (u64, u32),
    /// What records and probes have to show [default: drawn, and printed]
    #[arg(
        long,
        value_name = "NUMBER",
        conflicts_with = "cluster",
        help_heading = "Without a cluster"
    )]
    pub record_token: Option<u64>,
    /// What collections have to show [default: drawn, and printed]
    #[arg(
        long,
        value_name = "NUMBER",
        conflicts_with = "cluster",
        help_heading = "Without a cluster"
    )]
    pub gc_token: Option<u64>,
    /// How often the log says what became of datagrams
    #[arg(long, value_name = "SECONDS", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=86_400), conflicts_with = "cluster", help_heading = "Without a cluster")]
    pub report_seconds: u64,
}

fn view(text: &str) -> Result<(u64, u32), String> {
    let parts = text.split_once('.');
    let numbers = parts.map(|(epoch, wlv)| (epoch.parse(), wlv.parse()));
    match numbers {
        Some((Ok(epoch), Ok(wlv))) => Ok((epoch, wlv)),
        _ => Err("it is two numbers, for example 1.1".to_owned()),
    }
}
