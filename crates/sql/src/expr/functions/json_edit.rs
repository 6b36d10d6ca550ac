//! Changing and merging JSON.

use serde_json::{Map, Value as Json};

use super::json::{document, made};
use super::{Arguments, MANY, ScalarFunction, infer};
use crate::error::{SqlError, SqlResult};
use crate::expr::EvalContext;
use crate::types::{
    DataType, JsonPath as Path, PathLeg as Leg, PathPlace as Place, Value, to_json,
};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("JSON_SET", (3, MANY), infer::json, |_, args, _| {
        edit(
            args,
            "json_set",
            Change {
                create: true,
                replace: true,
            },
        )
    })
    .with(Arguments::JsonValues),
    ScalarFunction::new("JSON_INSERT", (3, MANY), infer::json, |_, args, _| {
        edit(
            args,
            "json_insert",
            Change {
                create: true,
                replace: false,
            },
        )
    })
    .with(Arguments::JsonValues),
    ScalarFunction::new("JSON_REPLACE", (3, MANY), infer::json, |_, args, _| {
        edit(
            args,
            "json_replace",
            Change {
                create: false,
                replace: true,
            },
        )
    })
    .with(Arguments::JsonValues),
    ScalarFunction::new("JSON_REMOVE", (2, MANY), infer::json, remove),
    ScalarFunction::new("JSON_ARRAY_APPEND", (3, MANY), infer::json, array_append)
        .with(Arguments::JsonValues),
    ScalarFunction::new("JSON_ARRAY_INSERT", (3, MANY), infer::json, array_insert)
        .with(Arguments::JsonValues),
    ScalarFunction::new("JSON_MERGE_PATCH", (2, MANY), infer::json, merge_patch),
    ScalarFunction::new(
        "JSON_MERGE_PRESERVE",
        (2, MANY),
        infer::json,
        merge_preserve,
    ),
];

/// What an edit may do where its path leads.
#[derive(Clone, Copy)]
struct Change {
    create: bool,
    replace: bool,
}

/// A path that leads to one place; `None` for NULL.
fn single_path(value: &Value) -> SqlResult<Option<Path>> {
    let Some(path) = super::json::path(value)? else {
        return Ok(None);
    };
    if path.has_wildcard() {
        let message = "In this situation, path expressions may not contain the * and ** tokens or an array range.";
        return Err(SqlError::new(3149, "42000", message));
    }
    Ok(Some(path))
}

/// The value behind `legs`, if it is there.
fn seek<'a>(value: &'a mut Json, legs: &[Leg]) -> Option<&'a mut Json> {
    let Some((leg, rest)) = legs.split_first() else {
        return Some(value);
    };
    let is_array = value.is_array();
    match leg {
        Leg::Member(name) => seek(value.as_object_mut()?.get_mut(name)?, rest),
        Leg::Index(place) if is_array => {
            let items = value.as_array_mut()?;
            let at = place.resolve(items.len())?;
            seek(items.get_mut(at)?, rest)
        }
        Leg::Index(Place::Start(0) | Place::End(0)) => seek(value, rest),
        _ => None,
    }
}

fn pairs(args: &[Value], function: &str) -> SqlResult<()> {
    if args.len().is_multiple_of(2) {
        let message =
            format!("Incorrect parameter count in the call to native function '{function}'");
        return Err(SqlError::new(1582, "42000", message));
    }
    Ok(())
}

fn edit(args: &[Value], function: &str, change: Change) -> SqlResult<Value> {
    pairs(args, function)?;
    let Some(found) = document(&args[0], 1, function)? else {
        return Ok(Value::Null);
    };
    let mut json = found.as_ref().clone();
    for pair in args[1..].chunks_exact(2) {
        let Some(path) = single_path(&pair[0])? else {
            return Ok(Value::Null);
        };
        put(&mut json, &path.legs, to_json(&pair[1]), change);
    }
    made(json)
}

fn put(document: &mut Json, legs: &[Leg], new: Json, change: Change) {
    if let Some(slot) = seek(document, legs) {
        if change.replace {
            *slot = new;
        }
        return;
    }
    let Some((last, parent)) = legs.split_last() else {
        return;
    };
    let Some(parent) = seek(document, parent).filter(|_| change.create) else {
        return;
    };
    match (last, parent) {
        (Leg::Member(name), Json::Object(members)) => {
            members.insert(name.clone(), new);
        }
        (Leg::Index(Place::Start(_)), Json::Array(items)) => items.push(new),
        (Leg::Index(Place::End(_)), Json::Array(items)) => items.insert(0, new),
        (Leg::Index(place), scalar) => {
            let old = scalar.take();
            *scalar = match place {
                Place::Start(_) => Json::Array(vec![old, new]),
                Place::End(_) => Json::Array(vec![new, old]),
            };
        }
        _ => {}
    }
}

fn remove(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(found) = document(&args[0], 1, "json_remove")? else {
        return Ok(Value::Null);
    };
    let mut json = found.as_ref().clone();
    for arg in &args[1..] {
        let Some(path) = single_path(arg)? else {
            return Ok(Value::Null);
        };
        let Some((last, parent)) = path.legs.split_last() else {
            let message = "The path expression '$' is not allowed in this context.";
            return Err(SqlError::new(3153, "42000", message));
        };
        match (last, seek(&mut json, parent)) {
            (Leg::Member(name), Some(Json::Object(members))) => {
                members.shift_remove(name);
            }
            (Leg::Index(place), Some(Json::Array(items))) => {
                if let Some(at) = place.resolve(items.len()).filter(|at| *at < items.len()) {
                    items.remove(at);
                }
            }
            _ => {}
        }
    }
    made(json)
}

fn array_append(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    pairs(args, "json_array_append")?;
    let Some(found) = document(&args[0], 1, "json_array_append")? else {
        return Ok(Value::Null);
    };
    let mut json = found.as_ref().clone();
    for pair in args[1..].chunks_exact(2) {
        let Some(path) = single_path(&pair[0])? else {
            return Ok(Value::Null);
        };
        let new = to_json(&pair[1]);
        match seek(&mut json, &path.legs) {
            Some(Json::Array(items)) => items.push(new),
            Some(scalar) => *scalar = Json::Array(vec![scalar.take(), new]),
            None => {}
        }
    }
    made(json)
}

fn array_insert(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    pairs(args, "json_array_insert")?;
    let Some(found) = document(&args[0], 1, "json_array_insert")? else {
        return Ok(Value::Null);
    };
    let mut json = found.as_ref().clone();
    for pair in args[1..].chunks_exact(2) {
        let Some(path) = single_path(&pair[0])? else {
            return Ok(Value::Null);
        };
        let Some((Leg::Index(place), parent)) = path.legs.split_last() else {
            let message = "A path expression is not a path to a cell in an array.";
            return Err(SqlError::new(3165, "42000", message));
        };
        if let Some(Json::Array(items)) = seek(&mut json, parent) {
            let at = place.resolve(items.len()).unwrap_or(0).min(items.len());
            items.insert(at, to_json(&pair[1]));
        }
    }
    made(json)
}

/// RFC 7396: members replace members, null removes them.
fn patched(target: Json, patch: Json) -> Json {
    let Json::Object(changes) = patch else {
        return patch;
    };
    let mut members = match target {
        Json::Object(members) => members,
        _ => Map::new(),
    };
    for (name, change) in changes {
        // The order of members does not matter: `made` puts them in order.
        if change.is_null() {
            members.swap_remove(&name);
        } else {
            let old = members.get_mut(&name).map_or(Json::Null, Json::take);
            members.insert(name, patched(old, change));
        }
    }
    Json::Object(members)
}

fn preserved(a: Json, b: Json) -> Json {
    match (a, b) {
        (Json::Object(mut members), Json::Object(more)) => {
            for (name, value) in more {
                let merged = match members.get_mut(&name) {
                    Some(old) => preserved(old.take(), value),
                    None => value,
                };
                members.insert(name, merged);
            }
            Json::Object(members)
        }
        (a, b) => {
            let listed = |json: Json| match json {
                Json::Array(items) => items,
                other => vec![other],
            };
            let mut items = listed(a);
            items.extend(listed(b));
            Json::Array(items)
        }
    }
}

fn merged(args: &[Value], function: &str, merge: fn(Json, Json) -> Json) -> SqlResult<Value> {
    let mut result: Option<Json> = None;
    for (place, arg) in (1..).zip(args) {
        let Some(next) = document(arg, place, function)? else {
            return Ok(Value::Null);
        };
        let next = next.as_ref().clone();
        result = Some(match result {
            None => next,
            Some(before) => merge(before, next),
        });
    }
    result.map_or(Ok(Value::Null), made)
}

fn merge_patch(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    merged(args, "json_merge_patch", patched)
}

fn merge_preserve(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    merged(args, "json_merge_preserve", preserved)
}
