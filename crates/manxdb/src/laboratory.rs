//! Commands that the program `manxdb-lab` carries out: benchmarks, experiments, simulations, and
//! starting and watching a cluster. It is built from `crates/lab-cli` and lies beside this program,
//! which needs none of what it links.

use std::ffi::OsString;

use crate::fault::Fault;
use crate::process;

/// Name of the program.
pub const PROGRAM: &str = "manxdb-lab";

/// How to get it.
const WAY_OUT: &str = "build it with `cargo build --release --bin manxdb-lab`, or install both \
                       programs of a release in one directory";

/// Whether the laboratory carries out the command line `arguments` (without the program's name).
pub fn is_asked(arguments: &[OsString]) -> bool {
    let word = |index: usize| arguments.get(index).and_then(|word| word.to_str());
    match word(0) {
        Some("bench" | "lab" | "sim") => true,
        // A node of a cluster is a server's process; what starts and watches nodes is not.
        Some("cluster") => word(1) != Some("node"),
        Some("help") => is_asked(&arguments[1..]),
        _ => false,
    }
}

/// Replaces this process by the laboratory with the same arguments.
///
/// # Errors
/// Returns only when that fails, with the reason and how to get the program.
pub fn run() -> Fault {
    process::become_program(PROGRAM, WAY_OUT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_a_cluster_are_the_servers_and_clusters_the_laboratorys() {
        let asked = |line: &str| is_asked(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        for line in [
            "bench olap",
            "lab",
            "sim --help",
            "cluster",
            "cluster up dast",
            "help lab run",
        ] {
            assert!(asked(line), "{line}");
        }
        for line in [
            "serve",
            "cluster node --node 1",
            "--help",
            "help",
            "help cluster node",
            "",
        ] {
            assert!(!asked(line), "{line}");
        }
    }
}
