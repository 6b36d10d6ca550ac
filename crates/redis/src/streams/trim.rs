//! MAXLEN and MINID: which entries of a stream's beginning go.

use crate::command::Command;
use crate::error::CommandError;
use crate::number;
use crate::objects::{Stream, StreamId};

/// Entries that Redis keeps in one node: with `~` only whole ones go.
const NODE_ENTRIES: usize = 100;
/// Entries that one command removes at most with `~`, unless LIMIT says otherwise.
const LIMIT_DEFAULT: usize = 100 * NODE_ENTRIES;

/// Up to where a stream is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threshold {
    /// This many entries stay.
    Length(usize),
    /// Entries from this ID on stay.
    Id(StreamId),
}

/// Options of XADD and XTRIM on trimming.
#[derive(Debug, Clone, Copy, Default)]
pub struct Trim {
    threshold: Option<Threshold>,
    is_approximate: bool,
    limit: Option<usize>,
}

impl Trim {
    /// Whether there is a threshold.
    pub fn is_given(&self) -> bool {
        self.threshold.is_some()
    }

    /// Takes the option at `place`, when it is one of these; the place behind it.
    pub fn take(&mut self, command: &Command, place: usize) -> Result<Option<usize>, CommandError> {
        let left = command.len() - place - 1;
        let is_length = command.is_word(place, "MAXLEN");
        if (is_length || command.is_word(place, "MINID")) && left > 0 {
            if self.threshold.is_some() {
                return Err(CommandError::text(
                    "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
                ));
            }
            let mut at = place + 1;
            let operator = command.arg(at);
            if left > 1 && (operator == b"~" || operator == b"=") {
                self.is_approximate = operator == b"~";
                at += 1;
            }
            self.threshold = Some(threshold(command.arg(at), is_length)?);
            return Ok(Some(at + 1));
        }
        if command.is_word(place, "LIMIT") && left > 0 {
            let limit = number::parse(command.arg(place + 1))?;
            self.limit = Some(
                usize::try_from(limit)
                    .map_err(|_| CommandError::text("ERR The LIMIT argument must be >= 0."))?,
            );
            return Ok(Some(place + 2));
        }
        Ok(None)
    }

    /// Whether the options go together.
    pub fn check(&self) -> Result<(), CommandError> {
        if self.limit.is_some() && self.threshold.is_none() {
            return Err(CommandError::text(
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
            ));
        }
        if self.limit.is_some() && !self.is_approximate {
            return Err(CommandError::text(
                "ERR syntax error, LIMIT cannot be used without the special ~ option",
            ));
        }
        Ok(())
    }

    /// How many of a stream's first entries go.
    pub fn count(&self, stream: &Stream) -> usize {
        let excess = match self.threshold {
            None => 0,
            Some(Threshold::Length(length)) => stream.len().saturating_sub(length),
            Some(Threshold::Id(id)) => stream.count_below(id),
        };
        if !self.is_approximate {
            return excess;
        }
        let limit = match self.limit {
            None => LIMIT_DEFAULT,
            Some(0) => usize::MAX,
            Some(limit) => limit,
        };
        // The last hundred may be fewer, and goes when none of it is to stay.
        let is_all = excess == stream.len() && excess <= limit;
        let whole = excess.min(limit) / NODE_ENTRIES * NODE_ENTRIES;
        let count = if is_all { excess } else { whole };
        assert!(count <= excess, "nothing goes that the threshold keeps");
        count
    }
}

fn threshold(text: &[u8], is_length: bool) -> Result<Threshold, CommandError> {
    if !is_length {
        return StreamId::parse(text, 0).map(Threshold::Id);
    }
    let length = number::parse(text)?;
    let length = usize::try_from(length)
        .map_err(|_| CommandError::text("ERR The MAXLEN argument must be >= 0."))?;
    Ok(Threshold::Length(length))
}
