//! Result types that follow from the parameters of one execution.
//!
//! `SELECT ? + 1` is prepared with a BIGINT column. Run with 1.5 it has a DOUBLE one, as in MySQL,
//! which prepares such a statement anew: in the binary form of a row a column of integers would
//! round what was computed.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::compiled::Compiled;
use super::plan_cache::Found;
use super::session::Session;
use crate::plan::physical::Node;
use crate::plan::{Expr, ExprKind, walk};
use crate::statement::StatementPlan;
use crate::types::{
    Collation, DataType, MAX_DECIMAL_PRECISION, MAX_DECIMAL_SCALE, TextSize, Value,
};

/// The parameters that columns of a query are computed with.
#[derive(Debug, Default)]
pub(super) struct ShownParams {
    /// Anywhere in an expression that is selected.
    anywhere: BTreeSet<usize>,
    /// Operands of arithmetic: texts among them count as numbers.
    operands: BTreeSet<usize>,
}

impl ShownParams {
    /// Those of a plan; none when it is no query.
    pub(super) fn of(plan: Option<&StatementPlan>) -> Self {
        let mut shown = Self::default();
        if let Some(StatementPlan::Query(plan)) = plan {
            shown.note_node(&plan.root);
        }
        shown
    }

    fn note_node(&mut self, node: &Node) {
        match node {
            Node::Project { expressions, .. } => {
                for expr in expressions {
                    self.note(expr, false);
                }
            }
            Node::Values(rows) => {
                for expr in rows.iter().flatten() {
                    self.note(expr, false);
                }
            }
            Node::Aggregate(aggregate) => {
                for call in &aggregate.calls {
                    call.for_each_expr(&mut |expr| self.note(expr, false));
                }
            }
            Node::Window(window) => {
                for call in &window.calls {
                    call.for_each_expr(&mut |expr| self.note(expr, false));
                }
            }
            _ => {}
        }
        for input in walk::inputs(node) {
            self.note_node(input);
        }
    }

    fn note(&mut self, expr: &Expr, operand: bool) {
        if let ExprKind::Param(index) = expr.kind {
            self.anywhere.insert(index);
            if operand {
                self.operands.insert(index);
            }
        }
        let computes = matches!(expr.kind, ExprKind::Binary(..) | ExprKind::Negate(_));
        walk::for_each_child(expr, &mut |child| self.note(child, computes));
    }

    /// The types to plan with for these values; `Null` leaves a parameter as it was inferred.
    /// Empty when no parameter asks for another plan.
    fn types(&self, inferred: &[DataType], values: &[Value]) -> Vec<DataType> {
        let mut types = vec![DataType::Null; values.len()];
        for &at in &self.anywhere {
            let known = inferred.get(at).unwrap_or(&DataType::Null);
            if let (Some(slot), Some(value)) = (types.get_mut(at), values.get(at)) {
                *slot = match value {
                    Value::Int(_) | Value::UInt(_) if *known != DataType::Null => DataType::Null,
                    Value::Text(_) if self.operands.contains(&at) => DataType::DOUBLE,
                    value => type_of_number(value).unwrap_or(DataType::Null),
                };
            }
        }
        if types.iter().all(|ty| *ty == DataType::Null) {
            types.clear();
        }
        types
    }
}

/// The type of a user variable that holds `value`. Times are kept as they are, and read as text.
pub(super) fn type_of_variable(value: &Value, collation: Collation) -> DataType {
    let size = TextSize::Long;
    type_of_number(value).unwrap_or(match value {
        Value::Bytes(_) => DataType::Blob { size },
        _ => DataType::Text { size, collation },
    })
}

/// The type of a number as it is; none of other values.
fn type_of_number(value: &Value) -> Option<DataType> {
    Some(match value {
        Value::Int(_) => DataType::BIGINT,
        Value::UInt(_) => DataType::BIGINT_UNSIGNED,
        Value::Double(_) => DataType::DOUBLE,
        Value::Decimal(number) => decimal_type(number),
        _ => return None,
    })
}

fn decimal_type(number: &crate::types::Decimal) -> DataType {
    let scale = u8::try_from(number.fractional_digit_count().max(0)).unwrap_or(u8::MAX);
    let scale = scale.min(MAX_DECIMAL_SCALE);
    let digits = u8::try_from(number.digits()).unwrap_or(u8::MAX);
    DataType::Decimal {
        precision: digits.max(scale + 1).min(MAX_DECIMAL_PRECISION),
        scale,
        sign: DataType::SIGNED,
    }
}

impl Session {
    /// The plan to run `compiled`, prepared from `text`, with these values: another one when they
    /// give its columns other types.
    pub(super) fn retyped(
        &mut self,
        text: &str,
        compiled: Arc<Compiled>,
        values: &[Value],
    ) -> Arc<Compiled> {
        let types = compiled.shown_params.types(compiled.param_types(), values);
        if types.is_empty() {
            return compiled;
        }
        match self.lookup(text, &types) {
            Some(Found::Plan(known)) => return known,
            Some(Found::NoTemplate(_)) => return compiled,
            None => {}
        }
        let mut parsed = compiled.parsed.clone();
        parsed.constants.clone_from(&types);
        // What cannot be planned so is a matter of single values: the plan at hand sees to them.
        let Ok(renewed) = self.compile(parsed) else {
            return compiled;
        };
        let renewed = Arc::new(renewed);
        self.keep(text, &types, Found::Plan(Arc::clone(&renewed)));
        renewed
    }
}
