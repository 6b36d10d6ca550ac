//! Places on the globe, in sorted sets: a member's score is its place.
//!
//! | file | what |
//! |---|---|
//! | `place` | longitude and latitude, their 52 bits in a score, distances |
//! | `area` | a circle or a box, and the scores that it may have members at |
//! | `query` | the arguments of searches |
//! | `commands` | GEOADD, GEOPOS, GEODIST, GEOHASH |
//! | `search` | GEOSEARCH, GEOSEARCHSTORE, GEORADIUS |

mod area;
mod commands;
mod place;
mod query;
mod search;

use crate::spec::{CommandSpec, Flags, Group, Keys, data};

const WRITE: Flags = Flags::WRITE.and(Flags::DENYOOM);
const RADIUS: Flags = WRITE.and(Flags::MOVABLE);
const READ: Flags = Flags::READONLY;
const G: Group = Group::Geo;
const ONE: Keys = Keys::ONE;

/// The family's commands.
pub static COMMANDS: &[CommandSpec] = &[
    data(
        ("geoadd", -5),
        WRITE,
        ONE,
        G,
        (
            "3.2.0",
            "Adds one or more members to a geospatial index. The key is created if it doesn't exist.",
        ),
        commands::geoadd,
    ),
    data(
        ("geopos", -2),
        READ,
        ONE,
        G,
        (
            "3.2.0",
            "Returns the longitude and latitude of members from a geospatial index.",
        ),
        commands::geopos,
    ),
    data(
        ("geodist", -4),
        READ,
        ONE,
        G,
        (
            "3.2.0",
            "Returns the distance between two members of a geospatial index.",
        ),
        commands::geodist,
    ),
    data(
        ("geohash", -2),
        READ,
        ONE,
        G,
        (
            "3.2.0",
            "Returns members from a geospatial index as geohash strings.",
        ),
        commands::geohash,
    ),
    data(
        ("geosearch", -7),
        READ,
        ONE,
        G,
        (
            "6.2.0",
            "Queries a geospatial index for members inside an area of a box or a circle.",
        ),
        search::geosearch,
    ),
    data(
        ("geosearchstore", -8),
        WRITE,
        Keys::Range(1, 2, 1),
        G,
        (
            "6.2.0",
            "Queries a geospatial index for members inside an area of a box or a circle, optionally stores the result.",
        ),
        search::geosearchstore,
    ),
    data(
        ("georadius", -6),
        RADIUS,
        Keys::Stored(6),
        G,
        (
            "3.2.0",
            "Queries a geospatial index for members within a distance from a coordinate, optionally stores the result.",
        ),
        search::georadius,
    ),
    data(
        ("georadius_ro", -6),
        READ,
        ONE,
        G,
        (
            "3.2.10",
            "Returns members from a geospatial index that are within a distance from a coordinate.",
        ),
        search::georadius_ro,
    ),
    data(
        ("georadiusbymember", -5),
        RADIUS,
        Keys::Stored(5),
        G,
        (
            "3.2.0",
            "Queries a geospatial index for members within a distance from a member, optionally stores the result.",
        ),
        search::georadiusbymember,
    ),
    data(
        ("georadiusbymember_ro", -5),
        READ,
        ONE,
        G,
        (
            "3.2.10",
            "Returns members from a geospatial index that are within a distance from a member.",
        ),
        search::georadiusbymember_ro,
    ),
];
