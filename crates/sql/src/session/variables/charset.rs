//! Character sets and collations by MySQL's names.
//!
//! All text is UTF-8 inside. Older sets that clients name at connect are accepted as aliases of
//! the transport; only the collations of [`COLLATIONS`] exist as column collations.

use crate::types::Collation;

/// A character set a client may ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Charset {
    /// Name.
    pub name: &'static str,
    /// Its default collation, by name.
    pub default_collation: &'static str,
    /// Description in SHOW CHARACTER SET.
    pub description: &'static str,
    /// Most bytes a character.
    pub max_length: i64,
}

/// A collation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedCollation {
    /// Name.
    pub name: &'static str,
    /// Character set.
    pub charset: &'static str,
    /// MySQL's id, sent in column definitions.
    pub id: i64,
    /// Default of its character set.
    pub is_default: bool,
    /// `PAD SPACE` or `NO PAD`.
    pub pad: &'static str,
    /// How it compares.
    pub collation: Collation,
}

/// SHOW CHARACTER SET.
pub(crate) const CHARSETS: &[Charset] = &[
    Charset {
        name: "ascii",
        default_collation: "ascii_general_ci",
        description: "US ASCII",
        max_length: 1,
    },
    Charset {
        name: "binary",
        default_collation: "binary",
        description: "Binary pseudo charset",
        max_length: 1,
    },
    Charset {
        name: "latin1",
        default_collation: "latin1_swedish_ci",
        description: "cp1252 West European",
        max_length: 1,
    },
    Charset {
        name: "utf8mb3",
        default_collation: "utf8mb3_general_ci",
        description: "UTF-8 Unicode",
        max_length: 3,
    },
    Charset {
        name: "utf8mb4",
        default_collation: "utf8mb4_0900_ai_ci",
        description: "UTF-8 Unicode",
        max_length: 4,
    },
];

const fn row(
    name: &'static str,
    charset: &'static str,
    id: i64,
    is_default: bool,
    pad: &'static str,
    collation: Collation,
) -> NamedCollation {
    NamedCollation {
        name,
        charset,
        id,
        is_default,
        pad,
        collation,
    }
}

const SPACE: &str = "PAD SPACE";
const NO: &str = "NO PAD";

/// SHOW COLLATION, sorted by name.
pub(crate) const COLLATIONS: &[NamedCollation] = &[
    row("ascii_bin", "ascii", 65, false, SPACE, Collation::Bin),
    row(
        "ascii_general_ci",
        "ascii",
        11,
        true,
        SPACE,
        Collation::GeneralCi,
    ),
    row("binary", "binary", 63, true, NO, Collation::Binary),
    row("latin1_bin", "latin1", 47, false, SPACE, Collation::Bin),
    row(
        "latin1_swedish_ci",
        "latin1",
        8,
        true,
        SPACE,
        Collation::GeneralCi,
    ),
    row("utf8mb3_bin", "utf8mb3", 83, false, SPACE, Collation::Bin),
    row(
        "utf8mb3_general_ci",
        "utf8mb3",
        33,
        true,
        SPACE,
        Collation::GeneralCi,
    ),
    row(
        "utf8mb3_unicode_ci",
        "utf8mb3",
        192,
        false,
        SPACE,
        Collation::UnicodeCi,
    ),
    row(
        "utf8mb4_0900_ai_ci",
        "utf8mb4",
        255,
        true,
        NO,
        Collation::Uca0900AiCi,
    ),
    row(
        "utf8mb4_0900_as_cs",
        "utf8mb4",
        278,
        false,
        NO,
        Collation::Uca0900AsCs,
    ),
    row(
        "utf8mb4_0900_bin",
        "utf8mb4",
        309,
        false,
        NO,
        Collation::Bin0900,
    ),
    row("utf8mb4_bin", "utf8mb4", 46, false, SPACE, Collation::Bin),
    row(
        "utf8mb4_esperanto_ci",
        "utf8mb4",
        241,
        false,
        SPACE,
        Collation::EsperantoCi,
    ),
    row(
        "utf8mb4_general_ci",
        "utf8mb4",
        45,
        false,
        SPACE,
        Collation::GeneralCi,
    ),
    row(
        "utf8mb4_unicode_ci",
        "utf8mb4",
        224,
        false,
        SPACE,
        Collation::UnicodeCi,
    ),
];

/// The character set called `name`; `utf8` is `utf8mb3`, as in MySQL.
pub(crate) fn charset(name: &str) -> Option<&'static Charset> {
    let lower = name.to_lowercase();
    let lower = if lower == "utf8" {
        "utf8mb3"
    } else {
        lower.as_str()
    };
    CHARSETS.iter().find(|charset| charset.name == lower)
}

/// The collation called `name`.
pub(crate) fn collation(name: &str) -> Option<&'static NamedCollation> {
    let lower = name.to_lowercase().replace("utf8_", "utf8mb3_");
    COLLATIONS.iter().find(|collation| collation.name == lower)
}

/// The collation with MySQL's id.
pub(crate) fn collation_by_id(id: i64) -> Option<&'static NamedCollation> {
    COLLATIONS.iter().find(|collation| collation.id == id)
}

/// The character set of MySQL's collation `id` when no statement can be written in it, because
/// its characters have two bytes at least.
pub(crate) fn wide_charset_of(id: u16) -> Option<&'static str> {
    match id {
        35 | 90 | 128..=151 | 159 => Some("ucs2"),
        54 | 55 | 101..=124 => Some("utf16"),
        56 | 62 => Some("utf16le"),
        60 | 61 | 160..=183 => Some("utf32"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf8_is_the_three_byte_set_as_in_mysql_8() {
        assert_eq!(charset("UTF8").unwrap().name, "utf8mb3");
        assert_eq!(
            collation("utf8_general_ci").unwrap().name,
            "utf8mb3_general_ci"
        );
    }

    #[test]
    fn every_default_collation_exists() {
        for set in CHARSETS {
            let found = collation(set.default_collation).unwrap();
            assert!(found.is_default && found.charset == set.name);
        }
    }
}
