//! The shop by messages.

use std::io;

use super::line::Line;
use super::{CommitNumber, FromManager, FromResource, ToManager, ToResource, Version, Write, home};
use crate::shop::{Basket, CheckoutOutcome, ITEMS, Shop, ShopError, order, sold};

/// A client: a line to the transaction manager, and one to each resource manager.
#[derive(Debug)]
pub struct TwoPhase<L> {
    manager: L,
    resources: Vec<L>,
    snapshot: CommitNumber,
}

impl<L: Line> TwoPhase<L> {
    /// A client that has begun.
    ///
    /// # Errors
    /// The transaction manager does not answer.
    pub fn new(mut manager: L, resources: Vec<L>) -> io::Result<Self> {
        manager.send(&ToManager::Begin)?;
        let FromManager { snapshot, .. } = manager.receive()?;
        Ok(Self {
            manager,
            resources,
            snapshot,
        })
    }

    fn read(&mut self, basket: Basket) -> io::Result<Option<Vec<(u64, Version)>>> {
        let count = self.resources.len();
        let wanted = |place: usize| -> Vec<u64> {
            let own = basket
                .iter()
                .filter(|number| home(**number, count) == place);
            own.copied().collect()
        };
        for (place, line) in self.resources.iter_mut().enumerate() {
            if !wanted(place).is_empty() {
                line.send(&ToResource::Read(self.snapshot, wanted(place)))?;
            }
        }
        let mut found = Vec::with_capacity(ITEMS);
        let mut is_too_old = false;
        for (place, line) in self.resources.iter_mut().enumerate() {
            let wanted = wanted(place);
            if wanted.is_empty() {
                continue;
            }
            let FromResource::Records(records) = line.receive()? else {
                return Err(io::Error::other(
                    "a resource manager answers something else",
                ));
            };
            for (number, record) in wanted.into_iter().zip(records) {
                match record {
                    Some(version) => found.push((number, version)),
                    None => is_too_old = true,
                }
            }
        }
        Ok((!is_too_old).then_some(found))
    }

    fn try_to_buy(&mut self, basket: Basket) -> io::Result<CheckoutOutcome> {
        let Some(found) = self.read(basket)? else {
            self.manager.send(&ToManager::Begin)?;
            let answer: FromManager = self.manager.receive()?;
            self.snapshot = answer.snapshot;
            return Ok(CheckoutOutcome::Aborted);
        };
        let write = |(product, (read, value)): (u64, Version)| {
            let value = sold(&value).ok_or_else(|| io::Error::other("a product is none"))?;
            Ok(Write {
                product,
                read,
                value,
            })
        };
        let writes = found.into_iter().map(write).collect::<io::Result<_>>()?;
        self.manager
            .send(&ToManager::Commit(writes, order(basket)))?;
        let answer: FromManager = self.manager.receive()?;
        self.snapshot = answer.snapshot;
        Ok(answer.verdict())
    }

    /// What all resource managers together have sold and taken down, when nobody buys.
    ///
    /// # Errors
    /// One of them does not answer.
    pub fn audit(&mut self) -> io::Result<(u64, u64)> {
        // Clients hear of a commit before it is installed.
        self.manager.send(&ToManager::Rest)?;
        let _: FromManager = self.manager.receive()?;
        let (mut sold, mut records) = (0, 0);
        for line in &mut self.resources {
            line.send(&ToResource::Audit)?;
            if let FromResource::Books(more, lines) = line.receive()? {
                sold += more;
                records += lines;
            }
        }
        Ok((sold, records))
    }
}

impl<L: Line> Shop for TwoPhase<L> {
    fn buy(&mut self, basket: Basket) -> Result<CheckoutOutcome, ShopError> {
        let done = self.try_to_buy(basket);
        done.map_err(|error| ShopError(error.to_string()))
    }
}
