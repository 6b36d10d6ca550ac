//! The fence on a real etcd: of two processes one leads, and what the other one writes is refused.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod fence;
