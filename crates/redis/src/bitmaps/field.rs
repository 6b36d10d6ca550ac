//! BITFIELD: numbers of any width at any bit.

use super::{bit, offset, set_bit};
use crate::command::Command;
use crate::context::Context;
use crate::error::CommandError;
use crate::number;
use crate::resp::Reply;

type Answer = Result<Reply, CommandError>;

/// A number's form: bits, and whether it has a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form {
    width: usize,
    is_signed: bool,
}

/// What becomes of a number that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Overflow {
    /// Its lowest bits stay.
    Wrap,
    /// It becomes the nearest one that fits.
    Saturate,
    /// Nothing is changed.
    Fail,
}

#[derive(Debug, Clone, Copy)]
enum Action {
    Get,
    Set(i64),
    Increment(i64),
}

#[derive(Debug, Clone, Copy)]
struct Step {
    action: Action,
    form: Form,
    place: usize,
    overflow: Overflow,
}

impl Form {
    fn parse(text: &[u8]) -> Result<Self, CommandError> {
        const REFUSED: CommandError = CommandError::text(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        );
        let (sign, digits) = text.split_first().ok_or(REFUSED)?;
        let is_signed = sign.eq_ignore_ascii_case(&b'i');
        if !is_signed && !sign.eq_ignore_ascii_case(&b'u') {
            return Err(REFUSED);
        }
        let width_max = if is_signed { 64 } else { 63 };
        let width = number::integer(digits).and_then(|width| usize::try_from(width).ok());
        let width = width.filter(|width| (1..=width_max).contains(width));
        let width = width.ok_or(REFUSED)?;
        Ok(Self { width, is_signed })
    }

    /// The least and the greatest number.
    fn limits(self) -> (i128, i128) {
        let values = 1_i128 << self.width;
        if self.is_signed {
            (-(values / 2), values / 2 - 1)
        } else {
            (0, values - 1)
        }
    }

    /// The number that its lowest bits are.
    fn wrapped(self, value: i128) -> i128 {
        let values = 1_i128 << self.width;
        let low = value.rem_euclid(values);
        if self.is_signed && low >= values / 2 {
            low - values
        } else {
            low
        }
    }

    /// The number that is kept in place of `value`; `None`: none.
    fn fitted(self, value: i128, overflow: Overflow) -> Option<i128> {
        let (least, greatest) = self.limits();
        if (least..=greatest).contains(&value) {
            return Some(value);
        }
        let kept = match overflow {
            Overflow::Wrap => self.wrapped(value),
            Overflow::Saturate => value.clamp(least, greatest),
            Overflow::Fail => return None,
        };
        assert!(
            (least..=greatest).contains(&kept),
            "a number that is kept fits"
        );
        Some(kept)
    }

    fn read(self, value: &[u8], place: usize) -> i128 {
        let bits = (place..place + self.width).map(|place| i128::from(bit(value, place)));
        self.wrapped(bits.fold(0, |sum, bit| (sum << 1) | bit))
    }

    fn write(self, value: &mut [u8], place: usize, number: i128) {
        for at in 0..self.width {
            let is_set = (number >> (self.width - 1 - at)) & 1 == 1;
            set_bit(value, place + at, is_set);
        }
    }
}

fn steps(command: &Command, only_reads: bool) -> Result<Vec<Step>, CommandError> {
    let mut overflow = Overflow::Wrap;
    let mut steps = Vec::new();
    let mut place = 2;
    while place < command.len() {
        let left = command.len() - place - 1;
        if command.is_word(place, "OVERFLOW") && left >= 1 {
            overflow = match () {
                () if command.is_word(place + 1, "WRAP") => Overflow::Wrap,
                () if command.is_word(place + 1, "SAT") => Overflow::Saturate,
                () if command.is_word(place + 1, "FAIL") => Overflow::Fail,
                () => return Err(CommandError::text("ERR Invalid OVERFLOW type specified")),
            };
            place += 2;
            continue;
        }
        let words = match () {
            () if command.is_word(place, "GET") && left >= 2 => 3,
            () if command.is_word(place, "SET") && left >= 3 => 4,
            () if command.is_word(place, "INCRBY") && left >= 3 => 4,
            () => return Err(CommandError::SYNTAX),
        };
        let form = Form::parse(command.arg(place + 1))?;
        let at = offset(command.arg(place + 2), form.width)?;
        let action = match words {
            3 => Action::Get,
            _ if only_reads => {
                return Err(CommandError::text(
                    "ERR BITFIELD_RO only supports the GET subcommand",
                ));
            }
            _ => {
                let value = number::parse(command.arg(place + 3))?;
                if command.is_word(place, "SET") {
                    Action::Set(value)
                } else {
                    Action::Increment(value)
                }
            }
        };
        steps.push(Step {
            action,
            form,
            place: at,
            overflow,
        });
        place += words;
    }
    Ok(steps)
}

/// Does a step on bytes that reach to its end when it writes; its reply.
fn run(step: Step, value: &mut [u8]) -> Option<i128> {
    let before = step.form.read(value, step.place);
    let wanted = match step.action {
        Action::Get => return Some(before),
        // As bytes of 64 bits: a negative one is too large for what has no sign.
        Action::Set(number) if !step.form.is_signed => i128::from(number.cast_unsigned()),
        Action::Set(number) => i128::from(number),
        Action::Increment(number) => before + i128::from(number),
    };
    let kept = step.form.fitted(wanted, step.overflow)?;
    step.form.write(value, step.place, kept);
    Some(match step.action {
        Action::Increment(_) => kept,
        _ => before,
    })
}

fn reply(number: Option<i128>) -> Reply {
    let number = number.and_then(|number| i64::try_from(number).ok());
    number.map_or(Reply::Null, Reply::Integer)
}

pub fn bitfield(context: &mut Context<'_>, command: &Command) -> Answer {
    let steps = steps(command, false)?;
    let writes = steps
        .iter()
        .filter(|step| !matches!(step.action, Action::Get));
    let end = writes.map(|step| step.place + step.form.width).max();
    let Some(end) = end else {
        return read(context, command, steps);
    };
    let value = context.string_or_new(command.arg(1))?;
    let mut is_changed = value.len() < end.div_ceil(8);
    if is_changed {
        value.resize(end.div_ceil(8), 0);
    }
    let mut replies = Vec::with_capacity(steps.len());
    for step in steps {
        let (form, place) = (step.form, step.place);
        let before = form.read(value, place);
        replies.push(reply(run(step, value)));
        is_changed |= form.read(value, place) != before;
    }
    if !is_changed {
        context.untouch(command.arg(1));
    }
    Ok(Reply::Array(replies))
}

fn read(context: &mut Context<'_>, command: &Command, steps: Vec<Step>) -> Answer {
    let value = context.string(command.arg(1))?;
    let value = value.map_or(&[][..], |value| value.as_slice());
    let replies = steps
        .into_iter()
        .map(|step| reply(Some(step.form.read(value, step.place))));
    Ok(Reply::Array(replies.collect()))
}

pub fn bitfield_ro(context: &mut Context<'_>, command: &Command) -> Answer {
    let steps = steps(command, true)?;
    read(context, command, steps)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_number_reads_back_and_its_neighbours_stay(
            place in 0..40_usize,
            width in 1..=64_usize,
            is_signed: bool,
            number: i64,
            fill: u8,
        ) {
            let form = Form { width: if is_signed { width } else { width.min(63) }, is_signed };
            let kept = form.wrapped(i128::from(number));
            let mut value = vec![fill; 16];
            form.write(&mut value, place, kept);
            prop_assert_eq!(form.read(&value, place), kept);
            let before = vec![fill; 16];
            for at in (0..128).filter(|at| !(place..place + form.width).contains(at)) {
                prop_assert_eq!(bit(&value, at), bit(&before, at));
            }
        }

        #[test]
        fn what_fits_is_kept_and_the_rest_as_asked(width in 1..=63_usize, number: i64) {
            let form = Form { width, is_signed: true };
            let (least, greatest) = form.limits();
            let number = i128::from(number);
            let fits = (least..=greatest).contains(&number);
            prop_assert_eq!(form.fitted(number, Overflow::Fail), fits.then_some(number));
            let near = form.fitted(number, Overflow::Saturate);
            prop_assert_eq!(near, Some(number.clamp(least, greatest)));
            let shifted = 64 - width;
            let low = (i64::try_from(number).unwrap() << shifted) >> shifted;
            prop_assert_eq!(form.fitted(number, Overflow::Wrap), Some(i128::from(low)));
        }
    }
}
