//! Values, their types, and MySQL's rules between them.

mod data_type;
mod temporal;
mod value;

pub use data_type::{Collation, ColumnMeta, DataType, IntWidth, TextSize};
pub use temporal::{Date, DateTime, Time};
pub use value::{Decimal, Row, Value};
