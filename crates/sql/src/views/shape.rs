//! What of a query a view holds, and what is left to do with it.
//!
//! A plan is cut in two. Below are the joined rows of FROM and WHERE, and their grouping if there
//! is one: that is held, by key. Above are HAVING, the select list, DISTINCT, ORDER BY and LIMIT:
//! the *tail*, which is run for each reader over what its key holds.

use std::ops::Range;
use std::sync::Arc;

use super::pure;
use super::top::Top;
use crate::catalog::Table;
use crate::error::{SqlError, SqlResult};
use crate::plan::logical::{Group, Joined, Source, Tree};
use crate::plan::physical::{Aggregate, Node};
use crate::plan::{AggregateCall, AggregateKind, CompareOp, Expr, ExprKind, Plan};
use crate::planner::delta::{self, Obstacle, Step};
use crate::types::{Collation, DataType};

/// What a view holds.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    /// The tables of FROM, before their order was chosen.
    pub joined: Arc<Joined>,
    /// Those tables, in the order of FROM.
    pub tables: Vec<HeldTable>,
    /// Slots of a joined row.
    pub width: usize,
    /// The key, in the order of its parameters.
    pub keys: Vec<KeyColumn>,
    /// Conditions on the joined row, the key aside.
    pub conditions: Vec<Expr>,
    /// Grouping; `None`: rows are held.
    pub grouping: Option<Grouping>,
    /// Only the first rows in an order are held.
    pub top: Option<Arc<Top>>,
    /// How a commit takes a join from one state to the next; none for one table.
    pub steps: Vec<Step>,
}

/// A table of a view.
#[derive(Debug, Clone)]
pub(crate) struct HeldTable {
    /// The table.
    pub table: Arc<Table>,
    /// The slots of its columns.
    pub slots: Range<usize>,
    /// Columns that are held, by position in the table.
    pub wanted: Vec<bool>,
}

/// A column of the key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KeyColumn {
    /// Its slot.
    pub slot: usize,
    /// Its name, for EXPLAIN.
    pub name: String,
    /// Its type.
    pub ty: DataType,
    /// How it is compared with the parameter.
    pub collation: Collation,
    /// Which parameter of the definition.
    pub param: usize,
}

/// Grouping of the joined rows.
#[derive(Debug, Clone)]
pub(crate) struct Grouping {
    /// GROUP BY.
    pub keys: Vec<Expr>,
    /// Aggregates.
    pub calls: Vec<AggregateCall>,
    /// One group, also of no rows.
    pub global: bool,
}

/// SELECTs that a UNION in a definition may have.
const OPERANDS_MAX: usize = 32;

fn refused(what: impl Into<String>) -> SqlError {
    SqlError::not_supported(format!("{} in a materialized view", what.into()))
}

impl Shape {
    /// The shapes of a definition's plan, which was made for a view: one, or one for each SELECT of a
    /// UNION.
    ///
    /// # Errors
    /// 1235 with the name of what a view cannot hold.
    pub fn all_of(plan: &Plan) -> SqlResult<Vec<Self>> {
        let operands = operands(&plan.root);
        if operands.len() > OPERANDS_MAX {
            return Err(refused(format!(
                "a UNION of more than {OPERANDS_MAX} SELECTs"
            )));
        }
        let shapes: Vec<Self> = operands
            .into_iter()
            .map(Self::of)
            .collect::<SqlResult<_>>()?;
        assert!(!shapes.is_empty(), "a query has a SELECT");
        Ok(shapes)
    }

    fn of(operand: &Node) -> SqlResult<Self> {
        let Some((source, _)) = cut(operand, true) else {
            return Err(refused(name_of(operand)));
        };
        let (from, grouping) = match source {
            Node::Aggregate(aggregate) => (&aggregate.input, Some(grouping(aggregate)?)),
            other => (other, None),
        };
        let Node::From {
            width,
            joined: Some(joined),
            ..
        } = from
        else {
            return Err(refused(name_of(from)));
        };
        let top = Top::of(operand).map(Arc::new);
        assert!(
            top.is_none() || grouping.is_none(),
            "rows are ordered, not groups"
        );
        let mut shape = Self {
            joined: Arc::clone(joined),
            tables: tables(joined, from)?,
            width: *width,
            keys: Vec::new(),
            conditions: Vec::new(),
            grouping,
            top,
            steps: Vec::new(),
        };
        for condition in &joined.group.conjuncts {
            shape.take_condition(condition)?;
        }
        let mut optional = joined.group.members.iter().flat_map(|member| &member.on);
        if let Some(what) = optional.find_map(pure::objection) {
            return Err(refused(what));
        }
        shape.keys.sort_by_key(|key| key.param);
        shape.refuse_columns()?;
        if shape.tables.len() > 1 {
            let is_key = |condition: &Expr| shape.is_key(condition);
            let steps = delta::steps(joined, *width, &is_key);
            shape.steps = steps.map_err(|Obstacle(what)| refused(what))?;
        }
        Ok(shape)
    }

    /// Whether sessions of every `collation_connection` mean the same by it: no text in it is other than
    /// a column's, or a value of the key, which is compared as the column is.
    pub fn is_of_any_collation(&self) -> bool {
        let grouping = self.grouping.iter().flat_map(|grouping| {
            let arguments = grouping.calls.iter().flat_map(|call| &call.arguments);
            grouping.keys.iter().chain(arguments)
        });
        let order = self.top.iter().flat_map(|top| &top.keys);
        let mut all = self
            .conditions
            .iter()
            .chain(grouping)
            .chain(order.map(|(key, _)| key));
        !all.any(pure::has_text_of_session) && !joins_by_text_of_session(&self.joined.group)
    }

    /// Whether a condition says what a column of the key is.
    fn is_key(&self, condition: &Expr) -> bool {
        let own = among(condition).filter(|asked| asked.param().is_some());
        own.is_some_and(|asked| self.keys.iter().any(|key| key.slot == asked.slot))
    }

    fn take_condition(&mut self, condition: &Expr) -> SqlResult<()> {
        if let Some(key) = self.key_column(condition)? {
            if self.keys.iter().any(|other| other.slot == key.slot) {
                return Err(refused(format!("the column {} twice in the key", key.name)));
            }
            self.keys.push(key);
            return Ok(());
        }
        match pure::objection(condition) {
            Some(what) => Err(refused(what)),
            None => {
                self.conditions.push(condition.clone());
                Ok(())
            }
        }
    }

    /// The column of `column = ?`, or of `column IN (?)`, which is the same.
    fn key_column(&self, condition: &Expr) -> SqlResult<Option<KeyColumn>> {
        let Some(asked) = among(condition) else {
            return Ok(None);
        };
        let Some(param) = asked.param() else {
            return Ok(None);
        };
        let Asked {
            slot,
            collation,
            ty,
            ..
        } = asked;
        let home = self.tables.iter().find(|held| held.slots.contains(&slot));
        let column = home.and_then(|held| held.table.columns.get(slot - held.slots.start));
        let column = column.ok_or_else(|| SqlError::internal("a key is a column"))?;
        if !may_be_key(ty, collation) {
            return Err(refused(format!(
                "the key column {}, which is {}",
                column.name,
                ty.sql_name()
            )));
        }
        Ok(Some(KeyColumn {
            slot,
            name: column.name.clone(),
            ty: ty.clone(),
            collation,
            param,
        }))
    }

    fn refuse_columns(&self) -> SqlResult<()> {
        for held in &self.tables {
            let columns = held.table.columns.iter().zip(&held.wanted);
            for (column, wanted) in columns {
                if *wanted && matches!(column.ty, DataType::Timestamp { .. }) {
                    return Err(refused(format!(
                        "the TIMESTAMP column {}, which each session shows in its time zone,",
                        column.name
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Whether a condition of an outer join, or of a group in parentheses, has such a text.
fn joins_by_text_of_session(group: &Group) -> bool {
    group.members.iter().any(|member| {
        let inner = match &member.tree {
            Tree::Leaf(_) => false,
            Tree::Group(group) => {
                group.conjuncts.iter().any(pure::has_text_of_session)
                    || joins_by_text_of_session(group)
            }
        };
        inner || member.on.iter().any(pure::has_text_of_session)
    })
}

/// The tables of a FROM.
fn tables(joined: &Joined, from: &Node) -> SqlResult<Vec<HeldTable>> {
    let leaves = delta::leaves(&joined.group).map_err(|Obstacle(what)| match name_of(from) {
        "this query" => refused(what),
        name => refused(name),
    })?;
    let mut tables = Vec::with_capacity(leaves.len());
    for (leaf, _) in leaves {
        let Source::Stored(table) = &leaf.source else {
            return Err(refused("a table that is not stored"));
        };
        if table.temporary {
            return Err(refused("a temporary table"));
        }
        tables.push(HeldTable {
            table: Arc::clone(table),
            slots: leaf.slots.clone(),
            wanted: joined
                .used
                .get(leaf.slots.clone())
                .unwrap_or_default()
                .to_vec(),
        });
    }
    if tables.is_empty() {
        return Err(refused("a SELECT without table"));
    }
    Ok(tables)
}

/// A condition that says what a column is.
pub(super) struct Asked<'a> {
    pub slot: usize,
    /// One of these.
    pub values: Vec<&'a Expr>,
    pub collation: Collation,
    /// Of the column.
    pub ty: &'a DataType,
}

impl Asked<'_> {
    /// The parameter that the column is, if it is one.
    fn param(&self) -> Option<usize> {
        match self.values.as_slice() {
            [one] => match one.kind {
                ExprKind::Param(param) => Some(param),
                _ => None,
            },
            _ => None,
        }
    }
}

/// `column = operand` in either order, or `column IN (operands)`.
pub(super) fn among(condition: &Expr) -> Option<Asked<'_>> {
    let (column, values, collation) = match &condition.kind {
        ExprKind::Compare(CompareOp::Eq, left, right, collation) => match left.kind {
            ExprKind::Column(_) => (left, vec![&**right], *collation),
            _ => (right, vec![&**left], *collation),
        },
        ExprKind::InList {
            value,
            list,
            collation,
        } => (value, list.iter().collect(), *collation),
        _ => return None,
    };
    let ExprKind::Column(slot) = column.kind else {
        return None;
    };
    Some(Asked {
        slot,
        values,
        collation,
        ty: &column.ty,
    })
}

/// Whether equality with a value of the same kind is equality of the keys' bytes.
fn may_be_key(ty: &DataType, collation: Collation) -> bool {
    match ty {
        DataType::Int { .. } | DataType::Decimal { .. } | DataType::Date => true,
        DataType::DateTime { .. } => true,
        DataType::Char { .. } | DataType::Varchar { .. } | DataType::Text { .. } => {
            ty.collation() == Some(collation)
        }
        DataType::Varbinary { .. } | DataType::Blob { .. } => collation == Collation::Binary,
        _ => false,
    }
}

fn grouping(aggregate: &Aggregate) -> SqlResult<Grouping> {
    if aggregate.rollup {
        return Err(refused("WITH ROLLUP"));
    }
    for key in &aggregate.keys {
        if let Some(what) = pure::objection(key) {
            return Err(refused(what));
        }
        if !pure::is_exact(key) {
            return Err(refused(format!(
                "GROUP BY {}, of which equal values may differ,",
                key.ty.sql_name()
            )));
        }
    }
    for call in &aggregate.calls {
        check_call(call)?;
    }
    Ok(Grouping {
        keys: aggregate.keys.clone(),
        calls: aggregate.calls.clone(),
        global: aggregate.global,
    })
}

fn check_call(call: &AggregateCall) -> SqlResult<()> {
    use AggregateKind as A;
    for argument in &call.arguments {
        if let Some(what) = pure::objection(argument) {
            return Err(refused(what));
        }
    }
    let first = call.arguments.first();
    match call.kind {
        A::CountRows | A::Count => Ok(()),
        A::Sum | A::Avg if call.distinct => Err(refused("SUM or AVG of DISTINCT")),
        A::Sum | A::Avg if matches!(call.ty, DataType::Decimal { .. }) => Ok(()),
        A::Sum | A::Avg => Err(refused(
            "SUM or AVG of FLOAT and DOUBLE, whose result depends on the order of rows,",
        )),
        A::Min | A::Max if first.is_some_and(pure::is_exact) => Ok(()),
        A::Min | A::Max => Err(refused(
            "MIN or MAX of a type of which equal values may differ",
        )),
        A::First => Err(refused("a column that is neither grouped nor aggregated")),
        A::GroupConcat => Err(refused("GROUP_CONCAT")),
        _ => Err(refused("this aggregate function")),
    }
}

/// The SELECTs of a query: one, or those of its set operations.
pub(super) fn operands(root: &Node) -> Vec<&Node> {
    let mut operands = Vec::new();
    collect_operands(root, &mut operands);
    operands
}

fn collect_operands<'a>(node: &'a Node, operands: &mut Vec<&'a Node>) {
    match node {
        Node::SetOperation(operation) => {
            collect_operands(&operation.left, operands);
            collect_operands(&operation.right, operands);
        }
        Node::Sort { input, .. }
        | Node::Limit { input, .. }
        | Node::Project { input, .. }
        | Node::Cut { input, .. }
            if cut(node, true).is_none() =>
        {
            collect_operands(input, operands);
        }
        _ => operands.push(node),
    }
}

/// Cuts a plan: what is held, and the rest with [`Node::ViewRows`] in its place. `grouped`: a
/// grouping is held too. `None` when the plan has another form than that of one SELECT.
pub(super) fn cut(root: &Node, grouped: bool) -> Option<(&Node, Node)> {
    match root {
        Node::From { .. } => Some((root, Node::ViewRows)),
        Node::Aggregate(_) if grouped => Some((root, Node::ViewRows)),
        Node::Aggregate(aggregate) => {
            let (source, input) = cut(&aggregate.input, grouped)?;
            let tail = Aggregate {
                input,
                keys: aggregate.keys.clone(),
                calls: aggregate.calls.clone(),
                rollup: aggregate.rollup,
                global: aggregate.global,
            };
            Some((source, Node::Aggregate(Box::new(tail))))
        }
        Node::Filter { input, predicates } => {
            let (source, below) = cut(input, grouped)?;
            let predicates = predicates.clone();
            let input = Box::new(below);
            Some((source, Node::Filter { input, predicates }))
        }
        Node::Project { input, expressions } => {
            let (source, below) = cut(input, grouped)?;
            let expressions = expressions.clone();
            let input = Box::new(below);
            Some((source, Node::Project { input, expressions }))
        }
        Node::Distinct {
            input,
            collations,
            keeps_order,
        } => {
            let (source, below) = cut(input, grouped)?;
            let tail = Node::Distinct {
                input: Box::new(below),
                collations: collations.clone(),
                keeps_order: *keeps_order,
            };
            Some((source, tail))
        }
        Node::Sort { input, keys, limit } => {
            let (source, below) = cut(input, grouped)?;
            let tail = Node::Sort {
                input: Box::new(below),
                keys: keys.clone(),
                limit: limit.clone(),
            };
            Some((source, tail))
        }
        Node::Limit { input, limit } => {
            let (source, below) = cut(input, grouped)?;
            let limit = limit.clone();
            let input = Box::new(below);
            Some((source, Node::Limit { input, limit }))
        }
        Node::Cut { input, width } => {
            let (source, below) = cut(input, grouped)?;
            let input = Box::new(below);
            Some((
                source,
                Node::Cut {
                    input,
                    width: *width,
                },
            ))
        }
        _ => None,
    }
}

/// The tables that a cut plan reads.
pub(super) fn joined_of(source: &Node) -> Option<&Joined> {
    match source {
        Node::Aggregate(aggregate) => joined_of(&aggregate.input),
        Node::From { joined, .. } => joined.as_deref(),
        _ => None,
    }
}

/// What a node is to a user.
fn name_of(node: &Node) -> &'static str {
    match node {
        Node::Virtual(_) => "a computed table",
        Node::Derived(_) | Node::Lateral(_) => "a subquery in FROM",
        Node::JsonTable(_) => "JSON_TABLE",
        Node::CteScan(_) | Node::Recursive(_) => "a common table expression",
        Node::SetOperation(_) => "UNION, EXCEPT or INTERSECT",
        Node::Window(_) => "a window function",
        Node::Single | Node::Values(_) => "a SELECT without table",
        Node::From { input, .. }
        | Node::Filter { input, .. }
        | Node::Project { input, .. }
        | Node::Distinct { input, .. }
        | Node::Sort { input, .. }
        | Node::Limit { input, .. }
        | Node::Cut { input, .. } => name_of(input),
        Node::Aggregate(aggregate) => name_of(&aggregate.input),
        Node::Scan(_) | Node::Join(_) | Node::View(_) | Node::ViewRows | Node::Before(_) => {
            "this query"
        }
    }
}
