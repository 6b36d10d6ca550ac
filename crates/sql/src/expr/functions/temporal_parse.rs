//! Arguments read as dates and times, with the warnings of reading them.

use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::types::{Date, DateTime, Time, Value, parse_datetime, parse_time, today};

fn incorrect(ctx: &EvalContext<'_>, kind: &str, value: &Value) -> SqlResult<()> {
    let text = value.to_text().unwrap_or_default();
    ctx.problem(1292, "22007", format!("Incorrect {kind} value: '{text}'"))
}

/// A date and time; NULL with warning 1292 for what is none.
pub(super) fn datetime_arg(ctx: &EvalContext<'_>, value: &Value) -> SqlResult<Option<DateTime>> {
    if value.is_null() {
        return Ok(None);
    }
    if let Value::Text(text) = value {
        if let Some((parsed, _)) = parse_datetime(text) {
            if parsed.truncated {
                ctx.truncated("datetime", value)?;
            }
            return Ok(Some(parsed.value));
        }
        incorrect(ctx, "datetime", value)?;
        return Ok(None);
    }
    let found = value.to_datetime(today(ctx.now_micros, &ctx.time_zone));
    if found.is_none() {
        incorrect(ctx, "datetime", value)?;
    }
    Ok(found)
}

/// As [`datetime_arg`], the date alone.
pub(super) fn date_arg(ctx: &EvalContext<'_>, value: &Value) -> SqlResult<Option<Date>> {
    if let Value::Date(date) = value {
        return Ok(Some(*date));
    }
    Ok(datetime_arg(ctx, value)?.map(|value| value.date))
}

/// A time; NULL with warning 1292 for what is none.
pub(super) fn time_arg(ctx: &EvalContext<'_>, value: &Value) -> SqlResult<Option<Time>> {
    let parsed = match value {
        Value::Null => return Ok(None),
        Value::Text(text) => parse_time(text).map(|parsed| (parsed.value, parsed.truncated)),
        other => other.to_time().map(|time| (time, false)),
    };
    let Some((time, truncated)) = parsed else {
        incorrect(ctx, "time", value)?;
        return Ok(None);
    };
    let (time, cut) = Time::clamped(time.micros);
    if truncated || cut {
        ctx.truncated("time", value)?;
    }
    Ok(Some(time))
}
