//! OBJECT: how Redis would keep a value of this size, which is what clients look for.

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::Value;
use crate::number;
use crate::resp::Reply;

/// Bytes up to which Redis keeps a string in its object, and an element in a packed list.
const EMBEDDED_BYTES: usize = 44;
const PACKED_BYTES: usize = 64;

fn encoding(value: &Value) -> &'static str {
    let is_packed = |longest: Option<usize>| longest.unwrap_or(0) <= PACKED_BYTES;
    match value {
        Value::Str(bytes) if number::integer(bytes).is_some() => "int",
        Value::Str(bytes) if bytes.len() <= EMBEDDED_BYTES => "embstr",
        Value::Str(_) | Value::Cold(_) => "raw",
        Value::List(list) if list.len() <= 128 && list.bytes() <= 8 << 10 => "listpack",
        Value::List(_) => "quicklist",
        Value::Hash(hash) => {
            let longest = hash
                .iter()
                .map(|(field, value)| field.len().max(value.len()))
                .max();
            if hash.len() <= 128 && is_packed(longest) {
                "listpack"
            } else {
                "hashtable"
            }
        }
        Value::Stream(_) => "stream",
        Value::Set(set) if set.len() <= 512 && set.are_numbers() => "intset",
        Value::Set(set) if set.len() <= 128 && is_packed(set.iter().map(<[u8]>::len).max()) => {
            "listpack"
        }
        Value::Set(_) => "hashtable",
        Value::ZSet(zset) => {
            let longest = zset.order().from(0).map(|scored| scored.member.len()).max();
            if zset.len() <= 128 && is_packed(longest) {
                "listpack"
            } else {
                "skiplist"
            }
        }
    }
}

pub fn object(context: &mut Context<'_>, command: &Command) -> Result<Reply, CommandError> {
    if command.is_word(1, "HELP") {
        return Ok(Reply::Array(vec![Reply::Simple(
            "OBJECT (ENCODING|FREQ|IDLETIME|REFCOUNT) <key>",
        )]));
    }
    let entry = context.keyspace.find(context.db, command.arg(2));
    let Some(entry) = entry else {
        return Ok(Reply::Null);
    };
    match () {
        () if command.is_word(1, "ENCODING") => Ok(Reply::bulk(encoding(&entry.value))),
        () if command.is_word(1, "REFCOUNT") => Ok(Reply::Integer(1)),
        () if command.is_word(1, "IDLETIME") => Err(CommandError::text(
            "ERR idle time is not tracked: values leave memory in turn, not by their last use",
        )),
        () if command.is_word(1, "FREQ") => Err(CommandError::text(
            "ERR An LFU maxmemory policy is not selected, access frequency not tracked. Please \
             note that when switching between policies at runtime LRU and LFU data will take some \
             time to adjust.",
        )),
        () => Err(CommandError::SYNTAX),
    }
}
