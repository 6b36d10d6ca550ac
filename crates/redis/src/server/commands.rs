//! COMMAND: the table, told to clients.

use super::call::Call;
use super::key_access;
use super::selector;
use super::table;
use crate::command::Command;
use crate::error::CommandError;
use crate::resp::Reply;
use crate::spec::CommandSpec;

fn describe(spec: &CommandSpec) -> Reply {
    let (first, last, step) = spec.keys.range();
    let families = selector::families(spec).into_iter();
    Reply::Array(vec![
        Reply::bulk(spec.name),
        Reply::Integer(spec.arity.into()),
        Reply::Set(spec.flags.names().into_iter().map(Reply::Simple).collect()),
        Reply::Integer(first),
        Reply::Integer(last),
        Reply::Integer(step),
        Reply::Set(
            families
                .map(|family| Reply::bulk(format!("@{family}")))
                .collect(),
        ),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
        Reply::Array(Vec::new()),
    ])
}

fn docs(spec: &CommandSpec) -> (Reply, Reply) {
    let text = |name: &str, value: &str| (Reply::bulk(name), Reply::bulk(value));
    let about = Reply::Map(vec![
        text("summary", spec.summary),
        text("since", spec.since),
        text("group", spec.group.names().0),
    ]);
    (Reply::bulk(spec.name), about)
}

/// The entries that `names` name, or all.
fn wanted<'a>(command: &'a Command) -> Box<dyn Iterator<Item = Option<&'static CommandSpec>> + 'a> {
    if command.len() == 2 {
        return Box::new(table::all().map(Some));
    }
    Box::new(command.args_from(2).map(table::find))
}

pub fn command(_call: &mut Call<'_>, command: &Command) -> Result<Reply, CommandError> {
    if command.len() == 1 {
        return Ok(Reply::Array(table::all().map(describe).collect()));
    }
    let word = command.arg(1).to_ascii_uppercase();
    match word.as_slice() {
        b"COUNT" => Ok(Reply::count(table::all().count())),
        b"LIST" => Ok(Reply::Array(
            table::all().map(|spec| Reply::bulk(spec.name)).collect(),
        )),
        b"INFO" => {
            let entries = wanted(command).map(|spec| spec.map_or(Reply::NullArray, describe));
            Ok(Reply::Array(entries.collect()))
        }
        b"DOCS" => Ok(Reply::Map(wanted(command).flatten().map(docs).collect())),
        b"GETKEYS" | b"GETKEYSANDFLAGS" if command.len() > 2 => {
            let inner: Vec<&[u8]> = command.args_from(2).collect();
            let inner = Command::of(&inner);
            let invalid = |_| CommandError::text("ERR Invalid command specified");
            let spec = table::admit(&inner).map_err(invalid)?;
            let places = spec.keys.places(&inner);
            if places.is_empty() {
                return Err(CommandError::text("ERR The command has no key arguments"));
            }
            let has_flags = word == b"GETKEYSANDFLAGS";
            let name = table::full_name(spec, &inner);
            let keys = places.into_iter().enumerate().map(|(key, place)| {
                let told = Reply::bulk(inner.arg(place));
                if !has_flags {
                    return told;
                }
                let flags = key_access::access(spec, name, &inner, key).iter();
                let flags = flags.map(|flag| Reply::Simple(flag)).collect();
                Reply::Array(vec![told, Reply::Set(flags)])
            });
            Ok(Reply::Array(keys.collect()))
        }
        b"HELP" => Ok(Reply::Array(vec![Reply::bulk(
            "COMMAND | COUNT | DOCS [name ...] | GETKEYS command | GETKEYSANDFLAGS command | INFO [name ...] \
             | LIST",
        )])),
        _ => Err(super::info::unknown(command)),
    }
}
