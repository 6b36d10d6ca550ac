//! XADD, XTRIM, XDEL, XSETID.

use super::trim::Trim;
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::objects::StreamId;
use crate::objects::stream::id::NewId;
use crate::objects::stream::rows;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

pub fn xadd(context: &mut Context<'_>, command: &Command) -> Answer {
    let mut trim = Trim::default();
    let mut makes_key = true;
    let mut place = 2;
    while place < command.len() {
        if command.is_word(place, "NOMKSTREAM") {
            makes_key = false;
            place += 1;
        } else if let Some(next) = trim.take(command, place)? {
            place = next;
        } else {
            break;
        }
    }
    // What is no option is the ID.
    if place >= command.len() {
        return Err(CommandError::arity("xadd"));
    }
    let wanted = NewId::parse(command.arg(place))?;
    trim.check()?;
    let words = command.len() - place - 1;
    if words == 0 || !words.is_multiple_of(2) {
        return Err(CommandError::arity("xadd"));
    }
    if wanted == NewId::Exact(StreamId::MIN) {
        return Err(CommandError::text(
            "ERR The ID specified in XADD must be greater than 0-0",
        ));
    }
    let (key, now) = (command.arg(1), context.now());
    let id = match context.stream(key)? {
        Some(stream) => stream.choose_id(wanted, now)?,
        None if !makes_key => return Ok(Reply::Null),
        None => crate::objects::Stream::default().choose_id(wanted, now)?,
    };
    let packed = rows::pack_fields(command.args_from(place + 1));
    let stream = context.stream_or_new(key)?;
    stream.append(id, packed);
    let excess = trim.count(stream);
    stream.trim_first(excess);
    Ok(Reply::bulk(id.to_string()))
}

pub fn xtrim(context: &mut Context<'_>, command: &Command) -> Answer {
    let mut trim = Trim::default();
    let mut place = 2;
    while place < command.len() {
        place = trim.take(command, place)?.ok_or(CommandError::SYNTAX)?;
    }
    trim.check()?;
    if !trim.is_given() {
        return Err(CommandError::text(
            "ERR syntax error, XTRIM must be called with either MAXLEN or MINID",
        ));
    }
    let key = command.arg(1);
    let Some(stream) = context.stream(key)? else {
        return Ok(Reply::Integer(0));
    };
    let excess = trim.count(stream);
    if excess > 0 {
        stream.trim_first(excess);
        context.touch(key);
    }
    Ok(Reply::count(excess))
}

pub fn xdel(context: &mut Context<'_>, command: &Command) -> Answer {
    let key = command.arg(1);
    let Some(stream) = context.stream(key)? else {
        return Ok(Reply::Integer(0));
    };
    let ids: Vec<StreamId> = command
        .args_from(2)
        .map(|text| StreamId::parse(text, 0))
        .collect::<Result<_, _>>()?;
    let deleted = ids.into_iter().filter(|id| stream.delete(*id)).count();
    if deleted > 0 {
        context.touch(key);
    }
    Ok(Reply::count(deleted))
}

pub fn xsetid(context: &mut Context<'_>, command: &Command) -> Answer {
    let last_id = StreamId::parse(command.arg(2), 0)?;
    let (mut added, mut deleted) = (None, None);
    for place in (3..command.len()).step_by(2) {
        let argument = command.arg(place + 1);
        match () {
            () if place + 1 >= command.len() => return Err(CommandError::SYNTAX),
            () if command.is_word(place, "ENTRIESADDED") => {
                let count = u64::try_from(number::parse(argument)?)
                    .map_err(|_| CommandError::text("ERR entries_added must be positive"))?;
                added = Some(count);
            }
            () if command.is_word(place, "MAXDELETEDID") => {
                let id = StreamId::parse(argument, 0)?;
                if last_id < id {
                    return Err(CommandError::text(
                        "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id",
                    ));
                }
                deleted = Some(id);
            }
            () => return Err(CommandError::SYNTAX),
        }
    }
    let key = command.arg(1);
    let stream = context.stream(key)?.ok_or(CommandError::NO_SUCH_KEY)?;
    if last_id < stream.last_entry_id() {
        return Err(CommandError::text(
            "ERR The ID specified in XSETID is smaller than the target stream top item",
        ));
    }
    if added.is_some_and(|added| added < stream.len() as u64) {
        return Err(CommandError::text(
            "ERR The entries_added specified in XSETID is smaller than the target stream length",
        ));
    }
    let mut head = stream.head();
    head.last_id = last_id;
    head.entries_added = added.unwrap_or(head.entries_added);
    if let Some(id) = deleted.filter(|id| *id != StreamId::MIN) {
        head.max_deleted_id = id;
    }
    stream.set_head(head);
    context.touch(key);
    Ok(Reply::OK)
}
