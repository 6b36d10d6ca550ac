//! Rows: the columns that transactions read or write, fixed width, little-endian.
//!
//! Texts are left out (streets, dates as words, filler) or stand as numbers (names, credit). Money
//! is in hundredths, time in whatever unit the caller counts.

use manxdb_txn::procedure::{ProcedureError, RowView};

use super::keys::Key;
use crate::codec::{Cursor, strange_row};

/// A row that can be stored.
pub(super) trait Row: Sized {
    fn encode(&self) -> Vec<u8>;
    fn decode(bytes: &[u8]) -> Option<Self>;
}

/// Reads a row that must be there.
pub(super) fn get<R: Row>(rows: &mut dyn RowView, key: &Key) -> Result<R, ProcedureError> {
    let value = rows.get(key.as_slice())?;
    decode(key.as_slice(), value)
}

/// Changes a row that must be there; the row as it is then.
pub(super) fn update<R: Row>(
    rows: &mut dyn RowView,
    key: &Key,
    change: impl FnOnce(&mut R),
) -> Result<R, ProcedureError> {
    let value = rows.get_for_update(key.as_slice())?;
    let mut row = decode(key.as_slice(), value)?;
    change(&mut row);
    put(rows, key, &row)?;
    Ok(row)
}

pub(super) fn put<R: Row>(
    rows: &mut dyn RowView,
    key: &Key,
    row: &R,
) -> Result<(), ProcedureError> {
    Ok(rows.write(key.to_vec(), Some(row.encode()))?)
}

pub(super) fn decode<R: Row>(key: &[u8], value: Option<Vec<u8>>) -> Result<R, ProcedureError> {
    let row = value.and_then(|value| R::decode(&value));
    row.ok_or_else(|| strange_row(key))
}

/// A struct of numbers, its bytes, and where in them the warehouse's number stands, if anywhere.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) struct $name {
            $($(#[$field_doc])* pub(super) $field: $type),*
        }

        impl $name {
            const BYTES: usize = 0 $(+ size_of::<$type>())*;
        }

        impl Row for $name {
            fn encode(&self) -> Vec<u8> {
                let mut out = Vec::with_capacity(Self::BYTES);
                $(out.extend_from_slice(&self.$field.to_le_bytes());)*
                out
            }

            fn decode(bytes: &[u8]) -> Option<Self> {
                let mut input = Cursor::new(bytes);
                let row = Self { $($field: <$type>::from_le_bytes(input.take()?)),* };
                input.is_at_end().then_some(row)
            }
        }
    };
}

row!(
    /// What every order reads of a warehouse. What payments write is in a row of its own, so that
    /// protocols that lock rows lock columns, as those of DAST's artifact do.
    Warehouse {
        /// Its number.
        name: u32,
        /// In hundredths of a percent.
        tax: u16,
    }
);

row!(
    /// The sum of the payments at a warehouse or in a district.
    Paid { ytd: i64 }
);

row!(
    /// What orders read and write of a district.
    District {
        next_order: u32,
        tax: u16,
    }
);

row!(
    /// A payment.
    History {
        /// The customer's warehouse.
        warehouse: u32,
        district: u8,
        customer: u32,
        amount: i64,
        date: u64,
    }
);

row!(
    /// The last order of a district that was delivered.
    Delivered { last: u32 }
);

row!(Order {
    customer: u32,
    date: u64,
    /// 0 while it is new.
    carrier: u8,
    lines: u8,
    all_local: u8,
});

row!(OrderLine {
    /// Which warehouse it comes from.
    supplier: u32,
    item: u32,
    quantity: u8,
    amount: i64,
    /// 0 while it is not delivered.
    delivered: u64,
});

row!(Item {
    price: u32,
    original: u8,
});

row!(Stock {
    quantity: u16,
    ytd: u32,
    orders: u32,
    remote_orders: u32,
    original: u8,
});

row!(CustomerNumbers {
    balance: i64,
    /// Sum of all payments.
    paid: i64,
    payments: u32,
    deliveries: u32,
    last: u16,
    first: u32,
    /// In hundredths of a percent.
    discount: u16,
    bad_credit: u8,
});

/// Longest record of a customer with bad credit.
const DATA_BYTES_MAX: usize = 500;

/// A customer: numbers, and for one with bad credit a record of the payments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Customer {
    pub(super) numbers: CustomerNumbers,
    pub(super) data: Vec<u8>,
}

impl Customer {
    /// Puts a payment in front of the record, and cuts it at the end.
    pub(super) fn remember(&mut self, payment: &[u8]) {
        self.data.splice(0..0, payment.iter().copied());
        self.data.truncate(DATA_BYTES_MAX);
    }
}

impl Row for Customer {
    fn encode(&self) -> Vec<u8> {
        let mut out = self.numbers.encode();
        out.extend_from_slice(&self.data);
        out
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let (numbers, data) = bytes.split_at_checked(CustomerNumbers::BYTES)?;
        Some(Self {
            numbers: CustomerNumbers::decode(numbers)?,
            data: data.to_vec(),
        })
    }
}
