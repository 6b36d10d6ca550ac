//! Evaluation. Every row of every statement comes through here, so columns, parameters and
//! literals are lent, not copied.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use super::arithmetic::{binary, negate, quotient};
use super::build::DIV_INCREMENT;
use super::matching::{like, regexp};
use super::members::rows_equal;
use super::{BinaryOp, CompareOp, EvalContext, Expr, ExprKind};
use crate::error::{SqlError, SqlResult};
use crate::functions::{Arguments, RESULT_BYTES_MAX, encode_base64, too_long};
use crate::planner::Plan;
use crate::types::{
    Collation, DataType, MAX_DECIMAL_SCALE, Row, Value, cast, compare, round_decimal, to_text,
    today, write_bits,
};

/// A lent or computed value.
pub type Held<'a> = Cow<'a, Value>;

impl CompareOp {
    /// Whether an ordering satisfies the operator.
    #[must_use]
    pub fn accepts(self, ordering: Ordering) -> bool {
        match self {
            CompareOp::Eq | CompareOp::NullSafeEq => ordering.is_eq(),
            CompareOp::Ne => ordering.is_ne(),
            CompareOp::Lt => ordering.is_lt(),
            CompareOp::Le => ordering.is_le(),
            CompareOp::Gt => ordering.is_gt(),
            CompareOp::Ge => ordering.is_ge(),
        }
    }

    /// The operator without equality: what decides between rows whose first columns differ.
    #[must_use]
    pub fn strict(self) -> Self {
        match self {
            CompareOp::Le => CompareOp::Lt,
            CompareOp::Ge => CompareOp::Gt,
            other => other,
        }
    }
}

impl Expr {
    /// The value for `row`; `outer` are the rows of enclosing queries, innermost first.
    ///
    /// # Errors
    /// 1690 out of range, 1242 a subquery with several rows, and what functions raise.
    pub fn eval(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
    ) -> SqlResult<Value> {
        self.eval_ref(ctx, row, outer).map(Cow::into_owned)
    }

    /// Truth of the value: `None` for NULL.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn eval_bool(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
    ) -> SqlResult<Option<bool>> {
        match &self.kind {
            ExprKind::Compare(op, a, b, collation) => {
                let a = a.eval_ref(ctx, row, outer)?;
                let b = b.eval_ref(ctx, row, outer)?;
                compare_values(ctx, *op, &a, &b, *collation)
            }
            ExprKind::And(a, b) => match a.eval_bool(ctx, row, outer)? {
                Some(false) => Ok(Some(false)),
                left => Ok(match b.eval_bool(ctx, row, outer)? {
                    Some(false) => Some(false),
                    right => left.and(right),
                }),
            },
            ExprKind::Or(a, b) => match a.eval_bool(ctx, row, outer)? {
                Some(true) => Ok(Some(true)),
                left => Ok(match b.eval_bool(ctx, row, outer)? {
                    Some(true) => Some(true),
                    right => left.and(right),
                }),
            },
            ExprKind::Xor(a, b) => {
                let (a, b) = (a.eval_bool(ctx, row, outer)?, b.eval_bool(ctx, row, outer)?);
                Ok(a.zip(b).map(|(a, b)| a != b))
            }
            ExprKind::Not(a) => Ok(a.eval_bool(ctx, row, outer)?.map(|truth| !truth)),
            ExprKind::IsNull(a) => Ok(Some(a.eval_ref(ctx, row, outer)?.is_null())),
            ExprKind::IsBool(a, truth) => Ok(Some(a.eval_bool(ctx, row, outer)? == Some(*truth))),
            ExprKind::Like {
                value,
                pattern,
                escape,
                collation,
            } => {
                let value = value.eval_ref(ctx, row, outer)?;
                let pattern = pattern.eval_ref(ctx, row, outer)?;
                Ok(like(&value, &pattern, *escape, *collation))
            }
            ExprKind::Regexp {
                value,
                pattern,
                collation,
            } => {
                let value = value.eval_ref(ctx, row, outer)?;
                let pattern = pattern.eval_ref(ctx, row, outer)?;
                regexp(&value, &pattern, *collation)
            }
            ExprKind::InList {
                value,
                list,
                collation,
            } => self::in_list(ctx, row, outer, value, list, *collation),
            ExprKind::Exists(plan) => {
                let mut found = false;
                ctx.subqueries
                    .run(ctx, plan, &stack(row, outer), &mut |_| {
                        found = true;
                        Ok(false)
                    })?;
                Ok(Some(found))
            }
            ExprKind::InSubquery {
                values,
                plan,
                collations,
            } => in_subquery(ctx, row, outer, values, plan, collations),
            ExprKind::Quantified {
                op,
                value,
                plan,
                all,
                collation,
            } => {
                let value = value.eval_ref(ctx, row, outer)?;
                quantified(ctx, row, outer, (*op, *all, *collation), &value, plan)
            }
            _ => {
                let value = self.eval_ref(ctx, row, outer)?;
                match self.ty {
                    // As among numbers: an ENUM's place in its list, a SET's bits.
                    DataType::Enum { .. } | DataType::Set { .. } => {
                        let number = value.into_owned().stored_from(&self.ty, &DataType::DOUBLE);
                        truth(ctx, &number)
                    }
                    _ => truth(ctx, &value),
                }
            }
        }
    }

    /// As [`Expr::eval`], lending what is there already.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn eval_ref<'a>(
        &'a self,
        ctx: &EvalContext<'a>,
        row: &'a [Value],
        outer: &[&'a [Value]],
    ) -> SqlResult<Held<'a>> {
        match &self.kind {
            ExprKind::Column(index) => row
                .get(*index)
                .map(Cow::Borrowed)
                .ok_or_else(|| missing("column", *index)),
            ExprKind::Literal(value) => Ok(Cow::Borrowed(value)),
            ExprKind::Param(index) => ctx
                .params
                .get(*index)
                .map(Cow::Borrowed)
                .ok_or_else(|| missing("parameter", *index)),
            ExprKind::Outer { depth, index } => {
                let outer_row = depth.checked_sub(1).and_then(|depth| outer.get(depth));
                outer_row
                    .and_then(|row| row.get(*index))
                    .map(Cow::Borrowed)
                    .ok_or_else(|| missing("outer column", *index))
            }
            _ => self.compute(ctx, row, outer).map(Cow::Owned),
        }
    }

    /// The value for something that calculates on: a quotient keeps digits beyond those it
    /// shows, so that `2 / 3 * 3` is 2 and not 2.0001.
    ///
    /// # Errors
    /// As [`Expr::eval`].
    pub fn eval_unrounded<'a>(
        &'a self,
        ctx: &EvalContext<'a>,
        row: &'a [Value],
        outer: &[&'a [Value]],
    ) -> SqlResult<Held<'a>> {
        let (ExprKind::Binary(op, a, b), DataType::Decimal { .. }) = (&self.kind, &self.ty) else {
            return self.eval_ref(ctx, row, outer);
        };
        let left = a.eval_unrounded(ctx, row, outer)?;
        let right = b.eval_unrounded(ctx, row, outer)?;
        let value = if *op == BinaryOp::Div {
            quotient(ctx, &left, &right)
        } else {
            binary(ctx, *op, &left, &right, &self.ty, &|| self.describe())
        };
        value.map(Cow::Owned)
    }

    /// Whether values of this have digits beyond the declared ones: quotients do, and times,
    /// which are kept in microseconds.
    fn brings_digits(&self) -> bool {
        match &self.kind {
            ExprKind::Binary(BinaryOp::Div, ..) => true,
            ExprKind::Binary(_, a, b) => a.brings_digits() || b.brings_digits(),
            _ => self.ty.fsp() > 0,
        }
    }

    /// `value` of an operation with operands `a` and `b`, at the declared scale.
    fn at_declared_scale(&self, ctx: &EvalContext<'_>, value: Value, a: &Expr, b: &Expr) -> Value {
        match (value, &self.ty) {
            (Value::Decimal(decimal), DataType::Decimal { scale, .. })
                if a.brings_digits() || b.brings_digits() =>
            {
                // Scales are declared for the default of `div_precision_increment`.
                let more = i64::from(ctx.div_precision_increment) - i64::from(DIV_INCREMENT);
                let scale = (i64::from(*scale) + more.max(0)).min(i64::from(MAX_DECIMAL_SCALE));
                Value::decimal(round_decimal(&decimal, scale))
            }
            (value, _) => value,
        }
    }

    fn compute(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
    ) -> SqlResult<Value> {
        match &self.kind {
            ExprKind::UserVariable(name) => Ok(ctx.session.user_variable(name)),
            ExprKind::SystemVariable(name, global) => ctx.session.system_variable(name, *global),
            ExprKind::AssignUserVariable(name, value) => {
                let value = value.eval(ctx, row, outer)?;
                ctx.session.set_user_variable(name, value.clone());
                Ok(value)
            }
            ExprKind::Binary(op, a, b) => self.arithmetic(ctx, row, outer, *op, [a, b]),
            ExprKind::Negate(a) => {
                let value = a.eval_ref(ctx, row, outer)?;
                negate(ctx, &value, &self.ty, &|| self.describe())
            }
            ExprKind::BitNot(a) => {
                let value = a.eval_ref(ctx, row, outer)?;
                Ok(value
                    .to_bits()
                    .map_or(Value::Null, |bits| Value::UInt(!bits)))
            }
            ExprKind::Case { whens, otherwise } => {
                for (when, result) in whens {
                    if when.eval_bool(ctx, row, outer)? == Some(true) {
                        return result.eval(ctx, row, outer);
                    }
                }
                match otherwise {
                    Some(result) => result.eval(ctx, row, outer),
                    None => Ok(Value::Null),
                }
            }
            ExprKind::Cast(inner) => self.cast_of(ctx, row, outer, inner),
            ExprKind::Call(function, args) => self.call_function(ctx, row, outer, function, args),
            ExprKind::ScalarSubquery(plan) => scalar_subquery(ctx, row, outer, plan),
            ExprKind::Column(_)
            | ExprKind::Literal(_)
            | ExprKind::Param(_)
            | ExprKind::Outer { .. } => self.eval_ref(ctx, row, outer).map(Cow::into_owned),
            _ => Ok(Value::from_bool(self.eval_bool(ctx, row, outer)?)),
        }
    }

    /// `a op b`. This and its siblings are apart from `compute` because their locals would lie
    /// on the stack at every level of a deep expression.
    fn arithmetic(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
        op: BinaryOp,
        [a, b]: [&Expr; 2],
    ) -> SqlResult<Value> {
        let left = a.eval_unrounded(ctx, row, outer)?;
        let right = b.eval_unrounded(ctx, row, outer)?;
        let result = binary(ctx, op, &left, &right, &self.ty, &|| self.describe())?;
        Ok(self.at_declared_scale(ctx, result, a, b))
    }

    fn cast_of(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
        inner: &Expr,
    ) -> SqlResult<Value> {
        let value = if self.ty.is_number() {
            inner.eval_unrounded(ctx, row, outer)?
        } else {
            inner.eval_ref(ctx, row, outer)?
        };
        cast_typed(ctx, value, &inner.ty, &self.ty)
    }

    /// The next number of `RAND(seed)` when the seed stays the same from row to row.
    fn seeded_random(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
        seed: &Expr,
    ) -> SqlResult<Option<Value>> {
        if !seed.is_constant() && !matches!(seed.kind, ExprKind::Param(_)) {
            return Ok(None);
        }
        let call = std::ptr::from_ref(self).addr();
        let seed = seed.eval_ref(ctx, row, outer)?;
        Ok(Some(Value::Double(ctx.seeded.next(call, &seed))))
    }

    fn call_function(
        &self,
        ctx: &EvalContext<'_>,
        row: &[Value],
        outer: &[&[Value]],
        function: &'static crate::functions::ScalarFunction,
        args: &[Expr],
    ) -> SqlResult<Value> {
        // These must not evaluate what they do not choose: `IF(x = 0, NULL, 1 / x)`.
        match function.name {
            "IF" => {
                let [condition, yes, no] = args else {
                    return Err(missing("argument", args.len()));
                };
                let chosen = if condition.eval_bool(ctx, row, outer)? == Some(true) {
                    yes
                } else {
                    no
                };
                return chosen.eval(ctx, row, outer);
            }
            "COALESCE" | "IFNULL" => {
                for arg in args {
                    let value = arg.eval_ref(ctx, row, outer)?;
                    if !value.is_null() {
                        return Ok(value.into_owned());
                    }
                }
                return Ok(Value::Null);
            }
            "RAND" => {
                if let [seed] = args
                    && let Some(number) = self.seeded_random(ctx, row, outer, seed)?
                {
                    return Ok(number);
                }
            }
            _ => {}
        }
        let unrounded = function.arguments == Arguments::Unrounded;
        let mut values = Vec::with_capacity(args.len());
        let mut held = 0;
        for arg in args {
            let value = if unrounded {
                arg.eval_unrounded(ctx, row, outer)?.into_owned()
            } else {
                arg.eval(ctx, row, outer)?
            };
            function.hold(&mut held, &value)?;
            values.push(value);
        }
        function.call(ctx, &values, &self.ty)
    }
}

pub(super) fn missing(what: &str, index: usize) -> SqlError {
    SqlError::internal(format!("{what} {index} is not there at run time"))
}

/// Rows for a subquery of the current one.
fn stack<'a>(row: &'a [Value], outer: &[&'a [Value]]) -> Vec<&'a [Value]> {
    let mut rows = Vec::with_capacity(outer.len() + 1);
    rows.push(row);
    rows.extend_from_slice(outer);
    rows
}

/// Truth of a value, warning about text that is no number.
fn truth(ctx: &EvalContext<'_>, value: &Value) -> SqlResult<Option<bool>> {
    if let Value::Text(_) = value {
        let Some((number, complete)) = value.to_double_checked() else {
            return Ok(None);
        };
        if !complete {
            ctx.truncated("DOUBLE", value)?;
        }
        return Ok(Some(number != 0.0));
    }
    Ok(value.to_bool())
}

/// `a op b` of values.
///
/// # Errors
/// 1292 inside a strict write.
pub fn compare_values(
    ctx: &EvalContext<'_>,
    op: CompareOp,
    a: &Value,
    b: &Value,
    collation: Collation,
) -> SqlResult<Option<bool>> {
    if a.is_null() || b.is_null() {
        let both = a.is_null() && b.is_null();
        return Ok((op == CompareOp::NullSafeEq).then_some(both));
    }
    let ordering = match (a, b) {
        (Value::Text(_), other) | (other, Value::Text(_)) if other.is_number() => {
            for side in [a, b] {
                if let (Value::Text(_), Some((_, false))) = (side, side.to_double_checked()) {
                    ctx.truncated("DOUBLE", side)?;
                }
            }
            compare(a, b, collation)
        }
        (Value::Time(_), Value::Date(_) | Value::DateTime(_))
        | (Value::Date(_) | Value::DateTime(_), Value::Time(_)) => {
            let today = today(ctx.now_micros, &ctx.time_zone);
            a.to_datetime(today)
                .zip(b.to_datetime(today))
                .map(|(a, b)| a.cmp(&b))
        }
        _ => compare(a, b, collation),
    };
    Ok(ordering.map(|ordering| op.accepts(ordering)))
}

fn in_list(
    ctx: &EvalContext<'_>,
    row: &[Value],
    outer: &[&[Value]],
    value: &Expr,
    list: &Arc<Vec<Expr>>,
    collation: Collation,
) -> SqlResult<Option<bool>> {
    let value = value.eval_ref(ctx, row, outer)?;
    if value.is_null() {
        return Ok(None);
    }
    if let Some(set) = ctx.lists.set_of(ctx, list, collation)? {
        return set.contains(ctx, &[&value]);
    }
    let mut unknown = false;
    for item in list.iter() {
        let item = item.eval_ref(ctx, row, outer)?;
        match compare_values(ctx, CompareOp::Eq, &value, &item, collation)? {
            Some(true) => return Ok(Some(true)),
            None => unknown = true,
            Some(false) => {}
        }
    }
    Ok((!unknown).then_some(false))
}

fn in_subquery(
    ctx: &EvalContext<'_>,
    row: &[Value],
    outer: &[&[Value]],
    values: &[Expr],
    plan: &Plan,
    collations: &[Collation],
) -> SqlResult<Option<bool>> {
    let mut left = Vec::with_capacity(values.len());
    for value in values {
        left.push(value.eval_ref(ctx, row, outer)?);
    }
    let left: Vec<&Value> = left.iter().map(|value| &**value).collect();
    if let Some(set) = ctx.subqueries.row_set(ctx, plan, collations)? {
        return set.contains(ctx, &left);
    }
    let mut result = Some(false);
    ctx.subqueries
        .run(ctx, plan, &stack(row, outer), &mut |found: Row| {
            let equal = rows_equal(ctx, &left, &found, collations)?;
            if equal != Some(false) {
                result = equal;
            }
            Ok(equal != Some(true))
        })?;
    Ok(result)
}

fn quantified(
    ctx: &EvalContext<'_>,
    row: &[Value],
    outer: &[&[Value]],
    (op, all, collation): (CompareOp, bool, Collation),
    value: &Value,
    plan: &Plan,
) -> SqlResult<Option<bool>> {
    // ALL holds until something fails, ANY fails until something holds.
    let mut result = Some(all);
    ctx.subqueries
        .run(ctx, plan, &stack(row, outer), &mut |found: Row| {
            let other = found.first().ok_or_else(|| missing("subquery column", 0))?;
            match compare_values(ctx, op, value, other, collation)? {
                None => result = None,
                Some(holds) if holds != all => {
                    result = Some(holds);
                    return Ok(false);
                }
                Some(_) => {}
            }
            Ok(true)
        })?;
    Ok(result)
}

fn scalar_subquery(
    ctx: &EvalContext<'_>,
    row: &[Value],
    outer: &[&[Value]],
    plan: &Plan,
) -> SqlResult<Value> {
    let mut result = None;
    ctx.subqueries
        .run(ctx, plan, &stack(row, outer), &mut |mut found: Row| {
            if result.is_some() {
                return Err(SqlError::new(
                    1242,
                    "21000",
                    "Subquery returns more than 1 row",
                ));
            }
            if found.is_empty() {
                return Err(missing("subquery column", 0));
            }
            result = Some(found.swap_remove(0));
            Ok(true)
        })?;
    Ok(result.unwrap_or(Value::Null))
}

/// CAST where the declared source type decides how text looks (`datetime(3)` shows three digits).
fn cast_typed(
    ctx: &EvalContext<'_>,
    value: Held<'_>,
    from: &DataType,
    to: &DataType,
) -> SqlResult<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    if let DataType::Binary { length } = to
        && *length as usize > RESULT_BYTES_MAX
    {
        return too_long(ctx, "cast_as_binary");
    }
    if let (Value::UInt(bits), DataType::Bit { width }) = (&*value, from)
        && !to.is_number()
    {
        return cast_bits(ctx, *bits, *width, to);
    }
    let shows_type = matches!(from, DataType::Float { .. } | DataType::Year) || from.fsp() > 0;
    if (to.is_text() || to.is_bytes()) && shows_type && !matches!(*value, Value::Text(_)) {
        return cast(ctx, Value::Text(to_text(&value, from)), to);
    }
    cast(ctx, value.into_owned(), to)
}

/// A BIT where no number is wanted: its bytes, in JSON an opaque value of its type.
fn cast_bits(ctx: &EvalContext<'_>, bits: u64, width: u8, to: &DataType) -> SqlResult<Value> {
    let mut bytes = Vec::new();
    write_bits(bits, width, &mut bytes);
    if matches!(to, DataType::Json) {
        let text = format!("base64:type16:{}", encode_base64(&bytes));
        let json = serde_json::Value::String(text);
        return Ok(Value::Json(std::sync::Arc::new(json)));
    }
    cast(ctx, Value::Bytes(bytes), to)
}
