//! Values, their types, and MySQL's rules between them.

#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "conversions between kinds of numbers are what this module is for; ranges are checked where they matter"
)]

mod collate;
mod collation;
mod common;
mod compare;
mod convert;
mod convert_json;
mod data_type;
mod digits;
mod general_ci;
mod implicit_default;
mod json_path;
mod json_text;
mod members;
mod number;
mod sql_mode;
mod store;
mod temporal;
mod temporal_text;
mod text;
mod time_zone;
mod type_info;
mod value;

pub use collate::{compare_text, sort_key, text_equal, write_escaped};
pub use common::{common_type, merge_collations};
pub use compare::{compare, group_key, sort_cmp, sort_cmp_typed, sort_head_typed};
pub use convert_json::to_json;
pub use data_type::{Collation, ColumnMeta, DataType, IntWidth, Sign, TextSize};
pub use implicit_default::implicit_default;
pub use json_path::Path as JsonPath;
pub(crate) use json_path::{Leg as PathLeg, Place as PathPlace};
pub use json_text::{
    JsonIssue, MAX_JSON_DEPTH, check_json, compare_json, json_bytes, json_depth, json_to_text,
    normalise, parse_json, write_json, write_json_string,
};
pub use members::{SET_MEMBERS_MAX, set_bits, set_text};
pub use number::{
    MAX_DECIMAL_PRECISION, MAX_DECIMAL_SCALE, decimal_limit, decimal_of_double, decimal_scale,
    decimal_to_integer, parse_decimal, parse_double, parse_integer, parse_integer_cut,
    round_decimal, write_decimal, write_double, write_float,
};
pub use sql_mode::SqlMode;
pub use store::{Issue, StoreRules, date_allowed, fit, integer_value};
pub use temporal::{
    Date, DateTime, MAX_DAY_NUMBER, MICROS_PER_DAY, MICROS_PER_SECOND, Time, days_in_month,
    last_day, round_datetime, round_micros,
};
pub use temporal_text::{
    Parsed, datetime_from_number, expand_year, parse_datetime, parse_time, time_from_number,
    write_date, write_datetime, write_time,
};
pub use text::{to_text, write_bits, write_text, write_value};
pub use time_zone::{from_utc_micros, parse_time_zone, to_utc_micros, today};
pub use type_info::bit_bytes;
pub use value::{Decimal, Row, Value};
