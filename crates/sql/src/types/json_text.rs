//! JSON as MySQL keeps it: members ordered by length of name, then by bytes; its text; its order.

use std::cmp::Ordering;

use serde_json::{Map, Number, Value as Json};

use super::number::write_double;
use crate::error::{SqlError, SqlResult};

/// Deepest nesting accepted (error 3157 beyond).
pub const MAX_JSON_DEPTH: usize = 100;

/// Largest document that functions make, as [`json_bytes`] counts (error 3150 beyond).
const DOCUMENT_BYTES_MAX: usize = 256 << 20;

/// Why a text is no document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonIssue {
    /// What is wrong, and the column.
    Invalid(String, usize),
    /// Nested more than [`MAX_JSON_DEPTH`] deep.
    TooDeep,
}

impl JsonIssue {
    /// Error 3141 or 3157 of a text that is the `place`-th argument of `function`.
    #[must_use]
    pub fn in_argument(self, place: usize, function: &str) -> SqlError {
        match self {
            JsonIssue::TooDeep => too_deep(),
            JsonIssue::Invalid(message, at) => SqlError::new(
                3141,
                "22032",
                format!(
                    "Invalid JSON text in argument {place} to function {function}: \"{message}\" at position {at}."
                ),
            ),
        }
    }

    /// Error 3140 or 3157 of a text to be stored into `column`.
    #[must_use]
    pub fn in_column(&self, column: &str) -> SqlError {
        match self {
            JsonIssue::TooDeep => too_deep(),
            JsonIssue::Invalid(message, at) => SqlError::new(
                3140,
                "22032",
                format!(
                    "Invalid JSON text: \"{message}\" at position {at} in value for column '{column}'."
                ),
            ),
        }
    }
}

fn too_deep() -> SqlError {
    let message = "The JSON document exceeds the maximum depth.";
    SqlError::new(3157, "22032", message)
}

/// Whether a made document can be kept: what is stored deeper could not be read again.
///
/// # Errors
/// 3157 nested too deeply, 3150 too large.
pub fn check_json(json: &Json) -> SqlResult<()> {
    if json_depth(json) > MAX_JSON_DEPTH {
        return Err(too_deep());
    }
    if json_bytes(json) > DOCUMENT_BYTES_MAX {
        let message = "The JSON value is too big to be stored in a JSON column.";
        return Err(SqlError::new(3150, "22032", message));
    }
    Ok(())
}

/// Bytes of memory a document takes, about.
#[must_use]
pub fn json_bytes(json: &Json) -> usize {
    size_of::<Json>()
        + match json {
            Json::String(text) => text.len(),
            Json::Array(items) => items.iter().map(json_bytes).sum(),
            Json::Object(members) => members
                .iter()
                .map(|(name, value)| 2 * size_of::<String>() + name.len() + json_bytes(value))
                .sum(),
            _ => 0,
        }
}

/// Reads and normalises a document.
///
/// # Errors
/// What is wrong and where, as MySQL says it.
pub fn parse_json(text: &str) -> Result<Json, JsonIssue> {
    match serde_json::from_str::<Json>(text) {
        Ok(json) if json_depth(&json) > MAX_JSON_DEPTH => Err(JsonIssue::TooDeep),
        Ok(json) => Ok(normalise(json)),
        // The reader's own limit on recursion is beyond ours.
        Err(error) if error.to_string().starts_with("recursion limit") => Err(JsonIssue::TooDeep),
        Err(error) => {
            let message = if error.is_eof() {
                "The document is empty or ends too early."
            } else {
                "Invalid value."
            };
            let at = error.column().saturating_sub(1);
            Err(JsonIssue::Invalid(message.to_string(), at))
        }
    }
}

/// Orders the members of every object.
#[must_use]
pub fn normalise(json: Json) -> Json {
    match json {
        Json::Array(items) => Json::Array(items.into_iter().map(normalise).collect()),
        Json::Object(members) => {
            let mut members: Vec<(String, Json)> = members
                .into_iter()
                .map(|(name, value)| (name, normalise(value)))
                .collect();
            members.sort_by(|(a, _), (b, _)| compare_names(a, b));
            Json::Object(members.into_iter().collect::<Map<_, _>>())
        }
        scalar => scalar,
    }
}

fn compare_names(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// Deepest level of a document, 1 for a scalar.
#[must_use]
pub fn json_depth(json: &Json) -> usize {
    match json {
        Json::Array(items) => 1 + items.iter().map(json_depth).max().unwrap_or(0),
        Json::Object(members) => 1 + members.values().map(json_depth).max().unwrap_or(0),
        _ => 1,
    }
}

/// Appends the normalised text: `{"a": 1, "b": [1, 2]}`.
pub fn write_json(json: &Json, out: &mut Vec<u8>) {
    match json {
        Json::Null => out.extend_from_slice(b"null"),
        Json::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
        Json::Number(number) => write_number(number, out),
        Json::String(text) => write_json_string(text, out),
        Json::Array(items) => {
            out.push(b'[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.extend_from_slice(b", ");
                }
                write_json(item, out);
            }
            out.push(b']');
        }
        Json::Object(members) => {
            out.push(b'{');
            let mut ordered: Vec<_> = members.iter().collect();
            ordered.sort_by(|(a, _), (b, _)| compare_names(a, b));
            for (place, (name, value)) in ordered.into_iter().enumerate() {
                if place > 0 {
                    out.extend_from_slice(b", ");
                }
                write_json_string(name, out);
                out.extend_from_slice(b": ");
                write_json(value, out);
            }
            out.push(b'}');
        }
    }
}

fn write_number(number: &Number, out: &mut Vec<u8>) {
    if number.is_i64() || number.is_u64() {
        out.extend_from_slice(number.to_string().as_bytes());
        return;
    }
    let value = number.as_f64().unwrap_or(0.0);
    let start = out.len();
    write_double(value, out);
    // A double that happens to be whole stays a double when read back.
    if out[start..]
        .iter()
        .all(|byte| byte.is_ascii_digit() || *byte == b'-')
    {
        out.extend_from_slice(b".0");
    }
}

/// Appends a quoted JSON string.
pub fn write_json_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    for character in text.chars() {
        match character {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            '\0'..='\u{1f}' => {
                out.extend_from_slice(format!("\\u{:04x}", u32::from(character)).as_bytes());
            }
            other => {
                let mut buffer = [0u8; 4];
                out.extend_from_slice(other.encode_utf8(&mut buffer).as_bytes());
            }
        }
    }
    out.push(b'"');
}

/// The normalised text.
#[must_use]
pub fn json_to_text(json: &Json) -> String {
    let mut out = Vec::new();
    write_json(json, &mut out);
    String::from_utf8(out).unwrap_or_default()
}

/// Order between kinds, lowest first.
fn rank(json: &Json) -> u8 {
    match json {
        Json::Null => 0,
        Json::Number(_) => 1,
        Json::String(_) => 2,
        Json::Object(_) => 3,
        Json::Array(_) => 4,
        Json::Bool(_) => 5,
    }
}

/// MySQL's order of JSON values: by kind, then by value.
#[must_use]
pub fn compare_json(a: &Json, b: &Json) -> Ordering {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => compare_numbers(a, b),
        (Json::String(a), Json::String(b)) => a.cmp(b),
        (Json::Bool(a), Json::Bool(b)) => a.cmp(b),
        (Json::Array(a), Json::Array(b)) => {
            for (left, right) in a.iter().zip(b) {
                let order = compare_json(left, right);
                if order.is_ne() {
                    return order;
                }
            }
            a.len().cmp(&b.len())
        }
        (Json::Object(a), Json::Object(b)) => compare_objects(a, b),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_numbers(a: &Number, b: &Number) -> Ordering {
    let whole = |number: &Number| {
        let signed = number.as_i64().map(i128::from);
        signed.or_else(|| number.as_u64().map(i128::from))
    };
    if let (Some(a), Some(b)) = (whole(a), whole(b)) {
        a.cmp(&b)
    } else {
        let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
        a.partial_cmp(&b).unwrap_or(Ordering::Equal)
    }
}

fn compare_objects(a: &Map<String, Json>, b: &Map<String, Json>) -> Ordering {
    fn sorted(map: &Map<String, Json>) -> Vec<(&String, &Json)> {
        let mut members: Vec<_> = map.iter().collect();
        members.sort_by(|(a, _), (b, _)| compare_names(a, b));
        members
    }
    let by_length = a.len().cmp(&b.len());
    if by_length.is_ne() {
        return by_length;
    }
    for ((left_name, left), (right_name, right)) in sorted(a).into_iter().zip(sorted(b)) {
        let order = compare_names(left_name, right_name).then_with(|| compare_json(left, right));
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_normalised() {
        let table = [
            (
                r#"{"bb":1,"a":[1,2,{"z":null}]}"#,
                r#"{"a": [1, 2, {"z": null}], "bb": 1}"#,
            ),
            (r#"{"b":1,"b":2}"#, r#"{"b": 2}"#),
            ("1.0", "1.0"),
            ("1e20", "1e20"),
            ("\"a\\u00e9\\n\"", "\"aé\\n\""),
            ("18446744073709551615", "18446744073709551615"),
        ];
        for (text, expected) in table {
            assert_eq!(json_to_text(&parse_json(text).unwrap()), expected);
        }
    }

    #[test]
    fn broken_documents_are_refused_with_their_place() {
        assert!(parse_json("{").is_err());
        assert!(parse_json("").is_err());
        assert!(parse_json("[1,]").is_err());
        assert_eq!(parse_json(&"[".repeat(100_000)), Err(JsonIssue::TooDeep));
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(parse_json(&nested(MAX_JSON_DEPTH)).is_ok());
        assert_eq!(
            parse_json(&nested(MAX_JSON_DEPTH + 1)),
            Err(JsonIssue::TooDeep)
        );
    }
}
