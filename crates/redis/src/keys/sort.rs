//! SORT.

use std::cmp::Ordering;

use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::keyspace::{Keyspace, Kind, Value};
use crate::number;
use crate::objects::List;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// The options.
#[derive(Debug, Default)]
struct Options {
    /// By which values instead of the elements themselves.
    by: Option<Vec<u8>>,
    /// Which values are shown instead of the elements.
    gets: Vec<Vec<u8>>,
    skipped: i64,
    /// Below 0: all.
    shown: i64,
    is_reversed: bool,
    is_text: bool,
    store: Option<usize>,
}

impl Options {
    fn parse(command: &Command, may_store: bool) -> Result<Self, CommandError> {
        let mut options = Self {
            shown: -1,
            ..Self::default()
        };
        let mut place = 2;
        while place < command.len() {
            let left = command.len() - place - 1;
            match () {
                () if command.is_word(place, "ASC") => options.is_reversed = false,
                () if command.is_word(place, "DESC") => options.is_reversed = true,
                () if command.is_word(place, "ALPHA") => options.is_text = true,
                () if command.is_word(place, "LIMIT") && left >= 2 => {
                    options.skipped = number::parse(command.arg(place + 1))?;
                    options.shown = number::parse(command.arg(place + 2))?;
                    place += 2;
                }
                () if may_store && command.is_word(place, "STORE") && left >= 1 => {
                    options.store = Some(place + 1);
                    place += 1;
                }
                () if command.is_word(place, "BY") && left >= 1 => {
                    options.by = Some(command.arg(place + 1).to_vec());
                    place += 1;
                }
                () if command.is_word(place, "GET") && left >= 1 => {
                    options.gets.push(command.arg(place + 1).to_vec());
                    place += 1;
                }
                () => return Err(CommandError::SYNTAX),
            }
            place += 1;
        }
        Ok(options)
    }

    /// A pattern without a place for the element sorts nothing.
    fn keeps_order(&self) -> bool {
        self.by.as_ref().is_some_and(|by| !by.contains(&b'*'))
    }
}

/// The key and the field that a pattern names for an element; `None` when it has no place for one.
fn derived(pattern: &[u8], element: &[u8]) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let star = pattern.iter().position(|byte| *byte == b'*')?;
    let (before, behind) = (&pattern[..star], &pattern[star + 1..]);
    let arrow = behind.windows(2).position(|pair| pair == b"->");
    let arrow = arrow.filter(|at| at + 2 < behind.len());
    let (behind, field) = match arrow {
        Some(at) => (&behind[..at], Some(behind[at + 2..].to_vec())),
        None => (behind, None),
    };
    Some(([before, element, behind].concat(), field))
}

/// The value that a pattern names for an element.
fn value_of(
    context: &mut Context<'_>,
    pattern: &[u8],
    element: &[u8],
) -> Result<Option<Vec<u8>>, CommandError> {
    if pattern == b"#" {
        return Ok(Some(element.to_vec()));
    }
    let Some((key, field)) = derived(pattern, element) else {
        return Ok(None);
    };
    let found = context.keyspace.look_up(context.db, &key);
    Ok(match (found.map(|entry| &entry.value), field) {
        (Some(Value::Str(value)), None) => Some(value.clone()),
        (Some(Value::Hash(hash)), Some(field)) => hash.get(&field).map(<[u8]>::to_vec),
        (Some(Value::Cold(_)), _) => {
            return Err(CommandError::text(
                "LOADING a value of this command is in the store only",
            ));
        }
        _ => None,
    })
}

fn elements_of(value: &Value) -> Option<Vec<Vec<u8>>> {
    Some(match value {
        Value::List(list) => list.iter().map(<[u8]>::to_vec).collect(),
        Value::Set(set) => set.iter().map(<[u8]>::to_vec).collect(),
        Value::ZSet(zset) => {
            let all = zset.order().from(0);
            all.map(|scored| scored.member.to_vec()).collect()
        }
        _ => return None,
    })
}

/// Names of keys beside the arguments that `command` reads, as far as its source is in memory.
pub(crate) fn keys_beside(keyspace: &Keyspace, db: usize, command: &Command) -> Vec<Vec<u8>> {
    let Ok(options) = Options::parse(command, true) else {
        return Vec::new();
    };
    let source = keyspace.peek(db, command.arg(1));
    let elements = source.and_then(|entry| elements_of(&entry.value));
    let elements = elements.unwrap_or_default();
    let by = options.by.iter().filter(|_| !options.keeps_order());
    let patterns: Vec<&Vec<u8>> = by.chain(&options.gets).collect();
    let keys = elements.iter().flat_map(|element| {
        let derive = |pattern: &&Vec<u8>| derived(pattern, element).map(|(key, _)| key);
        patterns.iter().filter_map(derive).collect::<Vec<_>>()
    });
    keys.collect()
}

/// Whether a command reads keys that elements name: they may be of any slot.
#[must_use]
pub fn reads_beside(command: &Command) -> bool {
    if !command.is_word(0, "SORT") && !command.is_word(0, "SORT_RO") {
        return false;
    }
    Options::parse(command, true).is_ok_and(|options| {
        let by = options.by.iter().chain(&options.gets);
        by.into_iter().any(|pattern| pattern.contains(&b'*'))
    })
}

/// What an element is sorted by.
enum Weight {
    Number(f64),
    Text(Option<Vec<u8>>),
}

impl Weight {
    fn order(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Number(one), Self::Number(other)) => {
                // Neither is NaN, which is no number for SORT.
                one.partial_cmp(other).unwrap_or(Ordering::Equal)
            }
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            _ => Ordering::Equal,
        }
    }
}

fn weight(
    context: &mut Context<'_>,
    options: &Options,
    by: Option<&[u8]>,
    element: &[u8],
) -> Result<Weight, CommandError> {
    let value = match by {
        None => Some(element.to_vec()),
        Some(by) => value_of(context, by, element)?,
    };
    if options.is_text {
        return Ok(Weight::Text(value));
    }
    let Some(value) = value else {
        return Ok(Weight::Number(0.0));
    };
    // As in Redis, whose strtod reads nothing as 0.
    let text: &[u8] = if value.is_empty() { b"0" } else { &value };
    number::float(text)
        .map(Weight::Number)
        .ok_or(CommandError::text(
            "ERR One or more scores can't be converted into double",
        ))
}

fn sorted(
    context: &mut Context<'_>,
    command: &Command,
    options: &mut Options,
) -> Result<Vec<Vec<u8>>, CommandError> {
    let source = context.keyspace.look_up(context.db, command.arg(1));
    let (elements, kind) = match source {
        None => return Ok(Vec::new()),
        Some(entry) if entry.value.is_cold() => {
            return Err(CommandError::text(
                "LOADING a value of this command is in the store only",
            ));
        }
        Some(entry) => (elements_of(&entry.value), entry.value.kind()),
    };
    let mut elements = elements.ok_or(CommandError::WRONG_TYPE)?;
    let mut by = options.by.clone();
    let mut keeps_order = options.keeps_order();
    if keeps_order && kind == Kind::Set && options.store.is_some() {
        // What is stored must not depend on the order of a set, which has none.
        (keeps_order, by, options.is_text) = (false, None, true);
    }
    if keeps_order {
        if options.is_reversed && kind != Kind::Set {
            elements.reverse();
        }
        return Ok(elements);
    }
    let mut weighed = Vec::with_capacity(elements.len());
    for element in elements {
        let weight = weight(context, options, by.as_deref(), &element)?;
        weighed.push((weight, element));
    }
    weighed.sort_by(|(one, element), (other, beside)| {
        let order = one.order(other).then_with(|| element.cmp(beside));
        if options.is_reversed {
            order.reverse()
        } else {
            order
        }
    });
    Ok(weighed.into_iter().map(|(_, element)| element).collect())
}

fn run(context: &mut Context<'_>, command: &Command, may_store: bool) -> Answer {
    let mut options = Options::parse(command, may_store)?;
    let elements = sorted(context, command, &mut options)?;
    let skipped = usize::try_from(options.skipped).unwrap_or(0);
    let shown = usize::try_from(options.shown).unwrap_or(usize::MAX);
    let mut values = Vec::new();
    for element in elements.into_iter().skip(skipped).take(shown) {
        for pattern in &options.gets {
            values.push(value_of(context, pattern, &element)?);
        }
        if options.gets.is_empty() {
            values.push(Some(element));
        }
    }
    let Some(target) = options.store else {
        let reply = |value: Option<Vec<u8>>| value.map_or(Reply::Null, Reply::Bulk);
        return Ok(Reply::Array(values.into_iter().map(reply).collect()));
    };
    let mut list = List::default();
    for value in values {
        list.push(&value.unwrap_or_default(), false);
    }
    let length = list.len();
    context.store(command.arg(target), Value::List(Box::new(list)));
    Ok(Reply::count(length))
}

pub fn sort(context: &mut Context<'_>, command: &Command) -> Answer {
    run(context, command, true)
}

pub fn sort_ro(context: &mut Context<'_>, command: &Command) -> Answer {
    run(context, command, false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Stamp, execute};

    fn run_all(lines: &[&str]) -> Reply {
        let mut keyspace = Keyspace::new();
        let replies = lines.iter().map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            execute(&mut keyspace, 0, &Command::of(&words), Stamp::new(1, 1)).0
        });
        replies.last().unwrap_or(Reply::Null)
    }

    fn texts(words: &[&str]) -> Reply {
        Reply::Array(words.iter().map(Reply::bulk).collect())
    }

    #[test]
    fn without_a_place_for_elements_the_order_of_a_list_stays() {
        let fill = "RPUSH l 3 1 2";
        assert_eq!(run_all(&[fill, "SORT l BY none"]), texts(&["3", "1", "2"]));
        let backwards = run_all(&[fill, "SORT l BY none DESC LIMIT 0 2"]);
        assert_eq!(backwards, texts(&["2", "1"]));
        let members = run_all(&["ZADD z 1 x 2 a", "SORT z BY none DESC"]);
        assert_eq!(members, texts(&["a", "x"]));
    }

    #[test]
    fn keys_of_patterns_are_known_before_it_runs() {
        let mut keyspace = Keyspace::new();
        let fill = Command::of(&["RPUSH", "l", "x", "y"]);
        execute(&mut keyspace, 0, &fill, Stamp::new(1, 1));
        let line = "SORT l BY w_* GET # GET h_*->f";
        let words: Vec<&str> = line.split(' ').collect();
        let keys = keys_beside(&keyspace, 0, &Command::of(&words));
        assert_eq!(keys, [&b"w_x"[..], b"h_x", b"w_y", b"h_y"]);
    }

    #[test]
    fn an_arrow_names_a_field() {
        let with_field = (b"h_x_1".to_vec(), Some(b"f".to_vec()));
        assert_eq!(derived(b"h_*_1->f", b"x"), Some(with_field));
        assert_eq!(derived(b"h_*->", b"x"), Some((b"h_x->".to_vec(), None)));
        assert_eq!(derived(b"none", b"x"), None);
    }
}
