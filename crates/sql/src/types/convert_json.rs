//! SQL values as JSON scalars and back.

use serde_json::{Number, Value as Json};

use super::convert::json_fraction;
use super::temporal_text::{write_date, write_datetime, write_time};
use super::value::Value;

/// A SQL value as the JSON scalar MySQL makes of it (text becomes a JSON string, not a document).
#[must_use]
pub fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Int(value) => Json::from(*value),
        Value::UInt(value) => Json::from(*value),
        Value::Double(value) => Number::from_f64(*value).map_or(Json::Null, Json::Number),
        Value::Decimal(_) => json_fraction(value),
        Value::Text(text) => Json::String(text.clone()),
        Value::Bytes(bytes) => Json::String(String::from_utf8_lossy(bytes).into_owned()),
        Value::Json(json) => json.as_ref().clone(),
        Value::Date(date) => temporal(|out| write_date(*date, out)),
        Value::Time(time) => temporal(|out| write_time(*time, 6, out)),
        Value::DateTime(value) => temporal(|out| write_datetime(*value, 6, out)),
    }
}

fn temporal(write: impl FnOnce(&mut Vec<u8>)) -> Json {
    let mut out = Vec::new();
    write(&mut out);
    Json::String(String::from_utf8(out).unwrap_or_default())
}
