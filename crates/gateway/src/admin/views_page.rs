//! The page about materialized views, for people. It shows names and counts, and no value of any row.

use std::fmt::Write as _;

use serde_json::Value;

use super::page::{escaped, head_of_part, text};

/// The counts of a view, in the order of SHOW MATERIALIZED VIEWS.
const COUNTS: [(&str, &str); 7] = [
    ("keys", "Keys"),
    ("bytes", "Bytes"),
    ("hits", "Hits"),
    ("misses", "Misses"),
    ("evictions", "Evictions"),
    ("delta_rows", "Delta rows"),
    ("fill_rows", "Fill rows"),
];

/// The views and what they take, as one HTML page without scripts.
pub fn render(views: &Value) -> String {
    let mut html = head_of_part("Views");
    let rows = views.get("views").and_then(Value::as_array);
    let rows = rows.map(Vec::as_slice).unwrap_or_default();
    let bytes = rows.iter().filter_map(|row| row.get("bytes")?.as_u64());
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        html,
        "<p>What <code>SHOW MATERIALIZED VIEWS</code> tells. Together they take {} bytes of {} \
         (<code>views_memory</code>).</p>",
        bytes.sum::<u64>(),
        text(views, "views_memory"),
    );
    if rows.is_empty() {
        html.push_str("<p>None so far. <code>CREATE MATERIALIZED VIEW</code> makes one.</p>");
    } else {
        table(&mut html, rows);
    }
    html.push_str("</body></html>\n");
    html
}

fn table(html: &mut String, rows: &[Value]) {
    html.push_str("<div class=\"scroll\"><table><tr><th>View</th><th>State</th>");
    for (_, heading) in COUNTS {
        let _ = write!(html, "<th class=\"number\">{heading}</th>");
    }
    html.push_str("<th class=\"number\">Answered</th></tr>");
    for row in rows {
        let state = row.get("state").and_then(Value::as_str).unwrap_or_default();
        let class = if state == "usable" {
            "serving"
        } else {
            "stopped"
        };
        let _ = write!(
            html,
            "<tr><td>{}</td><td><span class=\"state {class}\">{}</span></td>",
            text(row, "name"),
            escaped(state)
        );
        for (key, _) in COUNTS {
            let _ = write!(html, "<td class=\"number\">{}</td>", text(row, key));
        }
        let _ = write!(html, "<td class=\"number\">{}</td></tr>", answered(row));
    }
    html.push_str("</table></div>");
}

/// The share of queries that the view answered; nothing where none could.
fn answered(row: &Value) -> String {
    let count = |key| row.get(key).and_then(Value::as_u64).unwrap_or(0);
    let (hits, all) = (count("hits"), count("hits").saturating_add(count("misses")));
    let percent = u128::from(hits) * 100;
    percent
        .checked_div(u128::from(all))
        .map_or_else(String::new, |percent| format!("{percent} %"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn views_are_shown_with_their_counts_and_without_their_markup() {
        let view = |name: &str, state: &str, hits: u64| json!({ "name": name, "state": state, "keys": 3, "bytes": 1_234, "hits": hits, "misses": 1, "evictions": 0, "delta_rows": 17, "fill_rows": 4 });
        let html = render(&json!({
            "views_memory": 67_108_864,
            "views": [view("d.by_user", "usable", 2), view("d.<b>", "table 'd.<i>' is gone", 0)],
        }));
        for piece in [
            "take 2468 bytes of 67108864",
            "<td>d.by_user</td><td><span class=\"state serving\">usable</span></td><td class=\"number\">3<",
            "<td class=\"number\">17</td><td class=\"number\">4</td><td class=\"number\">66 %</td>",
            "<td>d.&lt;b&gt;</td><td><span class=\"state stopped\">table 'd.&lt;i&gt;' is gone<",
            "<td class=\"number\">0 %</td>",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
        assert!(!html.contains("<b>") && !html.contains("<i>"));
    }

    #[test]
    fn a_server_without_views_has_a_page() {
        let html = render(&json!({}));
        assert!(html.contains("None so far.") && html.ends_with("</html>\n"));
    }
}
