//! The systems that are compared: which there are, and how each looks.

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
    /// ManxDB, statements that join or group answered by views.
    Views,
    /// ManxDB, rows with owners, sealed under their keys.
    Sealed,
    /// Owners, seals and views: what the published system is.
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

    /// Whether it is one of ManxDB's.
    pub fn is_manxdb(self) -> bool {
        !matches!(self, Self::Innodb | Self::Myrocks)
    }

    /// Whether its tables name the owners of rows.
    pub fn has_owners(self) -> bool {
        matches!(self, Self::Annotated | Self::Sealed | Self::SealedViews)
    }

    /// Whether rows of people are encrypted under their keys.
    pub fn is_sealed(self) -> bool {
        matches!(self, Self::Sealed | Self::SealedViews)
    }

    /// Whether statements that join or group are answered by materialized views.
    pub fn has_views(self) -> bool {
        matches!(self, Self::Views | Self::SealedViews)
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
            Self::Annotated => 2,
            Self::Sealed | Self::SealedViews => 3,
        };
        let look = Look::of(number).shaped(shape);
        if self.has_views() {
            look.darker()
        } else {
            look
        }
    }
}
