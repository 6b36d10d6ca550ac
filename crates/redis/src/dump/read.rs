//! A value from its type and bytes. Whatever the bytes are, it is a value or nothing.

use super::{kinds, packed, stream};
use crate::keyspace::Value;
use crate::number;
use crate::objects::{Hash, List, Set, ZSet};

/// Bytes still to be read.
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// A length; `Err` with the number of a special form of string.
    fn length_or_form(&mut self) -> Option<Result<usize, u8>> {
        let first = self.byte()?;
        let low = first & 0x3F;
        Some(Ok(match (first >> 6, first) {
            (0, _) => usize::from(low),
            (1, _) => usize::from(u16::from_be_bytes([low, self.byte()?])),
            (2, 0x80) => usize::try_from(u32::from_be_bytes(self.array()?)).ok()?,
            (2, 0x81) => usize::try_from(u64::from_be_bytes(self.array()?)).ok()?,
            (3, _) => return Some(Err(low)),
            _ => return None,
        }))
    }

    /// A number of up to 64 bits.
    pub fn wide(&mut self) -> Option<u64> {
        self.length().map(|length| length as u64)
    }

    /// A length.
    pub fn length(&mut self) -> Option<usize> {
        self.length_or_form()?.ok()
    }

    /// A string in any of its forms.
    pub fn string(&mut self) -> Option<Vec<u8>> {
        let number = match self.length_or_form()? {
            Ok(length) => return self.take(length).map(<[u8]>::to_vec),
            Err(0) => i64::from(i8::from_le_bytes(self.array()?)),
            Err(1) => i64::from(i16::from_le_bytes(self.array()?)),
            Err(2) => i64::from(i32::from_le_bytes(self.array()?)),
            Err(3) => {
                let (compressed, whole) = (self.length()?, self.length()?);
                return packed::decompressed(self.take(compressed)?, whole);
            }
            Err(_) => return None,
        };
        Some(number.to_string().into_bytes())
    }

    /// As many strings as a length before them says.
    fn strings(&mut self) -> Option<Vec<Vec<u8>>> {
        let count = self.length()?;
        let mut strings = Vec::new();
        for _ in 0..count {
            strings.push(self.string()?);
        }
        Some(strings)
    }

    /// Members with scores of 8 bytes, or in text.
    fn scored(&mut self, is_text: bool) -> Option<Vec<(Vec<u8>, f64)>> {
        let count = self.length()?;
        let mut scored = Vec::new();
        for _ in 0..count {
            let member = self.string()?;
            let score = if is_text {
                self.text_score()?
            } else {
                f64::from_le_bytes(self.array()?)
            };
            scored.push((member, score));
        }
        Some(scored)
    }

    fn text_score(&mut self) -> Option<f64> {
        match self.byte()? {
            253 => None,
            254 => Some(f64::INFINITY),
            255 => Some(f64::NEG_INFINITY),
            length => number::float(self.take(usize::from(length))?),
        }
    }

    /// The elements of several packed strings, one behind the other.
    fn nodes(&mut self, are_marked: bool) -> Option<Vec<Vec<u8>>> {
        let count = self.length()?;
        let mut elements = Vec::new();
        for _ in 0..count {
            // A node is one element as it is, or packed ones.
            let is_packed = !are_marked || self.length()? == 2;
            let node = self.string()?;
            match (is_packed, are_marked) {
                (false, _) => elements.push(node),
                (true, true) => elements.extend(packed::listpack(&node)?),
                (true, false) => elements.extend(packed::ziplist(&node)?),
            }
        }
        Some(elements)
    }
}

/// The value of these bytes, all of them.
pub fn value(bytes: &[u8]) -> Option<Value> {
    let mut input = Input(bytes);
    let value = match input.byte()? {
        kinds::STRING => Value::Str(input.string()?),
        kinds::LIST => list(input.strings()?),
        kinds::SET => set(input.strings()?)?,
        kinds::HASH => {
            let count = input.length()?;
            let mut pairs = Vec::new();
            for _ in 0..count {
                pairs.push(input.string()?);
                pairs.push(input.string()?);
            }
            hash(&pairs)?
        }
        kinds::HASH_EXPIRING => {
            let first = u64::from_le_bytes(input.array()?);
            let mut fields = Vec::new();
            for _ in 0..input.length()? {
                let at = match input.wide()? {
                    0 => 0,
                    later => first.checked_add(later)?.checked_sub(1)?,
                };
                fields.push((at, input.string()?, input.string()?));
            }
            expiring_hash(fields)?
        }
        kinds::HASH_EXPIRING_LISTPACK => {
            let _first: [u8; 8] = input.array()?;
            let triples = packed::listpack(&input.string()?)?;
            let (triples, rest) = triples.as_chunks::<3>();
            let field = |[field, value, at]: &[Vec<u8>; 3]| {
                let at = u64::try_from(number::integer(at)?).ok()?;
                Some((at, field.clone(), value.clone()))
            };
            let fields: Option<Vec<_>> = triples.iter().map(field).collect();
            expiring_hash(fields.filter(|_| rest.is_empty())?)?
        }
        kinds::ZSET => zset(input.scored(false)?)?,
        kinds::ZSET_TEXT => zset(input.scored(true)?)?,
        kinds::STREAM_5 => stream::read(&mut input, stream::Form::First)?,
        kinds::STREAM_7_0 => stream::read(&mut input, stream::Form::Second)?,
        kinds::STREAM_7_2 => stream::read(&mut input, stream::Form::Third)?,
        kinds::LIST_ZIPLIST => list(packed::ziplist(&input.string()?)?),
        kinds::SET_INTSET => set(packed::intset(&input.string()?)?)?,
        kinds::SET_LISTPACK => set(packed::listpack(&input.string()?)?)?,
        kinds::HASH_ZIPLIST => hash(&packed::ziplist(&input.string()?)?)?,
        kinds::HASH_LISTPACK => hash(&packed::listpack(&input.string()?)?)?,
        kinds::ZSET_ZIPLIST => zset(pairs_scored(&packed::ziplist(&input.string()?)?)?)?,
        kinds::ZSET_LISTPACK => zset(pairs_scored(&packed::listpack(&input.string()?)?)?)?,
        kinds::LIST_OF_ZIPLISTS => list(input.nodes(false)?),
        kinds::LIST_OF_LISTPACKS => list(input.nodes(true)?),
        _ => return None,
    };
    (input.0.is_empty() && !value.is_empty_collection()).then_some(value)
}

/// The codes of libraries of functions, one behind the other to the end.
pub fn libraries(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut input = Input(bytes);
    let mut codes = Vec::new();
    while let Some(kind) = input.byte() {
        if kind != kinds::LIBRARY {
            return None;
        }
        codes.push(input.string()?);
    }
    Some(codes)
}

fn list(elements: Vec<Vec<u8>>) -> Value {
    let mut list = List::default();
    for element in elements {
        list.push(&element, false);
    }
    Value::List(Box::new(list))
}

fn set(members: Vec<Vec<u8>>) -> Option<Value> {
    let mut set = Set::default();
    let are_new = members.iter().all(|member| set.insert(member));
    are_new.then(|| Value::Set(Box::new(set)))
}

fn hash(pairs: &[Vec<u8>]) -> Option<Value> {
    let (pairs, rest) = pairs.as_chunks::<2>();
    let mut hash = Hash::default();
    let are_new = pairs.iter().all(|[field, value]| hash.insert(field, value));
    (are_new && rest.is_empty()).then(|| Value::Hash(Box::new(hash)))
}

/// A hash of fields that expire at a time, in milliseconds since 1970; 0: never.
fn expiring_hash(fields: Vec<(u64, Vec<u8>, Vec<u8>)>) -> Option<Value> {
    let mut hash = Hash::with_expiries();
    for (at, field, value) in fields {
        if !hash.insert(&field, &value) {
            return None;
        }
        hash.set_expiry(&field, at);
    }
    Some(Value::Hash(Box::new(hash)))
}

fn pairs_scored(pairs: &[Vec<u8>]) -> Option<Vec<(Vec<u8>, f64)>> {
    let (pairs, rest) = pairs.as_chunks::<2>();
    let scored = |[member, score]: &[Vec<u8>; 2]| Some((member.clone(), number::float(score)?));
    rest.is_empty()
        .then(|| pairs.iter().map(scored).collect())?
}

fn zset(scored: Vec<(Vec<u8>, f64)>) -> Option<Value> {
    let mut zset = ZSet::default();
    let mut are_new = scored
        .iter()
        .map(|(member, score)| !score.is_nan() && zset.insert(member, *score).is_none());
    are_new
        .all(|is_new| is_new)
        .then(|| Value::ZSet(Box::new(zset)))
}
