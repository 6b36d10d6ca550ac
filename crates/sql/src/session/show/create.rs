//! SHOW CREATE TABLE and VIEW: text that makes the same thing again.

use std::fmt::Write as _;

use manxdb_ownership::{Retention, Rule, RuleAction};

use crate::catalog::{
    Column, ColumnDefault, ForeignKey, ForeignKeyAction, OwnershipAnnotation, ROWS, Table, View,
};
use crate::error::{SqlError, SqlResult};
use crate::parser::quote_name as quoted;
use crate::parser::{Show, displayed, displayed_definition};
use crate::session::ResultSink;
use crate::session::accounts::{Need, Privileges, access};
use crate::session::schema::{keys, relations};
use crate::session::session::Session;
use crate::statement::ddl::says;
use crate::types::{Collation, DataType, Value};

impl Session {
    pub(super) fn show_create_relation(
        &mut self,
        show: &Show,
        sink: &mut dyn ResultSink,
        more: bool,
    ) -> SqlResult<()> {
        let object = show
            .object
            .as_ref()
            .ok_or_else(|| SqlError::syntax("a name was expected"))?;
        let (database, name) = self.object_name(object, show.database.as_deref())?;
        let (database, name) = self.require_relation(&database, &name)?;
        let catalog = self.catalog();
        let text = |value: String| Value::Text(value);
        if let Some(view) = catalog.view(&database, &name) {
            let need = Need::table(Privileges::SHOW_VIEW, "SHOW VIEW", &database, &name);
            access::check(&self.state.account(), &need, &self.state.client.host)?;
            let names = [
                "View",
                "Create View",
                "character_set_client",
                "collation_connection",
            ];
            let row = vec![
                text(view.name.clone()),
                text(create_view(view)),
                text("utf8mb4".to_string()),
                text("utf8mb4_0900_ai_ci".to_string()),
            ];
            return self.send_rows(&names, &[row], sink, more);
        }
        if show.what == "CREATE VIEW" {
            return Err(SqlError::new(
                1347,
                "HY000",
                format!("'{database}.{name}' is not VIEW"),
            ));
        }
        let Ok(table) = catalog.table(&database, &name) else {
            return Err(SqlError::not_supported(
                "SHOW CREATE TABLE of a computed table",
            ));
        };
        let next = self.instance().next_auto_increment(table);
        let row = vec![text(table.name.clone()), text(create_table(table, next))];
        self.send_rows(&["Table", "Create Table"], &[row], sink, more)
    }
}

fn create_view(view: &View) -> String {
    let (user, host) = view
        .definer
        .rsplit_once('@')
        .unwrap_or((&view.definer, "%"));
    let columns = if view.columns.is_empty() {
        String::new()
    } else {
        let names: Vec<String> = view.columns.iter().map(|name| quoted(name)).collect();
        format!(" ({})", names.join(","))
    };
    format!(
        "CREATE ALGORITHM=UNDEFINED DEFINER={}@{} SQL SECURITY DEFINER VIEW {}{columns} AS {}",
        quoted(user),
        quoted(host),
        quoted(&view.name),
        view.query
    )
}

/// The statement that makes `table`; `next` is its `AUTO_INCREMENT`, shown above 1.
pub(crate) fn create_table(table: &Table, next: Option<u64>) -> String {
    let mut lines: Vec<String> = table
        .visible_columns()
        .map(|(_, column)| column_line(table, column))
        .collect();
    for (name, unique, comment, parts) in keys::keys(table) {
        let id = match name {
            "PRIMARY" => Some(ROWS),
            name => {
                let mut indexes = table.indexes.iter();
                let index = indexes.find(|index| index.name == name);
                index.map(|index| index.id)
            }
        };
        let is_ordered = id.is_some_and(|id| table.blinding.ordered.contains(&id));
        // COMMENT 'ORDERED' says it already.
        let is_shown = is_ordered && !comment.trim().eq_ignore_ascii_case("ORDERED");
        let order = if is_shown { " /*!99999 ORDERED */" } else { "" };
        let columns: Vec<String> = parts.iter().map(|part| key_part(table, *part)).collect();
        let head = match (name, unique) {
            ("PRIMARY", _) => "PRIMARY KEY".to_string(),
            (name, true) => format!("UNIQUE KEY {}", quoted(name)),
            (name, false) => format!("KEY {}", quoted(name)),
        };
        lines.push(format!(
            "  {head} ({}){order}{}",
            columns.join(","),
            comment_clause(comment)
        ));
    }
    lines.extend(foreign_key_lines(table));
    for check in &table.checks {
        let state = if check.enforced {
            ""
        } else {
            " /*!80016 NOT ENFORCED */"
        };
        lines.push(format!(
            "  CONSTRAINT {} CHECK ({}){state}",
            quoted(&check.name),
            displayed_definition(&check.expression)
        ));
    }
    let mut text = format!(
        "CREATE {}TABLE {} (\n{}\n{})",
        match (table.temporary, table.data_subject) {
            (true, _) => "TEMPORARY ",
            (false, true) => "/*!99999 DATA_SUBJECT */ ",
            (false, false) => "",
        },
        quoted(&table.name),
        lines.join(",\n"),
        rules(table)
    );
    text.push_str(" ENGINE=InnoDB");
    if let Some(next) = next.filter(|next| *next > 1) {
        let _ = write!(text, " AUTO_INCREMENT={next}");
    }
    let collation = table.collation;
    let _ = write!(
        text,
        " DEFAULT CHARSET={} COLLATE={}",
        collation.charset(),
        collation.name()
    );
    if !table.comment.is_empty() {
        let _ = write!(text, " COMMENT={}", literal(&table.comment));
    }
    if table.ownership.unowned_allowed {
        text.push_str(" /*!99999 UNOWNED ALLOWED */");
    }
    text
}

fn literal(text: &str) -> String {
    format!(
        "'{}'",
        text.replace('\\', "\\\\")
            .replace('\'', "''")
            .replace('\n', "\\n")
    )
}

fn comment_clause(comment: &str) -> String {
    if comment.is_empty() {
        String::new()
    } else {
        format!(" COMMENT {}", literal(comment))
    }
}

fn column_line(table: &Table, column: &Column) -> String {
    let mut line = format!("  {} {}", quoted(&column.name), column.ty.sql_name());
    let collation = column.ty.collation().filter(|_| column.ty.is_text());
    if let Some(collation) = collation {
        if collation != table.collation {
            let _ = write!(line, " CHARACTER SET {}", collation.charset());
        }
        if collation != Collation::default() || collation != table.collation {
            let _ = write!(line, " COLLATE {}", collation.name());
        }
    }
    if let Some(generated) = &column.generated {
        let _ = write!(
            line,
            " GENERATED ALWAYS AS ({}) {}",
            displayed(&generated.expression),
            relations::generated_kind(generated.kind)
        );
    }
    if column.not_null {
        line.push_str(" NOT NULL");
    } else if matches!(column.ty, DataType::Timestamp { .. }) {
        line.push_str(" NULL");
    }
    if column.auto_increment {
        line.push_str(" AUTO_INCREMENT");
    } else if column.generated.is_some() {
        // No default: its value is computed.
    } else if let Some(default) = default_clause(column) {
        let _ = write!(line, " DEFAULT {default}");
    }
    if column.on_update_now {
        let _ = write!(line, " ON UPDATE {}", relations::now_text(&column.ty));
    }
    line.push_str(&comment_clause(&column.comment));
    let mut annotate = |is_annotated: bool, word: &str| {
        // COMMENT 'PERSONAL' says it already.
        if is_annotated && !says(&column.comment, word) {
            let _ = write!(line, " /*!99999 {word} */");
        }
    };
    annotate(table.blinding.personal.contains(&column.id), "PERSONAL");
    annotate(
        table.ownership.home_region == Some(column.id),
        "HOME_REGION",
    );
    line
}

/// MySQL writes `DEFAULT NULL` for nullable columns without one, and quotes literals.
fn default_clause(column: &Column) -> Option<String> {
    let blob = matches!(column.ty, DataType::Text { .. } | DataType::Blob { .. });
    match &column.default {
        None if column.not_null || blob => None,
        None => Some("NULL".to_string()),
        Some(ColumnDefault::Now) => Some(relations::now_text(&column.ty)),
        Some(ColumnDefault::Expression(text)) => Some(format!("({})", displayed_definition(text))),
        Some(ColumnDefault::Literal(text)) if text.eq_ignore_ascii_case("NULL") => {
            (!column.not_null && !blob).then(|| "NULL".to_string())
        }
        Some(ColumnDefault::Literal(text)) if is_plain(text) => Some(format!("'{text}'")),
        Some(ColumnDefault::Literal(text)) => Some(text.clone()),
    }
}

/// A number, which MySQL shows in quotes.
fn is_plain(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'))
}

fn key_part(table: &Table, (at, prefix, descending): (usize, Option<u32>, bool)) -> String {
    let order = if descending { " DESC" } else { "" };
    let column = table.columns.get(at);
    if let Some(column) = column.filter(|column| column.is_hidden()) {
        return format!("({}){order}", displayed(column.shown_name()));
    }
    let name = column.map_or("", |column| column.name.as_str());
    let prefix = prefix
        .map(|length| format!("({length})"))
        .unwrap_or_default();
    format!("{}{prefix}{order}", quoted(name))
}

/// By name, whatever the order they were added in: MySQL's order.
fn foreign_key_lines(table: &Table) -> Vec<String> {
    let mut by_name: Vec<_> = keys::enforced(table).collect();
    by_name.sort_by_key(|key| key.name.to_lowercase());
    by_name
        .into_iter()
        .map(|key| {
            let columns: Vec<String> = key
                .columns
                .iter()
                .map(|at| key_part(table, (*at, None, false)))
                .collect();
            let referenced: Vec<String> = key.ref_columns.iter().map(|name| quoted(name)).collect();
            let target = if key.ref_database.eq_ignore_ascii_case(&table.database) {
                quoted(&key.ref_table)
            } else {
                format!("{}.{}", quoted(&key.ref_database), quoted(&key.ref_table))
            };
            format!(
                "  CONSTRAINT {} FOREIGN KEY ({}) {} {target} ({}){}{}",
                quoted(&key.name),
                columns.join(", "),
                annotation(key),
                referenced.join(", "),
                action("DELETE", key.on_delete),
                action("UPDATE", key.on_update),
            )
        })
        .collect()
}

/// REFERENCES with what it means for ownership, in a comment that MySQL and MariaDB pass over, so that
/// a dump can be loaded there too. What was inferred is said: wherever it is loaded it stays so.
fn annotation(key: &ForeignKey) -> String {
    let kind = key.edge.map(|edge| edge.kind).or(key.ownership.edge());
    match kind {
        Some(kind) => format!("REFERENCES /*!99999 {} */", kind.word()),
        None if key.ownership == OwnershipAnnotation::ReferencesOnly => {
            "REFERENCES /*!99999 ONLY */".to_string()
        }
        None => "REFERENCES".to_string(),
    }
}

/// ON GET and ON DEL, a line each, in comments like [`annotation`]'s, each with the comma before it.
fn rules(table: &Table) -> String {
    let mut lines = String::new();
    for rule in &table.ownership.rules {
        let _ = writeln!(lines, "  /*!99999 , {} */", rule_text(rule));
    }
    if let Some(retention) = &table.ownership.retention {
        let retention = Retention {
            after: quoted(&retention.after),
            ..retention.clone()
        };
        let _ = writeln!(lines, "  /*!99999 , {retention} */");
    }
    lines
}

fn rule_text(rule: &Rule) -> String {
    let column = quoted(&rule.subject.column);
    let subject = match &rule.subject.table {
        Some(table) => format!("{} ({column})", quoted(table)),
        None => column,
    };
    let action = match &rule.action {
        RuleAction::DeleteRow => "DELETE_ROW".to_string(),
        RuleAction::Anonymise(columns) => {
            let columns: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
            format!("ANON ({})", columns.join(", "))
        }
    };
    format!("{} {subject} {action}", rule.event)
}

fn action(event: &str, action: ForeignKeyAction) -> String {
    match action {
        ForeignKeyAction::NoAction => String::new(),
        other => format!(" ON {event} {}", keys::rule(other)),
    }
}
