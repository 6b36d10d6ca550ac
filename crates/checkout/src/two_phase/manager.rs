//! The transaction manager, and the timestamp service in it.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError};

use manxdb_fabric::turn;

use super::line::Line;
use super::{CommitNumber, FromManager, FromResource, ToManager, ToResource, Write, home};

/// Gives out commit numbers, and knows up to which all are installed.
#[derive(Debug, Default)]
pub struct Manager {
    numbers: Mutex<Numbers>,
}

#[derive(Debug, Default)]
struct Numbers {
    last: CommitNumber,
    /// Given out and not over.
    under_way: BTreeSet<CommitNumber>,
}

/// What one resource manager has to do with a transaction.
#[derive(Debug, Default)]
struct Share {
    writes: Vec<Write>,
    orders: Vec<Vec<u8>>,
}

impl Manager {
    fn with<T>(&self, change: impl FnOnce(&mut Numbers) -> T) -> T {
        change(&mut self.numbers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn take(&self) -> CommitNumber {
        self.with(|numbers| {
            numbers.last += 1;
            numbers.under_way.insert(numbers.last);
            numbers.last
        })
    }

    fn end(&self, number: CommitNumber) {
        self.with(|numbers| {
            numbers.under_way.remove(&number);
        });
    }

    /// Everything up to it is installed, or never will be.
    fn snapshot(&self) -> CommitNumber {
        self.with(|numbers| match numbers.under_way.first() {
            Some(first) => first - 1,
            None => numbers.last,
        })
    }

    /// Commits what a client sends, with lines to all resource managers, until the client is gone.
    ///
    /// # Errors
    /// A resource manager is gone, or somebody says what makes no sense.
    pub fn serve<L: Line>(&self, client: &mut L, resources: &mut [L]) -> io::Result<()> {
        loop {
            let asked = match client.receive() {
                Ok(asked) => asked,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                Err(error) => return Err(error),
            };
            match asked {
                ToManager::Begin => client.send(&FromManager {
                    is_committed: None,
                    snapshot: self.snapshot(),
                })?,
                ToManager::Rest => {
                    let mut turns = 0;
                    while self.with(|numbers| !numbers.under_way.is_empty()) {
                        turn(&mut turns);
                    }
                    client.send(&FromManager {
                        is_committed: None,
                        snapshot: self.snapshot(),
                    })?;
                }
                ToManager::Commit(writes, orders) => {
                    self.commit(client, resources, writes, orders)?;
                }
            }
        }
    }

    fn commit<L: Line>(
        &self,
        client: &mut L,
        resources: &mut [L],
        writes: Vec<Write>,
        orders: Vec<Vec<u8>>,
    ) -> io::Result<()> {
        let number = self.take();
        let mut shares: Vec<Share> = Vec::new();
        shares.resize_with(resources.len(), Share::default);
        // Orders go where one of the products is, so that they make nobody else take part.
        let first = writes
            .first()
            .map_or(0, |write| home(write.product, shares.len()));
        for write in writes {
            let home = home(write.product, shares.len());
            if let Some(share) = shares.get_mut(home) {
                share.writes.push(write);
            }
        }
        if let Some(share) = shares.get_mut(first) {
            share.orders = orders;
        }
        let mut concerned: Vec<&mut L> = Vec::new();
        for (line, share) in resources.iter_mut().zip(shares) {
            if !share.writes.is_empty() || !share.orders.is_empty() {
                line.send(&ToResource::Prepare(number, share.writes, share.orders))?;
                concerned.push(line);
            }
        }
        let mut is_committed = true;
        for line in &mut concerned {
            is_committed &= line.receive::<FromResource>()? == FromResource::Vote(true);
        }
        for line in &mut concerned {
            line.send(&ToResource::Decide(number, is_committed))?;
        }
        // The client hears of it while it is being installed; its next snapshot is then older
        // than what it has written itself, which its next read of that would find out.
        client.send(&FromManager {
            is_committed: Some(is_committed),
            snapshot: self.snapshot(),
        })?;
        for line in &mut concerned {
            line.receive::<FromResource>()?;
        }
        self.end(number);
        Ok(())
    }
}
