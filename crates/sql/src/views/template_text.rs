//! From the text of a query that was run to the definition of a view that would answer it.

use super::shape::{among, cut, joined_of, operands};
use crate::plan::{Expr, ExprKind, Plan};
use crate::types::Value;

/// What becomes of a `?` of the query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A column of the key.
    Key,
    /// One of several values of a column of the key, behind the first: it goes.
    Among,
    /// Anything else: the value that it has is written in its place.
    Other,
}

/// The definition of a view for a query: values of key columns are `?`, lists of them one `?`, and
/// other parameters the constants that they are in this run. `None` when the text cannot be told
/// apart. `plan` was made for a view.
pub(crate) fn definition_text(text: &str, plan: &Plan, params: &[Value]) -> Option<String> {
    let mut places = vec![Place::Other; params.len()];
    for operand in operands(&plan.root) {
        let (source, _) = cut(operand, true)?;
        for condition in &joined_of(source)?.group.conjuncts {
            note_key(condition, &mut places)?;
        }
    }
    rewritten(text, &places, params)
}

/// Notes the parameters of a condition on a column of the key.
fn note_key(condition: &Expr, places: &mut [Place]) -> Option<()> {
    let Some(asked) = among(condition) else {
        return Some(());
    };
    let param = |value: &&Expr| match value.kind {
        ExprKind::Param(param) => Some(param),
        _ => None,
    };
    let params: Option<Vec<usize>> = asked.values.iter().map(param).collect();
    for (at, param) in params.unwrap_or_default().into_iter().enumerate() {
        *places.get_mut(param)? = if at == 0 { Place::Key } else { Place::Among };
    }
    Some(())
}

/// The text with each `?` as its place says. A `?` in quotes or comments is none.
fn rewritten(text: &str, places: &[Place], params: &[Value]) -> Option<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut number = 0;
    while let Some(at) = rest.find(['?', '\'', '"', '`', '#', '-', '/']) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let first = from.chars().next()?;
        let length = match first {
            '?' => {
                match places.get(number)? {
                    Place::Key => out.push('?'),
                    Place::Among => drop_comma(&mut out)?,
                    Place::Other => out.push_str(&literal(params.get(number)?)?),
                }
                number += 1;
                rest = from.get(1..)?;
                continue;
            }
            '#' => return None,
            '-' | '/' if from.starts_with("--") || from.starts_with("/*") => return None,
            '-' | '/' => 1,
            quote => 2 + from.get(1..)?.find(quote)?,
        };
        // An escape in quotes: not worth to be understood here.
        let quoted = from.get(..length)?;
        if quoted.contains('\\') {
            return None;
        }
        out.push_str(quoted);
        rest = from.get(length..)?;
    }
    out.push_str(rest);
    (number == places.len()).then_some(out)
}

/// Takes away the comma before a value of a list that goes.
fn drop_comma(out: &mut String) -> Option<()> {
    let kept = out.trim_end();
    let kept = kept.strip_suffix(',')?.trim_end().len();
    out.truncate(kept);
    Some(())
}

fn literal(value: &Value) -> Option<String> {
    match value {
        Value::Int(number) => Some(number.to_string()),
        Value::UInt(number) => Some(number.to_string()),
        Value::Decimal(number) => Some(number.to_string()),
        Value::Text(text) if !text.contains(['\'', '\\']) => Some(format!("'{text}'")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_stay_lists_shrink_and_other_parameters_become_constants() {
        let places = [
            Place::Key,
            Place::Among,
            Place::Among,
            Place::Other,
            Place::Other,
        ];
        let params = [1, 2, 3, 4].map(Value::Int).into_iter();
        let params: Vec<Value> = params.chain([Value::Text("a".into())]).collect();
        let text = "SELECT '?', `a?` FROM t WHERE a IN (?, ? ,?) AND b - 1 > ? AND c <> ?";
        assert_eq!(
            rewritten(text, &places, &params).unwrap(),
            "SELECT '?', `a?` FROM t WHERE a IN (?) AND b - 1 > 4 AND c <> 'a'"
        );
    }

    #[test]
    fn what_is_not_understood_is_no_template() {
        let one = [Value::Int(1)];
        for text in [
            "SELECT ? -- x",
            "SELECT ? /* ? */",
            "SELECT ? # ?",
            "SELECT 'a\\'?', ?",
            "SELECT ?, ?",
            "SELECT 1",
            "SELECT 'x, ?",
        ] {
            assert_eq!(rewritten(text, &[Place::Key], &one), None, "{text}");
        }
        let quoted = [Value::Text("it's".into())];
        assert_eq!(rewritten("SELECT ?", &[Place::Other], &quoted), None);
    }
}
