//! The systems that are compared: which there are, how each looks, and which are still to come.

use manxdb_lab::figure::{Look, Shape};
use serde::{Deserialize, Serialize};

/// A system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// MariaDB with its own engine.
    Innodb,
    /// MariaDB with the published experiments' engine.
    Myrocks,
    /// ManxDB, tables without owners.
    Manxdb,
    /// ManxDB, rows with owners.
    Annotated,
    /// ManxDB, queries of each page answered by views.
    Views,
    /// ManxDB, rows sealed under keys of their owners.
    Sealed,
    /// Both: what the published system is.
    SealedViews,
}

impl System {
    /// All of them, those that others are compared with first.
    pub const ALL: [Self; 7] = [
        Self::Innodb,
        Self::Myrocks,
        Self::Manxdb,
        Self::Annotated,
        Self::Views,
        Self::Sealed,
        Self::SealedViews,
    ];

    /// Those that can be run.
    pub fn there() -> Vec<Self> {
        let all = Self::ALL.into_iter();
        all.filter(|system| system.to_come().is_none()).collect()
    }

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Innodb => "MariaDB InnoDB",
            Self::Myrocks => "MariaDB MyRocks",
            Self::Manxdb => "ManxDB",
            Self::Annotated => "ManxDB annotated",
            Self::Views => "ManxDB with views",
            Self::Sealed => "ManxDB sealed",
            Self::SealedViews => "ManxDB sealed with views",
        }
    }

    /// What ManxDB cannot do yet, if that is what this system is.
    pub fn to_come(self) -> Option<&'static str> {
        match self {
            Self::Innodb | Self::Myrocks | Self::Manxdb | Self::Annotated => None,
            Self::Views => Some("ManxDB has no views that it keeps up to date yet"),
            Self::Sealed => Some("ManxDB does not seal rows yet"),
            Self::SealedViews => Some("ManxDB neither seals rows nor keeps views up to date yet"),
        }
    }

    /// Whether it is one of ManxDB's.
    pub fn is_manxdb(self) -> bool {
        !matches!(self, Self::Innodb | Self::Myrocks)
    }

    /// Whether its tables name the owners of rows.
    pub fn has_owners(self) -> bool {
        matches!(self, Self::Annotated | Self::Sealed | Self::SealedViews)
    }

    /// What its tables' engine is called, where there are several.
    pub fn engine(self) -> Option<&'static str> {
        match self {
            Self::Innodb => Some("InnoDB"),
            Self::Myrocks => Some("ROCKSDB"),
            _ => None,
        }
    }

    /// Its colour in figures, drawn as bars or boxes.
    pub fn look(self, shape: Shape) -> Look {
        let number = match self {
            Self::Innodb => 4,
            Self::Myrocks => 1,
            Self::Manxdb | Self::Views => 0,
            Self::Annotated | Self::SealedViews => 2,
            Self::Sealed => 3,
        };
        Look::of(number).shaped(shape)
    }
}
