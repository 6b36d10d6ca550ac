//! Values of variables, global or of one session.

use std::sync::Arc;

use super::definition::{Definition, Kind};
use super::table::DEFINITIONS;
use crate::types::Value;

/// One value a definition, in the order of the table. Copies are cheap until written.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    values: Arc<Vec<Value>>,
}

impl Default for Values {
    fn default() -> Self {
        let values = DEFINITIONS
            .iter()
            .map(|definition| match definition.default {
                Some(text) => parse_default(definition, text),
                None => Value::Null,
            })
            .collect();
        Self {
            values: Arc::new(values),
        }
    }
}

impl Values {
    /// The value at a position of the table.
    pub(crate) fn get(&self, position: usize) -> &Value {
        &self.values[position]
    }

    /// Replaces the value at a position of the table.
    pub(crate) fn set(&mut self, position: usize, value: Value) {
        Arc::make_mut(&mut self.values)[position] = value;
    }

    /// Replaces a value by name; names the table lacks are ignored (a defect tests catch).
    pub(crate) fn set_named(&mut self, name: &str, value: Value) {
        if let Ok((position, _)) = super::find(name) {
            self.set(position, value);
        }
    }

    /// The value by name.
    pub(crate) fn named(&self, name: &str) -> &Value {
        super::find(name).map_or(&Value::Null, |(position, _)| self.get(position))
    }

    /// A number by name; 0 when it is none.
    pub(crate) fn integer(&self, name: &str) -> i64 {
        match self.named(name) {
            Value::Int(number) => *number,
            _ => 0,
        }
    }

    /// A text by name; empty when it is none.
    pub(crate) fn text(&self, name: &str) -> &str {
        match self.named(name) {
            Value::Text(text) => text,
            _ => "",
        }
    }
}

/// Reads a default of the table.
pub(super) fn parse_default(definition: &Definition, text: &str) -> Value {
    match definition.kind {
        Kind::Bool => Value::Int(i64::from(text == "ON")),
        Kind::Int(..) => Value::Int(text.parse().unwrap_or(0)),
        Kind::Double => Value::Double(text.parse().unwrap_or(0.0)),
        _ => Value::Text(text.to_string()),
    }
}

/// As SHOW VARIABLES writes a value.
pub(crate) fn shown(definition: &Definition, value: &Value) -> String {
    match (definition.kind, value) {
        (Kind::Bool, Value::Int(number)) => if *number == 0 { "OFF" } else { "ON" }.to_string(),
        (Kind::Double, Value::Double(number)) => format!("{number:.6}"),
        (_, Value::Int(number)) => number.to_string(),
        (_, Value::Text(text)) => text.clone(),
        _ => String::new(),
    }
}
