//! Addresses and UUIDs.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{ScalarFunction, infer};
use crate::error::{SqlError, SqlResult};
use crate::expr::EvalContext;
use crate::plan::Expr;
use crate::types::{DataType, Value};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("INET_ATON", (1, 1), infer::integer_or_null, inet_aton),
    ScalarFunction::new("INET_NTOA", (1, 1), infer::short_text, inet_ntoa),
    ScalarFunction::new("INET6_ATON", (1, 1), infer_bytes16, inet6_aton),
    ScalarFunction::new("INET6_NTOA", (1, 1), infer::short_text, inet6_ntoa),
    ScalarFunction::new("IS_IPV4", (1, 1), infer::integer_always, is_ipv4),
    ScalarFunction::new("IS_IPV6", (1, 1), infer::integer_always, is_ipv6),
    ScalarFunction::new(
        "IS_IPV4_COMPAT",
        (1, 1),
        infer::integer_always,
        is_ipv4_compat,
    ),
    ScalarFunction::new(
        "IS_IPV4_MAPPED",
        (1, 1),
        infer::integer_always,
        is_ipv4_mapped,
    ),
    ScalarFunction::new("UUID", (0, 0), infer_uuid, uuid).volatile(),
    ScalarFunction::new("UUID_SHORT", (0, 0), infer::unsigned, uuid_short).volatile(),
    ScalarFunction::new("IS_UUID", (1, 1), infer::integer, is_uuid),
    ScalarFunction::new("UUID_TO_BIN", (1, 2), infer_bytes16, uuid_to_bin),
    ScalarFunction::new("BIN_TO_UUID", (1, 2), infer::short_text, bin_to_uuid),
];

fn infer_bytes16(_args: &[Expr]) -> (DataType, bool) {
    (DataType::Varbinary { length: 16 }, true)
}

fn infer_uuid(_args: &[Expr]) -> (DataType, bool) {
    (DataType::varchar(36), false)
}

/// Dotted numbers; with fewer than four the last one is the rest, as in `127.1`.
fn inet_aton(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(text) = args[0].to_text() else {
        return Ok(Value::Null);
    };
    let parts: Option<Vec<u8>> = text
        .split('.')
        .map(|part| part.parse::<u8>().ok().filter(|_| !part.starts_with('+')))
        .collect();
    let Some(parts) = parts.filter(|parts| parts.len() <= 4) else {
        return Ok(Value::Null);
    };
    let Some((last, front)) = parts.split_last() else {
        return Ok(Value::Null);
    };
    let mut number = 0i64;
    for (place, part) in front.iter().enumerate() {
        number |= i64::from(*part) << (24 - 8 * place);
    }
    Ok(Value::Int(number | i64::from(*last)))
}

fn inet_ntoa(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let number = args[0]
        .to_i64()
        .and_then(|number| u32::try_from(number).ok());
    Ok(number.map_or(Value::Null, |number| {
        Value::Text(Ipv4Addr::from(number).to_string())
    }))
}

fn inet6_aton(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(text) = args[0].to_text() else {
        return Ok(Value::Null);
    };
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok(Value::Bytes(address.octets().to_vec()));
    }
    let address = text.parse::<Ipv6Addr>().ok();
    Ok(address.map_or(Value::Null, |address| {
        Value::Bytes(address.octets().to_vec())
    }))
}

fn inet6_ntoa(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(bytes) = args[0].to_bytes() else {
        return Ok(Value::Null);
    };
    if let Ok(four) = <[u8; 4]>::try_from(bytes.as_slice()) {
        return Ok(Value::Text(Ipv4Addr::from(four).to_string()));
    }
    let sixteen = <[u8; 16]>::try_from(bytes.as_slice());
    Ok(sixteen.map_or(Value::Null, |bytes| {
        Value::Text(match bytes {
            // An IPv4-compatible address; `::1` and `::` are none.
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] if (a, b) != (0, 0) => {
                format!("::{}", Ipv4Addr::from([a, b, c, d]))
            }
            _ => Ipv6Addr::from(bytes).to_string(),
        })
    }))
}

fn truth(value: bool) -> SqlResult<Value> {
    Ok(Value::Int(i64::from(value)))
}

fn is_ipv4(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    truth(
        args[0]
            .to_text()
            .is_some_and(|text| text.parse::<Ipv4Addr>().is_ok()),
    )
}

fn is_ipv6(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    truth(
        args[0]
            .to_text()
            .is_some_and(|text| text.parse::<Ipv6Addr>().is_ok()),
    )
}

fn sixteen(value: &Value) -> Option<[u8; 16]> {
    value.to_bytes()?.try_into().ok()
}

fn is_ipv4_compat(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let compat = |bytes: [u8; 16]| {
        bytes[..12].iter().all(|byte| *byte == 0) && bytes[12..] > [0, 0, 0, 1][..]
    };
    truth(sixteen(&args[0]).is_some_and(compat))
}

fn is_ipv4_mapped(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    truth(sixteen(&args[0]).is_some_and(|bytes| Ipv6Addr::from(bytes).to_ipv4_mapped().is_some()))
}

fn dashed(bytes: [u8; 16]) -> String {
    let hex = hex::encode(bytes);
    let parts = [
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..],
    ];
    parts.join("-")
}

/// Version 1: the clock in units of 100 ns since 1582, and random bits for the node.
fn uuid(ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    const GREGORIAN_OFFSET: u64 = 0x01b2_1dd2_1381_4000;
    let random = ctx.next_random();
    let micros = u64::try_from((ctx.clock)()).unwrap_or(0);
    // The digit below the clock's is random, so that calls in one microsecond differ.
    let ticks = micros
        .wrapping_mul(10)
        .wrapping_add(GREGORIAN_OFFSET)
        .wrapping_add(random % 10);
    let mut bytes = [0u8; 16];
    bytes[..4].copy_from_slice(&(ticks as u32).to_be_bytes());
    bytes[4..6].copy_from_slice(&((ticks >> 32) as u16).to_be_bytes());
    bytes[6..8].copy_from_slice(&(((ticks >> 48) as u16 & 0x0fff) | 0x1000).to_be_bytes());
    bytes[8..].copy_from_slice(&ctx.next_random().to_be_bytes());
    bytes[8] = bytes[8] & 0x3f | 0x80;
    bytes[10] |= 1;
    Ok(Value::Text(dashed(bytes)))
}

fn uuid_short(ctx: &EvalContext<'_>, _args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let micros = u64::try_from((ctx.clock)()).unwrap_or(0);
    Ok(Value::UInt(micros << 8 | ctx.next_random() & 0xff))
}

/// Plain, dashed or braced hexadecimal.
fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let inner = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .unwrap_or(text);
    let dashes_fit = match inner.len() {
        32 => !inner.contains('-'),
        36 => [8, 13, 18, 23]
            .iter()
            .all(|at| inner.as_bytes()[*at] == b'-'),
        _ => false,
    };
    let digits: String = inner.chars().filter(|c| *c != '-').collect();
    if !dashes_fit || digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u128::from_str_radix(&digits, 16)
        .ok()
        .map(u128::to_be_bytes)
}

fn is_uuid(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(text) = args[0].to_text() else {
        return Ok(Value::Null);
    };
    truth(parse_uuid(&text).is_some())
}

fn bad_uuid(text: &str, function: &str) -> SqlError {
    let message = format!("Incorrect string value: '{text}' for function {function}");
    SqlError::new(1411, "HY000", message)
}

/// Brings the slow-moving part of the time to the front, or back.
fn swapped(bytes: [u8; 16], args: &[Value], to_binary: bool) -> [u8; 16] {
    if args.get(1).and_then(Value::to_bool) != Some(true) {
        return bytes;
    }
    let mut out = bytes;
    if to_binary {
        out[..2].copy_from_slice(&bytes[6..8]);
        out[2..4].copy_from_slice(&bytes[4..6]);
        out[4..8].copy_from_slice(&bytes[..4]);
    } else {
        out[..4].copy_from_slice(&bytes[4..8]);
        out[4..6].copy_from_slice(&bytes[2..4]);
        out[6..8].copy_from_slice(&bytes[..2]);
    }
    out
}

fn uuid_to_bin(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(text) = args[0].to_text() else {
        return Ok(Value::Null);
    };
    let bytes = parse_uuid(&text).ok_or_else(|| bad_uuid(&text, "uuid_to_bin"))?;
    Ok(Value::Bytes(swapped(bytes, args, true).to_vec()))
}

fn bin_to_uuid(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    if args[0].is_null() {
        return Ok(Value::Null);
    }
    let bytes = sixteen(&args[0])
        .ok_or_else(|| bad_uuid(&args[0].to_text().unwrap_or_default(), "bin_to_uuid"))?;
    Ok(Value::Text(dashed(swapped(bytes, args, false))))
}
