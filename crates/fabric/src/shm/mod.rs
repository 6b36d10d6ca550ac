//! Memory shared between the processes of one machine.
//!
//! A server makes a segment that can neither shrink nor grow and hands it to each client through a
//! Unix socket; from then on an operation is a few instructions of the client's own. The
//! connection stays: its end tells each side that the other is gone.
//!
//! Two things are unlike a network. A dead server's memory can still be written by those who have
//! it mapped, so a client asks before each batch whether the server is there. And no mapping can
//! be taken away from a process, so a client that is shut out is told to let go by itself, and its
//! process is killed when it does not do so at once ([`MemoryServer::fence`], or [`shut_out`] from
//! another process).

mod client;
mod fence;
mod hello;
mod server;

pub use client::{ConnectError, SharedMemory, ShutOutError, shut_out};
pub use fence::FenceError;
pub use server::MemoryServer;
