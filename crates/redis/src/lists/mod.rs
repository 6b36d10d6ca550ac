//! Lists, and waiting for their elements.

pub(crate) mod blocking;
mod commands;
mod moves;

use crate::spec::{CommandSpec, Flags, Group, Keys, data};
use commands as run;

const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const FAST_WRITE: Flags = WRITE.and(Flags::FAST);
const REMOVE: Flags = Flags::WRITE.and(Flags::FAST);
const READ: Flags = Flags::READONLY;
const WAIT: Flags = Flags::WRITE.and(Flags::BLOCKING);
const G: Group = Group::List;
const ONE: Keys = Keys::ONE;
const TWO: Keys = Keys::Range(1, 2, 1);

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    data(
        ("lpush", -3),
        FAST_WRITE,
        ONE,
        G,
        (
            "1.0.0",
            "Prepends one or more elements to a list. Creates the key if it doesn't exist.",
        ),
        run::lpush,
    ),
    data(
        ("rpush", -3),
        FAST_WRITE,
        ONE,
        G,
        (
            "1.0.0",
            "Appends one or more elements to a list. Creates the key if it doesn't exist.",
        ),
        run::rpush,
    ),
    data(
        ("lpushx", -3),
        FAST_WRITE,
        ONE,
        G,
        (
            "2.2.0",
            "Prepends one or more elements to a list only when the list exists.",
        ),
        run::lpushx,
    ),
    data(
        ("rpushx", -3),
        FAST_WRITE,
        ONE,
        G,
        (
            "2.2.0",
            "Appends an element to a list only when the list exists.",
        ),
        run::rpushx,
    ),
    data(
        ("lpop", -2),
        REMOVE,
        ONE,
        G,
        (
            "1.0.0",
            "Returns the first elements in a list after removing it. Deletes the list if the last element was popped.",
        ),
        run::lpop,
    ),
    data(
        ("rpop", -2),
        REMOVE,
        ONE,
        G,
        (
            "1.0.0",
            "Returns and removes the last elements of a list. Deletes the list if the last element was popped.",
        ),
        run::rpop,
    ),
    data(
        ("llen", 2),
        READ.and(Flags::FAST),
        ONE,
        G,
        ("1.0.0", "Returns the length of a list."),
        run::llen,
    ),
    data(
        ("lindex", 3),
        READ,
        ONE,
        G,
        ("1.0.0", "Returns an element from a list by its index."),
        run::lindex,
    ),
    data(
        ("lrange", 4),
        READ,
        ONE,
        G,
        ("1.0.0", "Returns a range of elements from a list."),
        run::lrange,
    ),
    data(
        ("lset", 4),
        WRITE,
        ONE,
        G,
        (
            "1.0.0",
            "Sets the value of an element in a list by its index.",
        ),
        run::lset,
    ),
    data(
        ("ltrim", 4),
        Flags::WRITE,
        ONE,
        G,
        (
            "1.0.0",
            "Removes elements from both ends a list. Deletes the list if all elements were trimmed.",
        ),
        run::ltrim,
    ),
    data(
        ("lrem", 4),
        Flags::WRITE,
        ONE,
        G,
        (
            "1.0.0",
            "Removes elements from a list. Deletes the list if the last element was removed.",
        ),
        run::lrem,
    ),
    data(
        ("linsert", 5),
        WRITE,
        ONE,
        G,
        (
            "2.2.0",
            "Inserts an element before or after another element in a list.",
        ),
        run::linsert,
    ),
    data(
        ("lpos", -3),
        READ,
        ONE,
        G,
        ("6.0.6", "Returns the index of matching elements in a list."),
        run::lpos,
    ),
    data(
        ("lmove", 5),
        WRITE,
        TWO,
        G,
        (
            "6.2.0",
            "Returns an element after popping it from one list and pushing it to another. Deletes the list if the last element was moved.",
        ),
        moves::lmove,
    ),
    data(
        ("rpoplpush", 3),
        WRITE,
        TWO,
        G,
        (
            "1.2.0",
            "Returns the last element of a list after removing and pushing it to another list. Deletes the list if the last element was popped.",
        ),
        moves::rpoplpush,
    ),
    data(
        ("lmpop", -4),
        Flags::WRITE.and(Flags::MOVABLE),
        Keys::Counted(1, None),
        G,
        (
            "7.0.0",
            "Returns multiple elements from a list after removing them. Deletes the list if the last element was popped.",
        ),
        moves::lmpop,
    ),
    data(
        ("blpop", -3),
        WAIT.and(Flags::FAST),
        Keys::Range(1, -2, 1),
        G,
        (
            "2.0.0",
            "Removes and returns the first element in a list. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
        ),
        blocking::blpop,
    ),
    data(
        ("brpop", -3),
        WAIT.and(Flags::FAST),
        Keys::Range(1, -2, 1),
        G,
        (
            "2.0.0",
            "Removes and returns the last element in a list. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
        ),
        blocking::brpop,
    ),
    data(
        ("blmove", 6),
        WAIT.and(Flags::DENYOOM),
        TWO,
        G,
        (
            "6.2.0",
            "Pops an element from a list, pushes it to another list and returns it. Blocks until an element is available otherwise. Deletes the list if the last element was moved.",
        ),
        blocking::blmove,
    ),
    data(
        ("brpoplpush", 4),
        WAIT.and(Flags::DENYOOM),
        TWO,
        G,
        (
            "2.2.0",
            "Pops an element from a list, pushes it to another list and returns it. Block until an element is available otherwise. Deletes the list if the last element was popped.",
        ),
        blocking::brpoplpush,
    ),
    data(
        ("blmpop", -5),
        WAIT.and(Flags::MOVABLE),
        Keys::Counted(2, None),
        G,
        (
            "7.0.0",
            "Pops the first element from one of multiple lists. Blocks until an element is available otherwise. Deletes the list if the last element was popped.",
        ),
        blocking::blmpop,
    ),
];
