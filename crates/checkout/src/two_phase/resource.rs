//! A resource manager: a share of the products, and orders.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::line::Line;
use super::{CommitNumber, FromResource, ToResource, Version, Write, home};
use crate::shop::{STOCK, product, stock};

/// The products that are its own, and what was inserted.
#[derive(Debug)]
pub struct Resource {
    /// Product `number` is at `number / resources`.
    products: Vec<Mutex<Product>>,
    resources: usize,
    prepared: Mutex<BTreeMap<CommitNumber, Prepared>>,
    orders: Mutex<Vec<Vec<u8>>>,
}

#[derive(Debug)]
struct Product {
    /// The newest first. With one, readers would have to wait for writers.
    versions: [Option<Version>; 2],
    is_locked: bool,
}

/// What is locked until it is decided.
#[derive(Debug, Default)]
struct Prepared {
    writes: Vec<Write>,
    orders: Vec<Vec<u8>>,
}

impl Resource {
    /// The `mine`th of so many resource managers, stocked.
    #[must_use]
    pub fn new(mine: usize, resources: usize, products: u64) -> Self {
        let own = (0..products).filter(|number| home(*number, resources) == mine);
        let stocked = |number| {
            Mutex::new(Product {
                versions: [Some((0, product(number, STOCK))), None],
                is_locked: false,
            })
        };
        Self {
            products: own.map(stocked).collect(),
            resources,
            prepared: Mutex::default(),
            orders: Mutex::default(),
        }
    }

    /// Answers on a line until its other end is gone.
    ///
    /// # Errors
    /// The other end said what makes no sense, or broke off in the middle of a message.
    pub fn serve<L: Line>(&self, line: &mut L) -> io::Result<()> {
        loop {
            let asked = match line.receive() {
                Ok(asked) => asked,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            };
            line.send(&self.answer(asked))?;
        }
    }

    fn answer(&self, asked: ToResource) -> FromResource {
        match asked {
            ToResource::Read(snapshot, products) => {
                let read = |number: &u64| self.read(*number, snapshot);
                FromResource::Records(products.iter().map(read).collect())
            }
            ToResource::Prepare(number, writes, orders) => {
                FromResource::Vote(self.prepare(number, writes, orders))
            }
            ToResource::Decide(number, is_committed) => {
                self.decide(number, is_committed);
                FromResource::Decided
            }
            ToResource::Audit => self.audit(),
        }
    }

    fn product(&self, number: u64) -> Option<MutexGuard<'_, Product>> {
        let place = usize::try_from(number).ok()? / self.resources.max(1);
        let product = self.products.get(place)?;
        Some(product.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn read(&self, number: u64, snapshot: CommitNumber) -> Option<Version> {
        let product = self.product(number)?;
        let mut versions = product.versions.iter().flatten();
        versions.find(|(number, _)| *number <= snapshot).cloned()
    }

    /// Locks all products, or none.
    fn prepare(&self, number: CommitNumber, writes: Vec<Write>, orders: Vec<Vec<u8>>) -> bool {
        for (count, write) in writes.iter().enumerate() {
            let is_free = self.product(write.product).is_some_and(|mut product| {
                let newest = product.versions[0].as_ref().map(|(number, _)| *number);
                let is_free = !product.is_locked && newest == Some(write.read);
                product.is_locked |= is_free;
                is_free
            });
            if !is_free {
                self.unlock(writes.get(..count).unwrap_or_default());
                return false;
            }
        }
        let prepared = Prepared { writes, orders };
        guard(&self.prepared).insert(number, prepared);
        true
    }

    fn unlock(&self, writes: &[Write]) {
        for write in writes {
            if let Some(mut product) = self.product(write.product) {
                product.is_locked = false;
            }
        }
    }

    fn decide(&self, number: CommitNumber, is_committed: bool) {
        let Some(prepared) = guard(&self.prepared).remove(&number) else {
            return; // it voted no
        };
        if !is_committed {
            self.unlock(&prepared.writes);
            return;
        }
        for write in prepared.writes {
            if let Some(mut product) = self.product(write.product) {
                product.versions[1] = product.versions[0].take();
                product.versions[0] = Some((number, write.value));
                product.is_locked = false;
            }
        }
        guard(&self.orders).extend(prepared.orders);
    }

    fn audit(&self) -> FromResource {
        let sold = |product: &Mutex<Product>| {
            let product = guard(product);
            let newest = product.versions[0].as_ref();
            let left = newest.and_then(|(_, value)| stock(value));
            STOCK.saturating_sub(left.unwrap_or(0))
        };
        let sold = self.products.iter().map(sold).sum();
        FromResource::Books(sold, guard(&self.orders).len() as u64)
    }
}

fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
