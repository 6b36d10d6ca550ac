//! Where everything is in the memory of servers: the same for all who have the same numbers.

use manxdb_fabric::{Address, ServerId};
use manxdb_rsi::{Layout, LayoutError, Log, ThreadId, Vector};

use crate::shop::{ITEMS, LINE, PRODUCT};

/// Bytes of a log at each of its places: a checkout takes less than half.
const LOG: u64 = 16 << 10;
/// The vector, then logs, begin behind a line that nothing uses.
const FIRST: u64 = 64;

/// Sizes that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// Records cannot lie so in memory.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// There are none of something.
    #[error("a shop needs memory servers, at least {ITEMS} products, and room for an order")]
    Empty,
    /// More clients than a vector has lines, or none.
    #[error("{0} clients: there can be 1 to {max}", max = Vector::THREADS_MAX - 1)]
    Clients(u16),
    /// Fewer servers than copies of a log.
    #[error("{0} copies of logs on {1} memory servers")]
    Copies(u16, u16),
}

/// A shop's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Memory servers, numbered from 0.
    pub servers: u16,
    /// Products, on the servers in turn.
    pub products: u64,
    /// Versions of each product.
    pub versions: usize,
    /// Clients; one more thread stocks the shop.
    pub clients: u16,
    /// Orders that each client can place.
    pub orders: u64,
    /// Copies of each client's log; 0: nothing is logged.
    pub log_copies: u16,
}

impl Plan {
    /// Checks it.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn check(self) -> Result<Self, PlanError> {
        Layout::new(self.versions, PRODUCT)?;
        if self.servers == 0 || self.products < ITEMS as u64 || self.orders == 0 {
            return Err(PlanError::Empty);
        }
        if self.clients == 0 || self.clients >= Vector::THREADS_MAX {
            return Err(PlanError::Clients(self.clients));
        }
        if self.log_copies > self.servers {
            return Err(PlanError::Copies(self.log_copies, self.servers));
        }
        Ok(self)
    }

    /// How products lie in memory.
    pub(super) fn product_layout(self) -> Layout {
        // `check` has made it once.
        Layout::new(self.versions, PRODUCT).unwrap_or(LINE_LAYOUT)
    }

    /// The thread that stocks the shop: behind those of the clients.
    pub(super) fn loader(self) -> ThreadId {
        // Fewer than `Vector::THREADS_MAX`, which are fewer than threads can be.
        ThreadId::new(self.clients).unwrap_or(ThreadId::FIRST)
    }

    /// What transactions see is said by a vector on the first server.
    pub(super) fn vector(self) -> Option<Vector> {
        let base = Address {
            server: ServerId(0),
            offset: FIRST,
        };
        Vector::new(base, self.clients + 1)
    }

    /// Behind the vector, on all servers alike.
    fn logs(self) -> u64 {
        let vector = self.vector().map_or(0, Vector::bytes);
        (FIRST + vector).next_multiple_of(64)
    }

    /// A client's log, on as many servers as there are copies.
    pub(super) fn log(self, client: u16) -> Option<Log> {
        let place = |copy: u16| Address {
            server: ServerId((client + copy) % self.servers),
            offset: self.logs() + u64::from(client) * LOG,
        };
        Log::new((0..self.log_copies).map(place).collect(), LOG, 1)
    }

    fn first_product(self) -> u64 {
        self.logs() + u64::from(self.clients) * LOG
    }

    /// Where a product is.
    pub(super) fn product(self, number: u64) -> Address {
        let size = stride(self.product_layout());
        spread(self.servers, number, self.first_product(), size)
    }

    /// Where the records of a client's order are: the order, then its lines.
    pub(super) fn order(self, client: u16, number: u64, record: u64) -> Address {
        let number = order_record(self.orders, client, number, record);
        spread(
            self.servers,
            number,
            self.first_order(),
            stride(LINE_LAYOUT),
        )
    }

    fn first_order(self) -> u64 {
        let products = self.products.div_ceil(u64::from(self.servers));
        self.first_product() + products * stride(self.product_layout())
    }

    /// Bytes that each server needs.
    #[must_use]
    pub fn bytes(self) -> u64 {
        let records = order_record(self.orders, self.clients, 0, 0);
        let orders = records.div_ceil(u64::from(self.servers)) * stride(LINE_LAYOUT);
        self.first_order() + orders
    }
}

/// The place of a record, of which the servers have one each in turn.
pub(super) fn spread(servers: u16, number: u64, first: u64, size: u64) -> Address {
    let servers = u64::from(servers.max(1));
    Address {
        // A remainder of a u16.
        server: ServerId(u16::try_from(number % servers).unwrap_or(0)),
        offset: first + number / servers * size,
    }
}

/// The number of an order's record among those of all clients, who have so many orders each.
pub(super) fn order_record(orders: u64, client: u16, number: u64, record: u64) -> u64 {
    (u64::from(client) * orders + number) * (1 + ITEMS as u64) + record
}

/// How orders and their lines lie in memory: they are never changed, and have room to be.
pub(super) const LINE_LAYOUT: Layout = match Layout::new(2, LINE) {
    Ok(layout) => layout,
    Err(_) => panic!("two versions of a line are a layout"),
};

/// Bytes from one record to the next.
fn stride(layout: Layout) -> u64 {
    (layout.bytes() as u64).next_multiple_of(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: Plan = Plan {
        servers: 3,
        products: 100,
        versions: 2,
        clients: 4,
        orders: 10,
        log_copies: 2,
    };

    #[test]
    fn nothing_lies_in_anothers_place() {
        let plan = PLAN.check().unwrap();
        let mut spans = Vec::new();
        let product = plan.product_layout().bytes() as u64;
        spans.extend((0..plan.products).map(|number| (plan.product(number), product)));
        for client in 0..plan.clients {
            for number in 0..plan.orders {
                let line = |record| (plan.order(client, number, record), 1 + LINE as u64);
                spans.extend((0..=ITEMS as u64).map(line));
            }
        }
        spans.sort_unstable();
        for pair in spans.windows(2) {
            let [(at, bytes), (next, _)] = pair else {
                continue;
            };
            assert!(
                at.server < next.server || at.offset + bytes <= next.offset,
                "{at} {next}"
            );
        }
        let beyond = |(at, bytes): &(Address, u64)| at.offset + bytes > plan.bytes();
        assert!(!spans.iter().any(beyond));
        assert!(
            spans
                .iter()
                .all(|(at, _)| at.offset >= plan.first_product())
        );
    }

    #[test]
    fn sizes_that_cannot_be_are_named() {
        let said = |plan: Plan| plan.check().unwrap_err().to_string();
        assert!(
            said(Plan {
                versions: 1,
                ..PLAN
            })
            .contains("2 to 16 versions")
        );
        assert!(
            said(Plan {
                products: 2,
                ..PLAN
            })
            .contains("at least 3 products")
        );
        assert!(
            said(Plan {
                clients: 256,
                ..PLAN
            })
            .contains("256 clients: there can be 1 to 255")
        );
        assert!(
            said(Plan {
                log_copies: 4,
                ..PLAN
            })
            .contains("4 copies of logs on 3")
        );
    }
}
