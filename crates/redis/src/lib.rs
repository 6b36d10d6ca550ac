//! Redis's data types, commands and protocol, as pure code.
//!
//! Bytes become commands, a command and a [`Stamp`] (time and randomness, from whoever records the
//! command) change the [`Keyspace`] and make a [`Reply`] and [`Effects`]: the rows that a store
//! keeps, from which the same objects come back. The same commands with the same stamps make the
//! same replies and the same rows.
//!
//! There are no sockets, clocks, threads or files here, and no storage: `manxdb-gateway` has them.
//!
//! | question | module |
//! |---|---|
//! | how do bytes become commands and replies bytes? | [`resp`] |
//! | what is declared of a command: arity, keys, flags? | [`spec`], and `COMMANDS` of each family |
//! | which commands are there? | [`server::table`] |
//! | what lies under a key: hashes, lists, sets, sorted sets, streams? | [`objects`] |
//! | what is a key, when is it there, what of it is in memory? | [`keyspace`] |
//! | which rows does a command write? | [`keyspace::rows`], [`keyspace::effects`] |
//! | what does a command do? | `strings`, `keys`, `hashes`, `lists`, `sets`, `zsets`, `streams`, `bitmaps`,
//! `hyperloglog`, `geo`, `dump` |
//! | what does a script see? | [`scripts`] |
//! | what does a connection have: MULTI, WATCH, SUBSCRIBE, waiting, scripts that run? | [`server`], [`server::scripting`] |
//!
//! Start reading at [`execute`], then [`keyspace`].
#![forbid(unsafe_code)]
// What the table runs has one signature, also where nothing can go wrong.
#![allow(clippy::unnecessary_wraps)]

mod bitmaps;
pub mod command;
mod context;
mod dump;
pub mod error;
mod execute;
mod geo;
pub mod glob;
mod hashes;
mod hyperloglog;
mod keys;
pub mod keyspace;
mod lists;
mod number;
pub mod objects;
pub mod resp;
pub mod scripts;
pub mod server;
mod sets;
pub mod spec;
mod streams;
mod strings;
mod zsets;

pub use command::Command;
pub use context::Context;
pub use error::CommandError;
pub use execute::execute;
pub use keys::sort::reads_beside;
pub use keyspace::{Effects, Keyspace, RowWrite};
pub use resp::Reply;

/// The version that clients take this server for: it decides what they ask of it.
pub(crate) const REDIS_VERSION: &str = "7.2.0";

/// Time and randomness of one command, from whoever records it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Milliseconds since 1970.
    pub now_millis: u64,
    /// Microseconds within that millisecond, for TIME.
    pub micros: u16,
    /// What random choices are made of.
    pub seed: u64,
}

impl Stamp {
    /// A stamp at `now_millis` with `seed`.
    #[must_use]
    pub fn new(now_millis: u64, seed: u64) -> Self {
        Self {
            now_millis,
            micros: 0,
            seed,
        }
    }
}

/// Seeds for the stamps of commands, one after the other.
#[derive(Debug)]
pub struct Seeds(number::Random);

impl Seeds {
    /// Those that follow from `first`.
    #[must_use]
    pub fn new(first: u64) -> Self {
        Self(number::Random(first))
    }

    /// The next one.
    pub fn draw(&mut self) -> u64 {
        self.0.next()
    }
}
