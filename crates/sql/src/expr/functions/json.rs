//! Making JSON and looking into it.

use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::{Arguments, MANY, ScalarFunction, infer};
use crate::error::{SqlError, SqlResult};
use crate::expr::{EvalContext, like_text};
use crate::plan::Expr;
use crate::types::{
    Collation, DataType, JsonPath as Path, Value, check_json, compare_json, json_depth,
    json_to_text, normalise, parse_json, to_json,
};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("JSON_EXTRACT", (2, MANY), infer::json, extract),
    ScalarFunction::new("JSON_UNQUOTE", (1, 1), infer::long_text, unquote),
    ScalarFunction::new("JSON_QUOTE", (1, 1), infer::long_text, quote),
    ScalarFunction::new("JSON_OBJECT", (0, MANY), infer::json, object).with(Arguments::JsonValues),
    ScalarFunction::new("JSON_ARRAY", (0, MANY), infer::json, array).with(Arguments::JsonValues),
    ScalarFunction::new("JSON_CONTAINS", (2, 3), infer::integer_or_null, contains),
    ScalarFunction::new(
        "JSON_CONTAINS_PATH",
        (3, MANY),
        infer::integer_or_null,
        contains_path,
    ),
    ScalarFunction::new("JSON_KEYS", (1, 2), infer::json, keys),
    ScalarFunction::new("JSON_LENGTH", (1, 2), infer::integer_or_null, length),
    ScalarFunction::new("JSON_TYPE", (1, 1), infer::short_text, type_),
    ScalarFunction::new("JSON_VALID", (1, 1), infer::integer, valid),
    ScalarFunction::new("JSON_DEPTH", (1, 1), infer::integer, depth),
    ScalarFunction::new("JSON_OVERLAPS", (2, 2), infer::integer_or_null, overlaps),
    ScalarFunction::new("JSON_SEARCH", (3, MANY), infer::json, search),
    ScalarFunction::new("JSON_VALUE", (2, 2), infer_value, value),
    ScalarFunction::new("JSON_PRETTY", (1, 1), infer::long_text, pretty),
    ScalarFunction::new("JSON_STORAGE_SIZE", (1, 1), infer::integer, storage_size),
    ScalarFunction::new("MEMBER_OF", (2, 2), infer::integer_or_null, member_of)
        .with(Arguments::JsonValues),
    ScalarFunction::new("_JSON_BOOLEAN", (1, 1), infer::json, boolean),
];

fn infer_value(_args: &[Expr]) -> (DataType, bool) {
    (DataType::varchar(512), true)
}

/// The `place`-th argument (from 1) as a document; `None` for NULL.
///
/// # Errors
/// 3141 for text that is no JSON, 3146 for what is neither text nor JSON.
pub(super) fn document(
    value: &Value,
    place: usize,
    function: &str,
) -> SqlResult<Option<Arc<Json>>> {
    match value {
        Value::Null => Ok(None),
        Value::Json(json) => Ok(Some(Arc::clone(json))),
        Value::Text(text) => {
            let json = parse_json(text).map_err(|issue| issue.in_argument(place, function))?;
            Ok(Some(Arc::new(json)))
        }
        _ => {
            let message = format!(
                "Invalid data type for JSON data in argument {place} to function {function}; a JSON string or JSON type is required."
            );
            Err(SqlError::new(3146, "22032", message))
        }
    }
}

/// An argument as a path; `None` for NULL.
pub(super) fn path(value: &Value) -> SqlResult<Option<Path>> {
    value.to_text().map(|text| Path::parse(&text)).transpose()
}

pub(super) fn made(json: Json) -> SqlResult<Value> {
    check_json(&json)?;
    Ok(Value::Json(Arc::new(normalise(json))))
}

fn extract(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(document) = document(&args[0], 1, "json_extract")? else {
        return Ok(Value::Null);
    };
    let mut found = Vec::new();
    let mut several = args.len() > 2;
    for arg in &args[1..] {
        let Some(path) = path(arg)? else {
            return Ok(Value::Null);
        };
        several |= path.has_wildcard();
        found.extend(path.find(&document).into_iter().cloned());
    }
    if several {
        return if found.is_empty() {
            Ok(Value::Null)
        } else {
            made(Json::Array(found))
        };
    }
    Ok(found
        .pop()
        .map_or(Value::Null, |json| Value::Json(Arc::new(json))))
}

fn unquote(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(match &args[0] {
        Value::Null => Value::Null,
        Value::Json(json) => match json.as_ref() {
            Json::String(text) => Value::Text(text.clone()),
            other => Value::Text(json_to_text(other)),
        },
        other => {
            let text = other.to_text().unwrap_or_default();
            if text.len() < 2 || !text.starts_with('"') || !text.ends_with('"') {
                return Ok(Value::Text(text));
            }
            if let Ok(inner) = serde_json::from_str::<String>(&text) {
                Value::Text(inner)
            } else {
                let message = "Invalid JSON text in argument 1 to function json_unquote: \"Missing a closing quotation mark in string.\" at position 1.";
                return Err(SqlError::new(3141, "22032", message));
            }
        }
    })
}

fn quote(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let text = args[0].to_text();
    Ok(text.map_or(Value::Null, |text| {
        Value::Text(json_to_text(&Json::String(text)))
    }))
}

fn object(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    if !args.len().is_multiple_of(2) {
        let message = "Incorrect parameter count in the call to native function 'JSON_OBJECT'";
        return Err(SqlError::new(1582, "42000", message));
    }
    let mut members = Map::new();
    for pair in args.chunks_exact(2) {
        let Some(name) = pair[0].to_text() else {
            return Err(SqlError::new(
                3158,
                "22032",
                "JSON documents may not contain NULL member names.",
            ));
        };
        members.insert(name, to_json(&pair[1]));
    }
    made(Json::Object(members))
}

fn array(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    made(Json::Array(args.iter().map(to_json).collect()))
}

/// Whether `candidate` is contained in `target`.
fn json_contains(target: &Json, candidate: &Json) -> bool {
    match (target, candidate) {
        (Json::Array(items), Json::Array(wanted)) => wanted
            .iter()
            .all(|want| items.iter().any(|item| json_contains(item, want))),
        (Json::Array(items), _) => items.iter().any(|item| json_contains(item, candidate)),
        (Json::Object(members), Json::Object(wanted)) => wanted.iter().all(|(name, want)| {
            members
                .get(name)
                .is_some_and(|member| json_contains(member, want))
        }),
        _ => compare_json(target, candidate).is_eq(),
    }
}

fn truth(value: bool) -> SqlResult<Value> {
    Ok(Value::Int(i64::from(value)))
}

/// The part of a document an optional path argument leads to.
fn part(document: &Json, arg: Option<&Value>) -> SqlResult<Option<Json>> {
    let Some(arg) = arg else {
        return Ok(Some(document.clone()));
    };
    let Some(path) = path(arg)? else {
        return Ok(None);
    };
    if path.has_wildcard() {
        let message = "In this situation, path expressions may not contain the * and ** tokens or an array range.";
        return Err(SqlError::new(3149, "42000", message));
    }
    Ok(path.find(document).first().map(|json| (*json).clone()))
}

fn contains(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(target), Some(candidate)) = (
        document(&args[0], 1, "json_contains")?,
        document(&args[1], 2, "json_contains")?,
    ) else {
        return Ok(Value::Null);
    };
    match part(&target, args.get(2))? {
        Some(target) => truth(json_contains(&target, &candidate)),
        None => Ok(Value::Null),
    }
}

/// `one` or `all`.
fn wants_all(value: &Value, function: &str) -> SqlResult<Option<bool>> {
    let Some(word) = value.to_text() else {
        return Ok(None);
    };
    match word.to_ascii_lowercase().as_str() {
        "one" => Ok(Some(false)),
        "all" => Ok(Some(true)),
        _ => {
            let message = format!(
                "The oneOrAll argument to {function} may take these values: 'one' or 'all'."
            );
            Err(SqlError::new(3154, "42000", message))
        }
    }
}

fn contains_path(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(document), Some(all)) = (
        document(&args[0], 1, "json_contains_path")?,
        wants_all(&args[1], "json_contains_path")?,
    ) else {
        return Ok(Value::Null);
    };
    for arg in &args[2..] {
        let Some(path) = path(arg)? else {
            return Ok(Value::Null);
        };
        let found = !path.find(&document).is_empty();
        if found != all {
            return truth(found);
        }
    }
    truth(all)
}

fn keys(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(document) = document(&args[0], 1, "json_keys")? else {
        return Ok(Value::Null);
    };
    match part(&document, args.get(1))? {
        Some(Json::Object(members)) => made(Json::Array(
            members
                .keys()
                .map(|name| Json::String(name.clone()))
                .collect(),
        )),
        _ => Ok(Value::Null),
    }
}

fn length(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(document) = document(&args[0], 1, "json_length")? else {
        return Ok(Value::Null);
    };
    let Some(part) = part(&document, args.get(1))? else {
        return Ok(Value::Null);
    };
    let length = match part {
        Json::Array(items) => items.len(),
        Json::Object(members) => members.len(),
        _ => 1,
    };
    Ok(Value::Int(i64::try_from(length).unwrap_or(i64::MAX)))
}

fn type_(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(document) = document(&args[0], 1, "json_type")? else {
        return Ok(Value::Null);
    };
    let name = match document.as_ref() {
        Json::Null => "NULL",
        Json::Bool(_) => "BOOLEAN",
        Json::Number(number) if number.is_i64() => "INTEGER",
        Json::Number(number) if number.is_u64() => "UNSIGNED INTEGER",
        Json::Number(_) => "DOUBLE",
        Json::String(_) => "STRING",
        Json::Array(_) => "ARRAY",
        Json::Object(_) => "OBJECT",
    };
    Ok(Value::Text(name.to_string()))
}

fn valid(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    match &args[0] {
        Value::Null => Ok(Value::Null),
        Value::Json(_) => truth(true),
        Value::Text(text) => truth(parse_json(text).is_ok()),
        _ => truth(false),
    }
}

fn depth(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let document = document(&args[0], 1, "json_depth")?;
    Ok(document.map_or(Value::Null, |json| {
        Value::Int(i64::try_from(json_depth(&json)).unwrap_or(0))
    }))
}

fn overlaps(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(a), Some(b)) = (
        document(&args[0], 1, "json_overlaps")?,
        document(&args[1], 2, "json_overlaps")?,
    ) else {
        return Ok(Value::Null);
    };
    let equal = |a: &Json, b: &Json| compare_json(a, b).is_eq();
    truth(match (a.as_ref(), b.as_ref()) {
        (Json::Array(a), Json::Array(b)) => a
            .iter()
            .any(|item| b.iter().any(|other| equal(item, other))),
        (Json::Array(items), other) | (other, Json::Array(items)) => {
            items.iter().any(|item| equal(item, other))
        }
        (Json::Object(a), Json::Object(b)) => a
            .iter()
            .any(|(name, value)| b.get(name).is_some_and(|other| equal(value, other))),
        (a, b) => equal(a, b),
    })
}

fn member_of(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(array) = document(&args[1], 2, "member of")? else {
        return Ok(Value::Null);
    };
    if args[0].is_null() {
        return Ok(Value::Null);
    }
    let needle = to_json(&args[0]);
    truth(match array.as_ref() {
        Json::Array(items) => items.iter().any(|item| compare_json(item, &needle).is_eq()),
        other => compare_json(other, &needle).is_eq(),
    })
}

/// Looks for strings like a pattern and tells their paths.
struct Search<'a> {
    pattern: &'a str,
    escape: Option<char>,
    all: bool,
    found: Vec<Json>,
}

impl Search<'_> {
    fn visit(&mut self, value: &Json, place: &str) {
        if !self.all && !self.found.is_empty() {
            return;
        }
        match value {
            Json::String(text) if like_text(text, self.pattern, self.escape, Collation::Bin) => {
                self.found.push(Json::String(place.to_string()));
            }
            Json::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    self.visit(item, &format!("{place}[{at}]"));
                }
            }
            Json::Object(members) => {
                for (name, member) in members {
                    self.visit(member, &format!("{place}.{}", member_name(name)));
                }
            }
            _ => {}
        }
    }
}

/// A member name as a path writes it.
fn member_name(name: &str) -> String {
    let plain = name.starts_with(|c: char| c.is_alphabetic() || c == '_' || c == '$')
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || c == '_' || c == '$');
    if plain {
        name.to_string()
    } else {
        json_to_text(&Json::String(name.to_string()))
    }
}

fn search(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let (Some(document), Some(all), Some(pattern)) = (
        document(&args[0], 1, "json_search")?,
        wants_all(&args[1], "json_search")?,
        args[2].to_text(),
    ) else {
        return Ok(Value::Null);
    };
    let escape = args
        .get(3)
        .and_then(Value::to_text)
        .and_then(|text| text.chars().next());
    if args.len() > 4 {
        // Paths narrow the search; the answer needs their concrete spelling.
        return Err(SqlError::not_supported("JSON_SEARCH with a path"));
    }
    let mut search = Search {
        pattern: &pattern,
        escape: escape.or(Some('\\')),
        all,
        found: Vec::new(),
    };
    search.visit(&document, "$");
    match search.found.len() {
        0 => Ok(Value::Null),
        1 => made(search.found.swap_remove(0)),
        _ => made(Json::Array(search.found)),
    }
}

/// A scalar as text; NULL for arrays, objects and what is missing.
fn value(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(document) = document(&args[0], 1, "json_value")? else {
        return Ok(Value::Null);
    };
    Ok(match part(&document, args.get(1))? {
        None | Some(Json::Null | Json::Array(_) | Json::Object(_)) => Value::Null,
        Some(Json::String(text)) => Value::Text(text),
        Some(scalar) => Value::Text(json_to_text(&scalar)),
    })
}

fn pretty(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(document) = document(&args[0], 1, "json_pretty")? else {
        return Ok(Value::Null);
    };
    let text = serde_json::to_string_pretty(document.as_ref());
    Ok(text.map_or(Value::Null, Value::Text))
}

fn storage_size(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let document = document(&args[0], 1, "json_storage_size")?;
    let size = document.map(|json| i64::try_from(json_to_text(&json).len()).unwrap_or(i64::MAX));
    Ok(size.map_or(Value::Null, Value::Int))
}

/// 0 and 1 of a truth value as JSON's false and true.
fn boolean(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let truth = args[0].to_bool();
    Ok(truth.map_or(Value::Null, |truth| {
        Value::Json(Arc::new(Json::Bool(truth)))
    }))
}
