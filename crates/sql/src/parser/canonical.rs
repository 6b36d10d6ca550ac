//! Expressions a table keeps as text: one spelling for each, MySQL's own where it is known.
//!
//! Names stand in back-quotes and without their table, functions and operators in lower case,
//! every operator in brackets. Two statements that say the same thing differently therefore give
//! the same text, and the columns an expression reads can be told from it ([`columns_in`]).

use sqlparser::ast::{
    self, BinaryOperator, DateTimeField, Expr, FunctionArg, FunctionArgExpr, FunctionArguments,
    Ident, UnaryOperator, Value,
};

use crate::types::SqlMode;

/// How stored expressions are read, whatever the session's mode was when they were written:
/// quotes are doubled, backslashes are themselves, `||` concatenates. Double quotes hold names:
/// [`canonical`] writes none, but releases before it was used for CHECK and DEFAULT kept those of
/// ANSI_QUOTES, and wrote text in single quotes only.
pub(crate) fn stored_mode() -> SqlMode {
    SqlMode {
        no_backslash_escapes: true,
        pipes_as_concat: true,
        ansi_quotes: true,
        ..SqlMode::default()
    }
}

/// Functions MySQL shows under another name than the one written.
const SHOWN_AS: [(&str, &str); 8] = [
    ("substring", "substr"),
    ("mid", "substr"),
    ("lcase", "lower"),
    ("ucase", "upper"),
    ("character_length", "char_length"),
    ("octet_length", "length"),
    ("power", "pow"),
    ("day", "dayofmonth"),
];

/// Functions whose first argument is a bare word.
const WITH_UNIT: [&str; 3] = ["timestampdiff", "timestampadd", "get_format"];

/// The stored text of `expr`; [`stored_mode`] reads it back.
pub(crate) fn canonical(expr: &Expr) -> String {
    match expr {
        Expr::Identifier(name) => column(name),
        Expr::CompoundIdentifier(names) => names.last().map(column).unwrap_or_default(),
        Expr::Nested(inner) => canonical(inner),
        Expr::Tuple(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("({})", items.join(","))
        }
        Expr::Value(value) => literal(&value.value),
        Expr::Prefixed { prefix, value } => match prefix.value.to_ascii_lowercase().as_str() {
            "_utf8mb4" | "_utf8" | "n" => canonical(value),
            prefix => format!("{prefix}{}", canonical(value)),
        },
        Expr::TypedString(typed) => {
            format!("{}{}", typed.data_type, literal(&typed.value.value))
        }
        Expr::BinaryOp { left, op, right } => binary(left, op, right),
        Expr::UnaryOp { op, expr } => unary(*op, expr),
        Expr::Function(function) => call(function),
        Expr::Case {
            operand,
            conditions,
            else_result,
            ..
        } => case(operand.as_deref(), conditions, else_result.as_deref()),
        Expr::Collate { expr, collation } => {
            let name = collation.to_string().to_lowercase();
            format!("({} collate {})", canonical(expr), name.replace('`', ""))
        }
        other => predicate(other),
    }
}

/// Tests with words between their operands.
fn predicate(expr: &Expr) -> String {
    let list = |exprs: &[Expr]| exprs.iter().map(canonical).collect::<Vec<_>>().join(",");
    let not = |negated: bool| if negated { "not " } else { "" };
    match expr {
        Expr::IsNull(inner) | Expr::IsUnknown(inner) => format!("({} is null)", canonical(inner)),
        Expr::IsNotNull(inner) | Expr::IsNotUnknown(inner) => {
            format!("({} is not null)", canonical(inner))
        }
        Expr::IsTrue(inner) => format!("({} is true)", canonical(inner)),
        Expr::IsNotTrue(inner) => format!("({} is not true)", canonical(inner)),
        Expr::IsFalse(inner) => format!("({} is false)", canonical(inner)),
        Expr::IsNotFalse(inner) => format!("({} is not false)", canonical(inner)),
        Expr::InList {
            expr,
            list: items,
            negated,
        } => format!(
            "({} {}in ({}))",
            canonical(expr),
            not(*negated),
            list(items)
        ),
        Expr::Between {
            expr,
            negated,
            low,
            high,
        } => format!(
            "({} {}between {} and {})",
            canonical(expr),
            not(*negated),
            canonical(low),
            canonical(high)
        ),
        Expr::Like {
            negated,
            any: false,
            expr,
            pattern,
            escape_char,
        } => {
            let escape = escape_char.as_ref().map(|escape| canonical(escape));
            let escape = escape.map_or(String::new(), |escape| format!(" escape {escape}"));
            let (value, pattern) = (canonical(expr), canonical(pattern));
            format!("({value} {}like {pattern}{escape})", not(*negated))
        }
        Expr::RLike {
            negated,
            expr,
            pattern,
            ..
        } => format!(
            "({} {}regexp {})",
            canonical(expr),
            not(*negated),
            canonical(pattern)
        ),
        other => in_words(other),
    }
}

/// Calls in words of their own.
fn in_words(expr: &Expr) -> String {
    match expr {
        Expr::Cast {
            expr,
            data_type,
            format: None,
            ..
        } => {
            let ty = data_type.to_string().to_lowercase();
            format!("cast({} as {ty})", canonical(expr))
        }
        Expr::Convert {
            expr,
            data_type: None,
            charset: Some(charset),
            ..
        } => {
            let charset = charset.to_string().to_lowercase();
            format!("convert({} using {charset})", canonical(expr))
        }
        Expr::Convert {
            expr,
            data_type: Some(ty),
            charset: None,
            ..
        } => {
            let ty = ty.to_string().to_lowercase();
            format!("cast({} as {ty})", canonical(expr))
        }
        Expr::Extract { field, expr, .. } => {
            format!("extract({} from {})", unit(field, None), canonical(expr))
        }
        Expr::Position { expr, r#in } => {
            format!("locate({},{})", canonical(expr), canonical(r#in))
        }
        Expr::Substring {
            expr,
            substring_from,
            substring_for,
            ..
        } => {
            let mut text = format!("substr({}", canonical(expr));
            for part in [substring_from, substring_for].into_iter().flatten() {
                text.push(',');
                text.push_str(&canonical(part));
            }
            text + ")"
        }
        Expr::Ceil { expr, .. } => format!("ceiling({})", canonical(expr)),
        Expr::Floor { expr, .. } => format!("floor({})", canonical(expr)),
        Expr::Trim {
            trim_where,
            trim_what,
            expr,
            trim_characters: None,
        } => {
            let side = trim_where.map(|side| side.to_string().to_lowercase());
            let what = trim_what.as_deref().map(canonical);
            let words: Vec<String> = side.into_iter().chain(what).collect();
            let from = if words.is_empty() { "" } else { " from " };
            format!("trim({}{from}{})", words.join(" "), canonical(expr))
        }
        Expr::Interval(interval) => {
            let Some(leading) = &interval.leading_field else {
                return expr.to_string();
            };
            let unit = unit(leading, interval.last_field.as_ref());
            format!("interval {} {unit}", canonical(&interval.value))
        }
        other => other.to_string(),
    }
}

/// A unit of time; two fields are one word in MySQL.
fn unit(leading: &DateTimeField, last: Option<&DateTimeField>) -> String {
    let word = leading.to_string().to_lowercase();
    match last {
        None => word,
        Some(last) => {
            let last = last.to_string().to_lowercase();
            format!("{}_{last}", word.trim_end_matches('s'))
        }
    }
}

/// A column in back-quotes; variables are no columns.
fn column(name: &Ident) -> String {
    if name.quote_style.is_none() && name.value.starts_with('@') {
        return name.value.clone();
    }
    format!("`{}`", name.value.replace('`', "``"))
}

fn literal(value: &Value) -> String {
    match value {
        Value::SingleQuotedString(text)
        | Value::DoubleQuotedString(text)
        | Value::NationalStringLiteral(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Boolean(truth) => truth.to_string(),
        other => other.to_string(),
    }
}

fn binary(left: &Expr, op: &BinaryOperator, right: &Expr) -> String {
    let (left, right) = (canonical(left), canonical(right));
    match op {
        BinaryOperator::Arrow => format!("json_extract({left},{right})"),
        BinaryOperator::LongArrow => format!("json_unquote(json_extract({left},{right}))"),
        BinaryOperator::StringConcat => format!("concat({left},{right})"),
        op => format!("({left} {} {right})", op.to_string().to_lowercase()),
    }
}

fn unary(op: UnaryOperator, operand: &Expr) -> String {
    let number = matches!(operand, Expr::Value(v) if matches!(v.value, Value::Number(..)));
    match op {
        UnaryOperator::Not | UnaryOperator::BangNot => format!("(not({}))", canonical(operand)),
        UnaryOperator::Plus => canonical(operand),
        UnaryOperator::Minus if number => format!("-{}", canonical(operand)),
        op => format!("{op}({})", canonical(operand)),
    }
}

fn case(operand: Option<&Expr>, whens: &[ast::CaseWhen], otherwise: Option<&Expr>) -> String {
    let mut text = "(case".to_string();
    if let Some(operand) = operand {
        text = format!("{text} {}", canonical(operand));
    }
    for when in whens {
        let (condition, result) = (canonical(&when.condition), canonical(&when.result));
        text = format!("{text} when {condition} then {result}");
    }
    if let Some(otherwise) = otherwise {
        text = format!("{text} else {}", canonical(otherwise));
    }
    text + " end)"
}

fn call(function: &ast::Function) -> String {
    let plain = function.over.is_none() && function.filter.is_none();
    let arguments: Option<Vec<&Expr>> = match &function.args {
        _ if !plain => None,
        FunctionArguments::None => Some(Vec::new()),
        FunctionArguments::List(list)
            if list.clauses.is_empty() && list.duplicate_treatment.is_none() =>
        {
            list.args.iter().map(argument).collect()
        }
        _ => None,
    };
    let Some(arguments) = arguments else {
        return function.to_string();
    };
    let name = function.name.to_string().to_lowercase().replace('`', "");
    let shown = SHOWN_AS.iter().find(|(written, _)| *written == name);
    let name = shown.map_or(name.as_str(), |(_, shown)| shown);
    let with_unit = WITH_UNIT.contains(&name);
    let arguments: Vec<String> = arguments
        .into_iter()
        .enumerate()
        .map(|(at, argument)| match argument {
            Expr::Identifier(word) if at == 0 && with_unit => word.value.to_lowercase(),
            argument => canonical(argument),
        })
        .collect();
    format!("{name}({})", arguments.join(","))
}

fn argument(argument: &FunctionArg) -> Option<&Expr> {
    match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr),
        _ => None,
    }
}

/// Parts of a stored expression.
enum Piece<'a> {
    /// A name, back-quotes taken off.
    Column(String),
    /// A string literal with its quotes.
    Text(&'a str),
    /// Everything else.
    Other(&'a str),
}

/// Takes a stored expression apart.
fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut all = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find(['`', '\'']) {
        let (before, quoted) = rest.split_at(start);
        all.push(Piece::Other(before));
        let quote = if quoted.starts_with('`') { '`' } else { '\'' };
        let end = closing(quoted, quote);
        let (quoted, behind) = quoted.split_at(end);
        all.push(if quote == '`' {
            let inside = quoted.get(1..quoted.len().saturating_sub(1));
            Piece::Column(inside.unwrap_or_default().replace("``", "`"))
        } else {
            Piece::Text(quoted)
        });
        rest = behind;
    }
    all.push(Piece::Other(rest));
    all
}

/// Where a quoted stretch at the start of `text` ends, its closing quote included.
fn closing(text: &str, quote: char) -> usize {
    let mut characters = text.char_indices().skip(1).peekable();
    while let Some((at, character)) = characters.next() {
        if character != quote {
            continue;
        }
        match characters.peek() {
            Some((_, next)) if *next == quote => {
                characters.next();
            }
            _ => return at + quote.len_utf8(),
        }
    }
    text.len()
}

/// Names of the columns a stored expression reads, in the order of the text.
pub(crate) fn columns_in(text: &str) -> Vec<String> {
    let column = |piece| match piece {
        Piece::Column(name) => Some(name),
        _ => None,
    };
    pieces(text).into_iter().filter_map(column).collect()
}

/// Names of the functions a stored expression calls.
pub(crate) fn calls_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    for piece in pieces(text) {
        let Piece::Other(other) = piece else { continue };
        for (at, _) in other.match_indices('(') {
            let before = other.get(..at).unwrap_or_default();
            let start = before.rfind(|c: char| !(c.is_alphanumeric() || c == '_'));
            let name = before.get(start.map_or(0, |start| start + 1)..);
            names.extend(name.filter(|name| !name.is_empty()).map(str::to_string));
        }
    }
    names
}

/// Whether a stored expression holds a subquery: names stand in back-quotes, so the word is one.
pub(crate) fn has_query(text: &str) -> bool {
    pieces(text).iter().any(|piece| {
        let Piece::Other(other) = piece else {
            return false;
        };
        let mut words = other.split(|c: char| !(c.is_alphanumeric() || c == '_'));
        words.any(|word| word.eq_ignore_ascii_case("select"))
    })
}

/// A stored CHECK or DEFAULT as SHOW CREATE TABLE has it. Releases before kept these as written.
pub(crate) fn displayed_definition(text: &str) -> String {
    match super::parse_expression(text, stored_mode()) {
        Ok(expr) => displayed(&canonical(&expr)),
        Err(_) => displayed(text),
    }
}

/// A stored expression as SHOW CREATE TABLE has it: text literals name their character set.
pub(crate) fn displayed(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for piece in pieces(text) {
        match piece {
            Piece::Column(name) => out.push_str(&super::words::quote_name(&name)),
            Piece::Text(quoted) => {
                if !out.ends_with(|before: char| before.is_alphanumeric() || before == '_') {
                    out.push_str("_utf8mb4");
                }
                // Clients read it in the default mode, where backslashes escape.
                out.push_str(&quoted.replace('\\', "\\\\"));
            }
            Piece::Other(other) => out.push_str(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse_expression;

    fn of(text: &str) -> String {
        let parsed = parse_expression(text, SqlMode::default()).expect(text);
        let stored = canonical(&parsed);
        let again = parse_expression(&stored, stored_mode()).expect(&stored);
        assert_eq!(canonical(&again), stored, "the text reads back as itself");
        let shown = displayed(&stored);
        let reloaded = parse_expression(&shown, SqlMode::default()).expect(&shown);
        assert_eq!(canonical(&reloaded), stored, "what is shown reads back too");
        stored
    }

    #[test]
    fn one_spelling_for_what_says_the_same() {
        for (written, stored) in [
            ("a+1", "(`a` + 1)"),
            ("((t.a)+1)", "(`a` + 1)"),
            ("SUBSTRING(a, 1,2)", "substr(`a`,1,2)"),
            ("SUBSTRING(a FROM 1 FOR 2)", "substr(`a`,1,2)"),
            ("doc->'$.a'", "json_extract(`doc`,'$.a')"),
            ("doc->>'$.a'", "json_unquote(json_extract(`doc`,'$.a'))"),
            (
                "a IS NOT NULL AND NOT b",
                "((`a` is not null) and (not(`b`)))",
            ),
            ("a NOT IN (1, -2)", "(`a` not in (1,-2))"),
            ("a BETWEEN 1 AND b", "(`a` between 1 and `b`)"),
            ("a LIKE 'x!%' ESCAPE '!'", "(`a` like 'x!%' escape '!')"),
            (
                "CASE a WHEN 1 THEN 'it''s' ELSE \"x\" END",
                "(case `a` when 1 then 'it''s' else 'x' end)",
            ),
            ("CAST(a AS CHAR(10))", "cast(`a` as char(10))"),
            ("CAST(a AS UNSIGNED)", "cast(`a` as unsigned)"),
            ("CONVERT(a USING utf8mb4)", "convert(`a` using utf8mb4)"),
            ("a COLLATE utf8mb4_bin", "(`a` collate utf8mb4_bin)"),
            ("EXTRACT(YEAR FROM d)", "extract(year from `d`)"),
            ("d + INTERVAL 1 DAY", "(`d` + interval 1 day)"),
            (
                "DATE_ADD(d, INTERVAL '1:2' MINUTE_SECOND)",
                "date_add(`d`,interval '1:2' minute_second)",
            ),
            ("TIMESTAMPDIFF(DAY, d, e)", "timestampdiff(day,`d`,`e`)"),
            ("TRIM(LEADING 'x' FROM a)", "trim(leading 'x' from `a`)"),
            ("a DIV 2 MOD 3", "((`a` div 2) % 3)"),
            ("DATE '2020-01-02'", "DATE'2020-01-02'"),
            ("`we``ird` || 'a\\\\b'", "(`we``ird` or 'a\\b')"),
        ] {
            assert_eq!(of(written), stored, "{written}");
        }
    }

    #[test]
    fn columns_are_told_from_text_and_functions() {
        let stored = of("CONCAT(a, 'no `column` here', `b``c`)");
        assert_eq!(columns_in(&stored), ["a", "b`c"]);
        assert_eq!(calls_in(&stored), ["concat"]);
        let nested = of("UPPER(IF(RAND() > 1, 'now()', CURRENT_DATE))");
        assert_eq!(calls_in(&nested), ["upper", "if", "rand", "current_date"]);
        assert!(has_query(&of("(SELECT a FROM t)")));
        assert!(!has_query(&of("CONCAT(`select`, 'select')")));
    }
}
