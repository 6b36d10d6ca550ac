//! The shop over one-sided memory: no server runs while anybody buys.

use manxdb_fabric::{Address, Fabric, Operation, OperationOutcome};
use manxdb_rsi::{
    Abort, Block, Change, Isolation, Layout, Machine, Seen, Session, Snapshot, Stamp, ThreadId,
    Vector,
};

use crate::plan::{LINE_LAYOUT, Plan};
use crate::shop::{
    BATCH, Basket, Books, CheckoutOutcome, ITEMS, STOCK, Shop, ShopError, count_orders, order,
    product, sold, stock,
};
use manxdb_rack::drive::Driver;

/// A client of the shop.
pub struct OneSided<F> {
    driver: Driver<F>,
    session: Session,
    plan: Plan,
    isolation: Isolation,
    client: u16,
    orders: u64,
}

impl<F: Fabric> OneSided<F> {
    /// A client by its number, which nobody else has or has had.
    ///
    /// # Errors
    /// [`ShopError`]: the plan has no such client.
    pub fn new(
        fabric: F,
        plan: Plan,
        client: u16,
        isolation: Isolation,
    ) -> Result<Self, ShopError> {
        let none = || ShopError(format!("client {client}: there are {}", plan.clients));
        let thread = ThreadId::new(client).filter(|_| client < plan.clients);
        let session = session(plan, thread.ok_or_else(none)?).ok_or_else(none)?;
        let session = match plan.log(client) {
            Some(log) => session.with_log(log),
            None => session,
        };
        Ok(Self {
            driver: Driver::new(fabric),
            session,
            plan,
            isolation,
            client,
            orders: 0,
        })
    }

    /// Reads what is bought, and commits it.
    fn try_to_buy(&mut self, basket: Basket) -> Result<Result<(), Abort>, ShopError> {
        let begin = match self.session.begin() {
            Ok(begin) => begin,
            Err(abort) => return Ok(Err(abort)),
        };
        let snapshot = match self.run(begin)? {
            Ok(snapshot) => snapshot,
            Err(fault) => return Ok(Err(fault.into())),
        };
        self.session.saw(&snapshot);
        let layout = self.plan.product_layout();
        let places = basket.map(|number| (self.plan.product(number), layout));
        let products = match self.run(self.session.read_all(&snapshot, &places))? {
            Ok(products) => products,
            Err(abort) => return Ok(Err(abort)),
        };
        let mut changes = Vec::with_capacity(1 + 2 * ITEMS);
        for seen in products {
            let Some(value) = seen.value().and_then(sold) else {
                return Err(ShopError(format!("there is no product at {}", seen.at)));
            };
            let value = Some(value);
            changes.push(Change { seen, value });
        }
        for (record, value) in (0..).zip(order(basket)) {
            let at = self.plan.order(self.client, self.orders, record);
            changes.push(Change {
                seen: Seen::fresh(at, LINE_LAYOUT),
                value: Some(value),
            });
        }
        let commit = match self.session.commit(&[], changes, self.isolation) {
            Ok(commit) => commit,
            Err(abort) => return Ok(Err(abort)),
        };
        let committed = self.run(commit)?;
        self.session.ended(&committed);
        Ok(committed.map(|_| ()))
    }

    fn run<W: Machine>(&mut self, work: W) -> Result<W::Output, ShopError> {
        run(&mut self.driver, work)
    }
}

impl<F: Fabric> Shop for OneSided<F> {
    fn buy(&mut self, basket: Basket) -> Result<CheckoutOutcome, ShopError> {
        if self.orders >= self.plan.orders {
            return Err(ShopError(format!(
                "client {} has room for {} orders",
                self.client, self.plan.orders
            )));
        }
        match self.try_to_buy(basket)? {
            Ok(()) => {
                self.orders += 1;
                Ok(CheckoutOutcome::Committed)
            }
            Err(
                Abort::WriteConflict(_)
                | Abort::ReadConflict(_)
                | Abort::SnapshotTooOld(_)
                | Abort::Held(..),
            ) => Ok(CheckoutOutcome::Aborted),
            Err(abort) => Err(ShopError(abort.to_string())),
        }
    }
}

fn run<F: Fabric, W: Machine>(driver: &mut Driver<F>, work: W) -> Result<W::Output, ShopError> {
    let done = driver.run(work);
    done.map_err(|misuse| ShopError(misuse.to_string()))
}

fn session(plan: Plan, thread: ThreadId) -> Option<Session> {
    Session::new(thread, plan.vector()?, 0)
}

/// Writes all products, as one transaction of a thread that is alone.
///
/// # Errors
/// [`ShopError`]: memory is missing.
pub fn load<F: Fabric>(fabric: F, plan: Plan) -> Result<(), ShopError> {
    let mut driver = Driver::new(fabric);
    let layout = plan.product_layout();
    let stamp = Stamp {
        thread: plan.loader(),
        sequence: 1,
    };
    let written = |number| {
        let block = Block::empty(layout, 0).with(stamp, Some(&product(number, STOCK)));
        block.install(plan.product(number))
    };
    let numbers: Vec<u64> = (0..plan.products).collect();
    for numbers in numbers.chunks(BATCH) {
        done(&mut driver, numbers.iter().copied().map(written).collect())?;
    }
    let vector = vector(plan)?;
    let mut seen = Snapshot::empty(vector.threads());
    seen.add(stamp);
    done(&mut driver, vec![vector.publish(stamp, &seen)])
}

fn vector(plan: Plan) -> Result<Vector, ShopError> {
    let vector = plan.vector();
    vector.ok_or_else(|| ShopError(format!("{} clients are too many", plan.clients)))
}

fn done<F: Fabric>(driver: &mut Driver<F>, operations: Vec<Operation>) -> Result<(), ShopError> {
    let outcomes = driver.ask(operations);
    let outcomes = outcomes.map_err(|misuse| ShopError(misuse.to_string()))?;
    match outcomes
        .into_iter()
        .find(|one| *one != OperationOutcome::Written)
    {
        Some(OperationOutcome::Failed(fault)) => Err(ShopError(fault.to_string())),
        _ => Ok(()),
    }
}

/// Adds everything up, when nobody buys.
///
/// # Errors
/// [`ShopError`]: a record cannot be read, or an order has not all of its lines.
pub fn audit<F: Fabric>(fabric: F, plan: Plan) -> Result<Books, ShopError> {
    let mut driver = Driver::new(fabric);
    let session = session(plan, plan.loader());
    let session = session.ok_or_else(|| ShopError("the plan has no loader".to_owned()))?;
    let begin = session.begin();
    let begin = begin.map_err(|abort| ShopError(abort.to_string()))?;
    let snapshot = run(&mut driver, begin)?;
    let snapshot = snapshot.map_err(|fault| ShopError(fault.to_string()))?;
    let mut look = |at: Address, layout: Layout| {
        let seen = run(&mut driver, session.read(&snapshot, at, layout))?;
        seen.map_err(|abort| ShopError(abort.to_string()))
    };
    let mut books = Books::default();
    for number in 0..plan.products {
        let seen = look(plan.product(number), plan.product_layout())?;
        let left = seen.value().and_then(stock);
        let left = left.ok_or_else(|| ShopError(format!("product {number} is gone")))?;
        books.sold += STOCK.saturating_sub(left);
        books.locks += u64::from(seen.holder.is_some());
    }
    books.orders = count_orders((plan.clients, plan.orders), |client, number, record| {
        let seen = look(plan.order(client, number, record), LINE_LAYOUT)?;
        Ok(seen.value().is_some())
    })?;
    Ok(books)
}
