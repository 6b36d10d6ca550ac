//! Sets: members in no order.

mod algebra;
mod commands;

use crate::spec::{CommandSpec, Flags, Group, Keys, data};
use commands as run;

const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const REMOVE: Flags = Flags::WRITE.and(Flags::FAST);
const READ: Flags = Flags::READONLY;
const FAST: Flags = Flags::READONLY.and(Flags::FAST);
const G: Group = Group::Set;
const ONE: Keys = Keys::ONE;
const ALL: Keys = Keys::ALL;

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    data(
        ("sadd", -3),
        WRITE.and(Flags::FAST),
        ONE,
        G,
        (
            "1.0.0",
            "Adds one or more members to a set. Creates the key if it doesn't exist.",
        ),
        run::sadd,
    ),
    data(
        ("srem", -3),
        REMOVE,
        ONE,
        G,
        (
            "1.0.0",
            "Removes one or more members from a set. Deletes the set if the last member was removed.",
        ),
        run::srem,
    ),
    data(
        ("scard", 2),
        FAST,
        ONE,
        G,
        ("1.0.0", "Returns the number of members in a set."),
        run::scard,
    ),
    data(
        ("sismember", 3),
        FAST,
        ONE,
        G,
        ("1.0.0", "Determines whether a member belongs to a set."),
        run::sismember,
    ),
    data(
        ("smismember", -3),
        FAST,
        ONE,
        G,
        (
            "6.2.0",
            "Determines whether multiple members belong to a set.",
        ),
        run::smismember,
    ),
    data(
        ("smembers", 2),
        READ,
        ONE,
        G,
        ("1.0.0", "Returns all members of a set."),
        run::smembers,
    ),
    data(
        ("smove", 4),
        REMOVE,
        Keys::Range(1, 2, 1),
        G,
        ("1.0.0", "Moves a member from one set to another."),
        run::smove,
    ),
    data(
        ("spop", -2),
        REMOVE.and(Flags::RANDOM),
        ONE,
        G,
        (
            "1.0.0",
            "Returns one or more random members from a set after removing them. Deletes the set if the last member was popped.",
        ),
        run::spop,
    ),
    data(
        ("srandmember", -2),
        READ.and(Flags::RANDOM),
        ONE,
        G,
        (
            "1.0.0",
            "Returns one or multiple random members from a set.",
        ),
        run::srandmember,
    ),
    data(
        ("sscan", -3),
        READ,
        ONE,
        G,
        ("2.8.0", "Iterates over members of a set."),
        run::sscan,
    ),
    data(
        ("sinter", -2),
        READ,
        ALL,
        G,
        ("1.0.0", "Returns the intersect of multiple sets."),
        algebra::sinter,
    ),
    data(
        ("sunion", -2),
        READ,
        ALL,
        G,
        ("1.0.0", "Returns the union of multiple sets."),
        algebra::sunion,
    ),
    data(
        ("sdiff", -2),
        READ,
        ALL,
        G,
        ("1.0.0", "Returns the difference of multiple sets."),
        algebra::sdiff,
    ),
    data(
        ("sinterstore", -3),
        WRITE,
        ALL,
        G,
        ("1.0.0", "Stores the intersect of multiple sets in a key."),
        algebra::sinterstore,
    ),
    data(
        ("sunionstore", -3),
        WRITE,
        ALL,
        G,
        ("1.0.0", "Stores the union of multiple sets in a key."),
        algebra::sunionstore,
    ),
    data(
        ("sdiffstore", -3),
        WRITE,
        ALL,
        G,
        ("1.0.0", "Stores the difference of multiple sets in a key."),
        algebra::sdiffstore,
    ),
    data(
        ("sintercard", -3),
        READ.and(Flags::MOVABLE),
        Keys::Counted(1, None),
        G,
        (
            "7.0.0",
            "Returns the number of members of the intersect of multiple sets.",
        ),
        algebra::sintercard,
    ),
];
