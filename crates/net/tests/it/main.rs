//! Tests of cores as processes.

mod common;
mod hostile;
mod loopback;
