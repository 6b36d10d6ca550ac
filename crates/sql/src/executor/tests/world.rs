//! A database in memory for tests of queries: tables from short descriptions, rows from VALUES.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use manxdb_storage::MemoryEngine;
use manxdb_txn::{
    CommitPath, IsolationLevel, LocalOptions, LocalPath, Transaction, TxnError, TxnId, Waiter,
};
use sqlparser::ast;

use crate::binder::{BindContext, plan_query};
use crate::catalog::{
    Catalog, Column, ColumnId, Database, Index, IndexColumn, IndexId, IndexState, Table, TableId,
    View, VirtualTables,
};
use crate::encoding;
use crate::error::{SqlError, SqlResult};
use crate::executor::operator::{Demand, Making, Run, build};
use crate::executor::{Analysis, Reading, SubqueryRunner};
use crate::explain::{ExplainFormat, explain};
use crate::expr::{EvalContext, SessionInfo, Warning};
use crate::plan::Plan;
use crate::types::{self, Collation, DataType, Row, SqlMode, Value};

/// Nobody to wait for in a test of one thread.
struct Alone;

impl Waiter for Alone {
    fn wait(&self, _ready: &dyn Fn() -> bool) -> Result<(), TxnError> {
        Err(TxnError::LockTimeout)
    }
    fn wake(&self) {}
    fn check(&self) -> Result<(), TxnError> {
        Ok(())
    }
}

struct NoVirtualTables;

impl VirtualTables for NoVirtualTables {
    fn table(&self, _database: &str, _name: &str) -> Option<Arc<Table>> {
        None
    }
    fn rows(&self, _database: &str, _name: &str) -> SqlResult<Vec<Row>> {
        Ok(Vec::new())
    }
}

#[derive(Default)]
struct TestSession {
    variables: RefCell<BTreeMap<String, Value>>,
}

impl SessionInfo for TestSession {
    fn database(&self) -> Option<String> {
        Some("shop".to_string())
    }
    fn current_user(&self) -> String {
        "root@localhost".to_string()
    }
    fn connection_id(&self) -> u64 {
        7
    }
    fn last_insert_id(&self) -> u64 {
        0
    }
    fn set_last_insert_id(&self, _id: u64) {}
    fn row_count(&self) -> i64 {
        -1
    }
    fn found_rows(&self) -> u64 {
        0
    }
    fn system_variable(&self, _name: &str, _global: bool) -> SqlResult<Value> {
        Ok(Value::Text("8.0".to_string()))
    }
    fn user_variable(&self, name: &str) -> Value {
        self.variables
            .borrow()
            .get(name)
            .cloned()
            .unwrap_or(Value::Null)
    }
    fn set_user_variable(&self, name: &str, value: Value) {
        self.variables.borrow_mut().insert(name.to_string(), value);
    }
    fn sleep(&self, _seconds: f64) -> SqlResult<bool> {
        Ok(false)
    }
    fn get_lock(&self, _name: &str, _timeout_seconds: Option<f64>) -> SqlResult<i64> {
        Ok(1)
    }
    fn release_lock(&self, _name: &str) -> Option<i64> {
        Some(1)
    }
    fn release_all_locks(&self) -> u64 {
        0
    }
    fn lock_holder(&self, _name: &str) -> Option<u64> {
        None
    }
}

/// Catalog, one open transaction and the session's state.
pub struct World {
    pub catalog: Catalog,
    txn: Transaction,
    state: TestSession,
    pub mode: SqlMode,
    pub memory_limit: usize,
}

pub fn int() -> DataType {
    DataType::Int {
        width: types::IntWidth::Int,
        unsigned: false,
        display_width: None,
    }
}

impl World {
    pub fn new() -> Self {
        let engine = Arc::new(MemoryEngine::new());
        let path: Arc<dyn CommitPath> =
            Arc::new(LocalPath::open(engine, LocalOptions::default()).unwrap());
        let mut catalog = Catalog::default();
        let database = Database {
            name: "shop".to_string(),
            ..Database::default()
        };
        catalog
            .databases
            .insert("shop".to_string(), Arc::new(database));
        Self {
            catalog,
            txn: Transaction::begin(
                path,
                TxnId(1),
                IsolationLevel::Serializable,
                Arc::new(Alone),
            ),
            state: TestSession::default(),
            mode: crate::expr::testing::default_mode(),
            memory_limit: 64 << 20,
        }
    }

    /// `columns` as `name type[!]`, comma-separated, `!` for NOT NULL; `primary` and `indexes` as
    /// column names, unique indexes begin with `+`.
    pub fn table(&mut self, name: &str, columns: &str, primary: &str, indexes: &[&str]) {
        let columns: Vec<Column> = columns
            .split(',')
            .enumerate()
            .map(|(at, text)| column(at, text.trim()))
            .collect();
        let find = |wanted: &str| {
            let wanted = wanted.trim();
            columns.iter().position(|c| c.name == wanted).unwrap()
        };
        let database = self.catalog.databases.get_mut("shop").unwrap();
        let database = Arc::make_mut(database);
        let primary_key = primary
            .split(',')
            .filter(|c| !c.is_empty())
            .map(find)
            .collect();
        let indexes = indexes
            .iter()
            .enumerate()
            .map(|(at, text)| Index {
                id: IndexId(u32::try_from(at).unwrap() + 1),
                name: format!("i_{}", text.trim_start_matches('+').replace(',', "_")),
                columns: text
                    .trim_start_matches('+')
                    .split(',')
                    .map(|c| IndexColumn {
                        column: find(c),
                        prefix: None,
                        descending: false,
                    })
                    .collect(),
                unique: text.starts_with('+'),
                state: IndexState::Public,
                comment: String::new(),
            })
            .collect();
        let table = Table {
            id: TableId(u32::try_from(database.tables.len()).unwrap() + 1),
            database: "shop".to_string(),
            name: name.to_string(),
            schema_version: 1,
            primary_key,
            indexes,
            columns: columns.clone(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            collation: Collation::default(),
            comment: String::new(),
            data_subject: false,
            temporary: false,
            analyzed: None,
            blinding: crate::catalog::Blinding::default(),
            copying: None,
            sealing: crate::catalog::Sealing::default(),
            ownership_rules: Vec::new(),
            ownership: crate::catalog::Ownership::default(),
            next_column_id: 100,
            next_index_id: 100,
            created_at: 0,
        };
        database.tables.insert(name.to_string(), Arc::new(table));
    }

    pub fn view(&mut self, name: &str, query: &str) {
        let database = self.catalog.databases.get_mut("shop").unwrap();
        let view = View {
            database: "shop".to_string(),
            name: name.to_string(),
            columns: Vec::new(),
            query: query.to_string(),
            definer: "root@localhost".to_string(),
            schema_version: 1,
        };
        Arc::make_mut(database)
            .views
            .insert(name.to_string(), Arc::new(view));
    }

    /// Stores rows given as `(1, 'a'), (2, NULL)`.
    pub fn fill(&self, table: &str, rows: &str) {
        let table = self.catalog.table("shop", table).unwrap().clone();
        let selects: Vec<String> = rows
            .trim()
            .trim_end_matches(')')
            .trim_start_matches('(')
            .split("),")
            .map(|row| format!("SELECT {}", row.trim().trim_start_matches('(')))
            .collect();
        let zone = jiff::tz::TimeZone::UTC;
        for (number, select) in selects.iter().enumerate() {
            let rows = self.rows(select, &[]).unwrap();
            let mut stored = Vec::new();
            let (assigned, _) = crate::expr::testing::with_context(true, |ctx| {
                rows[0]
                    .iter()
                    .zip(&table.columns)
                    .map(|(v, c)| crate::expr::assign(ctx, v.clone(), c, number + 1))
                    .collect::<SqlResult<Vec<Value>>>()
            });
            stored.extend(assigned.unwrap());
            let suffix =
                encoding::row_key_suffix(&table, &stored, number as u64 + 1, &zone).unwrap();
            for index in &table.indexes {
                let key = encoding::index_key(&table, index, &stored, &suffix, &zone).unwrap();
                self.txn.put(key, suffix.clone()).unwrap();
            }
            let record = encoding::encode_row(&table, &stored, &zone);
            self.txn
                .put(encoding::row_key(&table, &suffix), record)
                .unwrap();
        }
    }

    pub fn bind_context<'a>(&'a self, source: Option<&'a str>) -> BindContext<'a> {
        BindContext {
            catalog: &self.catalog,
            database: Some("shop"),
            sql_mode: self.mode,
            collation: Collation::default(),
            virtual_tables: &NoVirtualTables,
            source,
            constants: &[],
            with: None,
            for_view: false,
        }
    }

    pub fn query(&self, sql: &str) -> ast::Query {
        let mut parsed = crate::parser::parse(sql, self.mode).unwrap();
        match parsed.remove(0).statement {
            ast::Statement::Query(query) => *query,
            other => panic!("no query: {other}"),
        }
    }

    pub fn plan(&self, sql: &str) -> SqlResult<Plan> {
        let query = self.query(sql);
        plan_query(&self.bind_context(Some(sql)), &query)
    }

    pub fn rows(&self, sql: &str, params: &[Value]) -> SqlResult<Vec<Row>> {
        let plan = self.plan(sql)?;
        self.run_plan(&plan, params, None).map(|(rows, _)| rows)
    }

    pub fn run_plan(
        &self,
        plan: &Plan,
        params: &[Value],
        analysis: Option<&Analysis>,
    ) -> SqlResult<(Vec<Row>, Vec<Warning>)> {
        let warnings = RefCell::new(Vec::new());
        let random = Cell::new(1);
        let ticks = Cell::new(0);
        let clock = || {
            ticks.set(ticks.get() + 1);
            ticks.get()
        };
        let runner =
            SubqueryRunner::new(&self.txn, &NoVirtualTables, &Alone, self.memory_limit, None);
        let eval = EvalContext {
            params,
            now_micros: crate::expr::testing::NOW,
            clock: &clock,
            time_zone: jiff::tz::TimeZone::UTC,
            sql_mode: self.mode,
            div_precision_increment: 4,
            group_concat_max_len: 1024,
            random: &random,
            seeded: crate::expr::functions::SeededRandom::default(),
            lists: crate::expr::ConstantLists::default(),
            session: &self.state,
            subqueries: &runner,
            warnings: &warnings,
            strict_write: false,
            refuses_null: true,
        };
        let reading = Reading {
            spill: None,
            txn: &self.txn,
            before: None,
            virtual_tables: &NoVirtualTables,
            waiter: &Alone,
            eval: &eval,
            memory_limit: self.memory_limit,
        };
        let run = Run::new(&reading, &[], plan.read_mode, analysis);
        let mut root = build(
            &plan.root,
            Making {
                measured: analysis.is_some(),
                demand: Demand::All,
            },
        );
        root.open(&run, &[])?;
        let mut rows = Vec::new();
        while let Some(row) = root.next(&run)? {
            rows.push(row);
        }
        Ok((rows, Vec::new()))
    }

    /// Rows as text: columns by `|`, rows by a space and `/`.
    pub fn shown(&self, sql: &str, params: &[Value]) -> String {
        let result = self.plan(sql).and_then(|plan| {
            let (rows, _) = self.run_plan(&plan, params, None)?;
            Ok((plan, rows))
        });
        let (plan, rows) = match result {
            Ok(result) => result,
            Err(SqlError { code, .. }) => return format!("error {code}"),
        };
        let rows: Vec<String> = rows
            .iter()
            .map(|row| {
                let values: Vec<String> = row
                    .iter()
                    .enumerate()
                    .map(|(at, value)| match plan.columns.get(at) {
                        Some(column) if !value.is_null() => types::to_text(value, &column.ty),
                        _ => "NULL".to_string(),
                    })
                    .collect();
                values.join("|")
            })
            .collect();
        rows.join(" / ")
    }

    pub fn tree(&self, sql: &str) -> String {
        let plan = self.plan(sql).unwrap();
        match explain(&plan, ExplainFormat::Tree, None)
            .remove(0)
            .remove(0)
        {
            Value::Text(text) => text,
            other => format!("{other:?}"),
        }
    }
}

fn column(at: usize, text: &str) -> Column {
    let (name, ty) = text.split_once(' ').unwrap();
    let not_null = ty.ends_with('!');
    let ty = match ty.trim_end_matches('!') {
        "int" => int(),
        "bigint" => DataType::BIGINT,
        "double" => DataType::DOUBLE,
        "decimal" => DataType::Decimal {
            precision: 10,
            scale: 2,
            sign: DataType::SIGNED,
        },
        "text" => DataType::Varchar {
            length: 60,
            collation: Collation::default(),
        },
        "datetime" => DataType::DateTime { fsp: 0 },
        "date" => DataType::Date,
        other => panic!("no type {other}"),
    };
    Column {
        id: ColumnId(u32::try_from(at).unwrap() + 1),
        name: name.to_string(),
        ty,
        not_null,
        default: None,
        on_update_now: false,
        auto_increment: false,
        comment: String::new(),
        absent_value: None,
        generated: None,
    }
}
