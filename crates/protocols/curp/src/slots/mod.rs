//! Keys that move between groups, a run of hash slots at a time.
//!
//! A group of servers replicates one machine. [`Slotted`] is a machine around another one: it keeps, in the
//! replicated state, which slots its group owns, and a command on keys of other slots is answered without an
//! effect. That is decided where a command is executed, so a replay of a witness's record decides it too. The
//! steps of a move are commands like others, synced before they are answered. The protocol around it knows
//! nothing of slots.
//!
//! Who drives a move ([`Mover`]), or cancels one ([`Canceller`]), is no part of a group and keeps nothing. Not in
//! here: more than one move from a group, or to one, at a time.
//!
//! | question | answered in |
//! |---|---|
//! | which slot a key is in | [`slot`] |
//! | what a migration is, and how far a group is | [`migration`] |
//! | what a group owns, and what each step makes of it | [`ownership`] |
//! | until when a move can be cancelled | [`cancelling`] |
//! | the steps as commands, and their bytes | [`operation`] |
//! | what the machine inside has to be able to do | [`movable`] |
//! | what is executed, and what a command of another slot is answered | [`machine`] |
//! | which step comes next | [`mover`], [`canceller`] |
//!
//! Start reading at [`ownership`], then [`machine`].

pub mod canceller;
pub mod cancelling;
pub mod machine;
pub mod migration;
pub mod movable;
pub mod mover;
pub mod operation;
pub mod ownership;
pub mod slot;

pub use canceller::Canceller;
pub use machine::Slotted;
pub use migration::{Arriving, Ended, Group, Has, Leaving, Migration, SlotRefusal};
pub use movable::{Movable, Named, Removal, Survey};
pub use mover::{Mover, Side};
pub use operation::{Misplaced, Piece, PieceLimits, SlotAnswer, SlotOperation};
pub use ownership::{Holder, Ownership};
pub use slot::{NoSlotRange, Slot, SlotRange};
