//! What lies under keys: hashes, lists, sets, sorted sets and streams, and the rows that are kept of each.
//!
//! An object knows no key, no command and no time. Its `row`, `each_row` and `take_row` say which rows its
//! elements are; [`Pending`] notes which of them changed.
//!
//! | question | file |
//! |---|---|
//! | what is an ID of a stream? | `stream/id` |
//! | what is kept of a stream, and in which rows? | `stream`, `stream/rows` |
//! | what is kept of a group, its consumers and what they did not acknowledge? | `stream/group` |
//! | how are the members of a sorted set ordered? | `zset/order` |

mod hash;
mod list;
pub(crate) mod pending;
mod set;
pub(crate) mod stream;
pub(crate) mod zset;

use indexmap::IndexMap;

pub use hash::Hash;
pub use list::List;
pub(crate) use pending::Pending;
pub use set::Set;
pub use stream::{Consumer, ConsumerGroup, Delivery, Stream, StreamHead, StreamId};
pub use zset::ZSet;

/// A hash map that is seeded for each process, in an order of its own.
pub(crate) type Map<K, V> = IndexMap<K, V, foldhash::fast::RandomState>;
