//! TPC-A as DAST ran it: three increments on keys of a Zipf distribution.
//!
//! Three tables (customer, teller, branch) of a million rows each; key `k` of every table is
//! on shard `k` mod the number of shards, and has rank `k`: the hot keys 0, 1, 2 … are on the first
//! shards, so region 0 is the hottest. A transaction adds one to one row of each table, in three
//! pieces that wait for nothing. Nine in ten stay in the client's region, one in ten does
//! not; at least one row is of the client's shard.
//!
//! [`Totals`] asks for the sum of each table; [`check`] says whether they are what they must be.
//!
//! Rows: key `partition ‖ 0x20 + table ‖ key`, value the number, eight bytes; no row is zero.

mod check;
mod generator;
mod procedure;
mod totals;

pub use self::check::{check, check_totals, totals};
pub use self::generator::{Generator, KEYS};
pub use self::procedure::{Increment, NAME, Table, encode};
pub use self::totals::{TOTALS, Totals, encode_totals, read_totals};
