//! TPC-C: the five transactions of a wholesaler, as one-shot procedures in pieces.
//!
//! One warehouse a shard. All five do their real reads, inserts and updates; what is left out is what
//! no transaction asks for (streets, phone numbers, filler), and texts stand as numbers. So
//! the consistency conditions of the standard hold, and [`check`] tests them.
//!
//! | transaction | pieces of the plan | leaves home | waits for a value |
//! |---|---|---|---|
//! | [`NewOrder`] | 1, and 1 for each other warehouse that supplies a line | 1 % of lines | no |
//! | [`Payment`] | 1 to 3 | 15 % | the history waits for the number of a customer known by name |
//! | [`Delivery`] | 1 | no | no |
//! | [`OrderStatus`] | 1 | no | no |
//! | [`StockLevel`] | 1 | no | no |
//!
//! A plan has one piece where DAST's artifact had many on one shard; [`Request::pieces`] says how
//! many there, for models of a CPU (5 + 4 a line, 5 or 6, 4 a district, 3 or 4, 2).
//!
//! [`Parameters`] are those of DAST's experiments ([`Parameters::as_published`]) or those of
//! the standard ([`Parameters::standard`]). In both, no order is rolled back (see [`NewOrder`]).
//!
//! The initial rows are a [`Warehouses`] over a [`Template`]: all shards and replicas share the
//! memory of one warehouse.
//!
//! [`Request::pieces`]: crate::Request::pieces

mod base;
mod check;
mod client;
mod customer;
mod delivery;
mod generator;
mod keys;
mod new_order;
mod parameters;
mod payment;
mod plan;
mod queries;
mod rows;
mod scale;
mod template;

use std::sync::Arc;

use manxdb_txn::procedure::Procedure;

pub use self::base::Warehouses;
pub use self::check::check;
pub(crate) use self::client::Client;
pub use self::customer::Who;
pub use self::delivery::{DELIVERIES, DELIVERY, Delivery, DeliveryArgs};
pub use self::generator::Generator;
pub use self::new_order::{LINES_MAX, Line, NEW_ORDER, NewOrder, NewOrderArgs, ORDER};
pub use self::parameters::{Districts, Items, Mix, Parameters, PaymentSums};
pub use self::payment::{CUSTOMER_NUMBER, PAYMENT, Payment, PaymentArgs};
pub use self::queries::{
    ORDER_STATUS, OrderStatus, OrderStatusArgs, SHORT, STATUS, STOCK_LEVEL, StockLevel,
    StockLevelArgs,
};
pub use self::scale::Scale;
pub use self::template::Template;

/// The five procedures.
#[must_use]
pub fn procedures() -> [Arc<dyn Procedure>; 5] {
    [
        Arc::new(NewOrder),
        Arc::new(Payment),
        Arc::new(Delivery),
        Arc::new(OrderStatus),
        Arc::new(StockLevel),
    ]
}
