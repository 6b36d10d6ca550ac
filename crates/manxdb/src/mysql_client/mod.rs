//! The client side of the MySQL protocol, as much of it as a prompt needs.
//!
//! Rows come one at a time and are not kept: a result may be larger than memory. The packets
//! are those of the server's frontend, read from the other side.

mod connection;
mod error;
mod login;
mod stream;

pub use connection::{Answer, Column, Connection, Done, Row};
pub use error::ClientError;
pub use login::{Identity, connect};
pub use stream::Stream;
