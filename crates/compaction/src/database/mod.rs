//! A database's side of the service.
//!
//! | question | answered in |
//! |---|---|
//! | RocksDB's hook: hand a job out, wait for it, install or decline | [`service`] |
//! | verification of a worker's outputs | [`outputs`]; their blocks: [`blocks`] |
//! | blob files, which workers cannot handle | [`blobs`] |
//! | pressure on level 0 while the database is open | [`pressure`] |
//! | the staging directory that workers write to | [`staging`] |
//! | copies of the database's files in an object store | [`uploads`] |
//! | the database's identity there | [`identity`] |
//! | counters | [`counts`] |

mod blobs;
mod blocks;
mod counts;
pub mod identity;
pub mod outputs;
mod pressure;
pub mod service;
mod staging;
mod uploads;
