//! A value as its type and bytes.

use super::{kinds, stream};
use crate::keyspace::Value;
use crate::number;
use crate::objects::Hash;

/// Longest string that may be written as a number.
const NUMBER_BYTES_MAX: usize = 11;

/// The type and bytes of a value; `None` for one that has none here.
pub fn value(value: &Value) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match value {
        Value::Str(bytes) => {
            out.push(kinds::STRING);
            string(&mut out, bytes);
        }
        Value::List(list) => {
            out.push(kinds::LIST);
            length(&mut out, list.len());
            list.iter().for_each(|element| string(&mut out, element));
        }
        Value::Set(set) => {
            out.push(kinds::SET);
            length(&mut out, set.len());
            set.iter().for_each(|member| string(&mut out, member));
        }
        Value::Hash(hash) if hash.next_due().is_some() => expiring_hash(&mut out, hash),
        Value::Hash(hash) => {
            out.push(kinds::HASH);
            length(&mut out, hash.len());
            for (field, value) in hash.iter() {
                string(&mut out, field);
                string(&mut out, value);
            }
        }
        Value::ZSet(zset) => {
            out.push(kinds::ZSET);
            length(&mut out, zset.len());
            for scored in zset.order().from(0) {
                string(&mut out, &scored.member);
                out.extend_from_slice(&scored.score.to_le_bytes());
            }
        }
        Value::Stream(found) => {
            out.push(kinds::STREAM_7_0);
            stream::write(&mut out, found);
        }
        Value::Cold(_) => return None,
    }
    Some(out)
}

/// A hash with fields that expire: the earliest expiry, in milliseconds since 1970, and of each field how much
/// later it expires, counted from 1; 0: never.
fn expiring_hash(out: &mut Vec<u8>, hash: &Hash) {
    let first = hash.next_due().unwrap_or(0);
    out.push(kinds::HASH_EXPIRING);
    out.extend_from_slice(&first.to_le_bytes());
    length(out, hash.len());
    for (field, value) in hash.iter() {
        let later = match hash.expiry(field).unwrap_or(0) {
            0 => 0,
            at => {
                assert!(at >= first, "no field expires before the first");
                at - first + 1
            }
        };
        wide(out, later);
        string(out, field);
        string(out, value);
    }
}

/// A number of up to 64 bits.
pub fn wide(out: &mut Vec<u8>, number: u64) {
    length(out, usize::try_from(number).unwrap_or(usize::MAX));
}

/// Bytes that are no number, however they look.
pub fn raw(out: &mut Vec<u8>, bytes: &[u8]) {
    length(out, bytes.len());
    out.extend_from_slice(bytes);
}

pub fn length(out: &mut Vec<u8>, length: usize) {
    match (u16::try_from(length), u32::try_from(length)) {
        (Ok(short), _) if short < 1 << 6 => out.push(short.to_be_bytes()[1]),
        (Ok(short), _) if short < 1 << 14 => {
            out.extend_from_slice(&(short | 0x4000).to_be_bytes());
        }
        (_, Ok(middle)) => {
            out.push(0x80);
            out.extend_from_slice(&middle.to_be_bytes());
        }
        _ => {
            out.push(0x81);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

pub fn string(out: &mut Vec<u8>, bytes: &[u8]) {
    let number = number::integer(bytes).filter(|_| bytes.len() <= NUMBER_BYTES_MAX);
    let number = number.and_then(|number| i32::try_from(number).ok());
    if let Some(number) = number {
        match (i8::try_from(number), i16::try_from(number)) {
            (Ok(byte), _) => out.extend_from_slice(&[0xC0, byte.to_le_bytes()[0]]),
            (_, Ok(short)) => {
                out.push(0xC1);
                out.extend_from_slice(&short.to_le_bytes());
            }
            _ => {
                out.push(0xC2);
                out.extend_from_slice(&number.to_le_bytes());
            }
        }
        return;
    }
    length(out, bytes.len());
    out.extend_from_slice(bytes);
}
