//! Common table expressions: bound anew wherever one is referred to.

use sqlparser::ast;

use super::Binder;
use super::query::{Bound, collations, finish};
use super::scope::same_name;
use super::set_operation::different_widths;
use crate::catalog::Column;
use crate::error::{SqlError, SqlResult};
use crate::plan::physical::{Node, Recursive};
use crate::plan::{BoundQuery, walk};
use crate::types::ColumnMeta;

/// Common table expressions bound inside each other.
const NESTING_MAX: usize = 32;
/// How often the step of a recursive one is expected to find as many rows as the anchor.
const ROUNDS_GUESS: f64 = 10.0;

/// A common table expression in scope.
#[derive(Debug, Clone)]
pub(crate) struct Cte {
    pub name: String,
    pub columns: Vec<String>,
    pub query: ast::Query,
    /// Query levels when it was defined.
    level: usize,
    /// May refer to itself.
    recursive: bool,
    /// Bound before, with calls in it that answer anew each time.
    changes: bool,
    /// Being computed: its identity and columns.
    pub running: Option<(usize, Vec<ColumnMeta>)>,
}

impl Binder<'_> {
    /// Brings the tables of a WITH into scope.
    pub(super) fn define_ctes(&mut self, with: &ast::With) -> SqlResult<()> {
        let outer = self.ctes.len();
        for cte in &with.cte_tables {
            let name = &cte.alias.name.value;
            let mut earlier = self.ctes.iter().skip(outer);
            if earlier.any(|known| same_name(&known.name, name)) {
                return Err(SqlError::new(
                    1066,
                    "42000",
                    format!("Not unique table/alias: '{name}'"),
                ));
            }
            self.ctes.push(Cte {
                name: cte.alias.name.value.clone(),
                columns: cte
                    .alias
                    .columns
                    .iter()
                    .map(|c| c.name.value.clone())
                    .collect(),
                query: (*cte.query).clone(),
                level: self.frames.len(),
                recursive: with.recursive,
                changes: false,
                running: None,
            });
        }
        Ok(())
    }

    /// Binds a common table expression where it is referred to.
    pub(crate) fn bind_cte_query(&mut self, index: usize, cte: &Cte) -> SqlResult<Bound> {
        let later_frames = self.frames.split_off(cte.level.min(self.frames.len()));
        let later_ctes = self.ctes.split_off(index + usize::from(cte.recursive));
        let saved = self.begin_reach();
        let level = self.frames.len();
        let names = self.item_names.take();
        let changing = self.changing_calls;
        self.nesting += 1;
        let bound = if self.nesting > NESTING_MAX {
            Err(SqlError::new(
                1473,
                "HY000",
                "Too high level of nesting for select",
            ))
        } else if cte.recursive {
            self.bind_recursive(index, cte)
        } else {
            self.bind_query_parts(&cte.query)
        };
        self.nesting -= 1;
        self.item_names = names;
        self.ctes.truncate(index + usize::from(cte.recursive));
        if let Some(entry) = self.ctes.get_mut(index) {
            // Bound once more for the next reference, which computes it for itself.
            entry.running = None;
        }
        self.ctes.extend(later_ctes);
        if self.changing_calls > changing {
            self.note_change(index)?;
        }
        let reach = self.end_reach(saved);
        let moved = !later_frames.is_empty();
        self.frames.extend(later_frames);
        if moved && reach.is_some_and(|reached| reached < level) {
            return Err(SqlError::not_supported(
                "a common table expression with outer references used further in",
            ));
        }
        bound
    }

    /// Each reference computes a common table expression for itself, which must not show.
    fn note_change(&mut self, index: usize) -> SqlResult<()> {
        match self.ctes.get_mut(index) {
            Some(entry) if !entry.changes => entry.changes = true,
            _ => {
                return Err(SqlError::not_supported(
                    "RAND() and its kin in a common table expression that is read twice",
                ));
            }
        }
        Ok(())
    }

    /// `anchor UNION [ALL] step`, where the step reads the CTE itself.
    fn bind_recursive(&mut self, index: usize, cte: &Cte) -> SqlResult<Bound> {
        let ast::SetExpr::SetOperation {
            left,
            op: ast::SetOperator::Union,
            set_quantifier,
            right,
        } = &*cte.query.body
        else {
            return self.bind_unrecursive(cte);
        };
        if cte.query.order_by.is_some() || cte.query.limit_clause.is_some() {
            return Err(SqlError::not_supported(
                "ORDER BY / LIMIT in a recursive common table expression",
            ));
        }
        let anchor = self.bind_anchor(left, &cte.name)?;
        let columns = recursive_columns(&anchor.columns, &cte.columns);
        let id = self.next_cte;
        self.next_cte += 1;
        if let Some(entry) = self.ctes.get_mut(index) {
            entry.running = Some((id, columns.clone()));
        }
        let step = self.bind_body(right, &[], None)?;
        let step = finish(step)?;
        if !walk::reads_cte(&step.node, Some(id)) {
            return self.bind_unrecursive(cte);
        }
        if step.columns.len() != columns.len() {
            return Err(different_widths());
        }
        let node = Node::Recursive(Box::new(Recursive {
            id,
            anchor: anchor.node,
            step: step.node,
            distinct: !matches!(set_quantifier, ast::SetQuantifier::All),
            collations: collations(&columns),
            columns: columns.iter().map(Column::of_result).collect(),
            step_types: step.columns.iter().map(|c| c.ty.clone()).collect(),
        }));
        Ok(Bound::Query(BoundQuery {
            node,
            columns,
            rows: anchor.rows * ROUNDS_GUESS,
        }))
    }

    /// The part that begins a recursive common table expression, which does not see it.
    fn bind_anchor(&mut self, anchor: &ast::SetExpr, name: &str) -> SqlResult<BoundQuery> {
        let entry = self.ctes.pop();
        let bound = self.bind_body(anchor, &[], None);
        self.ctes.extend(entry);
        finish(bound.map_err(|error| refuse_second_step(error, name))?)
    }

    /// A common table expression that, for all of WITH RECURSIVE, does not read itself.
    fn bind_unrecursive(&mut self, cte: &Cte) -> SqlResult<Bound> {
        let entry = self.ctes.pop();
        let bound = self.bind_query_parts(&cte.query);
        self.ctes.extend(entry);
        bound
    }
}

/// The columns of the anchor under the names that are listed; a step may bring NULL.
fn recursive_columns(anchor: &[ColumnMeta], names: &[String]) -> Vec<ColumnMeta> {
    let mut columns = anchor.to_vec();
    for (column, name) in columns.iter_mut().zip(names) {
        column.name.clone_from(name);
    }
    for column in &mut columns {
        column.not_null = false;
    }
    columns
}

/// The first part of a recursive common table expression knows nothing of itself: where it asks
/// for `name`, more than the last part is recursive.
fn refuse_second_step(error: SqlError, name: &str) -> SqlError {
    let unknown = [
        format!(".{name}' doesn't exist"),
        "No database selected".into(),
    ];
    if [1146, 1046].contains(&error.code) && unknown.iter().any(|end| error.message.ends_with(end))
    {
        return SqlError::not_supported("several recursive parts of a common table expression");
    }
    error
}
