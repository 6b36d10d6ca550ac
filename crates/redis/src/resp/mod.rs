//! The protocol: RESP 2 and 3.
//!
//! [`Decoder`] turns a client's bytes into commands, whole ones or none; [`Reply`] turns into
//! bytes. What a client may claim is limited before memory is taken for it.

mod decode;
mod reply;

pub use decode::{Decoder, Limits, ProtocolError};
pub use reply::{Protocol, Reply};
