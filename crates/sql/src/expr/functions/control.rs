//! Choosing between values. IF, IFNULL and COALESCE are evaluated lazily by `expr::eval`; their
//! bodies here serve callers that have values already.

use super::{Arguments, MANY, ScalarFunction, infer};
use crate::error::SqlResult;
use crate::expr::EvalContext;
use crate::plan::Expr;
use crate::types::{DataType, Value, compare, set_bits, sort_cmp};

pub(super) const FUNCTIONS: &[ScalarFunction] = &[
    ScalarFunction::new("IF", (3, 3), infer_if, if_).with(Arguments::Common),
    ScalarFunction::new("IFNULL", (2, 2), infer_coalesce, coalesce).with(Arguments::Common),
    ScalarFunction::new("COALESCE", (1, MANY), infer_coalesce, coalesce).with(Arguments::Common),
    ScalarFunction::new("NULLIF", (2, 2), infer_first_nullable, null_if),
    ScalarFunction::new("ISNULL", (1, 1), infer::integer_always, is_null),
    ScalarFunction::new("GREATEST", (2, MANY), infer_common, greatest).with(Arguments::Common),
    ScalarFunction::new("LEAST", (2, MANY), infer_common, least).with(Arguments::Common),
    ScalarFunction::new("INTERVAL", (2, MANY), infer::integer_always, interval),
    ScalarFunction::new("ANY_VALUE", (1, 1), infer_same, any_value),
    ScalarFunction::new("_MEMBER_NUMBER", (2, MANY), infer::integer, member_number),
    ScalarFunction::new("_MEMBER_BITS", (2, MANY), infer::unsigned, member_bits),
    ScalarFunction::new("_FIND_MEMBER", (3, MANY), infer::integer, find_member),
];

/// The place of an ENUM's value among its members, which follow; 0 for the empty value.
fn member_number(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some((value, members)) = args.split_first().filter(|(value, _)| !value.is_null()) else {
        return Ok(Value::Null);
    };
    let place = members.iter().position(|member| member == value);
    let number = place.map_or(0, |place| i64::try_from(place + 1).unwrap_or(i64::MAX));
    Ok(Value::Int(number))
}

/// The number of a SET's value, whose members follow.
fn member_bits(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some((Value::Text(value), members)) = args.split_first() else {
        return Ok(Value::Null);
    };
    let members: Vec<String> = members.iter().filter_map(Value::to_text).collect();
    Ok(Value::UInt(set_bits(&members, value)))
}

/// A text, what searching for it found, the number of a SET's value and the SET's members: the
/// place of the text among the members if the value has it, and what was found if it is none.
fn find_member(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let [Value::Text(text), found, Value::UInt(bits), members @ ..] = args else {
        return Ok(Value::Null);
    };
    let is_it =
        |member: &Value| matches!(member, Value::Text(member) if member.eq_ignore_ascii_case(text));
    let Some(place) = members.iter().position(is_it) else {
        return Ok(found.clone());
    };
    let has = place < 64 && bits >> place & 1 == 1;
    let number = i64::try_from(place + 1).unwrap_or(0);
    Ok(Value::Int(if has { number } else { 0 }))
}

/// Arguments that are results take the common type.
pub(super) fn to_common_type(name: &str, args: Vec<Expr>) -> Vec<Expr> {
    let skip = usize::from(name == "IF");
    let results: Vec<&Expr> = args.iter().skip(skip).collect();
    let ty = Expr::common(&results);
    let convert = |(place, arg): (usize, Expr)| {
        if place < skip {
            arg
        } else {
            arg.convert_to(&ty)
        }
    };
    args.into_iter().enumerate().map(convert).collect()
}

fn common_of(args: &[Expr]) -> DataType {
    Expr::common(&args.iter().collect::<Vec<_>>())
}

fn infer_if(args: &[Expr]) -> (DataType, bool) {
    let results = args.get(1..).unwrap_or_default();
    (common_of(results), results.iter().any(|arg| arg.nullable))
}

fn infer_coalesce(args: &[Expr]) -> (DataType, bool) {
    (common_of(args), args.iter().all(|arg| arg.nullable))
}

fn infer_common(args: &[Expr]) -> (DataType, bool) {
    (common_of(args), args.iter().any(|arg| arg.nullable))
}

fn infer_first_nullable(args: &[Expr]) -> (DataType, bool) {
    let ty = args.first().map_or(DataType::Null, |arg| arg.ty.clone());
    (ty, true)
}

fn infer_same(args: &[Expr]) -> (DataType, bool) {
    let ty = args.first().map_or(DataType::Null, |arg| arg.ty.clone());
    (ty, args.iter().any(|arg| arg.nullable))
}

fn if_(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let chosen = if args[0].to_bool() == Some(true) {
        1
    } else {
        2
    };
    Ok(args[chosen].clone())
}

fn coalesce(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(args
        .iter()
        .find(|arg| !arg.is_null())
        .cloned()
        .unwrap_or(Value::Null))
}

fn null_if(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    let equal = compare(&args[0], &args[1], ty.collation().unwrap_or_default());
    Ok(if equal.is_some_and(std::cmp::Ordering::is_eq) {
        Value::Null
    } else {
        args[0].clone()
    })
}

fn is_null(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(Value::Int(i64::from(args[0].is_null())))
}

fn extreme(args: &[Value], ty: &DataType, wanted: std::cmp::Ordering) -> Value {
    if args.iter().any(Value::is_null) {
        return Value::Null;
    }
    let collation = ty.collation().unwrap_or_default();
    let mut best = &args[0];
    for arg in &args[1..] {
        if sort_cmp(arg, best, collation) == wanted {
            best = arg;
        }
    }
    best.clone()
}

fn greatest(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    Ok(extreme(args, ty, std::cmp::Ordering::Greater))
}

fn least(_ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
    Ok(extreme(args, ty, std::cmp::Ordering::Less))
}

fn interval(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    let Some(needle) = args[0].to_double() else {
        return Ok(Value::Int(-1));
    };
    let is_exact =
        |value: &Value| matches!(value, Value::Int(_) | Value::UInt(_) | Value::Decimal(_));
    let exact = args[0].to_decimal().filter(|_| is_exact(&args[0]));
    // A bound that is NULL is passed over.
    let is_below = |bound: &Value| match &exact {
        Some(needle) if is_exact(bound) => bound.to_decimal().is_none_or(|bound| bound <= *needle),
        _ => bound.to_double().is_none_or(|bound| bound <= needle),
    };
    let below = args[1..].iter().take_while(|bound| is_below(bound)).count();
    Ok(Value::Int(i64::try_from(below).unwrap_or(0)))
}

fn any_value(_ctx: &EvalContext<'_>, args: &[Value], _ty: &DataType) -> SqlResult<Value> {
    Ok(args[0].clone())
}
