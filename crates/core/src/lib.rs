//! The shape of every protocol core: events in, actions out.
//!
//! A protocol core is a deterministic state machine without sockets, clocks, threads or
//! randomness of its own ([`Core`]). What happens to it comes in as an [`Event`]; what it wants
//! done goes out as [`Actions`]. Two drivers run the very same core: the simulator (virtual
//! time, faults, hundreds of nodes in a thread) and real processes over TCP.
//!
//! | question | answered in |
//! |---|---|
//! | what a core is, and how a driver talks to it | [`machine`] |
//! | time as an input | [`time`] |
//! | what a step cost, for the simulated CPU | [`work`] |
//! | messages in order and exactly once over a network that loses, repeats and reorders | [`channel`] |
//! | equal digests for equal histories | [`digest`] |
//! | invariants: by what name, and at which level they are checked | [`check`] |
//! | random numbers that a seed decides | [`random`] |
//! | a failure that lasts is logged once | [`last_failure`] |
//!
//! Start reading at [`machine`].
#![forbid(unsafe_code)]

pub mod channel;
pub mod check;
pub mod digest;
pub mod last_failure;
pub mod machine;
pub mod random;
pub mod time;
pub mod work;

pub use digest::Digest;
pub use machine::{
    Action, ActionOf, Actions, Core, Event, EventOf, Message, NodeId, RequestId, Token, Wait,
};
pub use random::Random;
pub use time::{LocalTime, Nanos};
pub use work::{Weight, Work};
