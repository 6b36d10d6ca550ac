//! Text to statements. `sqlparser` (MySQL dialect) parses; around it stand three small things:
//!
//! 1. [`scan`]: one pass over characters that takes statements apart and comments out.
//! 2. [`prepass`]: rewrites tokens `sqlparser` has no word for. Ownership annotations are noted
//!    and become plain REFERENCES; `||` becomes OR unless `PIPES_AS_CONCAT`; `?` gets its number;
//!    table options, view preludes, index hints without effect and `INTO @x` are lifted out.
//! 3. [`special`]: statements its tree cannot carry, in a tree of our own ([`Special`]).
//!
//! | statement | goes |
//! |---|---|
//! | SELECT, INSERT, REPLACE, UPDATE, DELETE, EXPLAIN of them, USE, SAVEPOINT and its kin | `sqlparser` |
//! | CREATE TABLE, CREATE VIEW, CREATE INDEX, DROP, TRUNCATE, RENAME TABLE | `sqlparser`, rewritten first |
//! | LOAD DATA, SET, SHOW, DESCRIBE, DO, BEGIN, COMMIT, ROLLBACK, PREPARE, EXECUTE, LOCK, KILL, FLUSH | [`Special`] |
//! | accounts, GRANT, REVOKE, CREATE/ALTER DATABASE, ALTER TABLE, ANALYZE TABLE and its kin | [`Special`] |
//! | triggers, routines, events, XA, HANDLER, FULLTEXT | error 1235 |

mod account;
mod administration;
mod alter;
mod canonical;
mod column;
mod database;
mod depth;
mod dialect;
mod explicit_table;
mod given;
mod hint;
mod load;
mod message;
mod operator;
mod ownership;
mod portable;
mod precedence;
mod prepass;
mod rewrite;
mod scan;
mod set;
mod show;
mod special;
mod template;
mod transaction;
mod tree;
mod words;

pub(crate) use self::words::quote_name;
pub(crate) use canonical::{
    calls_in, canonical, columns_in, displayed, displayed_definition, has_query, stored_mode,
};
pub(crate) use column::{
    is_binary_attribute, is_home_region_attribute, is_personal_attribute, is_zerofill_attribute,
};
pub use load::{IntoFile, LineFormat, LoadData, LoadTarget};
pub(crate) use ownership::link_in_comment;
pub(crate) use portable::in_default_mode;
pub use scan::Part;
pub use template::{Template, template};
pub use tree::{
    AccountName, AlterAction, GdprForget, GdprFormat, GdprUndo, GrantStatement, OwnershipChange,
    SetItem, SetScope, Show, Special, TableLock, UserSpec,
};

use sqlparser::ast::{
    DiscardObject, Expr, OptimizerHint, OptimizerHintStyle, SetExpr, SqliteOnConflict, Statement,
};
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::error::{SqlError, SqlResult};
use crate::types::{SqlMode, Value};
use dialect::ModeDialect;

/// Table alias under which ON DUPLICATE KEY UPDATE knows the row to be inserted: `VALUES(a)`
/// reaches the tree as a column of it.
pub const VALUES_ALIAS: &str = "VALUES()";
/// Text of the optimizer hint that stands for IGNORE in a DELETE's tree.
pub const IGNORE_HINT: &str = "IGNORE";
/// Longest text accepted, bytes.
const TEXT_BYTES_MAX: usize = 256 << 20;
/// Deepest nesting accepted.
const NESTING_MAX: usize = 400;

/// A statement with what the pre-pass lifted out of it.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The tree; a meaningless `DISCARD ALL` when `special` is set.
    pub statement: Statement,
    /// Set for statements in a tree of our own.
    pub special: Option<Special>,
    /// `?` in the text. Each reaches the tree as `Value::Placeholder("?N")`, N from 0 in the
    /// order of the text: clauses are bound in another order than they are written.
    pub param_count: usize,
    /// Types of the `?` that stand for constants of a [`Template`]; empty when they stand for
    /// parameters.
    pub constants: Vec<crate::types::DataType>,
    /// Ownership annotations of a CREATE or ALTER TABLE.
    pub annotations: Annotations,
    /// Options behind a CREATE TABLE's bracket: known name (`ENGINE`, `CHARACTER SET`, `COLLATE`,
    /// `COMMENT`, `AUTO_INCREMENT`, …) and value.
    pub table_options: Vec<(String, String)>,
    /// `SELECT … INTO @a, @b`: the names without `@`.
    pub into_variables: Vec<String>,
    /// `SELECT … INTO OUTFILE` or `INTO DUMPFILE`.
    pub into_file: Option<IntoFile>,
    /// The SELECT of a CREATE or ALTER VIEW, as text.
    pub view_query: Option<String>,
    /// IGNORE of an UPDATE or DELETE; also in the tree, as `or` and [`IGNORE_HINT`].
    pub ignore: bool,
    /// `/*+ MAX_EXECUTION_TIME(n) */` of a SELECT, milliseconds.
    pub time_limit_millis: Option<u32>,
    /// The text of this statement alone, comments blanked.
    pub text: String,
}

/// Ownership annotations of a CREATE or ALTER TABLE, by place in the statement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Annotations {
    /// `CREATE DATA_SUBJECT TABLE`.
    pub data_subject: bool,
    /// For each REFERENCES: line and column of the referenced table's name, and the annotation.
    pub references: Vec<((u64, u64), crate::catalog::OwnershipAnnotation)>,
    /// `ON GET …` and `ON DEL …` items.
    pub rules: Vec<manxdb_ownership::Rule>,
    /// `RETAIN FOR …`.
    pub retention: Option<manxdb_ownership::Retention>,
}

impl Annotations {
    /// The annotation of the REFERENCES whose table name begins at `place` (line, column).
    #[must_use]
    pub fn at(&self, place: (u64, u64)) -> crate::catalog::OwnershipAnnotation {
        self.references
            .iter()
            .find(|(other, _)| *other == place)
            .map(|(_, annotation)| *annotation)
            .unwrap_or_default()
    }
}

/// Splits `text` at top-level semicolons and parses each statement.
///
/// # Errors
/// As [`split`] and [`parse_part`].
pub fn parse(text: &str, mode: SqlMode) -> SqlResult<Vec<Parsed>> {
    split(text, mode)?
        .into_iter()
        .map(|part| parse_part(part, mode))
        .collect()
}

/// Splits `text` at top-level semicolons: at least one part.
///
/// # Errors
/// 1064 for an open comment, 1065 for an empty query, 1153 for a text beyond measure.
pub fn split(text: &str, mode: SqlMode) -> SqlResult<Vec<Part>> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(SqlError::new(
            1153,
            "08S01",
            "Got a packet bigger than 'max_allowed_packet' bytes",
        ));
    }
    let parts = scan::split(text, mode)?;
    if parts.is_empty() {
        return Err(SqlError::new(1065, "42000", "Query was empty"));
    }
    Ok(parts)
}

/// Parses the text of a template.
///
/// # Errors
/// As [`parse`].
pub fn parse_template(template: &Template, mode: SqlMode) -> SqlResult<Parsed> {
    let mut parsed = parse(&template.text, mode)?;
    match parsed.pop() {
        Some(mut only) if parsed.is_empty() && only.param_count == template.types.len() => {
            only.constants.clone_from(&template.types);
            Ok(only)
        }
        _ => Err(SqlError::internal("a template is not one statement")),
    }
}

/// Parses the text of one scalar expression, such as a stored DEFAULT or CHECK.
///
/// # Errors
/// As [`parse`].
pub fn parse_expression(text: &str, mode: SqlMode) -> SqlResult<Expr> {
    let dialect = ModeDialect { mode };
    let tokens = tokenize(&dialect, text)?;
    let tokens = rewrite::spellings(prepass::operators(tokens, mode)?)?;
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(NESTING_MAX)
        .with_tokens_with_locations(tokens);
    let expr = parser
        .parse_expr()
        .map_err(|error| message::from_parser(&error, text))?;
    expect_end(&parser, text)?;
    Ok(expr)
}

fn tokenize(dialect: &ModeDialect, text: &str) -> SqlResult<Vec<TokenWithSpan>> {
    let mut tokens = Tokenizer::new(dialect, text)
        .tokenize_with_location()
        .map_err(|error| message::from_parser(&error.into(), text))?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    Ok(tokens)
}

/// Parses one statement. A comment alone is [`Special::Nothing`].
///
/// # Errors
/// 1064 with the place, 1235 for what is not supported, 1436 for nesting beyond measure.
pub fn parse_part(part: Part, mode: SqlMode) -> SqlResult<Parsed> {
    parse_given(part, mode, None)
}

/// Parses a statement with these values in the places of its `?`: for statements that are not planned, and
/// so have no place for values of parameters. Its text keeps the `?`.
///
/// # Errors
/// As [`parse`]; 1210 for another number of values.
pub fn parse_with_values(text: &str, mode: SqlMode, values: &[Value]) -> SqlResult<Parsed> {
    let mut parts = split(text, mode)?;
    match parts.pop() {
        Some(only) if parts.is_empty() => parse_given(only, mode, Some(values)),
        _ => Err(SqlError::internal("a prepared text is not one statement")),
    }
}

fn parse_given(part: Part, mode: SqlMode, values: Option<&[Value]>) -> SqlResult<Parsed> {
    let Part {
        text,
        time_limit_millis,
    } = part;
    let dialect = ModeDialect { mode };
    let is_nothing = text.is_empty();
    let mut tokens = tokenize(&dialect, &text)?;
    if let Some(values) = values {
        tokens = given::with_values(tokens, values)?;
    }
    let mut tokens = prepass::operators(tokens, mode)?;
    let mut explained = tokens.split_off(prepass::explain_length(&tokens));
    let changing = explained.split_off(prepass::with_length(&explained));
    tokens.extend(rewrite::spellings(explained)?);
    tokens.extend(rewrite::spellings(changing)?);
    let mut parsed = Parsed {
        statement: Statement::Discard {
            object_type: DiscardObject::ALL,
        },
        special: None,
        param_count: prepass::count_params(&tokens),
        constants: Vec::new(),
        annotations: Annotations::default(),
        table_options: Vec::new(),
        into_variables: Vec::new(),
        into_file: None,
        view_query: None,
        ignore: false,
        time_limit_millis,
        text,
    };
    if is_nothing {
        parsed.special = Some(Special::Nothing);
        return Ok(parsed);
    }
    let tokens = prepass::links_of_alter(tokens, &mut parsed);
    if let Some(special) = special::parse(&dialect, &tokens, &parsed.text)? {
        parsed.special = Some(special);
        return Ok(parsed);
    }
    let tokens = prepass::lift(&dialect, tokens, &mut parsed)?;
    let mut parser = Parser::new(&dialect)
        .with_recursion_limit(NESTING_MAX)
        .with_tokens_with_locations(tokens);
    parsed.statement = parser
        .parse_statement()
        .map_err(|error| message::from_parser(&error, &parsed.text))?;
    expect_end(&parser, &parsed.text)?;
    if parsed.ignore {
        put_ignore(&mut parsed.statement);
    }
    Ok(parsed)
}

/// Says IGNORE in the tree, where planning looks for it.
fn put_ignore(statement: &mut Statement) {
    match statement {
        Statement::Update(update) => update.or = Some(SqliteOnConflict::Ignore),
        Statement::Delete(delete) => delete.optimizer_hints.push(OptimizerHint {
            prefix: String::new(),
            text: IGNORE_HINT.into(),
            style: OptimizerHintStyle::MultiLine,
        }),
        Statement::Explain { statement, .. } => put_ignore(statement),
        Statement::Query(query) => {
            if let SetExpr::Update(change) | SetExpr::Delete(change) = query.body.as_mut() {
                put_ignore(change);
            }
        }
        _ => {}
    }
}

/// Fails with 1064 when anything is left.
fn expect_end(parser: &Parser, text: &str) -> SqlResult<()> {
    if words::at_end(parser) {
        return Ok(());
    }
    let error = parser
        .expected::<()>("end of statement", parser.peek_token())
        .err();
    Err(error.map_or_else(
        || message::near("", 1),
        |error| message::from_parser(&error, text),
    ))
}

#[cfg(test)]
mod tests;
