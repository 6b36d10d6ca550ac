//! The page about Redis clients, for people.

use std::fmt::Write as _;

use serde_json::Value;

use super::page::{escaped, head_of_part, milliseconds, moment, text};

/// The parts of a command's time in the order they are spent.
const PARTS: [(&str, &str); 4] = [
    ("load", "values of the store"),
    ("run", "run"),
    ("append", "log"),
    ("sync", "disk"),
];

/// Numbers by section, who waits, and slow commands, as one HTML page without scripts.
pub fn render(redis: &Value) -> String {
    let mut html = head_of_part("Redis");
    html.push_str(
        "<p>What INFO tells, and <code>/metrics</code> as <code>manxdb_redis_*</code>.</p>",
    );
    let sections = redis.get("numbers").and_then(Value::as_object);
    // The first is what most people come for.
    for name in ["Types", "Memory", "Clients", "Stats", "Persistence"] {
        if let Some(numbers) = sections.and_then(|sections| sections.get(name)) {
            numbers_table(&mut html, name, numbers);
        }
    }
    if let Some(waits) = redis.get("waits") {
        numbers_table(&mut html, "Connections that wait for keys", waits);
    }
    html.push_str("<h2>Slow commands</h2>");
    slow_table(&mut html, redis.get("slow").unwrap_or(&Value::Null));
    html.push_str("</body></html>\n");
    html
}

fn numbers_table(html: &mut String, title: &str, numbers: &Value) {
    let rows = numbers.as_object();
    // Writing to a String cannot fail, here and below.
    let _ = write!(html, "<h2>{}</h2>", escaped(title));
    if rows.is_none_or(serde_json::Map::is_empty) {
        html.push_str("<p>None.</p>");
        return;
    }
    html.push_str("<table>");
    for (name, value) in rows.into_iter().flatten() {
        let _ = write!(
            html,
            "<tr><td>{}</td><td class=\"number\">{}</td></tr>",
            escaped(name),
            escaped(&value.to_string())
        );
    }
    html.push_str("</table>");
}

/// Newest first, with the split of their time.
fn slow_table(html: &mut String, slow: &Value) {
    let rows = slow.as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        html.push_str(
            "<p>None so far. <code>slowlog-log-slower-than</code> says what is slow.</p>",
        );
        return;
    }
    html.push_str(
        "<p><small>The newest first, times in milliseconds.</small></p><div class=\"scroll\"><table><tr>\
         <th>Started (UTC)</th><th class=\"number\">Total</th><th>Command</th>",
    );
    for (_, heading) in PARTS {
        let _ = write!(html, "<th class=\"number\">{heading}</th>");
    }
    html.push_str("</tr>");
    for row in rows {
        let started = moment(row, "started_at");
        let _ = write!(
            html,
            "<tr><td class=\"when\">{started}</td><td class=\"number\">{}</td>\
             <td><code>{}</code><br><small>{} {}</small></td>",
            milliseconds(row.get("total_micros")),
            text(row, "command"),
            text(row, "address"),
            text(row, "client"),
        );
        let split = row.get("split_micros").unwrap_or(&Value::Null);
        for (key, _) in PARTS {
            let part = milliseconds(split.get(key));
            let _ = write!(html, "<td class=\"number\">{part}</td>");
        }
        html.push_str("</tr>");
    }
    html.push_str("</table></div>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_waits_and_slow_commands_are_shown_without_their_markup() {
        let html = render(&json!({
            "numbers": { "Types": { "keys_zset": 17 }, "Memory": { "used_memory": 4711 } },
            "waits": { "brpop": 3 },
            "slow": [{
                "started_at": "2026-01-31T18:30:00.5Z", "command": "GET <script>",
                "total_micros": 25_500, "address": "10.0.0.1:5", "client": "<b>",
                "split_micros": { "load": 20_000, "run": 5_500, "append": 0, "sync": 0 },
            }],
        }));
        for piece in [
            "<td>keys_zset</td><td class=\"number\">17<",
            "<td>used_memory</td><td class=\"number\">4711<",
            "<td>brpop</td><td class=\"number\">3<",
            "2026-01-31 18:30:00<",
            "GET &lt;script&gt;",
            ">25<",
            ">20<",
            ">5.50<",
            "10.0.0.1:5 &lt;b&gt;",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
        assert!(!html.contains("<script>"));
    }

    #[test]
    fn a_server_where_nothing_happened_has_a_page() {
        let html = render(&json!({}));
        assert!(html.contains("None so far.") && html.ends_with("</html>\n"));
    }
}
