//! The shop in rows under keys, whose clients may die and whose memory servers may be lost.
//!
//! | key | row |
//! |---|---|
//! | `p`, number | a product: how many are in stock, then anything |
//! | `o`, customer, number, place | an order, then its lines |
//!
//! Orders of a customer are numbered one after the other: a checkout that is tried again after the
//! loss of a server can be there once only.

use std::sync::Arc;

use manxdb_core::Random;
use manxdb_fabric::{Fabric, Misuse};
use manxdb_rsi::rows::{Client, Failure, Transaction};
use manxdb_rsi::{Closed, Isolation, Span};

use crate::shop::{
    Basket, CheckoutOutcome, ITEMS, STOCK, Shop, ShopError, order, product, sold, stock,
};
use manxdb_rack::drive::{Driver, now};
use manxdb_rack::memory::{JoinedClient, Source};

/// Records that a checkout adds.
const ADDED: u64 = 1 + ITEMS as u64;
/// Nodes that a client has before a checkout: each key that is new may split some.
const NODES: u64 = 16;
/// Losses, one after the other, that one piece of work may meet.
const LOSSES_MAX: u32 = 8;
/// Products that are written in one transaction while the shop is stocked or looked through.
const PAGE: usize = 50;
/// Rows that are read at once.
const ROWS: usize = 1_000;
/// Tries of a transaction that nobody is to be in the way of.
const TRIES: u32 = 1_000;

type Rows<'c, F> = Transaction<'c, Driver<F>>;
type Failed = Failure<Misuse>;

/// A customer, or who stocks the shop and looks through it.
pub struct InRows<F> {
    way: Way<F>,
    customer: u16,
    /// Placed by now.
    orders: u64,
}

/// How rows are reached.
enum Way<F> {
    /// As a client of a plan, for good.
    Fixed(Client<Driver<F>>),
    /// With a place in memory that others use too.
    JoinedClient(JoinedClient<F>, Arc<dyn Source<F>>),
}

/// What all rows together say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sales {
    /// Products that are out of stock since it was stocked.
    pub sold: u64,
    /// Orders with all their lines, of each customer.
    pub orders: Vec<u64>,
}

impl<F: Fabric> InRows<F> {
    /// A client of a plan.
    pub fn fixed(client: Client<Driver<F>>, customer: u16) -> Self {
        Self {
            way: Way::Fixed(client),
            customer,
            orders: 0,
        }
    }

    /// With a place of its own.
    ///
    /// # Errors
    /// [`ShopError`]: all are taken, or a server is not there.
    pub fn join(source: Arc<dyn Source<F>>, customer: u16) -> Result<Self, ShopError> {
        let member = source.join().map_err(said)?;
        Ok(Self {
            way: Way::JoinedClient(member, source),
            customer,
            orders: 0,
        })
    }

    fn client(&mut self) -> &mut Client<Driver<F>> {
        match &mut self.way {
            Way::Fixed(client) => client,
            Way::JoinedClient(member, _) => &mut member.client,
        }
    }

    /// Keeps the place, if it is time to, and goes on with it after a loss. Of no use while it buys.
    ///
    /// # Errors
    /// [`ShopError`]: the place is somebody else's, or a server is lost for good.
    pub fn keep(&mut self) -> Result<(), ShopError> {
        self.client().carrier_mut().keep().map_err(said)?;
        self.go_on().map(drop)
    }

    /// Leaves the place, so that nobody takes this one for dead.
    pub fn leave(self) {
        if let Way::JoinedClient(member, source) = self.way {
            let JoinedClient { owner, client } = member;
            drop(client); // who has still memory when it is let go of may be ended for it
            let _ = source.leave(&[owner]); // or its lease lapses
        }
    }

    /// After a fault: how the session ended, if it goes on behind it.
    fn go_on(&mut self) -> Result<Option<Closed>, ShopError> {
        let Way::JoinedClient(member, source) = &mut self.way else {
            return Ok(None);
        };
        let Some(fault) = member.client.carrier_mut().fault() else {
            return Ok(None);
        };
        match source.go_on(member).map_err(said)? {
            Some(closed) => Ok(Some(closed)),
            None => Err(ShopError(format!("{fault}, and the place is lost"))),
        }
    }

    /// Does something that adds so many records; once more when a server was lost over it, with how the
    /// session ended then. Each try may lose the room of its records to a loss.
    fn with<T>(
        &mut self,
        added: u64,
        mut work: impl FnMut(&mut Client<Driver<F>>, Option<Closed>) -> Result<T, Failed>,
    ) -> Result<Result<T, Failed>, ShopError> {
        let mut closed = None;
        let mut losses = 0;
        loop {
            if added > 0 {
                self.make_room(added)?;
            }
            let done = work(self.client(), closed.take());
            closed = self.go_on()?;
            losses += 1;
            if done.is_ok() || closed.is_none() || losses > LOSSES_MAX {
                return Ok(done);
            }
        }
    }

    fn make_room(&mut self, records: u64) -> Result<(), ShopError> {
        let Way::JoinedClient(member, source) = &mut self.way else {
            return Ok(()); // all that there will be
        };
        let refilled = source.refill(&mut member.client, (records, NODES + records / 4));
        match (refilled, self.go_on()?) {
            (Err(_), Some(_)) => self.make_room(records), // a server was lost over it
            (refilled, _) => refilled.map_err(said),
        }
    }

    /// A transaction that adds so many records, tried until it commits: nobody is in its way for long.
    fn surely(
        &mut self,
        added: u64,
        work: impl Fn(&mut Rows<'_, F>) -> Result<(), Failed>,
    ) -> Result<(), ShopError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let done = self.with(added, |client, _| {
                let mut rows = now(client.begin(Isolation::Snapshot))?;
                work(&mut rows)?;
                now(rows.commit()).map(drop)
            })?;
            match done {
                Err(failure) if failure.is_conflict() && tries < TRIES => {
                    std::thread::yield_now();
                }
                done => return done.map_err(said),
            }
        }
    }

    /// Puts so many products into the shop, of rows of so many bytes.
    ///
    /// # Errors
    /// [`ShopError`]: memory is full.
    pub fn stock_up(&mut self, products: u64, bytes: usize) -> Result<(), ShopError> {
        let mut numbers: Vec<u64> = (0..products).collect();
        // In no order, so that leaves are as full as they come to be in a shop that grew.
        shuffle(&mut numbers);
        for page in numbers.chunks(PAGE) {
            self.surely(page.len() as u64, |rows| {
                for number in page {
                    let mut row = product(*number, STOCK);
                    row.truncate(bytes);
                    rows.write(product_key(*number), Some(row));
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Writes every product as it is: whoever holds a lock for good is in the way.
    ///
    /// # Errors
    /// [`ShopError`]: somebody is.
    pub fn touch(&mut self, products: u64) -> Result<(), ShopError> {
        let numbers: Vec<u64> = (0..products).collect();
        for page in numbers.chunks(PAGE) {
            self.surely(0, |rows| {
                for number in page {
                    let key = product_key(*number);
                    let row = now(rows.get(&key))?;
                    rows.write(key, row);
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Adds everything up, for so many customers.
    ///
    /// # Errors
    /// [`ShopError`]: a row is missing or torn, or memory cannot be read.
    pub fn audit(&mut self, products: u64, customers: u16) -> Result<Sales, ShopError> {
        let (mut sold, mut found) = (0, 0);
        self.each(b"p", b"q", |_, row| {
            found += 1;
            sold += STOCK.saturating_sub(stock(row).unwrap_or(STOCK));
            Ok(())
        })?;
        if found != products {
            return Err(ShopError(format!(
                "there are {found} products, not {products}"
            )));
        }
        let mut records = vec![0; customers.into()];
        self.each(b"o", b"p", |key, _| {
            let customer = key.get(1..3).and_then(|two| two.first_chunk());
            let customer = customer.map_or(usize::MAX, |two| u16::from_be_bytes(*two).into());
            let of_unknown = || ShopError("there is an order of an unknown client".into());
            let count = records.get_mut(customer).ok_or_else(of_unknown)?;
            if key != record_key(customer, *count / ADDED, *count % ADDED) {
                let torn = format!("order {} of {customer} is torn apart", *count / ADDED);
                return Err(ShopError(torn));
            }
            *count += 1;
            Ok(())
        })?;
        if let Some(torn) = records.iter().position(|count| count % ADDED != 0) {
            return Err(ShopError(format!("the last order of {torn} is torn apart")));
        }
        let orders = records.into_iter().map(|count| count / ADDED).collect();
        Ok(Sales { sold, orders })
    }

    /// Looks at all rows between two keys, which nobody changes.
    fn each(
        &mut self,
        low: &[u8],
        high: &[u8],
        mut look: impl FnMut(&[u8], &[u8]) -> Result<(), ShopError>,
    ) -> Result<(), ShopError> {
        let mut span = Span {
            low: low.to_vec(),
            high: Some(high.to_vec()),
            descending: false,
            limit: ROWS,
        };
        loop {
            let page = self.with(0, |client, _| {
                let mut rows = now(client.begin(Isolation::Snapshot))?;
                now(rows.scan(span.clone()))
            })?;
            let page = page.map_err(said)?;
            page.iter().try_for_each(|(key, row)| look(key, row))?;
            match page.last() {
                Some((key, _)) if page.len() == ROWS => span.begin_behind(key),
                _ => return Ok(()),
            }
        }
    }
}

impl<F: Fabric> Shop for InRows<F> {
    fn buy(&mut self, basket: Basket) -> Result<CheckoutOutcome, ShopError> {
        let (customer, number) = (usize::from(self.customer), self.orders);
        let done = self.with(ADDED, |client, closed| {
            let cut_off = closed.zip(client.cut_off());
            if cut_off.is_some_and(|(closed, stamp)| closed.has(stamp)) {
                return Ok(true);
            }
            let mut rows = now(client.begin(Isolation::Snapshot))?;
            for product in basket {
                let key = product_key(product);
                let Some(left) = now(rows.get(&key))?.as_deref().and_then(sold) else {
                    return Ok(false);
                };
                rows.write(key, Some(left));
            }
            for (place, record) in (0..).zip(order(basket)) {
                rows.write(record_key(customer, number, place), Some(record));
            }
            now(rows.commit()).map(|_| true)
        })?;
        match done {
            Ok(true) => {
                self.orders += 1;
                Ok(CheckoutOutcome::Committed)
            }
            Ok(false) => Err(ShopError(format!("a product of {basket:?} is not there"))),
            Err(failure) if failure.is_conflict() => Ok(CheckoutOutcome::Aborted),
            Err(failure) => Err(said(failure)),
        }
    }
}

fn said(error: impl std::fmt::Display) -> ShopError {
    ShopError(error.to_string())
}

fn product_key(number: u64) -> Vec<u8> {
    [&b"p"[..], &number.to_be_bytes()].concat()
}

fn record_key(customer: usize, number: u64, place: u64) -> Vec<u8> {
    let customer = u16::try_from(customer).unwrap_or(u16::MAX); // it was one
    let place = place.to_be_bytes()[7]; // of four
    [
        &b"o"[..],
        &customer.to_be_bytes(),
        &number.to_be_bytes(),
        &[place],
    ]
    .concat()
}

/// The same order for all.
fn shuffle(numbers: &mut [u64]) {
    let mut random = Random::new(1);
    for last in (1..numbers.len()).rev() {
        let other = random.below(last as u64 + 1);
        numbers.swap(last, usize::try_from(other).unwrap_or(last));
    }
}
