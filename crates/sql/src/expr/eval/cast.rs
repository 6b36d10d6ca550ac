//! CAST of a value whose declared type decides how it looks as text.

use super::Held;
use crate::error::SqlResult;
use crate::expr::functions::{RESULT_BYTES_MAX, encode_base64, too_long};
use crate::expr::{EvalContext, cast};
use crate::types::{DataType, Value, to_text, write_bits};

/// CAST where the declared source type decides how text looks (`datetime(3)` shows three digits).
pub(super) fn cast_typed(
    ctx: &EvalContext<'_>,
    value: Held<'_>,
    from: &DataType,
    to: &DataType,
) -> SqlResult<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if let DataType::Binary { length } = to
        && *length as usize > RESULT_BYTES_MAX
    {
        return too_long(ctx, "cast_as_binary");
    }
    if let (Value::UInt(bits), DataType::Bit { width }) = (&*value, from)
        && !to.is_number()
    {
        return cast_bits(ctx, *bits, *width, to);
    }
    if from.has_empty_member() && (to.is_text() || to.is_bytes()) {
        return cast(ctx, Value::Text(to_text(&value, from)), to);
    }
    let becomes_text = to.is_text() || to.is_bytes();
    if becomes_text && from.shows_declaration() && !matches!(*value, Value::Text(_)) {
        return cast(ctx, Value::Text(to_text(&value, from)), to);
    }
    cast(ctx, value.into_owned(), to)
}

/// A BIT where no number is wanted: its bytes, in JSON an opaque value of its type.
fn cast_bits(ctx: &EvalContext<'_>, bits: u64, width: u8, to: &DataType) -> SqlResult<Value> {
    let mut bytes = Vec::new();
    write_bits(bits, width, &mut bytes);
    if matches!(to, DataType::Json) {
        let text = format!("base64:type16:{}", encode_base64(&bytes));
        let json = serde_json::Value::String(text);
        return Ok(Value::Json(std::sync::Arc::new(json)));
    }
    cast(ctx, Value::Bytes(bytes), to)
}
