//! What a client means by its text.

use manxdb_sql::parser::{
    Parsed, Template, parse, parse_expression, parse_template, template as template_of,
};
use manxdb_sql::types::SqlMode;
use manxdb_sql::types::{Collation, Decimal, Value};

/// The modes that change how a text is read.
fn modes() -> [SqlMode; 4] {
    let plain = SqlMode::default();
    [
        plain,
        SqlMode {
            pipes_as_concat: true,
            ..plain
        },
        SqlMode {
            ansi_quotes: true,
            ..plain
        },
        SqlMode {
            no_backslash_escapes: true,
            ..plain
        },
    ]
}

/// SQL text: the pre-pass, the parser, the parser of stored expressions.
pub fn sql_text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for mode in modes() {
        let _ = parse(text, mode);
        let _ = parse_expression(text, mode);
    }
}

/// A text and what it leaves when its constants are taken out mean the same.
pub fn template(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    for mode in modes() {
        let Some(template) = template_of(text, mode, Collation::default()) else {
            continue;
        };
        // A template that does not parse is not used: the text itself is then.
        let Ok(of_template) = parse_template(&template, mode) else {
            continue;
        };
        match parse(text, mode).as_deref() {
            Ok([of_text]) => assert_same(text, of_text, &of_template, &template),
            Ok(several) => panic!("{} statements have one template: {text}", several.len()),
            Err(error) => panic!("{error}, but its template {} parses: {text}", template.text),
        }
    }
}

fn assert_same(text: &str, of_text: &Parsed, of_template: &Parsed, template: &Template) {
    assert_eq!(
        (of_text.param_count, of_template.param_count),
        (0, template.values.len()),
        "parameters: {text}"
    );
    assert_eq!(of_text.ignore, of_template.ignore, "IGNORE: {text}");
    assert_eq!(of_text.into_variables, of_template.into_variables, "{text}");
    assert_eq!(of_text.table_options, of_template.table_options, "{text}");
    let wanted = format!("{:?} {:?}", of_text.statement, of_text.special);
    let found = format!("{:?} {:?}", of_template.statement, of_template.special);
    if let Err(place) = compare(&wanted, &found, &template.values) {
        panic!(
            "{place}: {text}\ntemplate {}, {:?}",
            template.text, template.values
        );
    }
}

/// Whether two printed trees are one but for places in the text and for parameters in `found`,
/// which must stand where `wanted` has their values.
fn compare(wanted: &str, found: &str, values: &[Value]) -> Result<(), String> {
    const PARAMETER: &str = "Placeholder(\"?";
    const PLACE: &str = "Span(Location(";
    let (mut wanted, mut found) = (wanted, found);
    loop {
        if let (Some(from), Some(to)) = (wanted.strip_prefix(PLACE), found.strip_prefix(PLACE)) {
            // `Span(Location(1,8)..Location(1,9))`, never with quotes in it.
            wanted = from.split_once("))").map_or("", |(_, rest)| rest);
            found = to.split_once("))").map_or("", |(_, rest)| rest);
        } else if let Some(parameter) = found.strip_prefix(PARAMETER) {
            let (number, rest) = parameter.split_once("\")").unwrap_or_default();
            let value = number.parse().ok().and_then(|at: usize| values.get(at));
            let value = value.ok_or_else(|| format!("no value for ?{number}"))?;
            wanted = after_constant(wanted, value).ok_or_else(|| {
                let shown: String = wanted.chars().take(60).collect();
                format!("?{number} is {value:?}, the text has {shown}")
            })?;
            found = rest;
        } else {
            let (one, other) = (wanted.chars().next(), found.chars().next());
            match (one, other) {
                (None, None) => return Ok(()),
                (Some(one), Some(other)) if one == other => {
                    wanted = &wanted[one.len_utf8()..];
                    found = &found[one.len_utf8()..];
                }
                _ => {
                    let shown = |rest: &str| rest.chars().take(60).collect::<String>();
                    return Err(format!("{} became {}", shown(wanted), shown(found)));
                }
            }
        }
    }
}

/// What follows the printed constant `value`; `None` when another stands there.
fn after_constant<'a>(printed: &'a str, value: &Value) -> Option<&'a str> {
    if let Value::Text(text) = value {
        return printed.strip_prefix(&format!("SingleQuotedString({text:?})"));
    }
    let (number, rest) = printed
        .strip_prefix("Number(\"")?
        .split_once("\", false)")?;
    let is_it = match value {
        Value::Int(wanted) => number.parse() == Ok(*wanted),
        Value::Decimal(wanted) => number
            .parse::<Decimal>()
            .is_ok_and(|found| **wanted == found),
        _ => false,
    };
    is_it.then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_with_another_constant_or_shape_is_told_apart() {
        let values = [Value::Int(5), Value::Text("x\"".into())];
        let found =
            r#"Op(Placeholder("?1"), Span(Location(1,2)..Location(3,4)), Placeholder("?0"))"#;
        let wanted = r#"Op(SingleQuotedString("x\""), Span(Location(0,2)..Location(3,9)), Number("05", false))"#;
        assert_eq!(compare(wanted, found, &values), Ok(()));
        for (from, to) in [
            ("05", "6"),
            ("Op", "Up"),
            (r#""x\"""#, r#""y""#),
            ("false))", "false)"),
        ] {
            let other = wanted.replace(from, to);
            assert!(compare(&other, found, &values).is_err(), "{other}");
        }
    }
}
