//! The REGEXP family.

use super::{Arguments, RESULT_BYTES_MAX, ScalarFunction, infer, split_collation, too_long};
use crate::error::{SqlError, SqlResult};
use crate::expr::{EvalContext, compiled_regex};
use crate::plan::Expr;
use crate::types::{Collation, DataType, Value};

use Arguments::Collated;

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("REGEXP_LIKE", (2, 3), infer::integer, regexp_like).with(Collated),
    ScalarFunction::new("REGEXP_REPLACE", (3, 6), infer_replace, regexp_replace).with(Collated),
    ScalarFunction::new("REGEXP_SUBSTR", (2, 5), infer_replace, regexp_substr).with(Collated),
    ScalarFunction::new("REGEXP_INSTR", (2, 6), infer::integer, regexp_instr).with(Collated),
];

fn infer_replace(args: &[Expr]) -> (DataType, bool) {
    infer::long_text(args.get(..1).unwrap_or_default())
}

/// Text, pattern and match type; `None` when one is NULL.
fn texts(args: &[Value], flags_at: usize) -> Option<(String, String, String)> {
    let flags = args
        .get(flags_at)
        .map_or(Some(String::new()), Value::to_text)?;
    Some((args[0].to_text()?, args[1].to_text()?, flags))
}

/// An integer argument with a default.
fn number(args: &[Value], at: usize, default: i64) -> Option<i64> {
    args.get(at).map_or(Some(default), Value::to_i64)
}

/// Byte offset of the character at place `position`, from 1.
fn offset(text: &str, position: i64) -> SqlResult<usize> {
    let skipped = usize::try_from(position)
        .ok()
        .and_then(|position| position.checked_sub(1));
    skipped
        .and_then(|skipped| {
            text.char_indices()
                .map(|(at, _)| at)
                .chain([text.len()])
                .nth(skipped)
        })
        .ok_or_else(|| {
            SqlError::new(
                3686,
                "HY000",
                "Index out of bounds in regular expression search.",
            )
        })
}

fn regexp_like(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (args, collation) = split_collation(args);
    let Some((text, pattern, flags)) = texts(args, 2) else {
        return Ok(Value::Null);
    };
    let found = compiled_regex(&pattern, collation, &flags)?.is_match(&text);
    Ok(Value::Int(i64::from(found)))
}

/// `\1` and `$1` both name groups in MySQL's replacements; `regex` wants `${1}`.
fn replacement(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match (character, characters.peek().copied()) {
            ('$', Some(digit)) if digit.is_ascii_digit() => {
                characters.next();
                out.push_str(&format!("${{{digit}}}"));
            }
            ('$', _) => out.push_str("$$"),
            ('\\', Some(next)) => {
                characters.next();
                if next == '$' {
                    out.push_str("$$");
                } else {
                    out.push(next);
                }
            }
            _ => out.push(character),
        }
    }
    out
}

fn regexp_replace(ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (args, collation) = split_collation(args);
    let (Some((text, pattern, flags)), Some(new), Some(position), Some(occurrence)) = (
        texts(args, 5),
        args[2].to_text(),
        number(args, 3, 1),
        number(args, 4, 0),
    ) else {
        return Ok(Value::Null);
    };
    let regex = compiled_regex(&pattern, collation, &flags)?;
    let start = offset(&text, position)?;
    let new = replacement(&new);
    let mut out = text[..start].to_string();
    let rest = &text[start..];
    if occurrence <= 0 {
        let mut done = 0;
        for captures in regex.captures_iter(rest) {
            let whole = captures.get_match();
            out.push_str(&rest[done..whole.start()]);
            captures.expand(&new, &mut out);
            done = whole.end();
            if out.len() > RESULT_BYTES_MAX {
                return too_long(ctx, "regexp_replace");
            }
        }
        out.push_str(&rest[done..]);
        return Ok(Value::Text(out));
    }
    let nth = usize::try_from(occurrence - 1).unwrap_or(usize::MAX);
    let Some(captures) = regex.captures_iter(rest).nth(nth) else {
        return Ok(Value::Text(text));
    };
    let Some(whole) = captures.get(0) else {
        return Ok(Value::Text(text));
    };
    out.push_str(&rest[..whole.start()]);
    captures.expand(&new, &mut out);
    out.push_str(&rest[whole.end()..]);
    Ok(Value::Text(out))
}

fn nth_match(
    text: &str,
    pattern: &str,
    (collation, flags): (Collation, &str),
    position: i64,
    occurrence: i64,
) -> SqlResult<Option<(usize, usize)>> {
    let regex = compiled_regex(pattern, collation, flags)?;
    let start = offset(text, position)?;
    let nth = usize::try_from(occurrence.max(1) - 1).unwrap_or(usize::MAX);
    let found = regex.find_iter(&text[start..]).nth(nth);
    Ok(found.map(|found| (start + found.start(), start + found.end())))
}

fn regexp_substr(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (args, collation) = split_collation(args);
    let (Some((text, pattern, flags)), Some(position), Some(occurrence)) =
        (texts(args, 4), number(args, 2, 1), number(args, 3, 1))
    else {
        return Ok(Value::Null);
    };
    let found = nth_match(&text, &pattern, (collation, &flags), position, occurrence)?;
    Ok(found.map_or(Value::Null, |(start, end)| {
        Value::Text(text[start..end].to_string())
    }))
}

fn regexp_instr(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (args, collation) = split_collation(args);
    let (Some((text, pattern, flags)), Some(position), Some(occurrence), Some(after)) = (
        texts(args, 5),
        number(args, 2, 1),
        number(args, 3, 1),
        number(args, 4, 0),
    ) else {
        return Ok(Value::Null);
    };
    let found = nth_match(&text, &pattern, (collation, &flags), position, occurrence)?;
    let place = found.map_or(0, |(start, end)| {
        let at = if after == 1 { end } else { start };
        text[..at].chars().count() + 1
    });
    Ok(Value::Int(i64::try_from(place).unwrap_or(0)))
}
