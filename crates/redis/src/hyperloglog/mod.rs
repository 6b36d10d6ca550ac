//! HyperLogLog: how many different elements were seen, in at most 12 KiB. The strings are Redis's
//! own, byte by byte, dense and sparse, so that they go from one server to another.
//!
//! | file | what |
//! |---|---|
//! | `registers` | 16384 numbers of six bits in a string, in both forms |
//! | `sparse` | the form for few elements, as runs |
//! | `estimate` | hashing an element, and the count from the registers |
//! | `commands` | PFADD, PFCOUNT, PFMERGE |

mod commands;
mod estimate;
mod registers;
mod sparse;

use crate::spec::{CommandSpec, Flags, Group, Keys, data};

const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const G: Group = Group::HyperLogLog;

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    data(
        ("pfadd", -2),
        WRITE.and(Flags::FAST),
        Keys::ONE,
        G,
        (
            "2.8.9",
            "Adds elements to a HyperLogLog key. Creates the key if it doesn't exist.",
        ),
        commands::pfadd,
    ),
    // It writes the count that it worked out into the value, as Redis does.
    data(
        ("pfcount", -2),
        Flags::WRITE,
        Keys::ALL,
        G,
        (
            "2.8.9",
            "Returns the approximated cardinality of the set(s) observed by the HyperLogLog key(s).",
        ),
        commands::pfcount,
    ),
    data(
        ("pfmerge", -2),
        WRITE,
        Keys::ALL,
        G,
        (
            "2.8.9",
            "Merges one or more HyperLogLog values into a single key.",
        ),
        commands::pfmerge,
    ),
];
