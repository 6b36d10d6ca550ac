//! `manxdb cluster`: starts the nodes of a commit path over several regions, watches and stops them.
//!
//! | file | |
//! |---|---|
//! | [`up`] | starting all processes of a cluster and watching them |
//! | [`children`] | one process a node, and how they end |
//! | [`status`] | asking them how they are, and stopping them |
//! | [`curp`] | the same for clusters that replicate Redis's keys, and of what they consist |
//! | [`slots`] | which hash slots such a cluster owns, and their move to another one |
//! | [`signals`] | failures made on purpose |
//!
//! What a node does is the server's: [`manxdb::cluster`].

mod children;
mod curp;
mod signals;
mod slots;
mod status;
mod up;

use std::process::ExitCode;

use manxdb::process::become_program;

use crate::cli::ClusterCommand;
use crate::fault::Fault;

pub use manxdb::cluster::answers::note;
pub use status::{ask, ask_each};

/// The program that is a node.
pub const SERVER: &str = "manxdb";
/// How to get it.
const WAY_OUT: &str = "build it with `cargo build --release -p manxdb`";

/// Runs a command on clusters.
///
/// # Errors
/// What is in the way, in one line.
pub fn run(command: &ClusterCommand) -> Result<ExitCode, Fault> {
    match command {
        ClusterCommand::Up(args) => up::run(args),
        ClusterCommand::Node(_) => Err(become_program(SERVER, WAY_OUT).into()),
        ClusterCommand::AddWitness { cluster, replaces } => curp::add_witness(cluster, *replaces),
        ClusterCommand::Slots { cluster } => slots::show(cluster),
        ClusterCommand::MoveSlots { slots, cluster, to } => slots::move_slots(cluster, to, *slots),
        ClusterCommand::GiveUpSlots {
            slots,
            cluster,
            owner,
        } => slots::give_up(cluster, owner, *slots),
        ClusterCommand::Status { cluster, json } => status::run(cluster, *json),
        ClusterCommand::Kill(target) => signals::kill(target),
        ClusterCommand::Pause { target, for_ms } => signals::pause(target, *for_ms),
        ClusterCommand::Resume { cluster, number } => signals::resume(cluster, *number),
        ClusterCommand::Down { cluster } => status::down(cluster),
    }
}
