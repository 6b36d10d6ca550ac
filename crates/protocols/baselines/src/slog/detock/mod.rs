//! Detock's part: whom transactions of several regions come behind, and when they have their turns.

mod precedence;
mod waiting;

pub(super) use self::precedence::Precedence;
pub(super) use self::waiting::Waiting;
