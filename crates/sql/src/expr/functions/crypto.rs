//! Digests, base64, random bytes.

use aws_lc_rs::digest::{self, Algorithm};

use super::{Arguments, ScalarFunction, hash, infer};
use crate::error::{SqlError, SqlResult};
use crate::expr::EvalContext;
use crate::types::{DataType, Value};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("MD5", (1, 1), infer::short_text, md5).with(Arguments::AsText),
    ScalarFunction::new("SHA1", (1, 1), infer::short_text, sha1).with(Arguments::AsText),
    ScalarFunction::new("SHA2", (2, 2), infer_sha2, sha2).with(Arguments::AsText),
    ScalarFunction::new("TO_BASE64", (1, 1), infer::long_ascii, to_base64).with(Arguments::AsText),
    ScalarFunction::new("FROM_BASE64", (1, 1), infer::bytes, from_base64).with(Arguments::AsText),
    ScalarFunction::new("RANDOM_BYTES", (1, 1), infer::bytes, random_bytes).volatile(),
];

fn infer_sha2(_args: &[crate::plan::Expr]) -> (DataType, bool) {
    (DataType::varchar(128), true)
}

fn lower_hex(bytes: &[u8]) -> Value {
    Value::Text(hex::encode(bytes))
}

fn md5(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(args[0]
        .to_bytes()
        .map_or(Value::Null, |bytes| lower_hex(&hash::md5(&bytes))))
}

fn digest_of(algorithm: &'static Algorithm, value: &Value) -> Value {
    let bytes = value.to_bytes();
    bytes.map_or(Value::Null, |bytes| {
        lower_hex(digest::digest(algorithm, &bytes).as_ref())
    })
}

fn sha1(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(digest_of(&digest::SHA1_FOR_LEGACY_USE_ONLY, &args[0]))
}

fn sha2(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let algorithm = match args[1].to_i64() {
        Some(0 | 256) => &digest::SHA256,
        Some(384) => &digest::SHA384,
        Some(512) => &digest::SHA512,
        Some(224) => &digest::SHA224,
        _ => return Ok(Value::Null),
    };
    Ok(digest_of(algorithm, &args[0]))
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Characters of a line of `TO_BASE64`.
const LINE: usize = 76;

fn to_base64(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(bytes) = args[0].to_bytes() else {
        return Ok(Value::Null);
    };
    Ok(Value::Text(encode_base64(&bytes)))
}

/// The bytes as base64, in lines of [`LINE`] characters.
pub(crate) fn encode_base64(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut line = 0;
    for chunk in bytes.chunks(3) {
        if line == LINE {
            out.push('\n');
            line = 0;
        }
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let group = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            if place <= chunk.len() {
                let six = (group >> (18 - 6 * place) & 63) as usize;
                out.push(char::from(ALPHABET[six]));
            } else {
                out.push('=');
            }
        }
        line += 4;
    }
    out
}

fn from_base64(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(text) = args[0].to_bytes() else {
        return Ok(Value::Null);
    };
    Ok(decode_base64(&text).map_or(Value::Null, Value::Bytes))
}

fn decode_base64(text: &[u8]) -> Option<Vec<u8>> {
    let digits: Vec<u8> = text
        .iter()
        .copied()
        .filter(|byte| !byte.is_ascii_whitespace())
        .collect();
    if !digits.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() / 4 * 3);
    let padding = digits
        .iter()
        .rev()
        .take_while(|byte| **byte == b'=')
        .count();
    if padding > 2 {
        return None;
    }
    for group in digits.chunks_exact(4) {
        let mut bits = 0u32;
        for digit in group {
            let six = if *digit == b'=' {
                0
            } else {
                ALPHABET.iter().position(|c| c == digit)?
            };
            bits = bits << 6 | u32::try_from(six).ok()?;
        }
        out.extend_from_slice(&bits.to_be_bytes()[1..]);
    }
    if digits[..digits.len() - padding].contains(&b'=') {
        return None;
    }
    out.truncate(out.len() - padding);
    Some(out)
}

fn random_bytes(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(length) = args[0].to_i64() else {
        return Ok(Value::Null);
    };
    let length = usize::try_from(length)
        .ok()
        .filter(|length| (1..=1024).contains(length));
    let Some(length) = length else {
        let message = "length value is out of range in 'random_bytes'";
        return Err(SqlError::new(1690, "22003", message));
    };
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&ctx.next_random().to_be_bytes());
    }
    bytes.truncate(length);
    Ok(Value::Bytes(bytes))
}
