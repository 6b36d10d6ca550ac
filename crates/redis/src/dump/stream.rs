//! A stream as Redis writes it: packed entries in nodes, then what the stream knows, then groups.
//!
//! Written is the form of Redis 7.0. Read are that one, the one before it, which knows less of what was
//! deleted, and that of 7.2, which knows when a consumer last got something.

use std::collections::BTreeMap;

use super::packed::{self, Listpack};
use super::read::Input;
use super::write;
use crate::keyspace::Value;
use crate::number;
use crate::objects::Stream;
use crate::objects::stream::rows::{self, RowName};
use crate::objects::stream::{StreamHead, StreamId};

/// Entries of a node, as in Redis, and bytes at which the next one begins.
const NODE_ENTRIES: usize = 100;
const NODE_BYTES: usize = 4096;

/// The entry is no longer there.
const DELETED: i64 = 1;
/// Its fields are those of the node's first entry.
const SAME_FIELDS: i64 = 2;

/// Which form it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// Redis 5.
    First,
    /// Redis 7.0.
    Second,
    /// Redis 7.2.
    Third,
}

type Entry<'a> = (StreamId, Vec<&'a [u8]>);

fn signed(number: u64) -> i64 {
    number.cast_signed()
}

/// The bytes of a stream.
pub fn write(out: &mut Vec<u8>, stream: &Stream) {
    let nodes = nodes(stream);
    write::length(out, nodes.len());
    for node in &nodes {
        write::raw(out, &node[0].0.to_bytes());
        write::raw(out, &packed_node(node));
    }
    let head = stream.head();
    write::length(out, stream.len());
    for id in [head.last_id, stream.first_id(), head.max_deleted_id] {
        write_id(out, id);
    }
    write::wide(out, head.entries_added);
    write::length(out, stream.groups().len());
    for (name, group) in stream.groups() {
        write::raw(out, name);
        write_id(out, group.last_delivered);
        write::wide(out, group.entries_read.unwrap_or(-1).cast_unsigned());
        write::length(out, group.pending_len());
        for (id, delivery) in group.deliveries() {
            out.extend_from_slice(&id.to_bytes());
            out.extend_from_slice(&delivery.delivered_millis.to_le_bytes());
            write::wide(out, delivery.deliveries);
        }
        write::length(out, group.consumers().len());
        for (name, consumer) in group.consumers() {
            write::raw(out, name);
            out.extend_from_slice(&consumer.seen_millis.to_le_bytes());
            write::length(out, consumer.pending().len());
            for id in consumer.pending() {
                out.extend_from_slice(&id.to_bytes());
            }
        }
    }
}

fn write_id(out: &mut Vec<u8>, id: StreamId) {
    write::wide(out, id.millis);
    write::wide(out, id.sequence);
}

/// Entries in runs of the size of a node.
fn nodes(stream: &Stream) -> Vec<Vec<Entry<'_>>> {
    let mut nodes: Vec<Vec<Entry<'_>>> = Vec::new();
    let mut bytes = 0;
    for (id, packed) in stream.range(StreamId::MIN, StreamId::MAX) {
        let entry = (id, rows::fields(packed).collect());
        bytes += packed.len();
        match nodes.last_mut() {
            Some(node) if node.len() < NODE_ENTRIES && bytes <= NODE_BYTES => node.push(entry),
            _ => {
                bytes = packed.len();
                nodes.push(vec![entry]);
            }
        }
    }
    nodes
}

/// The entries of a node, behind the fields of its first one.
fn packed_node(node: &[Entry<'_>]) -> Vec<u8> {
    let (first_id, first) = &node[0];
    let fields: Vec<&[u8]> = first.iter().step_by(2).copied().collect();
    let mut pack = Listpack::default();
    pack.number(signed(node.len() as u64));
    pack.number(0);
    pack.number(signed(fields.len() as u64));
    for field in &fields {
        pack.bytes(field);
    }
    pack.number(0);
    for (id, words) in node {
        let are_same = words.iter().step_by(2).eq(fields.iter());
        pack.number(if are_same { SAME_FIELDS } else { 0 });
        pack.number(signed(id.millis.wrapping_sub(first_id.millis)));
        pack.number(signed(id.sequence.wrapping_sub(first_id.sequence)));
        // How many elements to go back from its end.
        let elements = if are_same {
            for value in words.iter().skip(1).step_by(2) {
                pack.bytes(value);
            }
            words.len() / 2 + 3
        } else {
            pack.number(signed(words.len() as u64 / 2));
            for word in words {
                pack.bytes(word);
            }
            words.len() + 4
        };
        pack.number(signed(elements as u64));
    }
    pack.whole()
}

/// The stream of these bytes.
pub fn read(input: &mut Input<'_>, form: Form) -> Option<Value> {
    let mut entries = Vec::new();
    for _ in 0..input.length()? {
        let first = StreamId::from_bytes(&input.string()?)?;
        read_node(first, &packed::listpack(&input.string()?)?, &mut entries)?;
    }
    let length = input.wide()?;
    if length != entries.len() as u64 {
        return None;
    }
    let last_id = read_id(input)?;
    let mut head = StreamHead {
        last_id,
        max_deleted_id: StreamId::MIN,
        entries_added: length,
    };
    if form >= Form::Second {
        read_id(input)?;
        head.max_deleted_id = read_id(input)?;
        head.entries_added = input.wide()?;
    }
    let mut stream = Stream::default();
    stream.set_head(head);
    for (id, packed) in &entries {
        let is_taken = stream.take_row(&RowName::Entry(*id).encode(), packed);
        is_taken.then_some(())?;
    }
    for _ in 0..input.length()? {
        read_group(input, form, &mut stream)?;
    }
    Some(Value::Stream(Box::new(stream)))
}

fn read_id(input: &mut Input<'_>) -> Option<StreamId> {
    Some(StreamId {
        millis: input.wide()?,
        sequence: input.wide()?,
    })
}

/// Adds the entries of a node that are there.
fn read_node(
    first: StreamId,
    elements: &[Vec<u8>],
    entries: &mut Vec<(StreamId, Box<[u8]>)>,
) -> Option<()> {
    let mut elements = elements.iter();
    let mut next = || elements.next().map(Vec::as_slice);
    let count = |bytes: &[u8]| usize::try_from(number::integer(bytes)?).ok();
    let (there, deleted) = (count(next()?)?, count(next()?)?);
    let mut fields = Vec::new();
    for _ in 0..count(next()?)? {
        fields.push(next()?);
    }
    (next()? == b"0").then_some(())?;
    for _ in 0..there.checked_add(deleted)? {
        let flags = number::integer(next()?)?;
        let (millis, sequence) = (number::integer(next()?)?, number::integer(next()?)?);
        let id = StreamId {
            millis: first.millis.wrapping_add(millis.cast_unsigned()),
            sequence: first.sequence.wrapping_add(sequence.cast_unsigned()),
        };
        let mut words = Vec::new();
        if flags & SAME_FIELDS == 0 {
            for _ in 0..count(next()?)?.checked_mul(2)? {
                words.push(next()?);
            }
        } else {
            for field in &fields {
                words.extend([*field, next()?]);
            }
        }
        next()?;
        if flags & DELETED == 0 {
            entries.push((id, rows::pack_fields(words.into_iter())));
        }
    }
    next().is_none().then_some(())
}

/// A group with its consumers, as the rows of which the store would make it.
fn read_group(input: &mut Input<'_>, form: Form, stream: &mut Stream) -> Option<()> {
    let name = input.string()?;
    let last = read_id(input)?;
    let read = match form {
        Form::First => stream.estimated_read(last).unwrap_or(-1),
        Form::Second | Form::Third => signed(input.wide()?),
    };
    let mut take = |row: RowName<'_>, value: &[u8]| {
        let is_taken = stream.take_row(&row.encode(), value);
        is_taken.then_some(())
    };
    let value = [&last.to_bytes()[..], &read.max(-1).to_be_bytes()].concat();
    take(RowName::Group(&name), &value)?;
    let mut deliveries = BTreeMap::new();
    for _ in 0..input.length()? {
        let id = StreamId::from_bytes(&input.array::<16>()?)?;
        let delivered = u64::from_le_bytes(input.array()?);
        deliveries.insert(id, (delivered, input.wide()?));
    }
    for _ in 0..input.length()? {
        let consumer = input.string()?;
        let seen = u64::from_le_bytes(input.array()?);
        let active = match form {
            Form::Third => u64::from_le_bytes(input.array()?),
            // Nobody knows; where it has entries it got them.
            Form::First | Form::Second => u64::MAX,
        };
        let value = [seen.to_be_bytes(), active.to_be_bytes()].concat();
        take(RowName::Consumer(&name, &consumer), &value)?;
        for _ in 0..input.length()? {
            let id = StreamId::from_bytes(&input.array::<16>()?)?;
            let (delivered, times) = deliveries.remove(&id)?;
            let numbers = [delivered.to_be_bytes(), times.to_be_bytes()].concat();
            let value = [&numbers[..], &consumer].concat();
            take(RowName::Pending(&name, id), &value)?;
        }
    }
    // Each entry is somebody's.
    deliveries.is_empty().then_some(())
}
