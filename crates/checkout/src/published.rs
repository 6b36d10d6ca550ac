//! The shop on RSI as it was published: one version of each record, and a bit for each commit
//! number (Binnig et al., §4.2 and §4.3).
//!
//! Commit numbers are dealt out in advance: of N clients the i-th has i, i + N, i + 2N… Whoever is
//! done with one, committed or not, says so in its place of the bit vector, and a service looks for
//! the highest number below which all are done: that is what snapshots see. A record that was
//! written after it can be neither read nor written, and one client that is slow keeps it from
//! rising for all.
//!
//! Where the paper is silent or cannot work, the reading that does better was taken: numbers of
//! aborted transactions are done as well (reference: rack, §4.1), the version that a swap expects is
//! the one that was read and not the snapshot (§1.3), and a record's head is written behind the
//! rest of it, so that no reader gets half of one. A bit's place holds the number itself, so that
//! nobody has to clear it when the vector begins again.

use manxdb_fabric::{
    Address, Fabric, Operation, OperationOutcome, ServerId, WORD, WORD_LENGTH, turn,
};

use crate::plan::{order_record, spread};
use crate::shop::{
    BATCH, Basket, Books, CheckoutOutcome, ITEMS, LINE, PRODUCT, STOCK, Shop, ShopError,
    count_orders, order, product, sold, stock,
};
use manxdb_rack::drive::Driver;

/// Bits of the paper's vector.
const BITS: u64 = 60_000;
/// The word that says what snapshots see, then the vector, on the first server.
const SEEN: u64 = 64;
const VECTOR: u64 = 128;
/// Behind them, on all servers alike, the products.
const FIRST_PRODUCT: u64 = (VECTOR + BITS * WORD).next_multiple_of(64);
/// Of a head: somebody writes.
const LOCK: u64 = 1 << 63;

/// Where everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PublishedPlan {
    /// Memory servers, numbered from 0.
    pub servers: u16,
    /// Products, on the servers in turn.
    pub products: u64,
    /// Clients.
    pub clients: u16,
    /// Orders that each client can place.
    pub orders: u64,
}

impl PublishedPlan {
    fn product(self, number: u64) -> Address {
        spread(self.servers, number, FIRST_PRODUCT, stride(PRODUCT))
    }

    fn first_order(self) -> u64 {
        let products = self.products.div_ceil(u64::from(self.servers.max(1)));
        FIRST_PRODUCT + products * stride(PRODUCT)
    }

    fn order(self, client: u16, number: u64, record: u64) -> Address {
        let number = order_record(self.orders, client, number, record);
        spread(self.servers, number, self.first_order(), stride(LINE))
    }

    /// Bytes that each server needs.
    #[must_use]
    pub fn bytes(self) -> u64 {
        let records = order_record(self.orders, self.clients, 0, 0);
        let servers = u64::from(self.servers.max(1));
        self.first_order() + records.div_ceil(servers) * stride(LINE)
    }
}

/// Bytes from one record to the next: its head, and itself.
const fn stride(bytes: usize) -> u64 {
    (WORD + bytes as u64).next_multiple_of(64)
}

const fn on_first(offset: u64) -> Address {
    Address {
        server: ServerId(0),
        offset,
    }
}

/// Where a commit number says that it is done.
const fn bit(number: u64) -> Address {
    on_first(VECTOR + number % BITS * WORD)
}

/// A record whose head says who wrote it, which unlocks it.
fn write(at: Address, number: u64, bytes: Vec<u8>) -> Operation {
    Operation::WriteThenSet {
        at: at.plus(WORD),
        bytes,
        word_at: at.offset,
        word: number,
    }
}

fn set(at: Address, word: u64) -> Operation {
    Operation::Write {
        at,
        bytes: word.to_le_bytes().to_vec(),
    }
}

fn read(at: Address, bytes: u64) -> Operation {
    Operation::Read { at, bytes }
}

fn word(bytes: &[u8]) -> u64 {
    bytes
        .first_chunk()
        .map_or(0, |word| u64::from_le_bytes(*word))
}

/// A client of the shop.
pub struct Published<F> {
    driver: Driver<F>,
    plan: PublishedPlan,
    client: u16,
    /// The next commit number.
    number: u64,
    orders: u64,
}

impl<F: Fabric> Published<F> {
    /// A client by its number, which nobody else has.
    pub fn new(fabric: F, plan: PublishedPlan, client: u16) -> Self {
        Self {
            driver: Driver::new(fabric),
            plan,
            client,
            number: u64::from(client) + 1,
            orders: 0,
        }
    }

    /// What snapshots see; none while our next number has no place in the vector.
    fn look(&mut self) -> Result<Option<u64>, ShopError> {
        let found = ask(&mut self.driver, vec![read(on_first(SEEN), WORD)])?;
        let seen = found.first().map_or(0, |copy| word(&copy.bytes));
        Ok((self.number < seen + BITS).then_some(seen))
    }

    /// The same, once it has.
    fn begin(&mut self) -> Result<u64, ShopError> {
        let mut turns = 0;
        loop {
            if let Some(seen) = self.look()? {
                return Ok(seen);
            }
            turn(&mut turns);
        }
    }

    /// Says that our number is done, and takes the next.
    fn end(&mut self) -> Result<(), ShopError> {
        let done = vec![set(bit(self.number), self.number)];
        self.number += u64::from(self.plan.clients);
        ask(&mut self.driver, done).map(|_| ())
    }

    fn try_to_buy(&mut self, basket: Basket) -> Result<CheckoutOutcome, ShopError> {
        let seen = self.begin()?;
        let places = basket.map(|number| self.plan.product(number));
        let whole = places.map(|at| read(at, WORD + PRODUCT as u64));
        let found = ask(&mut self.driver, whole.to_vec())?;
        if found.iter().any(|copy| word(&copy.bytes) > seen) {
            return Ok(CheckoutOutcome::Aborted); // too new for the snapshot, or locked
        }
        let swaps = places
            .iter()
            .zip(&found)
            .map(|(at, copy)| Operation::CompareSwap {
                at: *at,
                expected: word(&copy.bytes),
                new: word(&copy.bytes) | LOCK,
            });
        let former = ask(&mut self.driver, swaps.collect())?;
        let pairs = || places.iter().zip(&found).zip(&former);
        let is_ours = |copy: &Copied, former: &Copied| former.word == word(&copy.bytes);
        if !pairs().all(|((_, copy), former)| is_ours(copy, former)) {
            let ours = pairs().filter(|((_, copy), former)| is_ours(copy, former));
            let back = ours.map(|((at, copy), _)| set(*at, word(&copy.bytes)));
            ask(&mut self.driver, back.collect())?;
            return Ok(CheckoutOutcome::Aborted);
        }
        let mut writes = Vec::with_capacity(1 + 2 * ITEMS);
        for (at, copy) in places.iter().zip(&found) {
            let value = copy.bytes.get(WORD_LENGTH..).and_then(sold);
            let value = value.ok_or_else(|| ShopError(format!("there is no product at {at}")))?;
            writes.push(write(*at, self.number, value));
        }
        for (record, value) in (0..).zip(order(basket)) {
            let at = self.plan.order(self.client, self.orders, record);
            writes.push(write(at, self.number, value));
        }
        ask(&mut self.driver, writes)?;
        self.orders += 1;
        Ok(CheckoutOutcome::Committed)
    }
}

impl<F: Fabric> Shop for Published<F> {
    fn buy(&mut self, basket: Basket) -> Result<CheckoutOutcome, ShopError> {
        if self.orders >= self.plan.orders {
            return Err(ShopError(format!(
                "client {} has room for {} orders",
                self.client, self.plan.orders
            )));
        }
        let verdict = self.try_to_buy(basket)?;
        self.end()?;
        Ok(verdict)
    }
}

impl<F: Fabric> Published<F> {
    /// Lets a number go by, if it has a place. Whoever has bought enough must do so while others
    /// buy: a number that is never done holds up all above it.
    ///
    /// # Errors
    /// The first server is gone.
    pub fn skip(&mut self) -> Result<(), ShopError> {
        match self.look()? {
            Some(_) => self.end(),
            None => Ok(()),
        }
    }
}

/// What came of an operation.
struct Copied {
    bytes: Vec<u8>,
    word: u64,
}

fn ask<F: Fabric>(
    driver: &mut Driver<F>,
    operations: Vec<Operation>,
) -> Result<Vec<Copied>, ShopError> {
    let outcomes = driver.ask(operations);
    let outcomes = outcomes.map_err(|misuse| ShopError(misuse.to_string()))?;
    let copied = |outcome| match outcome {
        OperationOutcome::Read(bytes) => Ok(Copied { bytes, word: 0 }),
        OperationOutcome::Word(word) => Ok(Copied {
            bytes: Vec::new(),
            word,
        }),
        OperationOutcome::Written => Ok(Copied {
            bytes: Vec::new(),
            word: 0,
        }),
        OperationOutcome::Failed(fault) => Err(ShopError(fault.to_string())),
    };
    outcomes.into_iter().map(copied).collect()
}

/// The timestamp service: raises what snapshots see for as long as it may go on.
///
/// # Errors
/// The first server is gone.
pub fn serve<F: Fabric>(fabric: F, may_go_on: impl Fn() -> bool) -> Result<(), ShopError> {
    let mut driver = Driver::new(fabric);
    let (mut seen, mut turns) = (0, 0);
    while may_go_on() {
        // A page of the vector at a time, or up to its end.
        let places = (BITS - (seen + 1) % BITS).min(512);
        let next = bit(seen + 1);
        let copy = ask(&mut driver, vec![read(next, places * WORD)])?;
        let bytes = copy
            .into_iter()
            .next()
            .map_or(Vec::new(), |copy| copy.bytes);
        let (words, _) = bytes.as_chunks::<WORD_LENGTH>();
        let numbers = words.iter().map(|word| u64::from_le_bytes(*word));
        let done = numbers
            .zip(seen + 1..)
            .take_while(|(found, number)| found == number);
        let count = done.count() as u64;
        if count == 0 {
            turn(&mut turns);
            continue;
        }
        turns = 0;
        seen += count;
        ask(&mut driver, vec![set(on_first(SEEN), seen)])?;
    }
    Ok(())
}

/// Writes all products.
///
/// # Errors
/// [`ShopError`]: memory is missing.
pub fn load<F: Fabric>(fabric: F, plan: PublishedPlan) -> Result<(), ShopError> {
    let mut driver = Driver::new(fabric);
    let numbers: Vec<u64> = (0..plan.products).collect();
    for numbers in numbers.chunks(BATCH) {
        let stocked = |number: &u64| write(plan.product(*number), 0, product(*number, STOCK));
        ask(&mut driver, numbers.iter().map(stocked).collect())?;
    }
    Ok(())
}

/// Adds everything up, when nobody buys.
///
/// # Errors
/// [`ShopError`]: a record is gone.
pub fn audit<F: Fabric>(fabric: F, plan: PublishedPlan) -> Result<Books, ShopError> {
    let mut driver = Driver::new(fabric);
    let mut books = Books::default();
    for number in 0..plan.products {
        let whole = read(plan.product(number), WORD + PRODUCT as u64);
        for copy in ask(&mut driver, vec![whole])? {
            let left = copy.bytes.get(WORD_LENGTH..).and_then(stock);
            books.sold += STOCK.saturating_sub(left.unwrap_or(0));
            books.locks += u64::from(word(&copy.bytes) & LOCK != 0);
        }
    }
    books.orders = count_orders((plan.clients, plan.orders), |client, number, record| {
        let head = read(plan.order(client, number, record), WORD);
        let found = ask(&mut driver, vec![head])?;
        Ok(found.iter().any(|head| word(&head.bytes) > 0))
    })?;
    Ok(books)
}
