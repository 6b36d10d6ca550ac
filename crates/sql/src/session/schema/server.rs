//! What the server is: engines, character sets, collations, connections, keywords.

use super::define::{C, Definition, NAME, number, text, text_or_null};
use super::source::Source;
use crate::error::SqlResult;
use crate::session::accounts::Privileges;
use crate::session::masked::without_values;
use crate::session::variables::charset::{CHARSETS, COLLATIONS};
use crate::types::{Row, Value};

/// ENGINES, `CHARACTER_SETS`, COLLATIONS, PROCESSLIST, PLUGINS, KEYWORDS, ….
pub(super) const TABLES: &[Definition] = &[
    Definition {
        name: "ENGINES",
        columns: &[
            ("ENGINE", NAME),
            ("SUPPORT", C::Text(8)),
            ("COMMENT", C::Text(80)),
            ("TRANSACTIONS", C::Text(3)),
            ("XA", C::Text(3)),
            ("SAVEPOINTS", C::Text(3)),
        ],
        rows: engines,
    },
    Definition {
        name: "CHARACTER_SETS",
        columns: &[
            ("CHARACTER_SET_NAME", NAME),
            ("DEFAULT_COLLATE_NAME", NAME),
            ("DESCRIPTION", C::Text(2048)),
            ("MAXLEN", C::Int),
        ],
        rows: character_sets,
    },
    Definition {
        name: "COLLATIONS",
        columns: &[
            ("COLLATION_NAME", NAME),
            ("CHARACTER_SET_NAME", NAME),
            ("ID", C::BigU),
            ("IS_DEFAULT", C::Text(3)),
            ("IS_COMPILED", C::Text(3)),
            ("SORTLEN", C::Int),
            ("PAD_ATTRIBUTE", C::Text(9)),
        ],
        rows: collations,
    },
    Definition {
        name: "COLLATION_CHARACTER_SET_APPLICABILITY",
        columns: &[("COLLATION_NAME", NAME), ("CHARACTER_SET_NAME", NAME)],
        rows: applicability,
    },
    Definition {
        name: "PROCESSLIST",
        columns: &[
            ("ID", C::BigU),
            ("USER", C::Text(32)),
            ("HOST", C::Text(261)),
            ("DB", NAME),
            ("COMMAND", C::Text(16)),
            ("TIME", C::Int),
            ("STATE", NAME),
            ("INFO", C::Long),
        ],
        rows: processlist,
    },
    Definition {
        name: "PLUGINS",
        columns: &[
            ("PLUGIN_NAME", NAME),
            ("PLUGIN_VERSION", C::Text(20)),
            ("PLUGIN_STATUS", C::Text(10)),
            ("PLUGIN_TYPE", C::Text(80)),
            ("PLUGIN_TYPE_VERSION", C::Text(20)),
            ("PLUGIN_LIBRARY", NAME),
            ("PLUGIN_LIBRARY_VERSION", C::Text(20)),
            ("PLUGIN_AUTHOR", NAME),
            ("PLUGIN_DESCRIPTION", C::Long),
            ("PLUGIN_LICENSE", C::Text(80)),
            ("LOAD_OPTION", C::Text(64)),
        ],
        rows: plugins,
    },
    Definition {
        name: "KEYWORDS",
        columns: &[("WORD", C::Text(128)), ("RESERVED", C::Int)],
        rows: keywords,
    },
];

#[allow(clippy::unnecessary_wraps)] // the shape of every rows function
fn engines(_source: &Source<'_>) -> SqlResult<Vec<Row>> {
    Ok(vec![vec![
        text("InnoDB"),
        text("DEFAULT"),
        text("ManxDB's own transactional storage under the name clients expect"),
        text("YES"),
        text("NO"),
        text("YES"),
    ]])
}

#[allow(clippy::unnecessary_wraps)]
fn character_sets(_source: &Source<'_>) -> SqlResult<Vec<Row>> {
    Ok(CHARSETS
        .iter()
        .map(|set| {
            vec![
                text(set.name),
                text(set.default_collation),
                text(set.description),
                Value::Int(set.max_length),
            ]
        })
        .collect())
}

#[allow(clippy::unnecessary_wraps)]
fn collations(_source: &Source<'_>) -> SqlResult<Vec<Row>> {
    Ok(COLLATIONS
        .iter()
        .map(|row| {
            vec![
                text(row.name),
                text(row.charset),
                Value::Int(row.id),
                text(if row.is_default { "Yes" } else { "" }),
                text("Yes"),
                number(1),
                text(row.pad),
            ]
        })
        .collect())
}

#[allow(clippy::unnecessary_wraps)]
fn applicability(_source: &Source<'_>) -> SqlResult<Vec<Row>> {
    Ok(COLLATIONS
        .iter()
        .map(|row| vec![text(row.name), text(row.charset)])
        .collect())
}

#[allow(clippy::unnecessary_wraps)]
fn processlist(source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let instance = &source.state.instance;
    let all = source.account().global.has_any(Privileges::PROCESS);
    let user = source.state.user.borrow().clone();
    let now = instance.host.monotonic_micros();
    let mut rows = Vec::new();
    let has_owners = instance.owner_graph().is_some();
    let shown = |text: String| {
        if has_owners {
            return without_values(&text);
        }
        text
    };
    for process in instance.processes.list() {
        let activity = process.activity();
        if !all && activity.user != user {
            continue;
        }
        let state = if activity.text.is_some() {
            "executing"
        } else {
            ""
        };
        rows.push(vec![
            number(process.id),
            text(activity.user),
            text(activity.peer),
            text_or_null(activity.database),
            text(activity.command),
            number((now - activity.since_micros) / 1_000_000),
            text(state),
            text_or_null(activity.text.map(shown)),
        ]);
    }
    Ok(rows)
}

#[allow(clippy::unnecessary_wraps)]
fn plugins(_source: &Source<'_>) -> SqlResult<Vec<Row>> {
    let row = |name: &str, kind: &str| {
        vec![
            text(name),
            text("1.0"),
            text("ACTIVE"),
            text(kind),
            text("1.0"),
            Value::Null,
            Value::Null,
            text("ManxDB"),
            text("Built in"),
            text("Apache-2.0"),
            text("FORCE"),
        ]
    };
    Ok(vec![
        row("mysql_native_password", "AUTHENTICATION"),
        row("caching_sha2_password", "AUTHENTICATION"),
        row("InnoDB", "STORAGE ENGINE"),
    ])
}

/// Reserved words clients quote; a short list of the ones MySQL 8 reserves.
const RESERVED: &str = "ADD ALL ALTER ANALYZE AND AS ASC BEFORE BETWEEN BIGINT BINARY BLOB BOTH BY \
CALL CASCADE CASE CHANGE CHAR CHARACTER CHECK COLLATE COLUMN CONDITION CONSTRAINT CONTINUE CONVERT \
CREATE CROSS CUBE CUME_DIST CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE \
DATABASES DECIMAL DECLARE DEFAULT DELAYED DELETE DENSE_RANK DESC DESCRIBE DETERMINISTIC DISTINCT \
DISTINCTROW DIV DOUBLE DROP DUAL EACH ELSE ELSEIF EMPTY ENCLOSED ESCAPED EXCEPT EXISTS EXIT EXPLAIN \
FALSE FETCH FIRST_VALUE FLOAT FOR FORCE FOREIGN FROM FULLTEXT FUNCTION GENERATED GET GRANT GROUP \
GROUPING GROUPS HAVING HIGH_PRIORITY IF IGNORE IN INDEX INFILE INNER INOUT INSENSITIVE INSERT INT \
INTEGER INTERSECT INTERVAL INTO IS ITERATE JOIN JSON_TABLE KEY KEYS KILL LAG LAST_VALUE LATERAL LEAD \
LEADING LEAVE LEFT LIKE LIMIT LINEAR LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT \
LOOP LOW_PRIORITY MATCH MAXVALUE MEDIUMBLOB MEDIUMINT MEDIUMTEXT MOD NATURAL NOT NTH_VALUE NTILE NULL \
NUMERIC OF ON OPTIMIZE OPTION OPTIONALLY OR ORDER OUT OUTER OUTFILE OVER PARTITION PERCENT_RANK \
PRECISION PRIMARY PROCEDURE PURGE RANGE RANK READ READS REAL RECURSIVE REFERENCES REGEXP RELEASE \
RENAME REPEAT REPLACE REQUIRE RESTRICT RETURN REVOKE RIGHT RLIKE ROW ROWS ROW_NUMBER SCHEMA SCHEMAS \
SELECT SENSITIVE SEPARATOR SET SHOW SIGNAL SMALLINT SPATIAL SPECIFIC SQL SSL STARTING STORED \
STRAIGHT_JOIN SYSTEM TABLE TERMINATED THEN TINYBLOB TINYINT TINYTEXT TO TRAILING TRIGGER TRUE UNDO \
UNION UNIQUE UNLOCK UNSIGNED UPDATE USAGE USE USING UTC_DATE UTC_TIME UTC_TIMESTAMP VALUES VARBINARY \
VARCHAR VARYING VIRTUAL WHEN WHERE WHILE WINDOW WITH WRITE XOR YEAR_MONTH ZEROFILL";

#[allow(clippy::unnecessary_wraps)]
fn keywords(_source: &Source<'_>) -> SqlResult<Vec<Row>> {
    Ok(RESERVED
        .split_whitespace()
        .map(|word| vec![text(word), number(1)])
        .collect())
}
