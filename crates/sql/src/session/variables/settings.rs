//! The variables execution reads, typed.

use jiff::tz::{Offset, TimeZone};
use manxdb_txn::IsolationLevel;

use super::charset;
use super::sql_mode;
use super::store::Values;
use crate::types::SqlMode;
use crate::types::{Collation, Value};

/// Typed copy of a session's variables, made anew after every SET.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // one a variable
pub(crate) struct Settings {
    /// `autocommit`.
    pub autocommit: bool,
    /// `sql_mode`.
    pub sql_mode: SqlMode,
    /// `time_zone`.
    pub time_zone: TimeZone,
    /// `transaction_isolation`.
    pub isolation: IsolationLevel,
    /// `transaction_read_only`.
    pub read_only: bool,
    /// `collation_connection`.
    pub collation: Collation,
    /// `div_precision_increment`.
    pub div_precision_increment: u8,
    /// `group_concat_max_len`, bytes.
    pub group_concat_max_len: usize,
    /// `max_execution_time`, microseconds; 0 is none.
    pub statement_timeout_micros: i64,
    /// `innodb_lock_wait_timeout`, microseconds.
    pub lock_wait_micros: i64,
    /// What the frontend waits for.
    pub timeouts: FrontendTimeouts,
    /// `timestamp`, microseconds since 1970; 0 is the real clock.
    pub fixed_now_micros: i64,
    /// `gdpr_batch_rows`: rows that one transaction of FORGET may find.
    pub gdpr_batch_rows: usize,
    /// `foreign_key_checks`.
    pub foreign_key_checks: bool,
    /// `unique_checks`.
    pub unique_checks: bool,
    /// `sql_select_limit`; `None` is unlimited.
    pub select_limit: Option<u64>,
    /// `sql_notes`.
    pub notes: bool,
    /// `max_error_count`.
    pub max_warnings: usize,
    /// `long_query_time`, microseconds.
    pub long_query_micros: i64,
}

impl Settings {
    /// Reads them; `system_zone` is what `SYSTEM` means.
    pub(crate) fn read(values: &Values, system_zone: &str) -> Self {
        let flag = |name: &str| values.integer(name) != 0;
        let seconds = |name: &str| values.integer(name).saturating_mul(1_000_000);
        let zone = match values.text("time_zone") {
            "SYSTEM" => system_zone,
            other => other,
        };
        let limit = values.integer("sql_select_limit");
        Self {
            autocommit: flag("autocommit"),
            sql_mode: sql_mode::bits(values.text("sql_mode")),
            time_zone: parse_time_zone(zone).unwrap_or(TimeZone::UTC),
            isolation: isolation(values.text("transaction_isolation")),
            read_only: flag("transaction_read_only"),
            collation: charset::collation(values.text("collation_connection"))
                .map_or(Collation::default(), |found| found.collation),
            div_precision_increment: u8::try_from(values.integer("div_precision_increment"))
                .unwrap_or(4),
            group_concat_max_len: to_usize(values.integer("group_concat_max_len")),
            statement_timeout_micros: values.integer("max_execution_time").saturating_mul(1_000),
            lock_wait_micros: seconds("innodb_lock_wait_timeout"),
            timeouts: FrontendTimeouts::read(values),
            fixed_now_micros: micros(values.named("timestamp")),
            gdpr_batch_rows: usize::try_from(values.integer("gdpr_batch_rows"))
                .unwrap_or(usize::MAX),
            foreign_key_checks: flag("foreign_key_checks"),
            unique_checks: flag("unique_checks"),
            select_limit: u64::try_from(limit).ok().filter(|_| limit != i64::MAX),
            notes: flag("sql_notes"),
            max_warnings: to_usize(values.integer("max_error_count")),
            long_query_micros: micros(values.named("long_query_time")),
        }
    }
}

/// How long a frontend waits for the client of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrontendTimeouts {
    /// `wait_timeout`, seconds: for the next command to begin.
    pub idle_seconds: u64,
    /// `net_read_timeout`, seconds: for more of a command that has begun.
    pub read_seconds: u64,
    /// `net_write_timeout`, seconds: for the client to take some of an answer.
    pub write_seconds: u64,
}

impl FrontendTimeouts {
    fn read(values: &Values) -> Self {
        let seconds = |name: &str| u64::try_from(values.integer(name)).unwrap_or(1).max(1);
        Self {
            idle_seconds: seconds("wait_timeout"),
            read_seconds: seconds("net_read_timeout"),
            write_seconds: seconds("net_write_timeout"),
        }
    }
}

fn to_usize(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

#[allow(clippy::cast_possible_truncation)] // `as` saturates, which is what is wanted
fn micros(seconds: &Value) -> i64 {
    match seconds {
        Value::Double(seconds) => (seconds * 1e6).round() as i64,
        Value::Int(seconds) => seconds.saturating_mul(1_000_000),
        _ => 0,
    }
}

/// The level a value of `transaction_isolation` names. Dirty reads do not exist: who asks for
/// them reads what is committed, while the variable keeps the name that was asked for.
pub(crate) fn isolation(name: &str) -> IsolationLevel {
    match name {
        "READ-COMMITTED" | "READ-UNCOMMITTED" => IsolationLevel::ReadCommitted,
        "REPEATABLE-READ" => IsolationLevel::RepeatableRead,
        _ => IsolationLevel::Serializable,
    }
}

/// The value of `transaction_isolation` for a level.
pub(crate) fn isolation_name(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::ReadCommitted => "READ-COMMITTED",
        IsolationLevel::RepeatableRead => "REPEATABLE-READ",
        IsolationLevel::Serializable => "SERIALIZABLE",
    }
}

/// `+HH:MM` between −13:59 and +14:00, or a zone of the database.
pub(crate) fn parse_time_zone(text: &str) -> Option<TimeZone> {
    let first = text.chars().next()?;
    if matches!(first, '+' | '-') {
        let (hours, minutes) = text.get(1..)?.split_once(':')?;
        let digits = |part: &str, most: usize| {
            (!part.is_empty() && part.len() <= most && part.bytes().all(|b| b.is_ascii_digit()))
                .then(|| part.parse::<i32>().ok())
                .flatten()
        };
        let (hours, minutes) = (digits(hours, 2)?, digits(minutes, 2)?);
        let sign = if first == '-' { -1 } else { 1 };
        let total = sign * (hours * 60 + minutes);
        if minutes > 59 || !(-839..=840).contains(&total) {
            return None;
        }
        return Offset::from_seconds(total * 60).ok().map(TimeZone::fixed);
    }
    if text.eq_ignore_ascii_case("UTC") {
        return Some(TimeZone::UTC);
    }
    TimeZone::get(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_keep_to_mysqls_range() {
        assert!(parse_time_zone("+14:00").is_some());
        assert!(parse_time_zone("-13:59").is_some());
        for bad in ["+14:01", "-14:00", "+5", "+05:60", "+:", "", "+1a:00"] {
            assert!(parse_time_zone(bad).is_none(), "{bad}");
        }
    }
}
