//! Storage that a database and its workers share.
//!
//! | question | answered in |
//! |---|---|
//! | a volume: a directory or an object store, by the name that operators give it | [`volume`] |
//! | requests to an object store, with retries and checksums | [`objects`] |
//! | several requests at a time | [`parallel`] |
//! | a database as a worker sees it through an object store | [`view`] |
//! | an object store that answers late, for experiments | [`delayed_store`] |

mod delayed_store;
pub mod objects;
pub(crate) mod parallel;
pub(crate) mod view;
pub mod volume;

pub use view::Copies;
