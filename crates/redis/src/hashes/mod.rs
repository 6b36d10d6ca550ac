//! Hashes: fields and values under one key.

mod commands;
mod expire;

use crate::spec::{CommandSpec, Flags, Group, Keys, data};
use commands as run;
use expire as timed;

const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST);
const REMOVE: Flags = Flags::WRITE.and(Flags::FAST);
const READ: Flags = Flags::READONLY;
const FAST: Flags = Flags::READONLY.and(Flags::FAST);
const G: Group = Group::Hash;
const ONE: Keys = Keys::ONE;

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    data(
        ("hset", -4),
        WRITE,
        ONE,
        G,
        (
            "2.0.0",
            "Creates or modifies the value of a field in a hash.",
        ),
        run::hset,
    ),
    data(
        ("hmset", -4),
        WRITE,
        ONE,
        G,
        ("2.0.0", "Sets the values of multiple fields."),
        run::hmset,
    ),
    data(
        ("hsetnx", 4),
        WRITE,
        ONE,
        G,
        (
            "2.0.0",
            "Sets the value of a field in a hash only when the field doesn't exist.",
        ),
        run::hsetnx,
    ),
    data(
        ("hget", 3),
        FAST,
        ONE,
        G,
        ("2.0.0", "Returns the value of a field in a hash."),
        run::hget,
    ),
    data(
        ("hmget", -3),
        FAST,
        ONE,
        G,
        ("2.0.0", "Returns the values of all fields in a hash."),
        run::hmget,
    ),
    data(
        ("hgetall", 2),
        READ,
        ONE,
        G,
        ("2.0.0", "Returns all fields and values in a hash."),
        run::hgetall,
    ),
    data(
        ("hkeys", 2),
        READ,
        ONE,
        G,
        ("2.0.0", "Returns all fields in a hash."),
        run::hkeys,
    ),
    data(
        ("hvals", 2),
        READ,
        ONE,
        G,
        ("2.0.0", "Returns all values in a hash."),
        run::hvals,
    ),
    data(
        ("hlen", 2),
        FAST,
        ONE,
        G,
        ("2.0.0", "Returns the number of fields in a hash."),
        run::hlen,
    ),
    data(
        ("hstrlen", 3),
        FAST,
        ONE,
        G,
        ("3.2.0", "Returns the length of the value of a field."),
        run::hstrlen,
    ),
    data(
        ("hexists", 3),
        FAST,
        ONE,
        G,
        ("2.0.0", "Determines whether a field exists in a hash."),
        run::hexists,
    ),
    data(
        ("hdel", -3),
        REMOVE,
        ONE,
        G,
        (
            "2.0.0",
            "Deletes one or more fields and their values from a hash. Deletes the hash if no fields remain.",
        ),
        run::hdel,
    ),
    data(
        ("hincrby", 4),
        WRITE,
        ONE,
        G,
        (
            "2.0.0",
            "Increments the integer value of a field in a hash by a number. Uses 0 as initial value if the field doesn't exist.",
        ),
        run::hincrby,
    ),
    data(
        ("hincrbyfloat", 4),
        WRITE,
        ONE,
        G,
        (
            "2.6.0",
            "Increments the floating point value of a field by a number. Uses 0 as initial value if the field doesn't exist.",
        ),
        run::hincrbyfloat,
    ),
    data(
        ("hrandfield", -2),
        READ.and(Flags::RANDOM),
        ONE,
        G,
        ("6.2.0", "Returns one or more random fields from a hash."),
        run::hrandfield,
    ),
    data(
        ("hscan", -3),
        READ,
        ONE,
        G,
        ("2.8.0", "Iterates over fields and values of a hash."),
        run::hscan,
    ),
    data(
        ("hexpire", -6),
        WRITE,
        ONE,
        G,
        (
            "7.4.0",
            "Sets the time after which fields of a hash expire, in seconds.",
        ),
        timed::hexpire,
    ),
    data(
        ("hpexpire", -6),
        WRITE,
        ONE,
        G,
        (
            "7.4.0",
            "Sets the time after which fields of a hash expire, in milliseconds.",
        ),
        timed::hpexpire,
    ),
    data(
        ("hexpireat", -6),
        WRITE,
        ONE,
        G,
        (
            "7.4.0",
            "Sets when fields of a hash expire, in seconds since 1970.",
        ),
        timed::hexpireat,
    ),
    data(
        ("hpexpireat", -6),
        WRITE,
        ONE,
        G,
        (
            "7.4.0",
            "Sets when fields of a hash expire, in milliseconds since 1970.",
        ),
        timed::hpexpireat,
    ),
    data(
        ("httl", -5),
        FAST,
        ONE,
        G,
        (
            "7.4.0",
            "Returns after how many seconds fields of a hash expire.",
        ),
        timed::httl,
    ),
    data(
        ("hpttl", -5),
        FAST,
        ONE,
        G,
        (
            "7.4.0",
            "Returns after how many milliseconds fields of a hash expire.",
        ),
        timed::hpttl,
    ),
    data(
        ("hexpiretime", -5),
        FAST,
        ONE,
        G,
        (
            "7.4.0",
            "Returns when fields of a hash expire, in seconds since 1970.",
        ),
        timed::hexpiretime,
    ),
    data(
        ("hpexpiretime", -5),
        FAST,
        ONE,
        G,
        (
            "7.4.0",
            "Returns when fields of a hash expire, in milliseconds since 1970.",
        ),
        timed::hpexpiretime,
    ),
    data(
        ("hpersist", -5),
        REMOVE,
        ONE,
        G,
        ("7.4.0", "Removes the expiry of fields of a hash."),
        timed::hpersist,
    ),
    data(
        ("hgetdel", -5),
        REMOVE,
        ONE,
        G,
        (
            "8.0.0",
            "Returns the values of fields of a hash and deletes the fields.",
        ),
        timed::hgetdel,
    ),
    data(
        ("hgetex", -5),
        REMOVE,
        ONE,
        G,
        (
            "8.0.0",
            "Returns the values of fields of a hash and sets or removes their expiry.",
        ),
        timed::hgetex,
    ),
    data(
        ("hsetex", -6),
        WRITE,
        ONE,
        G,
        ("8.0.0", "Sets fields of a hash, with an expiry."),
        timed::hsetex,
    ),
];
