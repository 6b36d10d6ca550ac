//! JSON paths: `$.member[3]."quoted name"[last-1]`, with wildcards `.*`, `[*]`, `[1 to 3]`, `**`.

use serde_json::Value as Json;

use crate::error::{SqlError, SqlResult};

/// Steps of a path: as many as documents may be deep, since following them recurses.
const LEGS_MAX: usize = crate::types::MAX_JSON_DEPTH;

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Leg {
    /// `.name`
    Member(String),
    /// `.*`
    AnyMember,
    /// `[n]`
    Index(Place),
    /// `[a to b]`
    Range(Place, Place),
    /// `[*]`
    AnyIndex,
    /// `**`: this value and everything below it.
    Descend,
}

/// An array index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// From the start.
    Start(usize),
    /// `last-n`
    End(usize),
}

impl Place {
    /// The index in an array of `length`.
    pub fn resolve(self, length: usize) -> Option<usize> {
        match self {
            Place::Start(at) => Some(at),
            Place::End(back) => length.checked_sub(1)?.checked_sub(back),
        }
    }
}

/// A parsed path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Path {
    pub legs: Vec<Leg>,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn member(&mut self) -> Option<Leg> {
        self.spaces();
        if self.eat("*") {
            return Some(Leg::AnyMember);
        }
        if self.rest().starts_with('"') {
            let end = closing_quote(self.rest())?;
            let name: String = serde_json::from_str(&self.rest()[..end]).ok()?;
            self.at += end;
            return Some(Leg::Member(name));
        }
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$'))
            .unwrap_or(rest.len());
        let name = &rest[..end];
        if name.is_empty() || name.starts_with(|c: char| c.is_ascii_digit()) {
            return None;
        }
        self.at += end;
        Some(Leg::Member(name.to_string()))
    }

    fn number(&mut self) -> Option<usize> {
        let length = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let number = self.rest()[..length].parse().ok()?;
        self.at += length;
        Some(number)
    }

    fn place(&mut self) -> Option<Place> {
        self.spaces();
        if !self.eat("last") {
            return self.number().map(Place::Start);
        }
        self.spaces();
        if !self.eat("-") {
            return Some(Place::End(0));
        }
        self.spaces();
        self.number().map(Place::End)
    }

    fn cell(&mut self) -> Option<Leg> {
        self.spaces();
        if self.eat("*") {
            self.spaces();
            return self.eat("]").then_some(Leg::AnyIndex);
        }
        let from = self.place()?;
        self.spaces();
        let leg = if self.eat("to ") {
            Leg::Range(from, self.place()?)
        } else {
            Leg::Index(from)
        };
        self.spaces();
        self.eat("]").then_some(leg)
    }

    fn path(&mut self) -> Option<Path> {
        self.spaces();
        self.eat("$").then_some(())?;
        let mut legs = Vec::new();
        loop {
            self.spaces();
            if self.rest().is_empty() {
                break;
            }
            if legs.len() >= LEGS_MAX {
                return None;
            }
            let leg = if self.eat("**") {
                Leg::Descend
            } else if self.eat(".") {
                self.member()?
            } else if self.eat("[") {
                self.cell()?
            } else {
                return None;
            };
            legs.push(leg);
        }
        (legs.last() != Some(&Leg::Descend)).then_some(Path { legs })
    }
}

/// Length of a quoted string at the start of `text`, quotes included.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

impl Path {
    /// Reads a path.
    ///
    /// # Errors
    /// 3143 with the place.
    pub fn parse(text: &str) -> SqlResult<Self> {
        let mut parser = Parser { text, at: 0 };
        parser.path().ok_or_else(|| {
            let message = format!(
                "Invalid JSON path expression. The error is around character position {}.",
                parser.at + 1
            );
            SqlError::new(3143, "42000", message)
        })
    }

    /// Several values may match.
    pub fn has_wildcard(&self) -> bool {
        let single = |leg: &Leg| matches!(leg, Leg::Member(_) | Leg::Index(_));
        !self.legs.iter().all(single)
    }

    /// Everything the path leads to, in document order.
    pub fn find<'a>(&self, document: &'a Json) -> Vec<&'a Json> {
        let mut found = Vec::new();
        find_legs(document, &self.legs, &mut found);
        found
    }
}

fn find_legs<'a>(value: &'a Json, legs: &[Leg], found: &mut Vec<&'a Json>) {
    let Some((leg, rest)) = legs.split_first() else {
        if !found.iter().any(|other| std::ptr::eq(*other, value)) {
            found.push(value);
        }
        return;
    };
    match (leg, value) {
        (Leg::Member(name), Json::Object(members)) => {
            if let Some(member) = members.get(name) {
                find_legs(member, rest, found);
            }
        }
        (Leg::AnyMember, Json::Object(members)) => {
            for member in members.values() {
                find_legs(member, rest, found);
            }
        }
        (Leg::Index(place), Json::Array(items)) => {
            if let Some(item) = place.resolve(items.len()).and_then(|at| items.get(at)) {
                find_legs(item, rest, found);
            }
        }
        // A value that is no array is an array of itself.
        (Leg::Index(Place::Start(0) | Place::End(0)), _) => find_legs(value, rest, found),
        (Leg::Range(from, to), Json::Array(items)) => {
            let Some(to) = to.resolve(items.len()) else {
                return;
            };
            let from = from.resolve(items.len()).unwrap_or(0);
            for item in items.iter().take(to.saturating_add(1)).skip(from) {
                find_legs(item, rest, found);
            }
        }
        (Leg::AnyIndex, Json::Array(items)) => {
            for item in items {
                find_legs(item, rest, found);
            }
        }
        (Leg::Descend, _) => {
            find_legs(value, rest, found);
            match value {
                Json::Array(items) => items.iter().for_each(|item| find_legs(item, legs, found)),
                Json::Object(members) => {
                    members
                        .values()
                        .for_each(|member| find_legs(member, legs, found));
                }
                _ => {}
            }
        }
        _ => {}
    }
}
