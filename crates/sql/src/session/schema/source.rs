//! What a session may see of what exists.

use std::sync::Arc;

use crate::catalog::{Catalog, Database, Table, View};
use crate::session::accounts::{Account, Privileges};
use crate::session::state::SessionState;
use crate::types::ColumnMeta;

/// A session's view of the instance, for computing rows.
pub(crate) struct Source<'a> {
    /// The session.
    pub state: &'a SessionState,
    /// The statement's catalog.
    pub catalog: &'a Catalog,
}

impl<'a> Source<'a> {
    /// For one statement.
    pub(crate) fn new(state: &'a SessionState, catalog: &'a Catalog) -> Self {
        Self { state, catalog }
    }

    /// The account that asks.
    pub(crate) fn account(&self) -> Arc<Account> {
        self.state.account()
    }

    /// Stored databases it may see.
    pub(crate) fn databases(&self) -> Vec<&'a Arc<Database>> {
        let account = self.account();
        let all = account.global.has_any(Privileges::SHOW_DATABASES);
        self.catalog
            .databases
            .values()
            .filter(|database| all || account.sees_database(&database.name))
            .collect()
    }

    /// Stored tables it may see.
    pub(crate) fn tables(&self) -> Vec<&'a Arc<Table>> {
        let account = self.account();
        self.databases()
            .into_iter()
            .flat_map(|database| database.tables.values())
            .filter(|table| table.temporary || sees(&account, &table.database, &table.name))
            .collect()
    }

    /// Views it may see.
    pub(crate) fn views(&self) -> Vec<&'a Arc<View>> {
        let account = self.account();
        self.databases()
            .into_iter()
            .flat_map(|database| database.views.values())
            .filter(|view| sees(&account, &view.database, &view.name))
            .collect()
    }

    /// Columns of a view; none when it no longer binds.
    pub(crate) fn view_columns(&self, view: &View) -> Vec<ColumnMeta> {
        let settings = self.state.settings();
        let tables = super::SessionTables::new(self.state, self.catalog);
        let context = crate::binder::BindContext {
            catalog: self.catalog,
            database: Some(&view.database),
            sql_mode: settings.sql_mode.of_view_text(),
            collation: settings.collation,
            virtual_tables: &tables,
            source: Some(&view.query),
            constants: &[],
            with: None,
            for_view: false,
        };
        let planned = crate::parser::parse(&view.query, settings.sql_mode.of_view_text())
            .ok()
            .and_then(|mut statements| statements.pop())
            .and_then(|parsed| {
                crate::statement::plan(&context, &parsed.statement)
                    .ok()
                    .flatten()
            });
        let Some(crate::statement::StatementPlan::Query(plan)) = planned else {
            return Vec::new();
        };
        let mut columns = plan.columns;
        for (column, name) in columns.iter_mut().zip(&view.columns) {
            column.name.clone_from(name);
        }
        columns
    }
}

fn sees(account: &Account, database: &str, table: &str) -> bool {
    account.on_table(database, table) != Privileges::NONE
}
