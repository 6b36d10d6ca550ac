//! Ranges of ranks, scores and members, as arguments say them.

use crate::error::CommandError;
use crate::number;
use crate::objects::ZSet;
use crate::objects::zset::order::Scored;
use crate::strings::clamp;

/// A range of a sorted set.
#[derive(Debug, Clone)]
pub enum Range {
    /// Ranks, negative from the end.
    Rank(i64, i64),
    /// Scores; whether an end is outside.
    Score((f64, bool), (f64, bool)),
    /// Members of one score.
    Lex(LexBound, LexBound),
}

/// An end of a range of members.
#[derive(Debug, Clone)]
pub enum LexBound {
    /// Before all.
    First,
    /// After all.
    Last,
    /// A member; whether it is outside.
    Member(Vec<u8>, bool),
}

fn score_bound(text: &[u8]) -> Result<(f64, bool), CommandError> {
    let (is_outside, text) = match text.split_first() {
        Some((b'(', rest)) => (true, rest),
        _ => (false, text),
    };
    // As in Redis, whose strtod reads nothing as 0.
    let text = if text.is_empty() { b"0" } else { text };
    let score = number::float(text).ok_or(CommandError::text("ERR min or max is not a float"))?;
    Ok((score, is_outside))
}

fn lex_bound(text: &[u8]) -> Result<LexBound, CommandError> {
    match text.split_first() {
        Some((b'-', [])) => Ok(LexBound::First),
        Some((b'+', [])) => Ok(LexBound::Last),
        Some((b'(', member)) => Ok(LexBound::Member(member.to_vec(), true)),
        Some((b'[', member)) => Ok(LexBound::Member(member.to_vec(), false)),
        _ => Err(CommandError::text(
            "ERR min or max not valid string range item",
        )),
    }
}

impl Range {
    /// A range of scores.
    pub fn of_scores(min: &[u8], max: &[u8]) -> Result<Self, CommandError> {
        Ok(Self::Score(score_bound(min)?, score_bound(max)?))
    }

    /// A range of members.
    pub fn of_members(min: &[u8], max: &[u8]) -> Result<Self, CommandError> {
        Ok(Self::Lex(lex_bound(min)?, lex_bound(max)?))
    }

    /// A range of ranks.
    pub fn of_ranks(start: &[u8], end: &[u8]) -> Result<Self, CommandError> {
        Ok(Self::Rank(number::parse(start)?, number::parse(end)?))
    }

    /// The ranks it means, the end outside. Of ranks, those counted from the highest when
    /// `is_reversed`.
    pub fn ranks(&self, zset: &ZSet, is_reversed: bool) -> (usize, usize) {
        let len = zset.len();
        let order = zset.order();
        match self {
            Self::Rank(start, end) => match clamp(*start, *end, len) {
                None => (0, 0),
                Some((start, end)) if is_reversed => (len - 1 - end, len - start),
                Some((start, end)) => (start, end + 1),
            },
            Self::Score((min, without_min), (max, without_max)) => {
                let is_below = |s: &Scored| s.score < *min || (*without_min && s.score <= *min);
                let is_inside = |s: &Scored| s.score < *max || (!*without_max && s.score <= *max);
                let start = order.rank(is_below);
                (start, order.rank(is_inside).max(start))
            }
            Self::Lex(min, max) => {
                let start = order.rank(|scored| is_before(&scored.member, min, true));
                let end = order.rank(|scored| is_before(&scored.member, max, false));
                (start, end.max(start))
            }
        }
    }
}

/// Whether `member` is before a bound: before all inside it at the start, or inside at the end.
fn is_before(member: &[u8], bound: &LexBound, is_start: bool) -> bool {
    match bound {
        LexBound::First => false,
        LexBound::Last => true,
        LexBound::Member(at, is_outside) => {
            member < at.as_slice() || (member == at.as_slice() && *is_outside == is_start)
        }
    }
}
