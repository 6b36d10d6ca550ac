//! A statement as a client sends it, and the rows that come back.

use std::borrow::Cow;

/// A parameter or a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// NULL.
    Null,
    /// Any integer type.
    Integer(i64),
    /// DOUBLE or FLOAT.
    Double(f64),
    /// Text, and whatever travels as text: DECIMAL, dates.
    Text(String),
}

impl Value {
    /// The value as a literal of a statement.
    pub fn literal(&self) -> String {
        match self {
            Self::Null => "NULL".into(),
            Self::Integer(number) => number.to_string(),
            Self::Double(number) => number.to_string(),
            Self::Text(text) => format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''")),
        }
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// One statement of a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// What it is for, the same for every instance of it: what statistics are kept by.
    pub name: &'static str,
    /// The text, with a `?` for each parameter.
    pub text: Cow<'static, str>,
    /// One value for each `?`.
    pub parameters: Vec<Value>,
    /// Whether the application prepares it; otherwise it goes as text and has no parameters.
    pub prepared: bool,
    /// The columns of the result that its order is promised by: rows with equal values there
    /// may come in any order.
    pub ordered_by: &'static [&'static str],
}

impl Statement {
    /// A prepared statement.
    pub fn prepared(
        name: &'static str,
        text: impl Into<Cow<'static, str>>,
        parameters: Vec<Value>,
    ) -> Self {
        Self {
            name,
            text: text.into(),
            parameters,
            prepared: true,
            ordered_by: &[],
        }
    }

    /// A statement sent as text.
    pub fn text(name: &'static str, text: impl Into<Cow<'static, str>>) -> Self {
        Self {
            name,
            text: text.into(),
            parameters: Vec::new(),
            prepared: false,
            ordered_by: &[],
        }
    }

    /// The same, with an order that its result promises.
    #[must_use]
    pub fn ordered(mut self, columns: &'static [&'static str]) -> Self {
        self.ordered_by = columns;
        self
    }
}

/// What a server answered: rows, or none for a statement that returns none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// Rows, each with a value for each column.
    pub rows: Vec<Vec<Value>>,
    /// Rows that a writing statement counted.
    pub affected: u64,
}

impl Answer {
    /// Position of a column.
    fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|name| name == column)
    }

    /// The integer in `column` of the first row; None without a row, or when it holds none.
    pub fn integer(&self, column: &str) -> Option<i64> {
        self.integers(column).next()
    }

    /// The integers in `column`, row by row; NULLs are left out.
    pub fn integers(&self, column: &str) -> impl Iterator<Item = i64> {
        let position = self.position(column);
        self.rows
            .iter()
            .filter_map(move |row| match row.get(position?)? {
                Value::Integer(number) => Some(*number),
                Value::Text(text) => text.parse().ok(),
                Value::Null | Value::Double(_) => None,
            })
    }

    /// The different integers in `column`, ascending.
    pub fn distinct(&self, column: &str) -> Vec<i64> {
        let mut found: Vec<i64> = self.integers(column).collect();
        found.sort_unstable();
        found.dedup();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_gives_integers_from_either_protocol() {
        let answer = Answer {
            columns: vec!["id".into(), "user_id".into()],
            rows: vec![
                vec![Value::Integer(1), Value::from("7")],
                vec![Value::Integer(2), Value::Null],
                vec![Value::Integer(3), Value::Integer(5)],
                vec![Value::Integer(4), Value::Integer(7)],
            ],
            affected: 0,
        };
        assert_eq!(answer.distinct("user_id"), [5, 7]);
        assert_eq!(answer.integer("id"), Some(1));
        assert_eq!(answer.integer("absent"), None);
    }

    #[test]
    fn a_literal_cannot_end_its_own_quotes() {
        assert_eq!(Value::from(r"it's \ fine").literal(), r"'it''s \\ fine'");
    }
}
