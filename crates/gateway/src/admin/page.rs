//! The page for people.

use std::fmt::Write as _;

use manxdb_sql::session::TimeSplit;
use serde_json::Value;

use super::health::{HealthReport, HealthState};

/// How the page looks.
pub const STYLE: &str = include_str!("console/console.css");
/// What keeps its numbers up to date.
pub const SCRIPT: &str = include_str!("console/console.js");
/// What keeps a page up to date that the server draws.
pub const LIVE_SCRIPT: &str = include_str!("console/live.js");

/// The parts of a statement's time in the order they are spent, as `/slow` names them.
fn parts() -> impl Iterator<Item = &'static str> {
    TimeSplit::default()
        .parts()
        .into_iter()
        .map(|(part, _)| part)
}

/// The console: version, readiness and slow statements as they are now, and places where the script
/// shows what [`super::metrics_text`] says. Without scripts the page has all but the latter.
pub fn render(
    version: &Value,
    health: &HealthReport,
    slow: &Value,
    parts_here: &[(&str, &str)],
) -> String {
    let told = |state: &str, line: &str| {
        let class = if line.is_empty() {
            "serving"
        } else {
            "stopped"
        };
        let line = escaped(line);
        format!("<span class=\"state {class}\">{state}{line}</span>")
    };
    let state = match health.state {
        HealthState::Ok => told("serving", ""),
        HealthState::Degraded => told("serving, but degraded: ", &health.line()),
        HealthState::Unavailable => told("not serving: ", &health.line()),
    };
    let link = |(path, name): &(&str, &str)| format!("<a href=\"{path}\">{name}</a>");
    let links: String = parts_here.iter().map(link).collect();
    format!(
        "{}<h1>ManxDB {}</h1><p>This node is {state}. Clients see MySQL {}.</p>\
         <nav>{links}<a href=\"/metrics\">Metrics</a><a href=\"/slow\">Slow statements as JSON</a>\
         <a href=\"/version\">Version</a><a href=\"/healthz\">Health</a>\
         <a href=\"/readyz\">Readiness</a></nav>\
         <h2>Now</h2><noscript><p>Live numbers need scripts; <a href=\"/metrics\">/metrics</a> has \
         them all.</p></noscript><p id=\"live\" role=\"status\"></p>\
         <div id=\"cards\" class=\"cards\"></div>\
         <div class=\"pair\"><section><h2>Statements by kind</h2><div id=\"kinds\"></div></section>\
         <section><h2>Where time goes</h2><div id=\"parts\"></div></section></div>\
         <h2>Slow statements</h2>{}\
         <h2>Everything measured</h2><div id=\"groups\"></div></body></html>\n",
        head("ManxDB", "<script src=\"/console.js\" defer></script>"),
        text(version, "version"),
        text(version, "mysql_version"),
        slow_table(slow)
    )
}

/// What every page begins with, up to its first heading.
pub(super) fn head(title: &str, script: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\
         <link rel=\"stylesheet\" href=\"/console.css\">{script}</head><body>"
    )
}

/// What the page about a part of the server begins with: its name, and the way back. It has no script.
pub(super) fn head_of_part(name: &str) -> String {
    format!(
        "{}<h1>{name}</h1><nav><a href=\"/\">ManxDB</a><a href=\"/metrics\">Metrics</a></nav>",
        head(&format!("ManxDB: {name}"), "")
    )
}

/// Newest first, with the split of their time.
fn slow_table(slow: &Value) -> String {
    let rows = slow.as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return "<p>None so far. <code>long_query_time</code> says what is slow.</p>".to_owned();
    }
    let mut html = String::from(
        "<p><small>The newest first, times in milliseconds.</small></p>\
         <div class=\"scroll\"><table><tr><th>Started (UTC)</th><th class=\"number\">Total</th>\
         <th>Statement</th><th class=\"number\">Rows</th>",
    );
    // Writing to a String cannot fail, here and below.
    for heading in parts().map(|part| part.replace('_', " ")) {
        let _ = write!(html, "<th class=\"number\">{heading}</th>");
    }
    html.push_str("</tr>");
    for row in rows {
        slow_row(&mut html, row);
    }
    html.push_str("</table></div>");
    html
}

fn slow_row(html: &mut String, row: &Value) {
    let started = moment(row, "started_at");
    let mut origin = text(row, "account");
    for (name, key) in [("database", "database"), ("connection", "connection")] {
        let value = text(row, key);
        if !value.is_empty() {
            let _ = write!(origin, " · {name} {value}");
        }
    }
    let error = text(row, "error");
    if error != "0" && !error.is_empty() {
        let _ = write!(origin, " · <span class=\"stopped\">error {error}</span>");
    }
    let _ = write!(
        html,
        "<tr><td class=\"when\">{started}</td><td class=\"number\">{}</td>\
         <td><code>{}</code><br><small>{origin}</small></td><td class=\"number\">{}</td>",
        milliseconds(row.get("total_micros")),
        text(row, "statement"),
        text(row, "rows"),
    );
    let split = row.get("split_micros").unwrap_or(&Value::Null);
    for key in parts() {
        let part = milliseconds(split.get(key));
        let _ = write!(html, "<td class=\"number\">{part}</td>");
    }
    html.push_str("</tr>");
}

/// Microseconds as milliseconds; nothing for none.
pub(super) fn milliseconds(micros: Option<&Value>) -> String {
    let micros = micros.and_then(Value::as_u64).unwrap_or(0);
    match micros {
        0 => String::new(),
        1..10_000 => format!("{}.{:02}", micros / 1000, micros % 1000 / 10),
        _ => (micros / 1000).to_string(),
    }
}

/// A member of an object as HTML; empty when it is missing or null.
pub(super) fn text(of: &Value, key: &str) -> String {
    match of.get(key) {
        Some(Value::String(text)) => escaped(text),
        Some(Value::Null) | None => String::new(),
        Some(other) => escaped(&other.to_string()),
    }
}

/// A member of an object that is a list; nothing when it is missing.
pub(super) fn list<'v>(of: &'v Value, key: &str) -> &'v [Value] {
    let found = of.get(key).and_then(Value::as_array);
    found.map(Vec::as_slice).unwrap_or_default()
}

/// A member of an object that is a time, to the second and without its zone, as HTML; empty when it is missing
/// or null.
pub(super) fn moment(of: &Value, key: &str) -> String {
    let time = text(of, key).replace('T', " ");
    time.split(['.', 'Z']).next().unwrap_or_default().to_owned()
}

/// What a cluster lacks, a line for each, or that it lacks nothing.
pub(super) fn lacking(html: &mut String, cluster: &Value) {
    let lacking = list(cluster, "lacking");
    if lacking.is_empty() {
        html.push_str("<p class=\"state serving\">The cluster lacks nothing.</p>");
    }
    for line in lacking.iter().filter_map(Value::as_str) {
        let _ = write!(html, "<p class=\"state stopped\">{}</p>", escaped(line));
    }
}

pub(super) fn escaped(text: &str) -> String {
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
        let slow = json!([{
            "statement": "SELECT '<script>'", "account": "<b>@%", "database": "<i>",
            "total_micros": 7, "error": 0,
        }]);
        let html = render(&json!({ "version": "1" }), &HealthReport::ok(), &slow, &[]);
        assert!(html.contains("SELECT '&lt;script&gt;'") && !html.contains("<script>"));
        // The page's own script is the only one.
        assert_eq!(html.matches("<script").count(), 1);
        assert!(html.contains("&lt;b&gt;@% · database &lt;i&gt;"));
    }

    #[test]
    fn a_slow_statement_shows_where_its_time_went() {
        let slow = json!([{
            "started_at": "2026-01-31T18:30:00.123456Z", "statement": "SELECT 1",
            "total_micros": 304_065, "rows": 1, "error": 1205, "database": null,
            "split_micros": { "parse": 255, "lock_wait": 0, "execute": 303_406 },
        }]);
        let html = render(&json!({}), &HealthReport::ok(), &slow, &[]);
        for piece in [
            "2026-01-31 18:30:00<",
            ">304<",
            ">0.25<",
            ">303<",
            "error 1205",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
        assert!(!html.contains("null"));
    }

    #[test]
    fn a_node_that_lacks_something_says_what_and_what_to_do() {
        let health = HealthReport::degraded("no writes: disk <full>", "free space");
        let html = render(&json!({}), &health, &json!([]), &[]);
        assert!(html.contains("but degraded: no writes: disk &lt;full&gt;: free space"));
    }

    #[test]
    fn a_node_that_does_not_serve_says_why() {
        let health = HealthReport::unavailable("shutting down", "");
        let html = render(&json!({}), &health, &json!([]), &[]);
        assert!(html.contains("not serving: shutting down"));
    }
}
