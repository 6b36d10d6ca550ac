//! The page for people.

use std::fmt::Write as _;

use serde_json::Value;

/// Version, readiness and slow statements as one HTML page without scripts.
pub fn render(version: &Value, ready: &Result<(), String>, slow: &Value) -> String {
    let state = match ready {
        Ok(()) => "serving".to_owned(),
        Err(why) => format!("not serving: {}", escaped(why)),
    };
    let version = version
        .get("version")
        .and_then(Value::as_str)
        .map(escaped)
        .unwrap_or_default();
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>ManxDB</title>\
         <style>body{{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}}\
         table{{border-collapse:collapse;width:100%}}td,th{{border-bottom:1px solid #ccc;padding:.3rem;\
         text-align:left;vertical-align:top}}code{{white-space:pre-wrap}}</style></head><body>\
         <h1>ManxDB {version}</h1><p>This node is <b>{state}</b>.</p>\
         <p><a href=\"/metrics\">metrics</a> · <a href=\"/slow\">slow statements (JSON)</a> · \
         <a href=\"/version\">version</a> · <a href=\"/healthz\">health</a> · \
         <a href=\"/readyz\">readiness</a></p><h2>Slow statements</h2>{}</body></html>\n",
        slow_table(slow)
    )
}

/// A table whose columns are the keys of the first statement.
fn slow_table(slow: &Value) -> String {
    let rows = slow.as_array().map(Vec::as_slice).unwrap_or_default();
    let Some(first) = rows.first().and_then(Value::as_object) else {
        return "<p>None so far.</p>".to_owned();
    };
    let keys: Vec<&String> = first.keys().collect();
    let mut html = String::from("<table><tr>"); // writing to a String cannot fail
    for key in &keys {
        let _ = write!(html, "<th>{}</th>", escaped(key));
    }
    html.push_str("</tr>");
    for row in rows {
        html.push_str("<tr>");
        for key in &keys {
            let cell = match row.get(key.as_str()) {
                Some(Value::String(text)) => escaped(text),
                Some(other) => escaped(&other.to_string()),
                None => String::new(),
            };
            let _ = write!(html, "<td><code>{cell}</code></td>");
        }
        html.push_str("</tr>");
    }
    html.push_str("</table>");
    html
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn statements_cannot_inject_markup() {
        let slow = json!([{ "statement": "SELECT '<script>'", "total_micros": 7 }]);
        let html = render(&json!({ "version": "1" }), &Ok(()), &slow);
        assert!(html.contains("SELECT '&lt;script&gt;'") && !html.contains("<script>"));
        assert!(html.contains("<th>total_micros</th>") && html.contains(">7<"));
    }

    #[test]
    fn a_node_that_does_not_serve_says_why() {
        let html = render(&json!({}), &Err("shutting down".into()), &json!([]));
        assert!(html.contains("not serving: shutting down"));
    }
}
