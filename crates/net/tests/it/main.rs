//! Tests of cores as processes.

mod common;
mod datagrams;
mod hostile;
mod leading;
mod loopback;
