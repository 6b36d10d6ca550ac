//! Sorted sets: members in the order of their scores.

mod algebra;
mod blocking;
mod bounds;
mod commands;
mod ranges;

use crate::spec::{CommandSpec, Flags, Group, Keys, data};
use commands as run;
pub(crate) use commands::zadd;

const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const FAST_WRITE: Flags = WRITE.and(Flags::FAST);
const REMOVE: Flags = Flags::WRITE.and(Flags::FAST);
const READ: Flags = Flags::READONLY;
const FAST: Flags = Flags::READONLY.and(Flags::FAST);
const COUNTED: Flags = Flags::READONLY.and(Flags::MOVABLE);
const WAIT: Flags = Flags::WRITE.and(Flags::BLOCKING);
const G: Group = Group::SortedSet;
const ONE: Keys = Keys::ONE;
const MANY: Keys = Keys::Counted(1, None);
const STORED: Keys = Keys::Counted(2, Some(1));

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    data(
        ("zadd", -4),
        FAST_WRITE,
        ONE,
        G,
        (
            "1.2.0",
            "Adds one or more members to a sorted set, or updates their scores. Creates the key if it doesn't exist.",
        ),
        run::zadd,
    ),
    data(
        ("zincrby", 4),
        FAST_WRITE,
        ONE,
        G,
        ("1.2.0", "Increments the score of a member in a sorted set."),
        run::zincrby,
    ),
    data(
        ("zrem", -3),
        REMOVE,
        ONE,
        G,
        (
            "1.2.0",
            "Removes one or more members from a sorted set. Deletes the sorted set if all members were removed.",
        ),
        run::zrem,
    ),
    data(
        ("zcard", 2),
        FAST,
        ONE,
        G,
        ("1.2.0", "Returns the number of members in a sorted set."),
        run::zcard,
    ),
    data(
        ("zscore", 3),
        FAST,
        ONE,
        G,
        ("1.2.0", "Returns the score of a member in a sorted set."),
        run::zscore,
    ),
    data(
        ("zmscore", -3),
        FAST,
        ONE,
        G,
        (
            "6.2.0",
            "Returns the score of one or more members in a sorted set.",
        ),
        run::zmscore,
    ),
    data(
        ("zrank", -3),
        FAST,
        ONE,
        G,
        (
            "2.0.0",
            "Returns the index of a member in a sorted set ordered by ascending scores.",
        ),
        run::zrank,
    ),
    data(
        ("zrevrank", -3),
        FAST,
        ONE,
        G,
        (
            "2.0.0",
            "Returns the index of a member in a sorted set ordered by descending scores.",
        ),
        run::zrevrank,
    ),
    data(
        ("zpopmin", -2),
        REMOVE,
        ONE,
        G,
        (
            "5.0.0",
            "Returns the lowest-scoring members from a sorted set after removing them. Deletes the sorted set if the last member was popped.",
        ),
        run::zpopmin,
    ),
    data(
        ("zpopmax", -2),
        REMOVE,
        ONE,
        G,
        (
            "5.0.0",
            "Returns the highest-scoring members from a sorted set after removing them. Deletes the sorted set if the last member was popped.",
        ),
        run::zpopmax,
    ),
    data(
        ("zmpop", -4),
        Flags::WRITE.and(Flags::MOVABLE),
        MANY,
        G,
        (
            "7.0.0",
            "Returns the highest- or lowest-scoring members from one or more sorted sets after removing them. Deletes the sorted set if the last member was popped.",
        ),
        run::zmpop,
    ),
    data(
        ("zrandmember", -2),
        READ.and(Flags::RANDOM),
        ONE,
        G,
        (
            "6.2.0",
            "Returns one or more random members from a sorted set.",
        ),
        run::zrandmember,
    ),
    data(
        ("zscan", -3),
        READ,
        ONE,
        G,
        ("2.8.0", "Iterates over members and scores of a sorted set."),
        run::zscan,
    ),
    data(
        ("zcount", 4),
        FAST,
        ONE,
        G,
        (
            "2.0.0",
            "Returns the count of members in a sorted set that have scores within a range.",
        ),
        ranges::zcount,
    ),
    data(
        ("zlexcount", 4),
        FAST,
        ONE,
        G,
        (
            "2.8.9",
            "Returns the number of members in a sorted set within a lexicographical range.",
        ),
        ranges::zlexcount,
    ),
    data(
        ("zrange", -4),
        READ,
        ONE,
        G,
        (
            "1.2.0",
            "Returns members in a sorted set within a range of indexes.",
        ),
        ranges::zrange,
    ),
    data(
        ("zrangestore", -5),
        WRITE,
        Keys::Range(1, 2, 1),
        G,
        (
            "6.2.0",
            "Stores a range of members from sorted set in a key.",
        ),
        ranges::zrangestore,
    ),
    data(
        ("zrevrange", -4),
        READ,
        ONE,
        G,
        (
            "1.2.0",
            "Returns members in a sorted set within a range of indexes in reverse order.",
        ),
        ranges::zrevrange,
    ),
    data(
        ("zrangebyscore", -4),
        READ,
        ONE,
        G,
        (
            "1.0.5",
            "Returns members in a sorted set within a range of scores.",
        ),
        ranges::zrangebyscore,
    ),
    data(
        ("zrevrangebyscore", -4),
        READ,
        ONE,
        G,
        (
            "2.2.0",
            "Returns members in a sorted set within a range of scores in reverse order.",
        ),
        ranges::zrevrangebyscore,
    ),
    data(
        ("zrangebylex", -4),
        READ,
        ONE,
        G,
        (
            "2.8.9",
            "Returns members in a sorted set within a lexicographical range.",
        ),
        ranges::zrangebylex,
    ),
    data(
        ("zrevrangebylex", -4),
        READ,
        ONE,
        G,
        (
            "2.8.9",
            "Returns members in a sorted set within a lexicographical range in reverse order.",
        ),
        ranges::zrevrangebylex,
    ),
    data(
        ("zremrangebyrank", 4),
        Flags::WRITE,
        ONE,
        G,
        (
            "2.0.0",
            "Removes members in a sorted set within a range of indexes. Deletes the sorted set if all members were removed.",
        ),
        ranges::zremrangebyrank,
    ),
    data(
        ("zremrangebyscore", 4),
        Flags::WRITE,
        ONE,
        G,
        (
            "1.2.0",
            "Removes members in a sorted set within a range of scores. Deletes the sorted set if all members were removed.",
        ),
        ranges::zremrangebyscore,
    ),
    data(
        ("zremrangebylex", 4),
        Flags::WRITE,
        ONE,
        G,
        (
            "2.8.9",
            "Removes members in a sorted set within a lexicographical range. Deletes the sorted set if all members were removed.",
        ),
        ranges::zremrangebylex,
    ),
    data(
        ("zunion", -3),
        COUNTED,
        MANY,
        G,
        ("6.2.0", "Returns the union of multiple sorted sets."),
        algebra::zunion,
    ),
    data(
        ("zinter", -3),
        COUNTED,
        MANY,
        G,
        ("6.2.0", "Returns the intersect of multiple sorted sets."),
        algebra::zinter,
    ),
    data(
        ("zdiff", -3),
        COUNTED,
        MANY,
        G,
        (
            "6.2.0",
            "Returns the difference between multiple sorted sets.",
        ),
        algebra::zdiff,
    ),
    data(
        ("zunionstore", -4),
        WRITE.and(Flags::MOVABLE),
        STORED,
        G,
        (
            "2.0.0",
            "Stores the union of multiple sorted sets in a key.",
        ),
        algebra::zunionstore,
    ),
    data(
        ("zinterstore", -4),
        WRITE.and(Flags::MOVABLE),
        STORED,
        G,
        (
            "2.0.0",
            "Stores the intersect of multiple sorted sets in a key.",
        ),
        algebra::zinterstore,
    ),
    data(
        ("zdiffstore", -4),
        WRITE.and(Flags::MOVABLE),
        STORED,
        G,
        (
            "6.2.0",
            "Stores the difference of multiple sorted sets in a key.",
        ),
        algebra::zdiffstore,
    ),
    data(
        ("zintercard", -3),
        COUNTED,
        MANY,
        G,
        (
            "7.0.0",
            "Returns the number of members of the intersect of multiple sorted sets.",
        ),
        algebra::zintercard,
    ),
    data(
        ("bzpopmin", -3),
        WAIT.and(Flags::FAST),
        Keys::Range(1, -2, 1),
        G,
        (
            "5.0.0",
            "Removes and returns the member with the lowest score from one or more sorted sets. Blocks until a member is available otherwise. Deletes the sorted set if the last element was popped.",
        ),
        blocking::bzpopmin,
    ),
    data(
        ("bzpopmax", -3),
        WAIT.and(Flags::FAST),
        Keys::Range(1, -2, 1),
        G,
        (
            "5.0.0",
            "Removes and returns the member with the highest score from one or more sorted sets. Blocks until a member available otherwise. Deletes the sorted set if the last element was popped.",
        ),
        blocking::bzpopmax,
    ),
    data(
        ("bzmpop", -5),
        WAIT.and(Flags::MOVABLE),
        Keys::Counted(2, None),
        G,
        (
            "7.0.0",
            "Removes and returns a member by score from one or more sorted sets. Blocks until a member is available otherwise. Deletes the sorted set if the last element was popped.",
        ),
        blocking::bzmpop,
    ),
];
