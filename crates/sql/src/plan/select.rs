//! A bound SELECT before its operators are chosen.

use std::sync::Arc;

use super::logical::Group;
use super::physical::Limit;
use super::window::WindowCall;
use super::{AggregateCall, Expr};
use crate::catalog::Table;
use crate::types::ColumnMeta;

/// A bound SELECT.
#[derive(Debug)]
pub(crate) struct SelectParts {
    pub group: Group,
    /// Slots of the wide row.
    pub width: usize,
    pub outputs: Vec<Output>,
    /// GROUP BY, over the wide row.
    pub keys: Vec<Expr>,
    pub calls: Vec<AggregateCall>,
    /// The query has groups: what follows reads `keys ‖ calls`.
    pub aggregated: bool,
    pub rollup: bool,
    pub having: Vec<Expr>,
    pub windows: Vec<WindowCall>,
    pub distinct: bool,
    pub order: Vec<(Expr, bool)>,
    pub limit: Option<Limit>,
    /// The rows will be taken from, or put into, a materialized view: they come in no order, and
    /// all of them are needed.
    pub for_view: bool,
}

/// A column of the result.
#[derive(Debug, Clone)]
pub(crate) struct Output {
    pub expr: Expr,
    pub meta: ColumnMeta,
    pub origin: Option<(Arc<Table>, usize)>,
}

impl SelectParts {
    /// Only FROM, WHERE and a select list; an ORDER BY without LIMIT means nothing to the outside.
    pub fn is_plain(&self) -> bool {
        !self.aggregated
            && self.windows.is_empty()
            && self.having.is_empty()
            && !self.distinct
            && self.limit.is_none()
    }
}

impl Output {
    /// What no column of a table stands behind.
    pub fn computed(expr: Expr, name: String) -> Self {
        let meta = ColumnMeta {
            schema: String::new(),
            table: String::new(),
            org_table: String::new(),
            name,
            org_name: String::new(),
            ty: expr.ty.clone(),
            not_null: !expr.nullable,
            primary_key: false,
            unique_key: false,
            multiple_key: false,
            auto_increment: false,
        };
        Self {
            expr,
            meta,
            origin: None,
        }
    }
}
