//! JSON paths: `$.member[3]."quoted name"[last-1]`, with wildcards `.*`, `[*]`, `[1 to 3]`, `**`.

use std::collections::HashSet;

use serde_json::Value as Json;

use crate::error::{SqlError, SqlResult};

/// Steps of a path: as many as documents may be deep, since following them recurses.
const LEGS_MAX: usize = super::json_text::MAX_JSON_DEPTH;

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Leg {
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
pub(crate) enum Place {
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
pub struct Path {
    pub(crate) legs: Vec<Leg>,
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

    /// Everything the path leads to, each value once, in document order. Takes a step of the path
    /// at a time, so that several `**` do not multiply.
    pub fn find<'a>(&self, document: &'a Json) -> Vec<&'a Json> {
        let mut found = vec![document];
        for leg in &self.legs {
            found = leg.step(found);
        }
        found
    }
}

impl Leg {
    fn step<'a>(&self, from: Vec<&'a Json>) -> Vec<&'a Json> {
        let mut found = Vec::new();
        // A value may be below several others for `**`, and both an element and itself for `[0]`.
        let mut seen = HashSet::new();
        let repeats = from.len() > 1;
        for value in from {
            match (self, value) {
                (Leg::Member(name), Json::Object(members)) => found.extend(members.get(name)),
                (Leg::AnyMember, Json::Object(members)) => found.extend(members.values()),
                (Leg::AnyIndex, Json::Array(items)) => found.extend(items),
                (Leg::Index(place), _) => {
                    let items = elements(value);
                    let item = place.resolve(items.len()).and_then(|at| items.get(at));
                    found.extend(item.filter(|item| !repeats || seen.insert(address(item))));
                }
                (Leg::Range(from, to), _) => {
                    let items = elements(value);
                    let (from, end) = range(*from, *to, items.len());
                    let items = items.iter().take(end).skip(from);
                    found.extend(items.filter(|item| !repeats || seen.insert(address(item))));
                }
                (Leg::Descend, _) => descend(value, &mut seen, &mut found),
                _ => {}
            }
        }
        found
    }
}

/// What tells values of one document apart.
fn address(value: &Json) -> usize {
    std::ptr::from_ref(value).addr()
}

/// The elements of an array; a value that is no array is an array of itself.
fn elements(value: &Json) -> &[Json] {
    match value {
        Json::Array(items) => items,
        other => std::slice::from_ref(other),
    }
}

/// First and one past the last index of `[from to to]` in an array of `length`.
fn range(from: Place, to: Place, length: usize) -> (usize, usize) {
    let end = to.resolve(length).map_or(0, |to| to.saturating_add(1));
    (from.resolve(length).unwrap_or(0), end)
}

/// `value` and everything below it that is not known yet.
fn descend<'a>(value: &'a Json, seen: &mut HashSet<usize>, found: &mut Vec<&'a Json>) {
    if !seen.insert(address(value)) {
        return;
    }
    found.push(value);
    match value {
        Json::Array(items) => items.iter().for_each(|item| descend(item, seen, found)),
        Json::Object(members) => {
            let members = members.values();
            members.for_each(|member| descend(member, seen, found));
        }
        _ => {}
    }
}
