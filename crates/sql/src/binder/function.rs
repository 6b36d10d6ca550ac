//! Function calls whose arguments are not plain expressions.

use std::sync::Arc;

use sqlparser::ast;

use super::Binder;
use super::literal::text_literal;
use super::scope::ColumnName;
use crate::catalog::{ColumnDefault, Table};
use crate::error::{SqlError, SqlResult};
use crate::expr::functions;
use crate::plan::{Expr, ExprKind};
use crate::types::{DataType, SqlMode, Value};

/// Functions that compare their arguments as character strings, so that these need a collation in
/// common. Those that only join strings, like CONCAT, do not.
const COMPARING: [&str; 9] = [
    "FIELD",
    "FIND_IN_SET",
    "INSTR",
    "LOCATE",
    "NULLIF",
    "POSITION",
    "REPLACE",
    "STRCMP",
    "SUBSTRING_INDEX",
];

impl Binder<'_> {
    /// Binds a call of a scalar function.
    pub(crate) fn bind_call(&mut self, name: &str, function: &ast::Function) -> SqlResult<Expr> {
        let upper = name.to_ascii_uppercase();
        match upper.as_str() {
            "DATE_ADD" | "ADDDATE" | "DATE_SUB" | "SUBDATE" => {
                return self.bind_date_shift(&upper, function);
            }
            "TIMESTAMPDIFF" | "TIMESTAMPADD" | "GET_FORMAT" => {
                return self.bind_with_unit(&upper, function, 0);
            }
            "VALUES" => return self.bind_values(function),
            "DEFAULT" => return self.bind_default(function),
            "ROW" => return Err(super::expr::operand_columns(1)),
            _ => {}
        }
        let mut arguments = self.function_arguments(function)?;
        if upper == "IF" && arguments.len() == 3 {
            let otherwise = arguments.pop();
            if let (Some(result), Some(condition)) = (arguments.pop(), arguments.pop()) {
                return Expr::case(vec![(condition, result)], otherwise);
            }
        }
        if upper == "COALESCE" || upper == "IFNULL" || upper == "NULLIF" {
            self.infer_alike(&mut arguments);
        }
        if COMPARING.contains(&upper.as_str()) {
            let all: Vec<&Expr> = arguments.iter().collect();
            self.refuse_mixes(&upper.to_lowercase(), &all)?;
        }
        if upper == "WEEK" && arguments.len() == 1 {
            arguments.push(default_week_format());
        }
        let Some(known) = functions::lookup(&upper) else {
            return Err(unknown_function(self.context.database, name));
        };
        self.changing_calls += usize::from(!known.is_steady(arguments.len()));
        Expr::call(&upper, arguments)
    }

    /// Placeholders among alternatives take the type of the first typed one.
    fn infer_alike(&mut self, arguments: &mut [Expr]) {
        let known = arguments
            .iter()
            .map(|a| &a.ty)
            .find(|ty| **ty != DataType::Null);
        if let Some(known) = known.cloned() {
            for argument in arguments {
                self.infer(argument, &known);
            }
        }
    }

    /// All arguments as expressions.
    pub(crate) fn function_arguments(&mut self, function: &ast::Function) -> SqlResult<Vec<Expr>> {
        let syntax = || SqlError::syntax(format!("near '{function}'"));
        match &function.args {
            ast::FunctionArguments::None => Ok(Vec::new()),
            ast::FunctionArguments::Subquery(_) => Err(syntax()),
            ast::FunctionArguments::List(list) => {
                let mut bound = Vec::with_capacity(list.args.len());
                for argument in &list.args {
                    bound.push(self.bind_scalar(argument_expr(argument).ok_or_else(syntax)?)?);
                }
                Ok(bound)
            }
        }
    }

    fn bind_date_shift(&mut self, name: &str, function: &ast::Function) -> SqlResult<Expr> {
        let arguments = plain_arguments(function)?;
        let [date, amount] = arguments.as_slice() else {
            return Err(wrong_count(name));
        };
        let subtract = name.ends_with("SUB") || name.starts_with("SUB");
        let name = if subtract { "DATE_SUB" } else { "DATE_ADD" };
        let date = self.bind_scalar(date)?;
        if let ast::Expr::Interval(interval) = amount {
            return self.shift_date(name, date, interval);
        }
        let amount = self.bind_scalar(amount)?;
        if subtract {
            Expr::interval_sub(date, amount, "DAY")
        } else {
            Expr::interval_add(date, amount, "DAY")
        }
    }

    /// A call whose argument at `at` is a bare word.
    fn bind_with_unit(
        &mut self,
        name: &str,
        function: &ast::Function,
        at: usize,
    ) -> SqlResult<Expr> {
        let mut bound = Vec::new();
        for (index, argument) in plain_arguments(function)?.into_iter().enumerate() {
            if index == at {
                let word = argument.to_string().to_ascii_uppercase();
                let word = word.strip_prefix("SQL_TSI_").unwrap_or(&word);
                bound.push(text_literal(word, self.context.collation));
            } else {
                bound.push(self.bind_scalar(argument)?);
            }
        }
        Expr::call(name, bound)
    }

    /// `DEFAULT(column)`: the literal the column's definition names.
    fn bind_default(&mut self, function: &ast::Function) -> SqlResult<Expr> {
        let arguments = plain_arguments(function)?;
        let (table, column) = match arguments.as_slice() {
            [ast::Expr::Identifier(column)] => (None, column),
            [ast::Expr::CompoundIdentifier(parts)] => match parts.as_slice() {
                [.., table, column] => (Some(table.value.as_str()), column),
                _ => return Err(wrong_count("DEFAULT")),
            },
            _ => return Err(wrong_count("DEFAULT")),
        };
        let name = ColumnName {
            database: None,
            table,
            column: &column.value,
        };
        let (table, at) = self.base_column(&name)?;
        let column = &table.columns[at];
        let null = || Expr::literal(Value::Null, DataType::Null);
        let text = match &column.default {
            None if column.not_null => {
                let message = format!("Field '{}' doesn't have a default value", column.name);
                return Err(SqlError::new(1364, "HY000", message));
            }
            None => return Expr::cast(null(), column.ty.clone()),
            Some(ColumnDefault::Literal(text)) => text,
            Some(ColumnDefault::Now) => {
                return Err(SqlError::not_supported("DEFAULT() of CURRENT_TIMESTAMP"));
            }
            Some(ColumnDefault::Expression(_)) => {
                return Err(SqlError::new(
                    3773,
                    "HY000",
                    "DEFAULT function cannot be used with default value expressions",
                ));
            }
        };
        // What SHOW CREATE TABLE shows is written in the default mode.
        let parsed = crate::parser::parse_expression(text, SqlMode::default())?;
        let bound = self.bind_scalar(&parsed)?;
        Expr::cast(bound, column.ty.clone())
    }

    /// The base table's column a name means.
    fn base_column(&mut self, name: &ColumnName<'_>) -> SqlResult<(Arc<Table>, usize)> {
        self.resolve(name)?;
        for frame in self.frames.iter().rev() {
            let Some(index) = frame.find_column(name)? else {
                continue;
            };
            let found = &frame.columns[index];
            if let Some(origin) = &found.origin {
                return Ok(origin.clone());
            }
            if let (Some(database), Some(table)) = (&found.database, &found.table) {
                let table = self.context.catalog.table(database, table)?;
                let lower = found.name.to_lowercase();
                let at = table
                    .columns
                    .iter()
                    .position(|c| c.name.to_lowercase() == lower);
                if let Some(at) = at {
                    return Ok((Arc::clone(table), at));
                }
            }
        }
        Err(SqlError::not_supported(
            "DEFAULT() of what is no table's column",
        ))
    }

    /// `VALUES(column)` of ON DUPLICATE KEY UPDATE: the caller's scope has a table
    /// of that name.
    fn bind_values(&mut self, function: &ast::Function) -> SqlResult<Expr> {
        let arguments = plain_arguments(function)?;
        let column = match arguments.as_slice() {
            [ast::Expr::Identifier(column)] => column,
            [ast::Expr::CompoundIdentifier(parts)] => match parts.last() {
                Some(column) => column,
                None => return Err(wrong_count("VALUES")),
            },
            _ => return Err(wrong_count("VALUES")),
        };
        let name = ColumnName {
            database: None,
            table: Some(crate::parser::VALUES_ALIAS),
            column: &column.value,
        };
        self.resolve(&name)
    }

    /// TRIM in its spellings.
    pub(crate) fn bind_trim(
        &mut self,
        text: &ast::Expr,
        side: Option<ast::TrimWhereField>,
        what: Option<&ast::Expr>,
    ) -> SqlResult<Expr> {
        let mut arguments = vec![self.bind_scalar(text)?];
        if let Some(what) = what {
            arguments.push(self.bind_scalar(what)?);
        }
        let name = match side {
            None | Some(ast::TrimWhereField::Both) => "TRIM",
            Some(ast::TrimWhereField::Leading) => "LTRIM",
            Some(ast::TrimWhereField::Trailing) => "RTRIM",
        };
        Expr::call(name, arguments)
    }
}

/// The expression of an unnamed argument.
fn argument_expr(argument: &ast::FunctionArg) -> Option<&ast::Expr> {
    match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

fn plain_arguments(function: &ast::Function) -> SqlResult<Vec<&ast::Expr>> {
    let syntax = || SqlError::syntax(format!("near '{function}'"));
    let ast::FunctionArguments::List(list) = &function.args else {
        return Err(syntax());
    };
    list.args
        .iter()
        .map(|argument| argument_expr(argument).ok_or_else(syntax))
        .collect()
}

fn wrong_count(name: &str) -> SqlError {
    SqlError::new(
        1582,
        "42000",
        format!("Incorrect parameter count in the call to native function '{name}'"),
    )
}

fn unknown_function(database: Option<&str>, name: &str) -> SqlError {
    if functions::is_left_out(name) {
        return SqlError::not_supported(format!("the function {name}"));
    }
    match database {
        Some(database) => SqlError::new(
            1305,
            "42000",
            format!("FUNCTION {database}.{name} does not exist"),
        ),
        None => SqlError::new(1305, "42000", format!("FUNCTION {name} does not exist")),
    }
}

/// The mode of a WEEK() without one: as the session has it when the statement runs.
fn default_week_format() -> Expr {
    Expr {
        kind: ExprKind::SystemVariable("default_week_format".to_owned(), false),
        ty: DataType::BIGINT,
        nullable: false,
    }
}
