//! `COMPRESS` and what reads its work: four bytes with the length, little-endian, and a zlib stream.

use std::io::{Read, Write};

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;

use super::{Arguments, RESULT_BYTES_MAX, ScalarFunction, infer};
use crate::error::{SqlError, SqlResult};
use crate::expr::EvalContext;
use crate::types::{DataType, Value};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("COMPRESS", (1, 1), infer::bytes, compress).with(Arguments::AsText),
    ScalarFunction::new("UNCOMPRESS", (1, 1), infer::bytes, uncompress).with(Arguments::AsText),
    ScalarFunction::new(
        "UNCOMPRESSED_LENGTH",
        (1, 1),
        infer::integer_or_null,
        uncompressed_length,
    )
    .with(Arguments::AsText),
];

/// The bits of the length field that are its number.
const LENGTH_BITS: u32 = 0x3fff_ffff;

fn compress(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(bytes) = args[0].to_bytes() else {
        return Ok(Value::Null);
    };
    if bytes.is_empty() {
        return Ok(Value::Bytes(Vec::new()));
    }
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let mut encoder = ZlibEncoder::new(length.to_le_bytes().to_vec(), Compression::default());
    let made = encoder.write_all(&bytes).and_then(|()| encoder.finish());
    let mut made = made.map_err(|error| SqlError::internal(error.to_string()))?;
    // A CHAR column would lose a space at the end.
    if made.last() == Some(&b' ') {
        made.push(b'.');
    }
    Ok(Value::Bytes(made))
}

/// The length that compressed bytes say, and the stream behind it; nothing when they are too short.
fn parts(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (length, stream) = bytes.split_first_chunk::<4>()?;
    let length = u32::from_le_bytes(*length) & LENGTH_BITS;
    Some((usize::try_from(length).ok()?, stream))
}

fn uncompress(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(bytes) = args[0].to_bytes() else {
        return Ok(Value::Null);
    };
    if bytes.is_empty() {
        return Ok(Value::Bytes(Vec::new()));
    }
    let Some((length, stream)) = parts(&bytes) else {
        return corrupted(ctx);
    };
    if length > RESULT_BYTES_MAX {
        let message = format!(
            "Uncompressed data size too large; the maximum size is {RESULT_BYTES_MAX} (based on \
             max_allowed_packet). The length of uncompressed data may also be corrupted."
        );
        ctx.warn(1256, message);
        return Ok(Value::Null);
    }
    let mut plain = Vec::new();
    // One byte more than it says shows that it lies.
    let mut decoder = ZlibDecoder::new(stream).take(length as u64 + 1);
    match decoder.read_to_end(&mut plain) {
        Ok(read) if read == length => Ok(Value::Bytes(plain)),
        _ => corrupted(ctx),
    }
}

fn corrupted(ctx: &EvalContext<'_>) -> SqlResult<Value> {
    ctx.warn(1259, "ZLIB: Input data corrupted");
    Ok(Value::Null)
}

fn uncompressed_length(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(bytes) = args[0].to_bytes() else {
        return Ok(Value::Null);
    };
    if bytes.is_empty() {
        return Ok(Value::Int(0));
    }
    match parts(&bytes).filter(|(_, stream)| !stream.is_empty()) {
        Some((length, _)) => Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX))),
        None => corrupted(ctx),
    }
}
