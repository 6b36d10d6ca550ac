//! How often what is asked for.

use serde::{Deserialize, Serialize};

/// Shares of the five transactions, in percent; together 100.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mix {
    /// Share of NewOrder.
    pub new_order: u8,
    /// Share of Payment.
    pub payment: u8,
    /// Share of Delivery.
    pub delivery: u8,
    /// Share of OrderStatus; the rest is StockLevel.
    pub order_status: u8,
}

/// Which districts a client works in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Districts {
    /// Always the same, by the client's number; it delivers there only.
    Own,
    /// Any; it delivers in all.
    Any,
}

/// Which items are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Items {
    /// Those whose number is the home shard's modulo the number of shards, all alike.
    OfHome,
    /// All, some far oftener: NURand(8191).
    Skewed,
}

/// Which sums a payment adds to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PaymentSums {
    /// Those of the warehouse and of the district, as TPC-C has it: all payments of a warehouse meet.
    #[default]
    Tpcc,
    /// That of the district alone, as in DAST's artifact, which never writes w_ytd.
    Published,
}

/// What is random in a client's transactions, and how.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameters {
    /// Shares of the transactions.
    pub mix: Mix,
    /// Where the client is.
    pub districts: Districts,
    /// What it orders.
    pub items: Items,
    /// Fewest and most lines of an order.
    pub lines: (u8, u8),
    /// Share of lines that another warehouse supplies.
    pub remote_lines: f64,
    /// Share of payments of customers of another warehouse.
    pub remote_payments: f64,
    /// Share of payments by customers who are known by last name.
    pub payments_by_name: f64,
    /// Share of questions by customers who are known by last name.
    pub status_by_name: f64,
}

impl Parameters {
    /// As DAST's artifact ran it (reference: its benchmark's code and configuration).
    #[must_use]
    pub fn as_published() -> Self {
        Self {
            mix: Mix {
                new_order: 44,
                payment: 44,
                delivery: 4,
                order_status: 4,
            },
            districts: Districts::Own,
            items: Items::OfHome,
            lines: (6, 15),
            remote_lines: 0.01,
            remote_payments: 0.15,
            payments_by_name: 0.4,
            status_by_name: 0.6,
        }
    }

    /// As TPC-C's standard (revision 5.11) has it.
    #[must_use]
    pub fn standard() -> Self {
        Self {
            mix: Mix {
                new_order: 45,
                payment: 43,
                delivery: 4,
                order_status: 4,
            },
            districts: Districts::Any,
            items: Items::Skewed,
            lines: (5, 15),
            payments_by_name: 0.6,
            ..Self::as_published()
        }
    }
}
