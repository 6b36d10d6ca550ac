//! The page about ownership, for people: a picture of whose the rows of each table are, and requests to
//! forget. It shows definitions and counts, and no value of any row.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use super::page::{escaped, head_of_part, list, moment, text};

/// Size of a table in the picture, and of what lies between two, in units of the picture.
const WIDTH: usize = 170;
const HEIGHT: usize = 44;
const GAP_ACROSS: usize = 30;
const GAP_DOWN: usize = 64;
/// Tables side by side at most; more of one distance go below.
const ACROSS_MAX: usize = 6;

/// The picture, the links in words, and requests, as one HTML page without scripts.
pub fn render(ownership: &Value) -> String {
    let mut html = head_of_part("Ownership");
    let sealed = ownership.get("sealed").and_then(Value::as_bool);
    html.push_str(if sealed == Some(true) {
        "<p>Rows of people are sealed.</p>"
    } else {
        "<p>Rows are not sealed: there is no vault.</p>"
    });
    let tables = list(ownership, "tables");
    let links = list(ownership, "links");
    html.push_str(
        "<p><a href=\"/ownership/person\">A person's data</a> and \
         <a href=\"/ownership/certificates\">certificates</a> are for accounts with the privilege GDPR, \
         who log in also on the machine itself.</p><h2>Whose rows are</h2>",
    );
    if tables.is_empty() {
        html.push_str("<p>No table says whose its rows are: <code>CREATE DATA_SUBJECT TABLE</code>, <code>OWNED_BY</code>.</p>");
    } else {
        picture(&mut html, tables, links);
        links_table(&mut html, links);
    }
    html.push_str("<h2>Requests to forget</h2>");
    requests_table(&mut html, list(ownership, "requests"));
    html.push_str("</body></html>\n");
    html
}

fn raw<'v>(value: &'v Value, key: &str) -> &'v str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The two ends of a link: who owns, and what is owned.
fn ends(link: &Value) -> (&str, &str) {
    let (from, to) = (raw(link, "from"), raw(link, "to"));
    if link.get("leads_down").and_then(Value::as_bool) == Some(true) {
        (from, to)
    } else {
        (to, from)
    }
}

/// How many links each table is from people at least; those no link leads to are below all.
fn distances<'v>(tables: &'v [Value], links: &'v [Value]) -> BTreeMap<&'v str, usize> {
    let people = tables
        .iter()
        .filter(|table| raw(table, "kind") == "data subject");
    let mut found: BTreeMap<&str, usize> = people.map(|table| (raw(table, "name"), 0)).collect();
    for step in 1..=tables.len() {
        for link in links {
            let (owner, owned) = ends(link);
            if found.get(owner) == Some(&(step - 1)) {
                found.entry(owned).or_insert(step);
            }
        }
    }
    let below = found.values().max().map_or(0, |most| most + 1);
    for table in tables {
        found.entry(raw(table, "name")).or_insert(below);
    }
    found
}

/// The left upper corner of each table in the picture.
type Places<'v> = BTreeMap<&'v str, (usize, usize)>;

/// Where the left upper corner of each table is, and the size of all.
fn places<'v>(tables: &'v [Value], links: &'v [Value]) -> (Places<'v>, (usize, usize)) {
    let mut layers: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (table, distance) in distances(tables, links) {
        layers.entry(distance).or_default().push(table);
    }
    let mut places = BTreeMap::new();
    let (mut row, mut widest) = (0, 0);
    for names in layers.values() {
        for chunk in names.chunks(ACROSS_MAX) {
            for (column, name) in chunk.iter().enumerate() {
                let left = column * (WIDTH + GAP_ACROSS);
                places.insert(*name, (left, row * (HEIGHT + GAP_DOWN)));
                widest = widest.max(left + WIDTH);
            }
            row += 1;
        }
    }
    (places, (widest, row * (HEIGHT + GAP_DOWN)))
}

fn picture(html: &mut String, tables: &[Value], links: &[Value]) {
    let (places, (width, height)) = places(tables, links);
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        html,
        "<div class=\"scroll\"><svg class=\"graph\" role=\"img\" aria-label=\"Whose rows are\" \
         viewBox=\"-4 -4 {} {}\" width=\"{}\">",
        width + 8,
        height + 8,
        width + 8
    );
    for link in links {
        let (owner, owned) = ends(link);
        let (Some(above), Some(below)) = (places.get(owner), places.get(owned)) else {
            continue;
        };
        let class = if raw(link, "word").starts_with("OWN") {
            "owns"
        } else {
            "accesses"
        };
        let _ = write!(
            html,
            "<line class=\"{class}\" x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"><title>{}.{} {} {}</title></line>",
            above.0 + WIDTH / 2,
            above.1 + HEIGHT,
            below.0 + WIDTH / 2,
            below.1,
            text(link, "from"),
            text(link, "columns"),
            text(link, "word"),
            text(link, "to"),
        );
    }
    for table in tables {
        let Some((left, top)) = places.get(raw(table, "name")) else {
            continue;
        };
        let kind = raw(table, "kind");
        let class = if kind == "data subject" {
            "people"
        } else {
            "table"
        };
        let _ = write!(
            html,
            "<g class=\"{class}\"><rect x=\"{left}\" y=\"{top}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"6\"/>\
             <text x=\"{}\" y=\"{}\">{}</text><text class=\"kind\" x=\"{}\" y=\"{}\">{}</text></g>",
            left + 10,
            top + 19,
            shortened(raw(table, "name")),
            left + 10,
            top + 35,
            escaped(kind),
        );
    }
    html.push_str("</svg></div>");
}

/// What of a name fits into a table of the picture.
fn shortened(name: &str) -> String {
    const LENGTH_MAX: usize = 22;
    if name.chars().count() <= LENGTH_MAX {
        return escaped(name);
    }
    let begin: String = name.chars().take(LENGTH_MAX - 1).collect();
    escaped(&format!("{begin}…"))
}

fn links_table(html: &mut String, links: &[Value]) {
    html.push_str(
        "<div class=\"scroll\"><table><tr><th>Table</th><th>Columns</th><th>Link</th><th>To</th><th></th></tr>",
    );
    for link in links {
        let is_inferred = link.get("is_inferred").and_then(Value::as_bool) == Some(true);
        let _ = write!(
            html,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            text(link, "from"),
            text(link, "columns"),
            text(link, "word"),
            text(link, "to"),
            if is_inferred { "inferred" } else { "" }
        );
    }
    html.push_str("</table></div>");
}

fn requests_table(html: &mut String, requests: &[Value]) {
    if requests.is_empty() {
        html.push_str("<p>None so far. <code>GDPR FORGET</code> makes one.</p>");
        return;
    }
    html.push_str(
        "<p><small>Reasons are in <code>SHOW GDPR REQUESTS</code> alone: they may name people.</small></p>\
         <div class=\"scroll\"><table><tr><th class=\"number\">Request</th><th>Kind</th><th>State</th>\
         <th class=\"number\">Rows</th><th>Asked by</th><th>Asked at (UTC)</th><th>Goes on at (UTC)</th></tr>",
    );
    for request in requests {
        let state = raw(request, "state");
        let class = if state == "done" {
            "serving"
        } else {
            "stopped"
        };
        let (asked, due) = (moment(request, "asked_at"), moment(request, "due_at"));
        let _ = write!(
            html,
            "<tr><td class=\"number\">{}</td><td>{}</td><td><span class=\"state {class}\">{}</span></td>\
             <td class=\"number\">{}</td><td>{}</td><td class=\"when\">{asked}</td>\
             <td class=\"when\">{due}</td></tr>",
            text(request, "number"),
            text(request, "kind"),
            escaped(state),
            text(request, "rows"),
            text(request, "asked_by"),
        );
    }
    html.push_str("</table></div>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown() -> Value {
        let table = |name: &str, kind: &str| json!({ "name": name, "kind": kind, "findings": 0 });
        let link = |from: &str, word: &str, to: &str, leads_down: bool| json!({ "from": from, "to": to, "columns": "c", "word": word, "leads_down": leads_down, "is_inferred": false });
        json!({
            "sealed": true,
            "tables": [
                table("d.files", "owned"), table("d.lines", "owned"), table("d.shares", "owned"),
                table("d.users", "data subject"), table("d.<b>", "owned"),
            ],
            "links": [
                link("d.shares", "OWNED_BY", "d.users", false),
                link("d.shares", "OWNS", "d.files", true),
                link("d.lines", "OWNED_BY", "d.files", false),
                link("d.lines", "ACCESSED_BY", "d.missing", false),
            ],
            "requests": [{
                "number": 7, "kind": "d.users", "state": "done", "rows": 317,
                "asked_by": "root@%", "asked_at": "2026-01-31T18:30:00.5Z",
            }, {
                "number": 8, "kind": "d.users", "state": "grace", "rows": 0,
                "asked_by": "root@%", "asked_at": "2026-01-31T18:30:00Z", "due_at": "2026-03-02T18:30:00Z",
            }],
        })
    }

    #[test]
    fn a_table_lies_below_those_that_own_it() {
        let shown = shown();
        let found = distances(list(&shown, "tables"), list(&shown, "links"));
        let of = |name: &str| found.get(name).copied();
        assert_eq!(of("d.users"), Some(0));
        assert_eq!(of("d.shares"), Some(1));
        assert_eq!(of("d.files"), Some(2));
        assert_eq!(of("d.lines"), Some(3));
        assert_eq!(of("d.<b>"), Some(4), "nobody's is below");
    }

    #[test]
    fn tables_links_and_requests_are_shown_without_their_markup() {
        let html = render(&shown());
        for piece in [
            "<p>Rows of people are sealed.</p>",
            ">d.files</text>",
            "<g class=\"people\"><rect",
            "<title>d.shares.c OWNS d.files</title>",
            "<td>ACCESSED_BY</td>",
            "<td class=\"number\">317</td>",
            "2026-01-31 18:30:00<",
            "grace</span>",
            "2026-03-02 18:30:00<",
            "d.&lt;b&gt;",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
        assert!(!html.contains("<b>"));
        assert_eq!(
            html.matches("<line ").count(),
            3,
            "a table that is not there has no place"
        );
    }

    #[test]
    fn a_server_without_owners_has_a_page() {
        let html = render(&json!({}));
        assert!(html.contains("No table says whose") && html.contains("None so far."));
        assert!(html.ends_with("</html>\n"));
    }
}
