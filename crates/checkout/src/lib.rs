//! One workload, a customer's [checkout](shop), on our protocol over one-sided memory and on the
//! systems that papers compare it with. For experiments: no server links this crate.
//!
//! | system | what it is | in |
//! |---|---|---|
//! | `rsi` | our protocol over one-sided memory: a vector of timestamps, several versions | [`one_sided`] |
//! | `rsi` on rows | the same with rows found by keys, as SQL uses it | [`in_rows`] |
//! | `rsi-published` | RSI as it was published: a bit vector, one version (§4.2) | [`published`] |
//! | `trad-si` | snapshot isolation with two-phase commit over TCP (Binnig et al., "The End of Slow Networks", §4.1) | [`two_phase`] |
//! | `two-sided` | the same with messages through shared memory in place of sockets (§3.1, architecture c) | [`two_phase`], [`mailbox`] |
//!
//! Each system is a [`Shop`]. Where its records lie: [`plan`].
//!
//! Start reading at [`shop`].
#![forbid(unsafe_code)]
// Sockets, threads and clocks are what these systems are measured with.
#![allow(clippy::disallowed_methods)]

pub mod in_rows;
pub mod mailbox;
pub mod one_sided;
pub mod plan;
pub mod published;
pub mod shop;
pub mod two_phase;

pub use in_rows::{InRows, Sales};
pub use one_sided::OneSided;
pub use plan::Plan;
pub use published::{Published, PublishedPlan};
pub use shop::{
    Basket, Books, CheckoutOutcome, ITEMS, LINE, PRODUCT, STOCK, Shop, ShopError, draw, order,
    product, sold, stock,
};
