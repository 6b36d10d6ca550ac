//! Bytes and numbers.

mod counters;
mod many;
mod ranges;

mod set;

pub(crate) use ranges::clamp;
pub(crate) use set::gives_back;

use crate::spec::{CommandSpec, Flags, Group, Keys, data};

const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const FAST_WRITE: Flags = WRITE.and(Flags::FAST);
/// What was there is replaced, or only asked whether it is: its value is not needed.
const REPLACE: Flags = WRITE.and(Flags::NO_VALUE);
const FAST_READ: Flags = Flags::READONLY.and(Flags::FAST);
const G: Group = Group::String;
const ONE: Keys = Keys::ONE;

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    data(
        ("get", 2),
        FAST_READ,
        ONE,
        G,
        ("1.0.0", "Returns the string value of a key."),
        set::get,
    ),
    data(
        ("set", -3),
        REPLACE,
        ONE,
        G,
        (
            "1.0.0",
            "Sets the string value of a key, ignoring its type. The key is created if it doesn't exist.",
        ),
        set::set,
    ),
    data(
        ("setnx", 3),
        REPLACE.and(Flags::FAST),
        ONE,
        G,
        (
            "1.0.0",
            "Sets the string value of a key only when the key doesn't exist.",
        ),
        set::setnx,
    ),
    data(
        ("setex", 4),
        REPLACE,
        ONE,
        G,
        (
            "2.0.0",
            "Sets the string value and expiration time of a key. Creates the key if it doesn't exist.",
        ),
        set::setex,
    ),
    data(
        ("psetex", 4),
        REPLACE,
        ONE,
        G,
        (
            "2.6.0",
            "Sets both string value and expiration time in milliseconds of a key. The key is created if it doesn't exist.",
        ),
        set::psetex,
    ),
    data(
        ("getset", 3),
        FAST_WRITE,
        ONE,
        G,
        (
            "1.0.0",
            "Returns the previous string value of a key after setting it to a new value.",
        ),
        set::getset,
    ),
    data(
        ("getdel", 2),
        Flags::WRITE.and(Flags::FAST),
        ONE,
        G,
        (
            "6.2.0",
            "Returns the string value of a key after deleting the key.",
        ),
        set::getdel,
    ),
    data(
        ("getex", -2),
        Flags::WRITE.and(Flags::FAST),
        ONE,
        G,
        (
            "6.2.0",
            "Returns the string value of a key after setting its expiration time.",
        ),
        set::getex,
    ),
    data(
        ("mget", -2),
        FAST_READ,
        Keys::ALL,
        G,
        (
            "1.0.0",
            "Atomically returns the string values of one or more keys.",
        ),
        many::mget,
    ),
    data(
        ("mset", -3),
        REPLACE,
        Keys::Range(1, -1, 2),
        G,
        (
            "1.0.1",
            "Atomically creates or modifies the string values of one or more keys.",
        ),
        many::mset,
    ),
    data(
        ("msetnx", -3),
        REPLACE,
        Keys::Range(1, -1, 2),
        G,
        (
            "1.0.1",
            "Atomically modifies the string values of one or more keys only when all keys don't exist.",
        ),
        many::msetnx,
    ),
    data(
        ("lcs", -3),
        Flags::READONLY,
        Keys::Range(1, 2, 1),
        G,
        ("7.0.0", "Finds the longest common substring."),
        many::lcs,
    ),
    data(
        ("append", 3),
        FAST_WRITE,
        ONE,
        G,
        (
            "2.0.0",
            "Appends a string to the value of a key. Creates the key if it doesn't exist.",
        ),
        ranges::append,
    ),
    data(
        ("strlen", 2),
        FAST_READ,
        ONE,
        G,
        ("2.2.0", "Returns the length of a string value."),
        ranges::strlen,
    ),
    data(
        ("getrange", 4),
        Flags::READONLY,
        ONE,
        G,
        (
            "2.4.0",
            "Returns a substring of the string stored at a key.",
        ),
        ranges::getrange,
    ),
    data(
        ("substr", 4),
        Flags::READONLY,
        ONE,
        G,
        ("1.0.0", "Returns a substring from a string value."),
        ranges::getrange,
    ),
    data(
        ("setrange", 4),
        WRITE,
        ONE,
        G,
        (
            "2.2.0",
            "Overwrites a part of a string value with another by an offset. Creates the key if it doesn't exist.",
        ),
        ranges::setrange,
    ),
    data(
        ("incr", 2),
        FAST_WRITE,
        ONE,
        G,
        (
            "1.0.0",
            "Increments the integer value of a key by one. Uses 0 as initial value if the key doesn't exist.",
        ),
        counters::incr,
    ),
    data(
        ("decr", 2),
        FAST_WRITE,
        ONE,
        G,
        (
            "1.0.0",
            "Decrements the integer value of a key by one. Uses 0 as initial value if the key doesn't exist.",
        ),
        counters::decr,
    ),
    data(
        ("incrby", 3),
        FAST_WRITE,
        ONE,
        G,
        (
            "1.0.0",
            "Increments the integer value of a key by a number. Uses 0 as initial value if the key doesn't exist.",
        ),
        counters::incrby,
    ),
    data(
        ("decrby", 3),
        FAST_WRITE,
        ONE,
        G,
        (
            "1.0.0",
            "Decrements a number from the integer value of a key. Uses 0 as initial value if the key doesn't exist.",
        ),
        counters::decrby,
    ),
    data(
        ("incrbyfloat", 3),
        FAST_WRITE,
        ONE,
        G,
        (
            "2.6.0",
            "Increments the floating point value of a key by a number. Uses 0 as initial value if the key doesn't exist.",
        ),
        counters::incrbyfloat,
    ),
];
