//! Privileges as bits, with MySQL's names.

use crate::error::{SqlError, SqlResult};

/// A set of privileges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct Privileges(pub u64);

impl Privileges {
    pub(crate) const SELECT: Self = Self(1);
    pub(crate) const INSERT: Self = Self(1 << 1);
    pub(crate) const UPDATE: Self = Self(1 << 2);
    pub(crate) const DELETE: Self = Self(1 << 3);
    pub(crate) const CREATE: Self = Self(1 << 4);
    pub(crate) const DROP: Self = Self(1 << 5);
    pub(crate) const RELOAD: Self = Self(1 << 6);
    pub(crate) const SHUTDOWN: Self = Self(1 << 7);
    pub(crate) const PROCESS: Self = Self(1 << 8);
    pub(crate) const FILE: Self = Self(1 << 9);
    pub(crate) const REFERENCES: Self = Self(1 << 10);
    pub(crate) const INDEX: Self = Self(1 << 11);
    pub(crate) const ALTER: Self = Self(1 << 12);
    pub(crate) const SHOW_DATABASES: Self = Self(1 << 13);
    pub(crate) const SUPER: Self = Self(1 << 14);
    pub(crate) const CREATE_TEMPORARY: Self = Self(1 << 15);
    pub(crate) const LOCK_TABLES: Self = Self(1 << 16);
    pub(crate) const EXECUTE: Self = Self(1 << 17);
    pub(crate) const REPLICATION_SLAVE: Self = Self(1 << 18);
    pub(crate) const REPLICATION_CLIENT: Self = Self(1 << 19);
    pub(crate) const CREATE_VIEW: Self = Self(1 << 20);
    pub(crate) const SHOW_VIEW: Self = Self(1 << 21);
    pub(crate) const CREATE_ROUTINE: Self = Self(1 << 22);
    pub(crate) const ALTER_ROUTINE: Self = Self(1 << 23);
    pub(crate) const CREATE_USER: Self = Self(1 << 24);
    pub(crate) const EVENT: Self = Self(1 << 25);
    pub(crate) const TRIGGER: Self = Self(1 << 26);
    pub(crate) const CREATE_TABLESPACE: Self = Self(1 << 27);
    pub(crate) const GRANT_OPTION: Self = Self(1 << 28);
    /// To forget a person and to see such requests; ManxDB's own.
    pub(crate) const GDPR: Self = Self(1 << 29);

    /// Nothing.
    pub(crate) const NONE: Self = Self(0);

    /// Everything of `level` but GRANT OPTION.
    pub(crate) fn all(level: Level) -> Self {
        PRIVILEGES
            .iter()
            .filter(|(_, _, highest, _)| *highest >= level)
            .fold(Self::NONE, |sum, (_, one, ..)| sum.with(*one))
    }

    /// A set of an earlier release: who had everything there was at a level has what came since.
    pub(crate) fn renewed(self, level: Level) -> Self {
        let before = Self::all(level).without(Self::GDPR);
        if self.has(before) {
            self.with(Self::all(level))
        } else {
            self
        }
    }

    /// Both sets together.
    pub(crate) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set less the other.
    pub(crate) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all of `other` are here.
    pub(crate) const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether any of `other` is here.
    pub(crate) const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Names in MySQL's order, GRANT OPTION left out.
    pub(crate) fn names(self) -> Vec<&'static str> {
        PRIVILEGES
            .iter()
            .filter(|(_, one, ..)| self.has(*one))
            .map(|(name, ..)| *name)
            .collect()
    }
}

/// Where a privilege may be granted: each level includes the ones before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// `*.*` only.
    Global,
    /// A database too.
    Database,
    /// A table too.
    Table,
}

/// Name, bit, lowest level it may be granted at, and SHOW PRIVILEGES' context.
pub(crate) const PRIVILEGES: [(&str, Privileges, Level, &str); 29] = [
    ("SELECT", Privileges::SELECT, Level::Table, "Tables"),
    ("INSERT", Privileges::INSERT, Level::Table, "Tables"),
    ("UPDATE", Privileges::UPDATE, Level::Table, "Tables"),
    ("DELETE", Privileges::DELETE, Level::Table, "Tables"),
    (
        "CREATE",
        Privileges::CREATE,
        Level::Table,
        "Databases,Tables,Indexes",
    ),
    ("DROP", Privileges::DROP, Level::Table, "Databases,Tables"),
    ("RELOAD", Privileges::RELOAD, Level::Global, "Server Admin"),
    (
        "SHUTDOWN",
        Privileges::SHUTDOWN,
        Level::Global,
        "Server Admin",
    ),
    (
        "PROCESS",
        Privileges::PROCESS,
        Level::Global,
        "Server Admin",
    ),
    (
        "FILE",
        Privileges::FILE,
        Level::Global,
        "File access on server",
    ),
    (
        "REFERENCES",
        Privileges::REFERENCES,
        Level::Table,
        "Databases,Tables",
    ),
    ("INDEX", Privileges::INDEX, Level::Table, "Tables"),
    ("ALTER", Privileges::ALTER, Level::Table, "Tables"),
    (
        "SHOW DATABASES",
        Privileges::SHOW_DATABASES,
        Level::Global,
        "Server Admin",
    ),
    ("SUPER", Privileges::SUPER, Level::Global, "Server Admin"),
    (
        "CREATE TEMPORARY TABLES",
        Privileges::CREATE_TEMPORARY,
        Level::Database,
        "Databases",
    ),
    (
        "LOCK TABLES",
        Privileges::LOCK_TABLES,
        Level::Database,
        "Databases",
    ),
    (
        "EXECUTE",
        Privileges::EXECUTE,
        Level::Database,
        "Functions,Procedures",
    ),
    (
        "REPLICATION SLAVE",
        Privileges::REPLICATION_SLAVE,
        Level::Global,
        "Server Admin",
    ),
    (
        "REPLICATION CLIENT",
        Privileges::REPLICATION_CLIENT,
        Level::Global,
        "Server Admin",
    ),
    (
        "CREATE VIEW",
        Privileges::CREATE_VIEW,
        Level::Table,
        "Tables",
    ),
    ("SHOW VIEW", Privileges::SHOW_VIEW, Level::Table, "Tables"),
    (
        "CREATE ROUTINE",
        Privileges::CREATE_ROUTINE,
        Level::Database,
        "Databases",
    ),
    (
        "ALTER ROUTINE",
        Privileges::ALTER_ROUTINE,
        Level::Database,
        "Functions,Procedures",
    ),
    (
        "CREATE USER",
        Privileges::CREATE_USER,
        Level::Global,
        "Server Admin",
    ),
    ("EVENT", Privileges::EVENT, Level::Database, "Server Admin"),
    ("TRIGGER", Privileges::TRIGGER, Level::Table, "Tables"),
    (
        "CREATE TABLESPACE",
        Privileges::CREATE_TABLESPACE,
        Level::Global,
        "Server Admin",
    ),
    ("GDPR", Privileges::GDPR, Level::Database, "Databases"),
];

/// The set a GRANT list names, at `level`.
///
/// # Errors
/// 1144 or 1221 for a privilege that does not exist at the level, 1064 for an unknown one.
pub(crate) fn from_names(names: &[String], level: Level) -> SqlResult<Privileges> {
    let mut set = Privileges::NONE;
    for name in names {
        set = set.with(one(name, level)?);
    }
    Ok(set)
}

fn one(name: &str, level: Level) -> SqlResult<Privileges> {
    match name {
        "ALL" | "ALL PRIVILEGES" => return Ok(Privileges::all(level)),
        "GRANT OPTION" => return Ok(Privileges::GRANT_OPTION),
        "USAGE" => return Ok(Privileges::NONE),
        _ => {}
    }
    let Some((_, one, highest, _)) = PRIVILEGES.iter().find(|(known, ..)| *known == name) else {
        return Err(SqlError::not_supported(format!("privilege {name}")));
    };
    if *highest >= level {
        return Ok(*one);
    }
    if level == Level::Database {
        return Err(SqlError::new(
            1221,
            "HY000",
            "Incorrect usage of DB GRANT and GLOBAL PRIVILEGES",
        ));
    }
    Err(SqlError::new(
        1144,
        "42000",
        "Illegal GRANT/REVOKE command; please consult the manual to see which privileges can be used",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_depends_on_the_level() {
        assert!(Privileges::all(Level::Global).has(Privileges::SUPER));
        assert!(!Privileges::all(Level::Database).has(Privileges::SUPER));
        assert!(!Privileges::all(Level::Table).has(Privileges::LOCK_TABLES));
        assert!(Privileges::all(Level::Table).has(Privileges::SELECT));
        assert!(!Privileges::all(Level::Global).has(Privileges::GRANT_OPTION));
    }

    #[test]
    fn a_server_privilege_cannot_be_granted_on_a_database() {
        let list = vec!["SELECT".to_string(), "PROCESS".to_string()];
        assert_eq!(from_names(&list, Level::Database).unwrap_err().code, 1221);
        assert_eq!(from_names(&list, Level::Table).unwrap_err().code, 1144);
        assert!(from_names(&list, Level::Global).is_ok());
    }
}
