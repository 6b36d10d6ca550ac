//! A statement without its constants, so that texts which differ only in them share one plan.
//!
//! Applications that write their constants into the text (`… WHERE id = 17`) send a new text with
//! every request. [`template`] takes the constants out of the places where only their value can
//! matter, and leaves `?` there: elements of VALUES, and operands of a comparison, BETWEEN or IN
//! in WHERE and SET. Everywhere else a constant may decide more than a value (a column's name, an
//! order, a type, a limit), so it stays in the text and tells plans apart.
//!
//! This is a cheap look at the bytes, not a parse: whatever it does not know for certain (comments,
//! unusual quoting, an operator behind the constant) makes it leave the constant, or the whole
//! statement, alone.

mod constant;
mod place;
#[cfg(test)]
mod tests;
mod token;

use crate::types::SqlMode;
use crate::types::{Collation, DataType, Value};
use constant::constant;
use place::places;
use token::tokens;

/// More constants than this are a bulk load that will not come again in the same shape.
const CONSTANTS_MAX: usize = 64;
/// Longest text looked at, bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// A text with `?` in place of its constants.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The text to plan.
    pub text: String,
    /// The constants, in the order of the text.
    pub values: Vec<Value>,
    /// Their types, by which plans are told apart too.
    pub types: Vec<DataType>,
}

/// Takes the constants out of `text`; `None` when it holds none that may be taken, or anything
/// that this look does not understand.
#[must_use]
pub fn template(text: &str, mode: SqlMode, collation: Collation) -> Option<Template> {
    if text.len() > TEXT_BYTES_MAX || !is_templated(text) {
        return None;
    }
    let tokens = tokens(text, mode)?;
    let places = places(&tokens);
    if places.is_empty() || places.len() > CONSTANTS_MAX {
        return None;
    }
    let mut made = Template {
        text: String::with_capacity(text.len()),
        values: Vec::with_capacity(places.len()),
        types: Vec::with_capacity(places.len()),
    };
    let mut copied = 0;
    for at in places {
        let token = tokens.get(at)?;
        let (value, ty) = constant(text.get(token.from..token.to)?, token.kind, mode, collation)?;
        made.text.push_str(text.get(copied..token.from)?);
        made.text.push('?');
        made.values.push(value);
        made.types.push(ty);
        copied = token.to;
    }
    made.text.push_str(text.get(copied..)?);
    Some(made)
}

/// Whether the text begins with a statement that has templates.
fn is_templated(text: &str) -> bool {
    let word = text.trim_start().get(..6).unwrap_or_default();
    ["SELECT", "INSERT", "UPDATE", "DELETE", "REPLAC"]
        .iter()
        .any(|known| word.eq_ignore_ascii_case(known))
}
