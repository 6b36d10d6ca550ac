//! Where a constant may be taken out: by the clause it stands in and the tokens around it.

use super::token::{Kind, Token, Word};

/// The tokens that may be taken out.
pub(super) fn places(tokens: &[Token]) -> Vec<usize> {
    let mut places = Vec::new();
    let mut level = Level {
        clause: Clause::Start,
        is_list: false,
        has_clauses: true,
    };
    let mut outer: Vec<Level> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Open => {
                outer.push(level);
                level = level.inner(tokens, at);
            }
            Kind::Close => level = outer.pop().unwrap_or(level),
            Kind::Word(word) if level.has_clauses => {
                level.clause = clause_after(level.clause, word);
            }
            Kind::Text | Kind::Number => {
                let may_go = match level.clause {
                    Clause::Rows => outer.len() == 1 && is_element(tokens, at),
                    Clause::Conditions if level.is_list => is_element(tokens, at),
                    Clause::Conditions => is_operand(tokens, at),
                    Clause::Start | Clause::Other => false,
                };
                if may_go {
                    places.push(at);
                }
            }
            _ => {}
        }
    }
    places
}

/// The part of a query that a token stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Clause {
    /// Before anything else: only here does VALUES begin rows. Elsewhere it is a function, and
    /// VALUE may be a column.
    Start,
    Rows,
    Conditions,
    Other,
}

/// An open bracket, or the statement itself.
#[derive(Debug, Clone, Copy)]
struct Level {
    clause: Clause,
    /// The bracket is the list of an IN.
    is_list: bool,
    /// Words in it begin clauses: the statement, and queries in its conditions. Queries elsewhere
    /// keep all their constants, which may name a column.
    has_clauses: bool,
}

impl Level {
    /// The bracket that opens at `at` inside `self`.
    fn inner(self, tokens: &[Token], at: usize) -> Self {
        let is_query = after(tokens, at) == Some(Kind::Word(Word::Select));
        let has_clauses = is_query && self.clause == Clause::Conditions;
        // What a function is given may be part of an indexed expression, as written.
        let is_call = !is_query && before(tokens, at, 1) == Some(Kind::Word(Word::Name));
        let keeps_constants = has_clauses || (is_call && self.clause == Clause::Conditions);
        Self {
            clause: if keeps_constants {
                Clause::Other
            } else {
                self.clause
            },
            is_list: !is_query && before(tokens, at, 1) == Some(Kind::Word(Word::In)),
            has_clauses,
        }
    }
}

fn clause_after(clause: Clause, word: Word) -> Clause {
    match word {
        Word::Where | Word::Set => Clause::Conditions,
        Word::Values if clause == Clause::Start => Clause::Rows,
        Word::Clause | Word::Select => Clause::Other,
        _ => clause,
    }
}

/// Whether the constant is, but for a sign, all there is between two commas or brackets.
fn is_element(tokens: &[Token], at: usize) -> bool {
    let first = match before(tokens, at, 1) {
        Some(Kind::Minus) => before(tokens, at, 2),
        other => other,
    };
    matches!(first, Some(Kind::Open | Kind::Comma))
        && matches!(after(tokens, at), Some(Kind::Close | Kind::Comma))
}

/// Whether the constant is a whole operand of a comparison or BETWEEN.
fn is_operand(tokens: &[Token], at: usize) -> bool {
    let ends = match after(tokens, at) {
        None | Some(Kind::Close | Kind::Comma) => true,
        Some(Kind::Word(word)) => {
            matches!(
                word,
                Word::And | Word::Junction | Word::Clause | Word::Where
            )
        }
        _ => false,
    };
    let back = |steps| before(tokens, at, steps);
    let is_compared = back(1) == Some(Kind::Compare)
        && matches!(back(2), Some(Kind::Word(Word::Name) | Kind::Close));
    let between = Some(Kind::Word(Word::Between));
    let is_lower = back(1) == between && after(tokens, at) == Some(Kind::Word(Word::And));
    let is_upper = back(1) == Some(Kind::Word(Word::And)) && back(3) == between;
    ends && (is_compared || is_lower || is_upper)
}

fn before(tokens: &[Token], at: usize, steps: usize) -> Option<Kind> {
    let token = tokens.get(at.checked_sub(steps)?)?;
    Some(token.kind)
}

fn after(tokens: &[Token], at: usize) -> Option<Kind> {
    tokens.get(at + 1).map(|token| token.kind)
}
