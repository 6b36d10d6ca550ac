//! Memory across machines, through [libfabric](https://ofiwg.github.io/libfabric/): the same code
//! over TCP, the memory of one machine, InfiniBand and RoCE (`verbs`) and Amazon's `efa`.
//!
//! A provider promises little unless it is asked, so it is asked for all that
//! [`Fabric`](crate::Fabric) says, and refused by name when it does not grant it ([`Refused`]):
//!
//! | the trait says | asked of the provider |
//! |---|---|
//! | operations reach the memory of servers | reliable endpoints, remote memory access, memory registered under a key |
//! | swaps and additions are one after another | 64-bit compare-and-swap and fetch-and-add |
//! | a word is never seen half written | atomic reads and writes of arrays of words, or hardware that is known ([`Copies`]) |
//! | what is complete is seen by every reader | completion when it is delivered, not when it has left |
//! | the word of an ordered write comes last | order of remote writes, if it is granted for the size of a piece; if not, the word leaves when its bytes are complete |
//!
//! Both sides have a port for each connection: an endpoint that is alone in its domain, with one
//! piece of memory that libfabric may touch. A server's ports all have the same pages registered,
//! each under a key of its own. So shutting a client out is closing a port, which closes its
//! endpoint (what is on its way is not received) and its key (what comes later is refused), while
//! all others go on ([`MemoryServer::fence`]). And a client that has lost a server closes its port
//! to it: nothing that comes late can touch buffers that are used again.
//!
//! Addresses and keys are exchanged over a TCP connection, which stays: its end tells each side
//! that the other is gone, which not every provider does, and so does that of its machine. A server
//! that neither ends nor answers is given up by who has a clock ([`Fabric::give_up`](crate::Fabric)).
//! Who is dead is shut out at the same listener, by whoever asks ([`shut_out`]). Who does not know the
//! server's token ([`ListenerAddress`]) is not heard there, and without a key that nobody guesses nothing can be
//! asked of a port. But neither that connection nor the fabric itself is encrypted: who can read or
//! change what travels between the machines of a rack can do all that its clients can.
//!
//! The provider `verbs` has been tried on an emulated card, `efa` has not. Of `shm` both sides share locks, so that a
//! process which is killed can stop the other one: it is for tests, and [`crate::shm`] for use.
//!
//! Start reading at `provider.rs`, then `client.rs` and `server.rs`; `port.rs` is the only module
//! with `unsafe`.

// What needs no library is tested without it, too.
#![cfg_attr(not(feature = "libfabric"), allow(dead_code))]

mod hello;
mod inflight;
#[cfg(feature = "libfabric")]
mod listener;
mod needs;
mod shape;

#[cfg(feature = "libfabric")]
mod client;
#[cfg(feature = "libfabric")]
mod connections;
#[cfg(feature = "libfabric")]
mod link;
#[cfg(feature = "libfabric")]
mod port;
#[cfg(feature = "libfabric")]
mod provider;
#[cfg(feature = "libfabric")]
mod server;

#[cfg(feature = "libfabric")]
pub use client::{Asked, ConnectError, RemoteMemory, ShutOutError, Visit, shut_out};
#[cfg(feature = "libfabric")]
pub use listener::ListenerAddress;
pub use needs::Refused;
#[cfg(feature = "libfabric")]
pub use provider::Provider;
#[cfg(feature = "libfabric")]
pub use server::{FenceError, MemoryServer, StartError};
pub use shape::Copies;
