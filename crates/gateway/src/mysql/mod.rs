//! The MySQL listener: client/server protocol version 10.
//!
//! | file | what |
//! |---|---|
//! | `server` | listening, admission, orderly end |
//! | `shared` | what all connections share |
//! | `connection`, `end` | the life of one connection, and why it ends |
//! | `idle` | connections without a thread |
//! | `login`, `handshake` | greeting and response, TLS, a session |
//! | `authenticate`, `plugin` | who is it? |
//! | `command`, `statement` | what does it want? |
//! | `sink`, `column`, `binary`, `response` | results as packets |
//! | `params`, `query_text` | requests as values and text |
//! | `read_ahead`, `compressed`, `compression`, `framing`, `codec` | bytes |
//!
//! What a client does wrong ends at most its own connection: packet-level nonsense is answered
//! with 1043, 1156 or 1835 and closed, everything else is answered and goes on.

mod authenticate;
mod binary;
pub mod codec;
mod column;
mod columns_only;
mod command;
mod compressed;
pub mod compression;
mod connection;
mod end;
pub mod framing;
pub mod handshake;
mod idle;
mod login;
pub mod params;
mod plugin;
pub mod query_text;
mod read_ahead;
mod response;
mod server;
mod shared;
mod sink;
mod statement;

pub use authenticate::check_password;
pub use handshake::SERVER_VERSION;
pub use server::MysqlServer;
pub use shared::MysqlOptions;
