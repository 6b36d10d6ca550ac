//! Lists whose reads tell the order of everything, for `manxdb-checker`.
//!
//! A transaction reads and appends to 1 to 4 lists on shards of its region or of several. Every
//! element is appended once. What each read found comes back in the values of the call, and
//! [`transaction`] turns arguments and values into what the checker judges.
//!
//! Two forms:
//!
//! - **together**: one piece a shard does all there, in order. No value travels.
//! - **deferred**: each shard has a piece that reads and one that appends, and the appending ones
//!   wait for what all reading ones found. Some of them append to a list that *depends* on it, one of
//!   a few neighbours, as Payment by last name does in TPC-C: what such a piece will touch is
//!   known before only roughly.
//!
//! Rows: key `partition ‖ 0x10 ‖ row`, value the elements, eight bytes each.

mod args;
mod generator;
mod history;
mod procedure;

pub use self::args::{Form, Kind, List, Operation, decode, encode};
pub use self::generator::{Generator, Settings};
pub use self::history::{Seen, transaction};
pub use self::procedure::{Append, NAME, list_of, observe, sent};
