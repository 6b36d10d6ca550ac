//! Names, numbers and traits of collations.

use super::data_type::Collation;

/// How a collation is known outside.
struct Entry {
    collation: Collation,
    name: &'static str,
    id: u16,
}

const ENTRIES: [Entry; 8] = [
    Entry {
        collation: Collation::GeneralCi,
        name: "utf8mb4_general_ci",
        id: 45,
    },
    Entry {
        collation: Collation::UnicodeCi,
        name: "utf8mb4_unicode_ci",
        id: 224,
    },
    Entry {
        collation: Collation::Uca0900AiCi,
        name: "utf8mb4_0900_ai_ci",
        id: 255,
    },
    Entry {
        collation: Collation::Uca0900AsCs,
        name: "utf8mb4_0900_as_cs",
        id: 278,
    },
    Entry {
        collation: Collation::Bin,
        name: "utf8mb4_bin",
        id: 46,
    },
    Entry {
        collation: Collation::Bin0900,
        name: "utf8mb4_0900_bin",
        id: 309,
    },
    Entry {
        collation: Collation::Binary,
        name: "binary",
        id: 63,
    },
    Entry {
        collation: Collation::EsperantoCi,
        name: "utf8mb4_esperanto_ci",
        id: 241,
    },
];

/// Character sets whose collations are taken for their utf8mb4 counterparts.
const CHARSETS: [&str; 7] = [
    "utf8mb4", "utf8mb3", "utf8", "latin1", "ascii", "ucs2", "utf16",
];

impl Collation {
    /// Every collation, in the order of [`Collation::id`]s nowhere promised.
    pub const ALL: [Collation; 8] = [
        Collation::GeneralCi,
        Collation::UnicodeCi,
        Collation::Uca0900AiCi,
        Collation::Uca0900AsCs,
        Collation::Bin,
        Collation::Bin0900,
        Collation::Binary,
        Collation::EsperantoCi,
    ];

    fn entry(self) -> &'static Entry {
        let place = ENTRIES.iter().position(|entry| entry.collation == self);
        &ENTRIES[place.unwrap_or(0)]
    }

    /// MySQL's name, for example `utf8mb4_0900_ai_ci`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// The number on the wire and in `information_schema.COLLATIONS`.
    #[must_use]
    pub fn id(self) -> u16 {
        self.entry().id
    }

    /// `utf8mb4` or `binary`.
    #[must_use]
    pub fn charset(self) -> &'static str {
        match self {
            Collation::Binary => "binary",
            _ => "utf8mb4",
        }
    }

    /// The collation called `name`, in any case; names of other character sets are taken for
    /// their utf8mb4 counterparts. `None` for an unknown name (error 1273), among them languages
    /// of UCA 4.0 we have no weights for: `utf8mb4_polish_ci` must not compare as another one.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        let lower = name.trim().to_ascii_lowercase();
        if lower == "binary" {
            return Some(Collation::Binary);
        }
        let (charset, rest) = lower.split_once('_')?;
        if !CHARSETS.contains(&charset) {
            return None;
        }
        match rest {
            "bin" => Some(Collation::Bin),
            "0900_bin" => Some(Collation::Bin0900),
            "general_ci" | "general_mysql500_ci" | "general_nopad_ci" => Some(Collation::GeneralCi),
            "swedish_ci" | "german1_ci" | "danish_ci" | "spanish_ci" | "german2_ci"
                if charset == "latin1" =>
            {
                Some(Collation::GeneralCi)
            }
            "general_cs" | "0900_as_cs" => Some(Collation::Uca0900AsCs),
            _ if rest.ends_with("0900_as_cs") => Some(Collation::Uca0900AsCs),
            _ if rest.ends_with("0900_ai_ci") || rest.ends_with("0900_as_ci") => {
                Some(Collation::Uca0900AiCi)
            }
            _ if rest.starts_with("uca1400") && rest.ends_with("_ci") => {
                Some(Collation::Uca0900AiCi)
            }
            _ if rest.ends_with("unicode_ci") || rest.starts_with("unicode_520") => {
                Some(Collation::UnicodeCi)
            }
            "esperanto_ci" => Some(Collation::EsperantoCi),
            _ => None,
        }
    }

    /// The default collation of a character set; `None` for an unknown set (error 1115).
    #[must_use]
    pub fn default_of_charset(charset: &str) -> Option<Self> {
        match charset.to_ascii_lowercase().as_str() {
            "utf8mb4" => Some(Collation::Uca0900AiCi),
            "utf8" | "utf8mb3" | "latin1" | "ascii" | "ucs2" | "utf16" => {
                Some(Collation::GeneralCi)
            }
            "binary" => Some(Collation::Binary),
            _ => None,
        }
    }

    /// Collations by number on the wire; unknown numbers of clients mean the default.
    #[must_use]
    pub fn from_id(id: u16) -> Option<Self> {
        let known = ENTRIES.iter().find(|entry| entry.id == id);
        known.map(|entry| entry.collation).or(match id {
            8 | 11 | 33 | 48 => Some(Collation::GeneralCi),
            47 | 65 | 83 => Some(Collation::Bin),
            209 => Some(Collation::EsperantoCi),
            192 | 246 => Some(Collation::UnicodeCi),
            _ => None,
        })
    }

    /// Trailing spaces do not count in comparisons.
    #[must_use]
    pub fn pads_space(self) -> bool {
        matches!(
            self,
            Collation::GeneralCi | Collation::UnicodeCi | Collation::EsperantoCi | Collation::Bin
        )
    }

    /// Letters of different case are equal.
    #[must_use]
    pub fn ignores_case(self) -> bool {
        matches!(
            self,
            Collation::GeneralCi
                | Collation::UnicodeCi
                | Collation::EsperantoCi
                | Collation::Uca0900AiCi
        )
    }

    /// `_bin` and `binary`: equality is equality of bytes (up to trailing spaces).
    #[must_use]
    pub fn is_binary(self) -> bool {
        matches!(
            self,
            Collation::Bin | Collation::Bin0900 | Collation::Binary
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_go_there_and_back() {
        for collation in Collation::ALL {
            assert_eq!(Collation::from_name(collation.name()), Some(collation));
            assert_eq!(Collation::from_id(collation.id()), Some(collation));
        }
    }

    #[test]
    fn foreign_spellings_map_to_the_nearest() {
        let table = [
            ("utf8_general_ci", Some(Collation::GeneralCi)),
            ("UTF8MB3_BIN", Some(Collation::Bin)),
            ("latin1_swedish_ci", Some(Collation::GeneralCi)),
            ("utf8mb4_unicode_520_ci", Some(Collation::UnicodeCi)),
            ("utf8mb4_de_pb_0900_ai_ci", Some(Collation::Uca0900AiCi)),
            ("utf8mb3_esperanto_ci", Some(Collation::EsperantoCi)),
            ("utf8mb4_polish_ci", None),
            ("utf8mb4_swedish_ci", None),
            ("klingon_ci", None),
            ("utf8mb4_nothing", None),
        ];
        for (name, expected) in table {
            assert_eq!(Collation::from_name(name), expected, "{name}");
        }
    }
}
