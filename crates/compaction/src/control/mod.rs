//! The control plane as a process.
//!
//! | question | answered in |
//! |---|---|
//! | gRPC in front of the core | [`server`] |
//! | the durable state, in a file or in etcd | [`store`] |
//! | the threads that write it and renew the lease | [`store_thread`] |
//! | the client of etcd | [`manxdb_etcd`] |
//! | log lines about a job | [`journal`] |
//! | metrics | [`metrics`] |

mod journal;
pub mod metrics;
pub mod server;
pub mod store;
mod store_thread;
