//! Builders of typed expressions: they infer types and collations, and fold constants.

#![allow(
    clippy::match_same_arms,
    reason = "one arm a kind reads better than merged ones"
)]

use std::sync::Arc;

use super::{BinaryOp, CompareOp, Expr, ExprKind};
use crate::error::{SqlError, SqlResult};
use crate::functions;
use crate::types::{
    Collation, DataType, Date, MAX_DECIMAL_PRECISION, MAX_DECIMAL_SCALE, Value, common_type,
    expand_year, merge_collations, parse_datetime,
};

/// `div_precision_increment` assumed for declared scales; evaluation uses the session's.
pub(super) const DIV_INCREMENT: u8 = 4;

/// How strongly an expression insists on its collation; the lower the stronger (MySQL's scale).
fn coercibility(expr: &Expr) -> u8 {
    match &expr.kind {
        ExprKind::Cast(inner) if inner.ty.is_text() && expr.ty.is_text() => {
            if inner.ty.collation() == expr.ty.collation() {
                coercibility(inner)
            } else {
                0
            }
        }
        ExprKind::Column(_) | ExprKind::Outer { .. } => 2,
        ExprKind::UserVariable(_) | ExprKind::SystemVariable(..) => 3,
        ExprKind::Call(_, args) => args
            .iter()
            .filter(|arg| arg.ty.collation().is_some())
            .map(coercibility)
            .min()
            .unwrap_or(4),
        ExprKind::Case { whens, otherwise } => whens
            .iter()
            .map(|(_, result)| result)
            .chain(otherwise.as_deref())
            .map(coercibility)
            .min()
            .unwrap_or(4),
        ExprKind::Literal(_) | ExprKind::Param(_) => 4,
        _ => 2,
    }
}

/// The collation that comparing, joining or concatenating these takes.
#[must_use]
pub fn result_collation<'a>(exprs: impl IntoIterator<Item = &'a Expr>) -> Collation {
    let mut best: Option<(u8, Collation)> = None;
    for expr in exprs {
        let Some(collation) = expr.ty.collation() else {
            continue;
        };
        let strength = coercibility(expr);
        best = Some(match best {
            None => (strength, collation),
            Some((kept, _)) if strength < kept => (strength, collation),
            Some((kept, other)) if strength == kept => (kept, merge_collations(other, collation)),
            Some(found) => found,
        });
    }
    best.map_or_else(Collation::default, |(_, collation)| collation)
}

impl Expr {
    fn new(kind: ExprKind, ty: DataType, nullable: bool) -> Self {
        Self { kind, ty, nullable }
    }

    /// An integer constant.
    #[must_use]
    pub fn int(value: i64) -> Self {
        Self::literal(Value::Int(value), DataType::BIGINT)
    }

    /// TRUE or FALSE: 1 or 0 of a type that JSON functions tell from other integers.
    #[must_use]
    pub fn boolean(truth: bool) -> Self {
        Self::literal(Value::Int(i64::from(truth)), DataType::BOOLEAN)
    }

    /// A text constant under `collation` (`collation_connection` for literals).
    #[must_use]
    pub fn text(value: impl Into<String>, collation: Collation) -> Self {
        let value = value.into();
        let length = u32::try_from(value.chars().count()).unwrap_or(u32::MAX);
        Self::literal(Value::Text(value), DataType::text_of(length, collation))
    }

    /// NULL.
    #[must_use]
    pub fn null() -> Self {
        Self::literal(Value::Null, DataType::Null)
    }

    /// A column of the current row.
    #[must_use]
    pub fn column(index: usize, ty: DataType, nullable: bool) -> Self {
        Self::new(ExprKind::Column(index), ty, nullable)
    }

    /// The constant this is, if it is one.
    #[must_use]
    pub fn as_literal(&self) -> Option<&Value> {
        match &self.kind {
            ExprKind::Literal(value) => Some(value),
            _ => None,
        }
    }

    /// `a op b`.
    ///
    /// # Errors
    /// 1525 for a constant text that is no date, compared with a date.
    pub fn compare(op: CompareOp, a: Expr, b: Expr) -> SqlResult<Expr> {
        let (a_type, b_type) = (a.ty.clone(), b.ty.clone());
        let (a, b) = (beside(a, &b_type), beside(b, &a_type));
        let (a, b) = (truth_beside(a, &b_type), truth_beside(b, &a_type));
        let collation = result_collation([&a, &b]);
        let a = read_as_date(adapt_constant(a, &b.ty)?, &b)?;
        let b = read_as_date(adapt_constant(b, &a.ty)?, &a)?;
        let nullable = op != CompareOp::NullSafeEq && (a.nullable || b.nullable);
        let kind = ExprKind::Compare(op, Box::new(a), Box::new(b), collation);
        Ok(Self::new(kind, DataType::BOOLEAN, nullable))
    }

    /// `a op b` of numbers or bits.
    ///
    /// # Errors
    /// 3854 and its kin are found when evaluated; none here yet.
    pub fn binary(op: BinaryOp, a: Expr, b: Expr) -> SqlResult<Expr> {
        let (a, b) = (number_of_bytes(a), number_of_bytes(b));
        let ty = binary_type(op, &a.ty, &b.ty);
        let may_divide = matches!(op, BinaryOp::Div | BinaryOp::IntDiv | BinaryOp::Mod);
        let nullable = a.nullable || b.nullable || may_divide;
        Ok(Self::new(
            ExprKind::Binary(op, Box::new(a), Box::new(b)),
            ty,
            nullable,
        ))
    }

    /// `-a`.
    ///
    /// # Errors
    /// None; the signature matches its siblings.
    pub fn negate(a: Expr) -> SqlResult<Expr> {
        let a = number_of_bytes(a);
        if let ExprKind::Literal(Value::Int(value)) = &a.kind
            && let Some(negative) = value.checked_neg()
        {
            return Ok(Self::literal(Value::Int(negative), a.ty));
        }
        if let ExprKind::Literal(Value::UInt(value)) = &a.kind
            && *value == 1 << 63
        {
            return Ok(Self::int(i64::MIN));
        }
        let ty = match &a.ty {
            DataType::Int { .. } | DataType::Year | DataType::Bit { .. } | DataType::Null => {
                DataType::BIGINT
            }
            DataType::Decimal {
                precision, scale, ..
            } => DataType::Decimal {
                precision: *precision,
                scale: *scale,
                unsigned: false,
            },
            ty if ty.is_temporal() => numeric_type(ty),
            _ => DataType::DOUBLE,
        };
        let nullable = a.nullable;
        Ok(Self::new(ExprKind::Negate(Box::new(a)), ty, nullable))
    }

    /// `~a`.
    #[must_use]
    pub fn bit_not(a: Expr) -> Expr {
        let nullable = a.nullable;
        let kind = ExprKind::BitNot(Box::new(number_of_bytes(a)));
        Self::new(kind, DataType::BIGINT_UNSIGNED, nullable)
    }

    /// `a AND b`.
    #[must_use]
    pub fn and(a: Expr, b: Expr) -> Expr {
        let nullable = a.nullable || b.nullable;
        Self::new(
            ExprKind::And(Box::new(a), Box::new(b)),
            DataType::BOOLEAN,
            nullable,
        )
    }

    /// `a OR b`.
    #[must_use]
    pub fn or(a: Expr, b: Expr) -> Expr {
        let nullable = a.nullable || b.nullable;
        Self::new(
            ExprKind::Or(Box::new(a), Box::new(b)),
            DataType::BOOLEAN,
            nullable,
        )
    }

    /// `a XOR b`.
    #[must_use]
    pub fn xor(a: Expr, b: Expr) -> Expr {
        let nullable = a.nullable || b.nullable;
        Self::new(
            ExprKind::Xor(Box::new(a), Box::new(b)),
            DataType::BOOLEAN,
            nullable,
        )
    }

    /// `NOT a`.
    #[must_use]
    #[expect(clippy::should_implement_trait, reason = "SQL's NOT is three-valued")]
    pub fn not(a: Expr) -> Expr {
        let nullable = a.nullable;
        Self::new(ExprKind::Not(Box::new(a)), DataType::BOOLEAN, nullable)
    }

    /// `a IS NULL`.
    #[must_use]
    pub fn is_null(a: Expr) -> Expr {
        Self::new(ExprKind::IsNull(Box::new(a)), DataType::BOOLEAN, false)
    }

    /// `a IS TRUE` or `a IS FALSE`.
    #[must_use]
    pub fn is_bool(a: Expr, truth: bool) -> Expr {
        Self::new(
            ExprKind::IsBool(Box::new(a), truth),
            DataType::BOOLEAN,
            false,
        )
    }

    /// `value LIKE pattern ESCAPE escape`; `escape` `None` means no escape character.
    ///
    /// # Errors
    /// None yet.
    pub fn like(value: Expr, pattern: Expr, escape: Option<char>) -> SqlResult<Expr> {
        let value = functions::shown_as_declared(value);
        let pattern = functions::shown_as_declared(pattern);
        let collation = result_collation([&value, &pattern]);
        let nullable = value.nullable || pattern.nullable;
        let kind = ExprKind::Like {
            value: Box::new(value),
            pattern: Box::new(pattern),
            escape,
            collation,
        };
        Ok(Self::new(kind, DataType::BOOLEAN, nullable))
    }

    /// `value REGEXP pattern`.
    ///
    /// # Errors
    /// None yet: patterns are read when evaluated.
    pub fn regexp(value: Expr, pattern: Expr) -> SqlResult<Expr> {
        let value = functions::shown_as_declared(value);
        let pattern = functions::shown_as_declared(pattern);
        let collation = result_collation([&value, &pattern]);
        let nullable = value.nullable || pattern.nullable;
        let kind = ExprKind::Regexp {
            value: Box::new(value),
            pattern: Box::new(pattern),
            collation,
        };
        Ok(Self::new(kind, DataType::BOOLEAN, nullable))
    }

    /// `value IN (list)`.
    ///
    /// # Errors
    /// As [`Expr::compare`].
    pub fn in_list(value: Expr, list: Vec<Expr>) -> SqlResult<Expr> {
        let is_number = |item: &Expr| item.ty.is_number();
        let is_member = matches!(value.ty, DataType::Enum { .. } | DataType::Set { .. });
        if is_member && list.iter().any(is_number) && !list.iter().all(is_number) {
            // Among numbers it is one, among texts it is a text.
            let (numbers, texts) = list.into_iter().partition(is_number);
            let by_number = Self::in_list(value.clone(), numbers)?;
            return Ok(Self::or(by_number, Self::in_list(value, texts)?));
        }
        let numbers = !list.is_empty() && list.iter().all(is_number);
        let value = if numbers {
            beside(value, &DataType::BIGINT)
        } else {
            value
        };
        let collation = result_collation(std::iter::once(&value).chain(&list));
        let mut adapted = Vec::with_capacity(list.len());
        for item in list {
            let item = adapt_constant(beside(item, &value.ty), &value.ty)?;
            adapted.push(read_as_date(item, &value)?);
        }
        let nullable = value.nullable || adapted.iter().any(|item| item.nullable);
        let kind = ExprKind::InList {
            value: Box::new(value),
            list: Arc::new(adapted),
            collation,
        };
        Ok(Self::new(kind, DataType::BOOLEAN, nullable))
    }

    /// `value BETWEEN low AND high`.
    ///
    /// # Errors
    /// As [`Expr::compare`].
    pub fn between(value: Expr, low: Expr, high: Expr) -> SqlResult<Expr> {
        let from = Expr::compare(CompareOp::Ge, value.clone(), low)?;
        let to = Expr::compare(CompareOp::Le, value, high)?;
        Ok(Expr::and(from, to))
    }

    /// `CASE WHEN … THEN … ELSE … END`.
    ///
    /// # Errors
    /// None yet.
    pub fn case(whens: Vec<(Expr, Expr)>, otherwise: Option<Expr>) -> SqlResult<Expr> {
        let results: Vec<&Expr> = whens
            .iter()
            .map(|(_, result)| result)
            .chain(&otherwise)
            .collect();
        let ty = Expr::common(&results);
        let nullable = otherwise.as_ref().is_none_or(|result| result.nullable)
            || whens.iter().any(|(_, result)| result.nullable);
        let whens = whens
            .into_iter()
            .map(|(when, result)| (when, result.convert_to(&ty)))
            .collect();
        let otherwise = otherwise.map(|result| Box::new(result.convert_to(&ty)));
        Ok(Self::new(ExprKind::Case { whens, otherwise }, ty, nullable))
    }

    /// The common type of several results, under the collation the strongest insists on.
    #[must_use]
    pub fn common(exprs: &[&Expr]) -> DataType {
        let types: Vec<&DataType> = exprs.iter().map(|expr| &expr.ty).collect();
        let ty = common_type(&types);
        if ty.is_text() {
            let collation = result_collation(exprs.iter().copied());
            if collation != Collation::Binary {
                return ty.with_collation(collation);
            }
        }
        ty
    }

    /// This expression as a value of `ty`: itself when its values already are such.
    #[must_use]
    pub fn convert_to(self, ty: &DataType) -> Expr {
        if same_representation(&self.ty, ty) || matches!(self.ty, DataType::Null) {
            return self;
        }
        let nullable = self.nullable;
        Self::new(ExprKind::Cast(Box::new(self)), ty.clone(), nullable)
    }

    /// CAST and CONVERT.
    ///
    /// # Errors
    /// None yet.
    pub fn cast(expr: Expr, ty: DataType) -> SqlResult<Expr> {
        let expr = beside(expr, &ty);
        // Text and numbers may turn out not to be readable as a date, giving NULL.
        let nullable = expr.nullable || (ty.is_temporal() && !expr.ty.is_temporal());
        Ok(Self::new(ExprKind::Cast(Box::new(expr)), ty, nullable))
    }

    /// `expr COLLATE collation`.
    ///
    /// # Errors
    /// 1253 for byte strings.
    pub fn collate(expr: Expr, collation: Collation) -> SqlResult<Expr> {
        if expr.ty.is_bytes() && collation != Collation::Binary {
            return Err(SqlError::new(
                1253,
                "42000",
                format!(
                    "COLLATION '{}' is not valid for CHARACTER SET 'binary'",
                    collation.name()
                ),
            ));
        }
        let ty = if expr.ty.is_text() {
            expr.ty.with_collation(collation)
        } else {
            DataType::text_of(expr.ty.char_length(), collation)
        };
        // A literal simply takes the collation, so that indexes still see a constant.
        if let ExprKind::Literal(value @ Value::Text(_)) = expr.kind {
            return Ok(Self::new(
                ExprKind::Cast(Box::new(Expr::literal(value, expr.ty))),
                ty,
                false,
            ));
        }
        let nullable = expr.nullable;
        Ok(Self::new(ExprKind::Cast(Box::new(expr)), ty, nullable))
    }

    /// A call of a built-in function.
    ///
    /// # Errors
    /// 1305 for an unknown function, 1582 for a wrong number of arguments.
    pub fn call(name: &str, args: Vec<Expr>) -> SqlResult<Expr> {
        let Some(function) = functions::lookup(name) else {
            return Err(SqlError::new(
                1305,
                "42000",
                format!("FUNCTION {name} does not exist"),
            ));
        };
        let (least, most) = function.arity;
        if args.len() < least || args.len() > most {
            return Err(SqlError::new(
                1582,
                "42000",
                format!(
                    "Incorrect parameter count in the call to native function '{}'",
                    function.name
                ),
            ));
        }
        // As MySQL documents it: CASE WHEN a = b THEN NULL ELSE a END.
        if function.name == "NULLIF"
            && let [a, b] = &args[..]
        {
            let equal = Expr::compare(CompareOp::Eq, a.clone(), b.clone())?;
            return Expr::case(vec![(equal, Expr::null())], Some(a.clone()));
        }
        if function.name == "FIND_IN_SET"
            && let [text, set] = &args[..]
            && let DataType::Set { members, .. } = &set.ty
            && matches!(set.kind, ExprKind::Column(_) | ExprKind::Outer { .. })
            && is_constant(text)
        {
            let (text, set, members) = (text.clone(), set.clone(), members.clone());
            let found = Self::prepared_call(function, args);
            return Ok(find_member(text, found, set, members));
        }
        Ok(Self::prepared_call(function, args))
    }

    fn prepared_call(function: &'static functions::ScalarFunction, args: Vec<Expr>) -> Expr {
        let args = functions::prepare_arguments(function, args);
        let (ty, nullable) = (function.infer)(&args);
        Self::new(ExprKind::Call(function, args), ty, nullable)
    }

    /// `expr + INTERVAL amount unit`; `unit` as in SQL (`DAY`, `HOUR_SECOND`, …).
    ///
    /// # Errors
    /// 1064 for an unknown unit.
    pub fn interval_add(expr: Expr, amount: Expr, unit: &str) -> SqlResult<Expr> {
        Self::interval("DATE_ADD", expr, amount, unit)
    }

    /// `expr - INTERVAL amount unit`.
    ///
    /// # Errors
    /// 1064 for an unknown unit.
    pub fn interval_sub(expr: Expr, amount: Expr, unit: &str) -> SqlResult<Expr> {
        Self::interval("DATE_SUB", expr, amount, unit)
    }

    fn interval(function: &str, expr: Expr, amount: Expr, unit: &str) -> SqlResult<Expr> {
        if !functions::is_interval_unit(unit) {
            return Err(SqlError::syntax(format!("'{unit}' is no unit of INTERVAL")));
        }
        let unit = Expr::text(unit.to_ascii_uppercase(), Collation::Bin0900);
        Self::call(function, vec![expr, amount, unit])
    }

    /// `EXTRACT(unit FROM expr)`.
    ///
    /// # Errors
    /// 1064 for an unknown unit.
    pub fn extract(unit: &str, expr: Expr) -> SqlResult<Expr> {
        if !functions::is_interval_unit(unit) {
            return Err(SqlError::syntax(format!("'{unit}' is no unit of EXTRACT")));
        }
        let unit = Expr::text(unit.to_ascii_uppercase(), Collation::Bin0900);
        Self::call("EXTRACT", vec![unit, expr])
    }

    /// This expression where a number is computed: the place of an ENUM's value in its list, the
    /// bits of a SET's.
    #[must_use]
    pub fn member_number(self) -> Expr {
        match &self.ty {
            DataType::Enum { members, .. } => {
                member_number("_MEMBER_NUMBER", DataType::BIGINT, members.clone(), self)
            }
            DataType::Set { members, .. } => {
                let ty = DataType::BIGINT_UNSIGNED;
                member_number("_MEMBER_BITS", ty, members.clone(), self)
            }
            _ => self,
        }
    }

    /// Collation of the `n`-th column of a subquery comparison.
    #[must_use]
    pub fn comparison_collation(a: &Expr, b: &DataType) -> Collation {
        match (a.ty.collation(), b.collation()) {
            (Some(left), Some(right)) if coercibility(a) == 2 => merge_collations(left, right),
            (_, Some(right)) => right,
            (Some(left), None) => left,
            (None, None) => Collation::default(),
        }
    }
}

/// Whether values of `from` are values of `to` as they stand.
fn same_representation(from: &DataType, to: &DataType) -> bool {
    match (from, to) {
        _ if from == to => true,
        (DataType::Int { .. } | DataType::Year | DataType::Bit { .. }, DataType::Int { .. }) => {
            let big = |ty: &DataType| {
                *ty == DataType::BIGINT_UNSIGNED || matches!(ty, DataType::Bit { .. })
            };
            big(from) == big(to)
        }
        (DataType::Float { .. }, DataType::Double { .. })
        | (DataType::Double { .. }, DataType::Double { .. }) => true,
        (DataType::Decimal { scale: a, .. }, DataType::Decimal { scale: b, .. }) => a == b,
        (
            DataType::DateTime { .. } | DataType::Timestamp { .. },
            DataType::DateTime { .. } | DataType::Timestamp { .. },
        )
        | (DataType::Time { .. }, DataType::Time { .. }) => from.fsp() <= to.fsp(),
        (DataType::Bit { .. }, DataType::Bit { .. }) => true,
        _ if from.is_text() && to.is_text() => true,
        _ => from.is_bytes() && to.is_bytes(),
    }
}

/// Hexadecimal literals are numbers among numbers.
fn number_of_bytes(expr: Expr) -> Expr {
    let expr = expr.member_number();
    if let ExprKind::Literal(Value::Bytes(bytes)) = &expr.kind
        && bytes.len() <= 8
    {
        let number = bytes
            .iter()
            .fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        return Expr::literal(Value::UInt(number), DataType::BIGINT_UNSIGNED);
    }
    expr
}

/// What an ENUM or a SET is among numbers: the place in its list, from 1, or the bits.
fn member_number(function: &str, ty: DataType, members: Vec<String>, expr: Expr) -> Expr {
    let Some(function) = functions::lookup(function) else {
        return expr;
    };
    let nullable = expr.nullable;
    let member = |member| Expr::text(member, Collation::Bin0900);
    let args = std::iter::once(expr)
        .chain(members.into_iter().map(member))
        .collect();
    Expr::new(ExprKind::Call(function, args), ty, nullable)
}

/// `FIND_IN_SET` of a constant in a SET column: as in MySQL the place in the column's list, not in
/// the value.
fn find_member(text: Expr, found: Expr, set: Expr, members: Vec<String>) -> Expr {
    let Some(function) = functions::lookup("_FIND_MEMBER") else {
        return found;
    };
    let members = members
        .into_iter()
        .map(|member| Expr::text(member, Collation::Bin0900));
    let args: Vec<Expr> = [text, found, set.member_number()]
        .into_iter()
        .chain(members)
        .collect();
    let (ty, nullable) = (function.infer)(&args);
    Expr::new(ExprKind::Call(function, args), ty, nullable)
}

/// Whether the value is the same for every row and known before any is read.
fn is_constant(expr: &Expr) -> bool {
    !expr.any(&mut |inner| {
        !matches!(
            inner.kind,
            ExprKind::Literal(_) | ExprKind::Param(_) | ExprKind::Call(..) | ExprKind::Cast(_)
        )
    })
}

/// An ENUM, a SET and a hexadecimal literal beside a number are numbers.
fn beside(expr: Expr, other: &DataType) -> Expr {
    if other.is_number() {
        number_of_bytes(expr)
    } else {
        expr
    }
}

/// A constant number beside a column of dates or years is read as one.
fn read_as_date(constant: Expr, other: &Expr) -> SqlResult<Expr> {
    let is_date = matches!(
        other.ty,
        DataType::Year | DataType::Date | DataType::DateTime { .. } | DataType::Timestamp { .. }
    );
    if !is_date || !matches!(other.kind, ExprKind::Column(_) | ExprKind::Outer { .. }) {
        return Ok(constant);
    }
    if matches!(constant.kind, ExprKind::Param(_)) && constant.ty.is_number() {
        return Err(constant_needed());
    }
    Ok(match (constant.as_literal(), &other.ty) {
        (Some(Value::Int(year @ 1..=99)), DataType::Year) => {
            let year = i64::try_from(expand_year(year.unsigned_abs())).unwrap_or(0);
            Expr::int(year)
        }
        (
            Some(number @ (Value::Int(_) | Value::UInt(_) | Value::Decimal(_))),
            DataType::Date | DataType::DateTime { .. } | DataType::Timestamp { .. },
        ) => match number.to_datetime(Date::ZERO) {
            Some(read) => Expr::literal(Value::DateTime(read), DataType::DateTime { fsp: 6 }),
            None => constant,
        },
        _ => constant,
    })
}

/// Tells that a template cannot be planned: its constants are needed.
fn constant_needed() -> SqlError {
    SqlError::internal("this plan needs the constant itself")
}

/// A truth value beside JSON is JSON's true or false, where another integer is a number.
fn truth_beside(expr: Expr, other: &DataType) -> Expr {
    match other {
        DataType::Json => functions::json_truth(expr),
        _ => expr,
    }
}

/// Brings a constant to the kind of what it is compared with, as far as that is exact: text
/// beside an integer column becomes an integer, text beside a date a date.
fn adapt_constant(constant: Expr, other: &DataType) -> SqlResult<Expr> {
    // A text constant of a template: what it is beside a number or a date depends on its value.
    if matches!(constant.kind, ExprKind::Param(_))
        && constant.ty.is_text()
        && (matches!(other, DataType::Int { .. }) || other.is_temporal())
    {
        return Err(constant_needed());
    }
    let Some(Value::Text(text)) = constant.as_literal() else {
        return Ok(constant);
    };
    if matches!(other, DataType::Int { .. }) {
        // Only the canonical spelling: '1abc' must stay text to raise its warning.
        if let Ok(number) = text.parse::<i64>() {
            return Ok(Expr::literal(Value::Int(number), DataType::BIGINT));
        }
        if let Ok(number) = text.parse::<u64>() {
            return Ok(Expr::literal(
                Value::UInt(number),
                DataType::BIGINT_UNSIGNED,
            ));
        }
        return Ok(constant);
    }
    let word = match other {
        DataType::Date => "DATE",
        DataType::DateTime { .. } => "DATETIME",
        DataType::Timestamp { .. } => "TIMESTAMP",
        _ => return Ok(constant),
    };
    match parse_datetime(text) {
        Some((parsed, None)) if !parsed.truncated => {
            let (value, ty) = if parsed.has_time || *other != DataType::Date {
                (
                    Value::DateTime(parsed.value),
                    DataType::DateTime { fsp: parsed.fsp },
                )
            } else {
                (Value::Date(parsed.value.date), DataType::Date)
            };
            Ok(Expr::literal(value, ty))
        }
        Some(_) => Ok(constant),
        None => Err(SqlError::new(
            1525,
            "HY000",
            format!("Incorrect {word} value: '{text}'"),
        )),
    }
}

/// The kind of number a type computes as.
fn numeric_type(ty: &DataType) -> DataType {
    match ty {
        DataType::Int { .. } | DataType::Decimal { .. } => ty.clone(),
        DataType::Year | DataType::Date => DataType::BIGINT,
        DataType::Bit { .. } => DataType::BIGINT_UNSIGNED,
        DataType::Null => DataType::BIGINT,
        DataType::Time { fsp } | DataType::DateTime { fsp } | DataType::Timestamp { fsp } => {
            if *fsp == 0 {
                DataType::BIGINT
            } else {
                let (precision, scale) = ty.precision_scale();
                DataType::Decimal {
                    precision,
                    scale,
                    unsigned: false,
                }
            }
        }
        _ => DataType::DOUBLE,
    }
}

fn binary_type(op: BinaryOp, a: &DataType, b: &DataType) -> DataType {
    use BinaryOp::{Add, BitAnd, BitOr, BitXor, Div, IntDiv, Mod, Mul, ShiftLeft, ShiftRight, Sub};
    let (a, b) = (numeric_type(a), numeric_type(b));
    let unsigned = a.is_unsigned() || b.is_unsigned();
    let integer = |unsigned| {
        if unsigned {
            DataType::BIGINT_UNSIGNED
        } else {
            DataType::BIGINT
        }
    };
    match op {
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => DataType::BIGINT_UNSIGNED,
        IntDiv => integer(unsigned),
        _ if a.is_float() || b.is_float() => DataType::DOUBLE,
        Mod if a.is_integer() && b.is_integer() => integer(a.is_unsigned()),
        Add | Sub | Mul if a.is_integer() && b.is_integer() => integer(unsigned),
        Add | Sub | Mul | Mod | Div => decimal_result(op, &a, &b),
    }
}

fn decimal_result(op: BinaryOp, a: &DataType, b: &DataType) -> DataType {
    let ((a_precision, a_scale), (b_precision, b_scale)) =
        (a.precision_scale(), b.precision_scale());
    let (precision, scale) = match op {
        BinaryOp::Mul => (a_precision + b_precision, a_scale + b_scale),
        BinaryOp::Div => (
            a_precision + b_scale + DIV_INCREMENT,
            a_scale + DIV_INCREMENT,
        ),
        BinaryOp::Mod => (a_precision.max(b_precision), a_scale.max(b_scale)),
        _ => {
            let scale = a_scale.max(b_scale);
            let whole = (
                a_precision.saturating_sub(a_scale),
                b_precision.saturating_sub(b_scale),
            );
            (whole.0.max(whole.1) + scale + 1, scale)
        }
    };
    DataType::Decimal {
        precision: precision.min(MAX_DECIMAL_PRECISION),
        scale: scale.min(MAX_DECIMAL_SCALE),
        unsigned: a.is_unsigned() && b.is_unsigned(),
    }
}
