//! The workload: a customer buys three products (Binnig et al., §4.3).
//!
//! A checkout reads three products, takes one of each out of stock, and inserts an order and three
//! order lines. Products are drawn from all of them alike, or from a hot set.

use std::iter;

use manxdb_core::Random;

/// Products of an order, each another one.
pub const ITEMS: usize = 3;
/// Bytes of a product.
pub const PRODUCT: usize = 1024;
/// Bytes of an order, or of an order line.
pub const LINE: usize = 128;
/// Of each product at the beginning: more than anybody buys.
pub const STOCK: u64 = 1 << 40;

/// What a customer buys: numbers of products, each another one, in rising order.
pub type Basket = [u64; ITEMS];

/// What came of a checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CheckoutOutcome {
    /// It is bought.
    Committed,
    /// Somebody else was faster: to be tried again.
    Aborted,
}

/// What all orders and all products together say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Books {
    /// Products that are out of stock since it was stocked.
    pub sold: u64,
    /// Orders with their lines.
    pub orders: u64,
    /// Locks that somebody holds.
    pub locks: u64,
}

/// Records written at once while the shop is stocked.
pub(crate) const BATCH: usize = 64;

/// Counts the orders of so many clients, who have placed theirs one after another; `is_there` says
/// so of a record by client, order and place in it.
pub(crate) fn count_orders(
    (clients, orders): (u16, u64),
    mut is_there: impl FnMut(u16, u64, u64) -> Result<bool, ShopError>,
) -> Result<u64, ShopError> {
    let mut count = 0;
    for client in 0..clients {
        for number in 0..orders {
            let mut records = 0;
            for record in 0..=ITEMS as u64 {
                records += usize::from(is_there(client, number, record)?);
            }
            match records {
                0 => break,
                records if records == 1 + ITEMS => count += 1,
                _ => {
                    let torn = format!("order {number} of {client} is torn apart");
                    return Err(ShopError(torn));
                }
            }
        }
    }
    Ok(count)
}

/// A checkout could not even be tried.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShopError(pub String);

/// A client of a system that sells.
pub trait Shop {
    /// Buys.
    ///
    /// # Errors
    /// [`ShopError`]: the system is broken, or full.
    fn buy(&mut self, basket: Basket) -> Result<CheckoutOutcome, ShopError>;
}

/// Draws a basket from the first `hot` products, at least three.
pub fn draw(random: &mut Random, hot: u64) -> Basket {
    let mut basket = [0; ITEMS];
    let mut count = 0;
    while count < ITEMS {
        let product = random.below(hot.max(ITEMS as u64));
        if !basket[..count].contains(&product) {
            basket[count] = product;
            count += 1;
        }
    }
    basket.sort_unstable();
    basket
}

/// A product with so many in stock.
#[must_use]
pub fn product(number: u64, stock: u64) -> Vec<u8> {
    let mut bytes = stock.to_le_bytes().to_vec();
    bytes.resize(PRODUCT, number.to_le_bytes()[0]);
    bytes
}

/// How many of a product are in stock; none if it is no product.
#[must_use]
pub fn stock(product: &[u8]) -> Option<u64> {
    product.first_chunk().map(|word| u64::from_le_bytes(*word))
}

/// The product after one was bought; none if it is no product, or none are left.
#[must_use]
pub fn sold(product: &[u8]) -> Option<Vec<u8>> {
    let left = stock(product)?.checked_sub(1)?;
    let mut bytes = product.to_vec();
    bytes.get_mut(..8)?.copy_from_slice(&left.to_le_bytes());
    Some(bytes)
}

/// An order, then its lines.
#[must_use]
pub fn order(basket: Basket) -> Vec<Vec<u8>> {
    let record = |words: &[u64]| {
        let mut bytes = Vec::with_capacity(LINE);
        for word in words {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes.resize(LINE, 0);
        bytes
    };
    let lines = basket.map(|product| record(&[product, 1]));
    iter::once(record(&basket)).chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basket_has_three_products() {
        let mut random = Random::new(1);
        for hot in [0, 3, 4, 1_000_000] {
            for _ in 0..100 {
                let [a, b, c] = draw(&mut random, hot);
                assert!(a < b && b < c && c < hot.max(3));
            }
        }
    }

    #[test]
    fn what_is_sold_is_out_of_stock() {
        let one = product(7, 1);
        assert_eq!(one.len(), PRODUCT);
        let none = sold(&one).unwrap();
        assert_eq!((stock(&none), &none[8..]), (Some(0), &one[8..]));
        assert_eq!(sold(&none), None);
        assert_eq!(sold(&[]), None);
        let order = order([1, 2, 3]);
        assert!(order.len() == 1 + ITEMS && order.iter().all(|record| record.len() == LINE));
    }
}
