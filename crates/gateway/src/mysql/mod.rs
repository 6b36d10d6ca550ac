//! The MySQL door: client/server protocol version 10.
//!
//! | file | what |
//! |---|---|
//! | `server` | listening, admission, orderly end |
//! | `connection` | the life of one connection |
//! | `login`, `handshake`, `auth` | who is it? |
//! | `command`, `statement` | what does it want? |
//! | `sink`, `column`, `binary`, `response` | results as packets |
//! | `params`, `query_text` | requests as values and text |
//! | `transport`, `framing`, `codec` | bytes |
//!
//! What a client does wrong ends at most its own connection: packet-level nonsense is answered
//! with 1043, 1156 or 1835 and closed, everything else is answered and goes on.

mod auth;
mod binary;
pub mod codec;
mod column;
mod command;
mod connection;
pub mod framing;
pub mod handshake;
mod login;
pub mod params;
pub mod query_text;
mod response;
mod server;
mod sink;
mod statement;
mod transport;

pub use handshake::SERVER_VERSION;
pub use server::{MysqlOptions, MysqlServer};
