//! The built-in functions, each a row of a table: name, arity, type rule, body.
//!
//! One file a family; [`lookup`] searches all of them. `tests` calls them through tables of
//! readable cases.

#![allow(
    clippy::unnecessary_wraps,
    clippy::cast_possible_truncation,
    clippy::format_push_string,
    reason = "bodies share one signature though most cannot fail; what is cut is meant to be"
)]

mod arguments;
mod compression;
mod control;
mod crypto;
mod digits;
mod encryption;
mod hash;
mod infer;
mod info;
mod interval;
mod json;
mod json_edit;
mod misc;
mod numeric;
mod pattern;
mod random;
mod rounding;
mod string;
mod string_number;
mod string_part;
mod string_search;
mod temporal;
mod temporal_arithmetic;
mod temporal_conversion;
mod temporal_format;
mod temporal_parse;
#[cfg(test)]
mod tests;

pub(crate) use crypto::encode_base64;
pub use info::SERVER_VERSION;
pub use interval::is_interval_unit;
pub use random::SeededRandom;

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::error::{SqlError, SqlResult};
use crate::expr::{EvalContext, result_collation};
use crate::plan::{Expr, ExprKind, FunctionId};
use crate::types::{Collation, DataType, Value, bit_bytes};

/// What is done to arguments before a call is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arguments {
    /// As they are.
    Plain,
    /// Times and floats become text as their declared type shows them.
    AsText,
    /// As `AsText`, and the collation of the text arguments follows as one more argument (its id).
    Collated,
    /// Numbers: what ENUM and SET count as.
    Numbers,
    /// As `Numbers`, quotients with the digits that are not shown.
    Unrounded,
    /// All are converted to their common type.
    Common,
    /// Truth values become JSON's true and false.
    JsonValues,
}

/// Result type and nullability from the bound arguments.
pub type Infer = fn(&[Expr]) -> (DataType, bool);
/// The body of a function; arguments are evaluated already.
pub type Body = fn(&EvalContext<'_>, &[Value], &DataType) -> SqlResult<Value>;

/// A built-in scalar function.
pub struct ScalarFunction {
    /// Upper-case name.
    pub name: &'static str,
    /// Least and most arguments.
    pub arity: (usize, usize),
    /// Result type and nullability from the bound arguments.
    pub infer: Infer,
    /// The body; arguments are evaluated already.
    pub eval: Body,
    /// Same arguments, same answer, within a statement: may be computed once and cached.
    pub deterministic: bool,
    /// As `deterministic`, or of what is one thing for a whole statement and another for the next: the time,
    /// the session.
    steady: bool,
    /// What is done to arguments first.
    pub arguments: Arguments,
}

impl ScalarFunction {
    const fn new(name: &'static str, arity: (usize, usize), infer: Infer, eval: Body) -> Self {
        Self {
            name,
            arity,
            infer,
            eval,
            deterministic: true,
            steady: true,
            arguments: Arguments::Plain,
        }
    }

    /// Notes one more evaluated argument. What a call holds is bounded, however calls are nested.
    ///
    /// # Errors
    /// 1041 when the arguments are too long together.
    pub fn hold(&self, held: &mut usize, argument: &Value) -> SqlResult<()> {
        *held = held.saturating_add(long_bytes(argument));
        if *held <= ARGUMENTS_BYTES_MAX {
            return Ok(());
        }
        let message = format!(
            "Out of memory; the arguments of {} have more than {ARGUMENTS_BYTES_MAX} bytes together",
            self.name
        );
        Err(SqlError::new(1041, "HY000", message))
    }

    /// The result for evaluated arguments: NULL with warning 1301 where it would be too long.
    ///
    /// # Errors
    /// What the function raises.
    pub fn call(&self, ctx: &EvalContext<'_>, args: &[Value], ty: &DataType) -> SqlResult<Value> {
        let result = (self.eval)(ctx, args, ty)?;
        if long_bytes(&result) > RESULT_BYTES_MAX {
            return too_long(ctx, self.name);
        }
        Ok(result)
    }

    const fn with(mut self, arguments: Arguments) -> Self {
        self.arguments = arguments;
        self
    }

    const fn volatile(mut self) -> Self {
        self.deterministic = false;
        self.steady = false;
        self
    }

    /// As [`Self::volatile`], but with one answer to all calls of a statement.
    const fn per_statement(mut self) -> Self {
        self.deterministic = false;
        self
    }
}

/// Any number of arguments.
const MANY: usize = 65_535;
/// Longest text or byte string a function makes; beyond it the result is NULL with warning 1301.
pub(crate) const RESULT_BYTES_MAX: usize = 64 << 20;
/// Bytes of text and byte strings that the arguments of one call may have together.
const ARGUMENTS_BYTES_MAX: usize = 4 * RESULT_BYTES_MAX;

/// Bytes of a text or byte string; 0 for what is never long.
fn long_bytes(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

/// NULL and warning 1301 instead of a result past [`RESULT_BYTES_MAX`].
pub(crate) fn too_long(ctx: &EvalContext<'_>, function: &str) -> SqlResult<Value> {
    let message = format!(
        "Result of {}() was larger than max_allowed_packet ({RESULT_BYTES_MAX}) - truncated",
        function.to_lowercase()
    );
    ctx.problem(1301, "HY000", message)?;
    Ok(Value::Null)
}

impl std::fmt::Debug for ScalarFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// Every family.
const FAMILIES: [&[ScalarFunction]; 21] = [
    control::FUNCTIONS,
    compression::FUNCTIONS,
    crypto::FUNCTIONS,
    digits::FUNCTIONS,
    encryption::FUNCTIONS,
    info::FUNCTIONS,
    json::FUNCTIONS,
    json_edit::FUNCTIONS,
    misc::FUNCTIONS,
    numeric::FUNCTIONS,
    pattern::FUNCTIONS,
    random::FUNCTIONS,
    rounding::FUNCTIONS,
    string::FUNCTIONS,
    string_number::FUNCTIONS,
    string_part::FUNCTIONS,
    string_search::FUNCTIONS,
    temporal::FUNCTIONS,
    temporal_arithmetic::FUNCTIONS,
    temporal_conversion::FUNCTIONS,
    temporal_format::FUNCTIONS,
];

/// Other names of functions.
const ALIASES: &[(&str, &str)] = &[
    ("SUBSTR", "SUBSTRING"),
    ("MID", "SUBSTRING"),
    ("LCASE", "LOWER"),
    ("UCASE", "UPPER"),
    ("OCTET_LENGTH", "LENGTH"),
    ("CHARACTER_LENGTH", "CHAR_LENGTH"),
    ("POSITION", "LOCATE"),
    ("CEIL", "CEILING"),
    ("POWER", "POW"),
    ("CURRENT_TIMESTAMP", "NOW"),
    ("LOCALTIME", "NOW"),
    ("LOCALTIMESTAMP", "NOW"),
    ("CURRENT_DATE", "CURDATE"),
    ("CURRENT_TIME", "CURTIME"),
    ("DAY", "DAYOFMONTH"),
    ("ADDDATE", "DATE_ADD"),
    ("SUBDATE", "DATE_SUB"),
    ("SCHEMA", "DATABASE"),
    ("SESSION_USER", "USER"),
    ("SYSTEM_USER", "USER"),
    ("SHA", "SHA1"),
    ("JSON_MERGE", "JSON_MERGE_PRESERVE"),
];

struct Table {
    /// All, each at the place that its [`FunctionId`] says.
    functions: Vec<&'static ScalarFunction>,
    by_name: HashMap<&'static str, FunctionId>,
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(|| {
        let functions: Vec<_> = FAMILIES.iter().copied().flatten().collect();
        let id = |(place, function): (usize, &&'static ScalarFunction)| FunctionId {
            name: function.name,
            deterministic: function.deterministic,
            steady: function.steady,
            place,
        };
        let ids = functions.iter().enumerate().map(id);
        let mut by_name: HashMap<_, _> = ids.map(|id| (id.name, id)).collect();
        for (alias, name) in ALIASES {
            if let Some(id) = by_name.get(name).copied() {
                by_name.insert(alias, id);
            }
        }
        Table { functions, by_name }
    })
}

/// Looks a function up by name, in any case.
#[must_use]
pub fn lookup(name: &str) -> Option<FunctionId> {
    let by_name = &table().by_name;
    by_name.get(name.to_ascii_uppercase().as_str()).copied()
}

/// Type rule and body of a function that was looked up.
#[must_use]
pub fn function(id: FunctionId) -> &'static ScalarFunction {
    let function = table().functions[id.place];
    assert_eq!(function.name, id.name, "a function is where its id says");
    function
}

/// Whether MySQL has the function and we do not: those of XML and of places.
#[must_use]
pub fn is_left_out(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let families = ["ST_", "MBR"];
    families.iter().any(|prefix| name.starts_with(prefix))
        || ["EXTRACTVALUE", "UPDATEXML"].contains(&name.as_str())
}

/// Converts arguments as the function wants them.
#[must_use]
pub fn prepare_arguments(function: &ScalarFunction, args: Vec<Expr>) -> Vec<Expr> {
    let args = arguments::numbers_calculated(function.name, args);
    match function.arguments {
        Arguments::Plain => args,
        Arguments::Numbers | Arguments::Unrounded => {
            args.into_iter().map(Expr::member_number).collect()
        }
        Arguments::AsText => args.into_iter().map(shown_as_declared).collect(),
        Arguments::Collated => {
            let collation = result_collation(&args);
            let mut args: Vec<Expr> = args.into_iter().map(shown_as_declared).collect();
            args.push(Expr::int(i64::from(collation.id())));
            args
        }
        Arguments::Common => control::to_common_type(function.name, args),
        Arguments::JsonValues => args.into_iter().map(json_truth).collect(),
    }
}

/// Characters of any DOUBLE that is shown with a number of digits behind the point.
const SHOWN_DOUBLE_MAX: u32 = 345;

/// Text of values whose look depends on the declared type is made while that type is known.
#[must_use]
pub(crate) fn shown_as_declared(expr: Expr) -> Expr {
    if let DataType::Bit { width } = expr.ty {
        let length = bit_bytes(width);
        return expr.convert_to(&DataType::Varbinary { length });
    }
    let filled = expr.ty.zerofill();
    if !(expr.ty.shows_declaration() || expr.ty.has_empty_member()) {
        return expr;
    }
    let nullable = expr.nullable;
    let length = match expr.ty.shown_digits() {
        Some(_) => SHOWN_DOUBLE_MAX,
        None => expr.ty.char_length().max(filled.map_or(0, u32::from)),
    };
    let ty = match expr.ty.collation() {
        Some(collation) => DataType::text_of(length, collation),
        None => DataType::varchar(length),
    };
    Expr {
        kind: ExprKind::Cast(Box::new(expr)),
        ty,
        nullable,
    }
}

/// TRUE, FALSE and what comparisons give are booleans in JSON, BIT is opaque, other integers are
/// numbers.
pub(crate) fn json_truth(expr: Expr) -> Expr {
    if matches!(expr.ty, DataType::Bit { .. }) {
        return expr.convert_to(&DataType::Json);
    }
    let is_truth = match &expr.kind {
        ExprKind::Literal(Value::Int(_)) => expr.ty == DataType::BOOLEAN,
        kind => kind.is_predicate(),
    };
    if !is_truth {
        return expr;
    }
    let nullable = expr.nullable;
    let Some(id) = lookup("_JSON_BOOLEAN") else {
        return expr;
    };
    Expr {
        kind: ExprKind::Call(id, vec![expr]),
        ty: DataType::Json,
        nullable,
    }
}

/// The collation a [`Arguments::Collated`] function got as its last argument.
fn split_collation(args: &[Value]) -> (&[Value], Collation) {
    match args.split_last() {
        Some((Value::Int(id), rest)) => {
            let collation = u16::try_from(*id).ok().and_then(Collation::from_id);
            (rest, collation.unwrap_or_default())
        }
        _ => (args, Collation::default()),
    }
}
