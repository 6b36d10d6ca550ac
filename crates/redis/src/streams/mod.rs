//! Streams: entries under ascending IDs, read by anybody or shared within groups of consumers.
//!
//! | question | file |
//! |---|---|
//! | what is kept of a stream and of its groups? | [`crate::objects`] |
//! | XADD, XTRIM, XDEL, XSETID | `write`, `trim` |
//! | XRANGE, XREVRANGE, XLEN, XREAD | `read` |
//! | XREADGROUP, XACK | `consume` |
//! | XGROUP; XPENDING, XCLAIM, XAUTOCLAIM; XINFO | `groups`; `claims`; `info` |

mod claims;
mod consume;
mod groups;
mod info;
mod read;
mod trim;
mod write;

pub(crate) use read::{resolved, wait_millis};

use crate::spec::{CommandSpec, Flags, Group, Keys, data};

const WRITE: Flags = Flags::WRITE;
const ADD: Flags = Flags::WRITE.and(Flags::DENYOOM).and(Flags::FAST);
const FAST_WRITE: Flags = Flags::WRITE.and(Flags::FAST);
const READ: Flags = Flags::READONLY;
const WAIT: Flags = Flags::BLOCKING.and(Flags::MOVABLE);
const G: Group = Group::Stream;
const ONE: Keys = Keys::ONE;
const SECOND: Keys = Keys::Range(2, 2, 1);

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    data(
        ("xadd", -5),
        ADD,
        ONE,
        G,
        (
            "5.0.0",
            "Appends a new message to a stream. Creates the key if it doesn't exist.",
        ),
        write::xadd,
    ),
    data(
        ("xtrim", -4),
        WRITE,
        ONE,
        G,
        ("5.0.0", "Deletes messages from the beginning of a stream."),
        write::xtrim,
    ),
    data(
        ("xdel", -3),
        FAST_WRITE,
        ONE,
        G,
        (
            "5.0.0",
            "Returns the number of messages after removing them from a stream.",
        ),
        write::xdel,
    ),
    data(
        ("xsetid", -3),
        ADD,
        ONE,
        G,
        ("5.0.0", "Sets a stream's last ID and counters."),
        write::xsetid,
    ),
    data(
        ("xlen", 2),
        READ.and(Flags::FAST),
        ONE,
        G,
        ("5.0.0", "Returns the number of messages in a stream."),
        read::xlen,
    ),
    data(
        ("xrange", -4),
        READ,
        ONE,
        G,
        (
            "5.0.0",
            "Returns the messages from a stream within a range of IDs.",
        ),
        read::xrange,
    ),
    data(
        ("xrevrange", -4),
        READ,
        ONE,
        G,
        (
            "5.0.0",
            "Returns the messages from a stream within a range of IDs in reverse order.",
        ),
        read::xrevrange,
    ),
    data(
        ("xread", -4),
        READ.and(WAIT),
        Keys::Streams,
        G,
        (
            "5.0.0",
            "Returns messages from multiple streams with IDs greater than the ones requested. Blocks until a message is available otherwise.",
        ),
        read::xread,
    ),
    data(
        ("xreadgroup", -7),
        WRITE.and(WAIT),
        Keys::Streams,
        G,
        (
            "5.0.0",
            "Returns new or historical messages from a stream for a consumer in a group. Blocks until a message is available otherwise.",
        ),
        consume::xreadgroup,
    ),
    data(
        ("xack", -4),
        FAST_WRITE,
        ONE,
        G,
        (
            "5.0.0",
            "Returns the number of messages that were successfully acknowledged by the consumer group member of a stream.",
        ),
        consume::xack,
    ),
    data(
        ("xgroup", -2),
        WRITE.and(Flags::DENYOOM).and(Flags::CONTAINER),
        SECOND,
        G,
        ("5.0.0", "A container for consumer groups commands."),
        groups::xgroup,
    ),
    data(
        ("xpending", -3),
        READ,
        ONE,
        G,
        (
            "5.0.0",
            "Returns the information and entries from a stream consumer group's pending entries list.",
        ),
        claims::xpending,
    ),
    data(
        ("xclaim", -6),
        FAST_WRITE,
        ONE,
        G,
        (
            "5.0.0",
            "Changes, or acquires, ownership of a message in a consumer group, as if the message was delivered a consumer group member.",
        ),
        claims::xclaim,
    ),
    data(
        ("xautoclaim", -6),
        FAST_WRITE,
        ONE,
        G,
        (
            "6.2.0",
            "Changes, or acquires, ownership of messages in a consumer group, as if the messages were delivered to as consumer group member.",
        ),
        claims::xautoclaim,
    ),
    data(
        ("xinfo", -2),
        READ.and(Flags::CONTAINER),
        SECOND,
        G,
        ("5.0.0", "A container for stream introspection commands."),
        info::xinfo,
    ),
];
