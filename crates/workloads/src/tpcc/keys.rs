//! Keys: `partition ‖ table ‖ columns`, all big-endian, so that bytes sort as the columns do.

use manxdb_storage::KeyRange;

use crate::Partition;

/// A table or index, by the byte behind the partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Table {
    /// One row.
    Warehouse = 1,
    /// By district.
    District,
    /// By district, customer.
    Customer,
    /// By district, last name, first name, customer; its rows are empty.
    CustomerByName,
    /// By district, client, the client's number of the payment.
    History,
    /// By district, order; its rows are empty.
    NewOrder,
    /// By district: which orders were delivered, so that nobody looks for new ones among them.
    Delivered,
    /// By district, order.
    Order,
    /// By district, customer, order; its rows are empty.
    OrderByCustomer,
    /// By district, order, line.
    OrderLine,
    /// By item; every warehouse has all items.
    Item,
    /// By item.
    Stock,
    /// One row.
    WarehousePaid,
    /// By district.
    DistrictPaid,
}

/// A key as it grows; at most 24 bytes, none of them on the heap.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    bytes: [u8; Key::BYTES_MAX],
    length: usize,
}

impl Key {
    const BYTES_MAX: usize = 24;

    fn new(partition: Partition, table: Table) -> Self {
        let mut bytes = [0; Self::BYTES_MAX];
        bytes[..Partition::KEY_BYTES].copy_from_slice(&partition.prefix());
        bytes[Partition::KEY_BYTES] = table as u8;
        Self {
            bytes,
            length: Partition::KEY_BYTES + 1,
        }
    }

    fn with<const N: usize>(mut self, column: [u8; N]) -> Self {
        self.bytes[self.length..self.length + N].copy_from_slice(&column);
        self.length += N;
        self
    }

    pub(super) fn byte(self, column: u8) -> Self {
        self.with([column])
    }

    fn number(self, column: u32) -> Self {
        self.with(column.to_be_bytes())
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    pub(super) fn to_vec(self) -> Vec<u8> {
        self.as_slice().to_vec()
    }

    /// All keys that begin with this one.
    pub(super) fn range(&self) -> KeyRange {
        KeyRange::prefix(self.as_slice())
    }
}

/// Rows of a table with these columns, or the beginnings of them.
pub(super) fn table(w: Partition, table: Table) -> Key {
    Key::new(w, table)
}

pub(super) fn warehouse(w: Partition) -> Key {
    Key::new(w, Table::Warehouse)
}

pub(super) fn district(w: Partition, d: u8) -> Key {
    Key::new(w, Table::District).byte(d)
}

pub(super) fn warehouse_paid(w: Partition) -> Key {
    Key::new(w, Table::WarehousePaid)
}

pub(super) fn district_paid(w: Partition, d: u8) -> Key {
    Key::new(w, Table::DistrictPaid).byte(d)
}

pub(super) fn customers(w: Partition, d: u8) -> Key {
    Key::new(w, Table::Customer).byte(d)
}

pub(super) fn customer(w: Partition, d: u8, c: u32) -> Key {
    customers(w, d).number(c)
}

pub(super) fn customers_by_name(w: Partition, d: u8, last: u16) -> Key {
    let table = Key::new(w, Table::CustomerByName);
    table.byte(d).with(last.to_be_bytes())
}

pub(super) fn customer_by_name(w: Partition, d: u8, last: u16, first: u32, c: u32) -> Key {
    customers_by_name(w, d, last).number(first).number(c)
}

/// The history of TPC-C has no key. Who pays names the payment, so that every replica writes
/// the same row.
pub(super) fn history(w: Partition, d: u8, client: u32, number: u32) -> Key {
    let table = Key::new(w, Table::History);
    table.byte(d).number(client).number(number)
}

pub(super) fn new_orders(w: Partition, d: u8) -> Key {
    Key::new(w, Table::NewOrder).byte(d)
}

pub(super) fn new_order(w: Partition, d: u8, o: u32) -> Key {
    new_orders(w, d).number(o)
}

pub(super) fn delivered(w: Partition, d: u8) -> Key {
    Key::new(w, Table::Delivered).byte(d)
}

pub(super) fn orders(w: Partition, d: u8) -> Key {
    Key::new(w, Table::Order).byte(d)
}

pub(super) fn order(w: Partition, d: u8, o: u32) -> Key {
    orders(w, d).number(o)
}

pub(super) fn orders_by_customer(w: Partition, d: u8) -> Key {
    Key::new(w, Table::OrderByCustomer).byte(d)
}

pub(super) fn orders_of(w: Partition, d: u8, c: u32) -> Key {
    orders_by_customer(w, d).number(c)
}

pub(super) fn order_by_customer(w: Partition, d: u8, c: u32, o: u32) -> Key {
    orders_of(w, d, c).number(o)
}

pub(super) fn order_lines(w: Partition, d: u8) -> Key {
    Key::new(w, Table::OrderLine).byte(d)
}

pub(super) fn lines_of(w: Partition, d: u8, o: u32) -> Key {
    order_lines(w, d).number(o)
}

pub(super) fn order_line(w: Partition, d: u8, o: u32, line: u8) -> Key {
    lines_of(w, d, o).byte(line)
}

pub(super) fn item(w: Partition, i: u32) -> Key {
    Key::new(w, Table::Item).number(i)
}

pub(super) fn stock(w: Partition, i: u32) -> Key {
    Key::new(w, Table::Stock).number(i)
}

/// The last column of a key that ends with a number.
pub(super) fn last_number(key: &[u8]) -> u32 {
    key.last_chunk::<4>()
        .map_or(0, |last| u32::from_be_bytes(*last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_as_their_columns_do() {
        let w = Partition(7);
        let ascending = [
            warehouse(w),
            district(w, 1),
            district(w, 2),
            customer(w, 1, 255),
            customer(w, 1, 256),
            customer(w, 2, 1),
            customer_by_name(w, 1, 255, 9, 9),
            customer_by_name(w, 1, 256, 1, 1),
            new_order(w, 1, 3_000),
            delivered(w, 1),
            order_by_customer(w, 1, 3, 70_000),
            order_by_customer(w, 1, 4, 1),
            order_line(w, 1, 3_000, 15),
            order_line(w, 1, 3_001, 1),
            warehouse(Partition(8)),
        ];
        for pair in ascending.windows(2) {
            assert!(pair[0].as_slice() < pair[1].as_slice(), "{pair:?}");
        }
    }

    #[test]
    fn a_range_holds_what_begins_with_its_key() {
        let w = Partition(7);
        let range = lines_of(w, 3, 12).range();
        assert!(range.contains(order_line(w, 3, 12, 1).as_slice()));
        assert!(!range.contains(order_line(w, 3, 13, 1).as_slice()));
        assert!(!range.contains(order_line(w, 3, 11, 255).as_slice()));
    }
}
