//! The command line of the lab.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use manxdb_lab::experiment::{Experiment, Scale};

use crate::lab;

/// Runs all of them.
pub const EVERY: &str = "all";

/// Experiments in the simulator.
#[derive(Debug, Subcommand)]
pub enum LabCommand {
    /// List the experiments
    List,
    /// Run an experiment: data, figure and report
    #[command(after_help = "\
Writes OUT/PART/EXPERIMENT/ with data.json and data.csv (what was measured), figure.svg,\n\
figure.png and figure.pdf, report.md (claim by claim: what was said, what was measured, whether it holds) and\n\
run.json (commit, machine, load, the time it took); OUT/PART/README.md leads to all of a part. Equal\n\
seeds of simulated experiments make equal data and figures, byte for byte, whatever the number of\n\
threads; run.json differs, and the line of the report that says what is in it. Data are written after\n\
each trial: what was interrupted goes on with --resume.\n\n\
Scales: smoke takes seconds, laptop minutes on two cores, paper has the published parameters (DAST:\n\
10 regions of 10 shards) and may take hours; --at and --seeds run a part of it.\n\n\
lobsters-* start mariadbd (Debian's mariadb-server-core) beside manxdb, and MyRocks where ha_rocksdb.so\n\
is (mariadb-plugin-rocksdb; MARIADB_PLUGIN_DIR names another directory). curp-* and argus-* run in network\n\
namespaces of their own, for XDP programs (unshare and ip; CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_BPF,\n\
CAP_PERFMON). What a machine lacks is named in the results, and the other systems run.")]
    Run(LabRun),
    /// One trial, read from standard input: started by a run in namespaces of its own
    #[command(hide = true)]
    Trial {
        /// Of which kind
        kind: String,
    },
    /// Draw figure and report of an experiment again, from its data
    Figure {
        /// Which one, or all of a part
        #[arg(value_parser = experiments())]
        experiment: String,
        /// Where the results are
        #[arg(long, value_name = "DIR", default_value = "results")]
        out: PathBuf,
    },
}

/// Flags of `lab run`.
#[derive(Debug, Args)]
pub struct LabRun {
    /// Which one, or all of a part
    #[arg(value_parser = experiments())]
    pub experiment: String,
    /// How large
    #[arg(long, value_parser = scales(), default_value = "laptop")]
    pub scale: String,
    /// Where results go, in the directory of the part and the experiment
    #[arg(long, value_name = "DIR", default_value = "results")]
    pub out: PathBuf,
    /// The first seed; repetitions have those behind it
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// So many repetitions of each point [default: as the scale has]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: Option<u64>,
    /// R: regions, where an experiment has such [default: as the scale has]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub regions: Option<u32>,
    /// N: shards of each region, where an experiment has such [default: as the scale has]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub shards: Option<u32>,
    /// Only points at these values of the swept parameter
    #[arg(long, value_name = "VALUE", value_delimiter = ',')]
    pub at: Vec<f64>,
    /// Go on with what an earlier run in the same place has kept: trials that ran are not run again
    #[arg(long)]
    pub resume: bool,
    /// Trials at a time [default: one a core; what is measured by a clock always runs alone]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
}

fn experiments() -> PossibleValuesParser {
    let names = lab::experiments().map(Experiment::name);
    PossibleValuesParser::new(names.chain(lab::parts()).chain([EVERY]))
}

fn scales() -> PossibleValuesParser {
    PossibleValuesParser::new(Scale::ALL.map(Scale::name))
}
