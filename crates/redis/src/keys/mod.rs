//! Keys of any type: being there, expiry, names, SCAN.

mod commands;
mod expire;
mod names;
mod object;
pub(crate) mod scan;
pub(crate) mod sort;

use crate::spec::{CommandSpec, Flags, Group, Keys, data};
use commands as run;

const WRITE: Flags = Flags::WRITE;
const FAST_WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const DROP: Flags = Flags::WRITE.and(Flags::NO_VALUE);
const LOOK: Flags = Flags::READONLY.and(Flags::FAST).and(Flags::NO_VALUE);
const ALL_KEYS: Flags = Flags::READONLY.and(Flags::ALL_KEYS);
const FLUSH: Flags = Flags::WRITE.and(Flags::ALL_KEYS);
const G: Group = Group::Generic;
const ONE: Keys = Keys::ONE;
const ALL: Keys = Keys::ALL;
const TWO: Keys = Keys::Range(1, 2, 1);

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    data(
        ("del", -2),
        DROP,
        ALL,
        G,
        ("1.0.0", "Deletes one or more keys."),
        run::del,
    ),
    data(
        ("unlink", -2),
        DROP.and(Flags::FAST),
        ALL,
        G,
        ("4.0.0", "Asynchronously deletes one or more keys."),
        run::del,
    ),
    data(
        ("sort", -2),
        Flags::WRITE.and(Flags::DENYOOM).and(Flags::MOVABLE),
        Keys::Stored(2),
        G,
        (
            "1.0.0",
            "Sorts the elements in a list, a set, or a sorted set, optionally storing the result.",
        ),
        sort::sort,
    ),
    data(
        ("sort_ro", -2),
        Flags::READONLY.and(Flags::MOVABLE),
        ONE,
        G,
        (
            "7.0.0",
            "Returns the sorted elements of a list, a set, or a sorted set.",
        ),
        sort::sort_ro,
    ),
    data(
        ("exists", -2),
        LOOK,
        ALL,
        G,
        ("1.0.0", "Determines whether one or more keys exist."),
        run::exists,
    ),
    data(
        ("touch", -2),
        LOOK,
        ALL,
        G,
        (
            "3.2.1",
            "Returns the number of existing keys out of those specified after updating the time they were last accessed.",
        ),
        run::exists,
    ),
    data(
        ("type", 2),
        LOOK,
        ONE,
        G,
        ("1.0.0", "Determines the type of value stored at a key."),
        run::kind,
    ),
    data(
        ("ttl", 2),
        LOOK,
        ONE,
        G,
        ("1.0.0", "Returns the expiration time in seconds of a key."),
        expire::ttl,
    ),
    data(
        ("pttl", 2),
        LOOK,
        ONE,
        G,
        (
            "2.6.0",
            "Returns the expiration time in milliseconds of a key.",
        ),
        expire::pttl,
    ),
    data(
        ("expiretime", 2),
        LOOK,
        ONE,
        G,
        (
            "7.0.0",
            "Returns the expiration time of a key as a Unix timestamp.",
        ),
        expire::expiretime,
    ),
    data(
        ("pexpiretime", 2),
        LOOK,
        ONE,
        G,
        (
            "7.0.0",
            "Returns the expiration time of a key as a Unix milliseconds timestamp.",
        ),
        expire::pexpiretime,
    ),
    data(
        ("expire", -3),
        FAST_WRITE,
        ONE,
        G,
        ("1.0.0", "Sets the expiration time of a key in seconds."),
        expire::expire,
    ),
    data(
        ("pexpire", -3),
        FAST_WRITE,
        ONE,
        G,
        (
            "2.6.0",
            "Sets the expiration time of a key in milliseconds.",
        ),
        expire::pexpire,
    ),
    data(
        ("expireat", -3),
        FAST_WRITE,
        ONE,
        G,
        (
            "1.2.0",
            "Sets the expiration time of a key to a Unix timestamp.",
        ),
        expire::expireat,
    ),
    data(
        ("pexpireat", -3),
        FAST_WRITE,
        ONE,
        G,
        (
            "2.6.0",
            "Sets the expiration time of a key to a Unix milliseconds timestamp.",
        ),
        expire::pexpireat,
    ),
    data(
        ("persist", 2),
        FAST_WRITE,
        ONE,
        G,
        ("2.2.0", "Removes the expiration time of a key."),
        expire::persist,
    ),
    data(
        ("rename", 3),
        WRITE,
        TWO,
        G,
        ("1.0.0", "Renames a key and overwrites the destination."),
        names::rename,
    ),
    data(
        ("renamenx", 3),
        FAST_WRITE,
        TWO,
        G,
        (
            "1.0.0",
            "Renames a key only when the target key name doesn't exist.",
        ),
        names::renamenx,
    ),
    data(
        ("copy", -3),
        WRITE.and(Flags::DENYOOM),
        TWO,
        G,
        ("6.2.0", "Copies the value of a key to a new key."),
        names::copy,
    ),
    data(
        ("move", 3),
        FAST_WRITE,
        ONE,
        G,
        ("1.0.0", "Moves a key to another database."),
        names::move_to,
    ),
    data(
        ("object", -2),
        Flags::READONLY.and(Flags::CONTAINER),
        Keys::Range(2, 2, 1),
        G,
        (
            "2.2.3",
            "Tells how the value of a key is kept: ENCODING, FREQ, IDLETIME, REFCOUNT.",
        ),
        object::object,
    ),
    data(
        ("keys", 2),
        ALL_KEYS,
        Keys::None,
        G,
        ("1.0.0", "Returns all key names that match a pattern."),
        scan::keys,
    ),
    data(
        ("scan", -2),
        ALL_KEYS,
        Keys::None,
        G,
        ("2.8.0", "Iterates over the key names in the database."),
        scan::scan,
    ),
    data(
        ("randomkey", 1),
        ALL_KEYS.and(Flags::RANDOM),
        Keys::None,
        G,
        ("1.0.0", "Returns a random key name from the database."),
        scan::randomkey,
    ),
    data(
        ("dbsize", 1),
        ALL_KEYS.and(Flags::FAST),
        Keys::None,
        Group::Server,
        ("1.0.0", "Returns the number of keys in the database."),
        run::dbsize,
    ),
    data(
        ("flushdb", -1),
        FLUSH,
        Keys::None,
        Group::Server,
        ("1.0.0", "Removes all keys from the current database."),
        run::flushdb,
    ),
    data(
        ("flushall", -1),
        FLUSH,
        Keys::None,
        Group::Server,
        ("1.0.0", "Removes all keys from all databases."),
        run::flushall,
    ),
    data(
        ("time", 1),
        Flags::FAST,
        Keys::None,
        Group::Server,
        ("2.6.0", "Returns the server time."),
        run::time,
    ),
    data(
        ("echo", 2),
        Flags::FAST,
        Keys::None,
        Group::Connection,
        ("1.0.0", "Returns the given string."),
        run::echo,
    ),
];
