//! Experiments: clusters of protocol cores under workloads, measured and checked.
//!
//! | question | answered in |
//! |---|---|
//! | which experiments there are, how one is added | [`experiment`] |
//! | what decides a run of transactions, and what is kept of it | [`trial`] |
//! | the same of databases that share a pool of compaction workers | [`caas_many`] |
//! | the same of checkouts on the machines of a published experiment | [`rack`] |
//! | why a run has no outcome | [`trial_error`] |
//! | which systems can be compared | [`systems`] |
//! | what a system brings along to be compared | [`candidate`] |
//! | how data look on disk | [`experiment::data`] |
//! | how figures are drawn | [`figure`] |
//! | how a DAST cluster is put into the simulator | [`dast`] |
//! | how the systems are that it is compared with | [`baselines`] |
//! | what clients ask | [`requests`] |
//! | what list-append clients ask, and the history they saw | [`append`] |
//! | what TPC-C clients ask of DAST, and the rows they begin with | [`tpcc`] |
//! | closed loops that keep every answer, for checks | [`load`] |
//! | one cluster under one workload, watched, explained and judged | [`scenario`], [`simulate`] |
//! | where the time of calls went | [`why`] |
//! | what a cluster does under faults drawn from a seed, judged | [`soak`] |
//!
//! Files, threads and clocks are the program's: here a trial is a function of its parameters, and
//! a figure one of its data. Start reading at [`experiment`], then [`trial`].
#![forbid(unsafe_code)]

pub mod append;
pub mod baselines;
pub mod caas_many;
pub mod candidate;
pub mod dast;
pub mod experiment;
pub mod figure;
pub mod load;
pub mod rack;
pub mod requests;
pub mod scenario;
pub mod simulate;
pub mod soak;
pub mod systems;
pub mod tpcc;
pub mod trial;
pub mod trial_error;
pub mod why;
