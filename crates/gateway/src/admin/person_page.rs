//! The page about one person: a form, and the person's rows as a tree. It shows counts, links and keys of
//! rows, and no other value.

use std::fmt::Write as _;

use serde_json::Value;

use super::page::{escaped, head_of_part, list, text};

/// Links from the person to a row that is drawn.
const DEPTH_MAX: usize = 16;
/// Links that are drawn open.
const OPEN_DEPTH: usize = 2;

/// What was asked, and what came of it.
pub struct Asked<'a> {
    /// `database.table`.
    pub kind: &'a str,
    /// As it was entered.
    pub id: &'a str,
    /// The tree, or why there is none.
    pub found: Result<&'a Value, &'a str>,
}

/// The page, without scripts.
pub fn render(kinds: &[String], asked: Option<&Asked<'_>>) -> String {
    let mut html = head_of_part("A person's data");
    html.push_str(
        "<p><a href=\"/ownership\">Ownership</a> <a href=\"/ownership/certificates\">Certificates</a></p>\
         <p>Whose rows are whose, by the links of ownership, for accounts with the privilege GDPR. \
         Shown are counts and keys of rows; <code>GDPR GET</code> answers all values.</p>",
    );
    form(&mut html, kinds, asked);
    match asked.map(|asked| (asked, asked.found)) {
        Some((_, Err(why))) => {
            // Writing to a String cannot fail, here and below.
            let _ = write!(
                html,
                "<p class=\"stopped\" role=\"alert\">{}</p>",
                escaped(why)
            );
        }
        Some((asked, Ok(tree))) => {
            let _ = write!(
                html,
                "<h2>{} {}</h2>",
                escaped(asked.kind),
                escaped(asked.id)
            );
            totals(&mut html, tree);
            html.push_str("<ul class=\"tree\"><li>");
            row(&mut html, tree.get("person").unwrap_or(&Value::Null), 0);
            html.push_str("</li></ul>");
        }
        None => {}
    }
    html.push_str("</body></html>\n");
    html
}

fn form(html: &mut String, kinds: &[String], asked: Option<&Asked<'_>>) {
    if kinds.is_empty() {
        html.push_str("<p>No table of people is there that this account may see: <code>CREATE DATA_SUBJECT TABLE</code>.</p>");
        return;
    }
    html.push_str(
        "<form method=\"post\" action=\"/ownership/person\"><label>Kind <select name=\"kind\">",
    );
    for kind in kinds {
        let is_chosen = asked.is_some_and(|asked| asked.kind == kind);
        let chosen = if is_chosen { " selected" } else { "" };
        let kind = escaped(kind);
        let _ = write!(html, "<option value=\"{kind}\"{chosen}>{kind}</option>");
    }
    let id = asked.map_or(String::new(), |asked| escaped(asked.id));
    let _ = write!(
        html,
        "</select></label> <label>Id <input name=\"id\" value=\"{id}\" autocomplete=\"off\" required></label> \
         <button>Show</button></form><p><small>The id is the primary key; several columns are parted by commas.</small></p>"
    );
}

fn number(of: &Value, key: &str) -> u64 {
    of.get(key).and_then(Value::as_u64).unwrap_or(0)
}

fn totals(html: &mut String, tree: &Value) {
    html.push_str(
        "<div class=\"scroll\"><table><tr><th>Table</th><th class=\"number\">The person's</th>\
         <th class=\"number\">Has access to</th><th></th></tr>",
    );
    for table in list(tree, "tables") {
        let is_readable = table.get("is_readable").and_then(Value::as_bool) == Some(true);
        let note = if is_readable {
            ""
        } else {
            "keys are shown to accounts that may SELECT from it"
        };
        let _ = write!(
            html,
            "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td><td><small>{note}</small></td></tr>",
            text(table, "name"),
            number(table, "owned"),
            number(table, "accessed"),
        );
    }
    html.push_str("</table></div>");
}

/// A row, and what was found through it.
fn row(html: &mut String, of: &Value, depth: usize) {
    let key = text(of, "key");
    if key.is_empty() {
        html.push_str("<small>a row</small>");
    } else {
        let _ = write!(html, "<code>{key}</code>");
    }
    let links = list(of, "links");
    if links.is_empty() {
        return;
    }
    html.push_str("<ul>");
    for link in links {
        link_of(html, link, depth);
    }
    html.push_str("</ul>");
}

/// Rows that were found by one link.
fn link_of(html: &mut String, link: &Value, depth: usize) {
    let (rows, shown) = (number(link, "rows"), list(link, "shown"));
    let is_owned = link.get("is_owned").and_then(Value::as_bool) == Some(true);
    let standing = if is_owned { "" } else { " · access only" };
    let open = if depth < OPEN_DEPTH { " open" } else { "" };
    let word = if rows == 1 { "row" } else { "rows" };
    let _ = write!(
        html,
        "<li><details{open}><summary>{} <small>{rows} {word} · {}{standing}</small></summary><ul>",
        text(link, "table"),
        text(link, "link"),
    );
    let is_deep = depth >= DEPTH_MAX;
    for shown in shown.iter().filter(|_| !is_deep) {
        html.push_str("<li>");
        row(html, shown, depth + 1);
        html.push_str("</li>");
    }
    let drawn = if is_deep { 0 } else { shown.len() as u64 };
    let left = rows.saturating_sub(drawn);
    if left > 0 {
        let _ = write!(html, "<li><small>{left} more</small></li>");
    }
    html.push_str("</ul></details></li>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn tree() -> Value {
        json!({
            "kind": "d.users",
            "tables": [
                { "name": "d.users", "owned": 1, "accessed": 0, "is_readable": true },
                { "name": "d.<b>", "owned": 3, "accessed": 1, "is_readable": false },
            ],
            "person": { "key": "id = 7", "links": [{
                "table": "d.<b>", "link": "user_id OWNED_BY d.users", "is_owned": true, "rows": 3,
                "shown": [{ "key": null, "links": [{
                    "table": "d.tags", "link": "post_id ACCESSED_BY d.<b>", "is_owned": false, "rows": 1,
                    "shown": [{ "key": "id = '<script>'", "links": [] }],
                }]}],
            }]},
        })
    }

    #[test]
    fn a_tree_has_links_counts_and_keys_and_what_is_left_out() {
        let tree = tree();
        let asked = Asked {
            kind: "d.users",
            id: "7\"><i>",
            found: Ok(&tree),
        };
        let html = render(&["d.users".to_owned(), "d.other".to_owned()], Some(&asked));
        for piece in [
            "<option value=\"d.users\" selected>d.users</option><option value=\"d.other\">",
            "value=\"7&quot;&gt;&lt;i&gt;\"",
            "<code>id = 7</code><ul><li><details open><summary>d.&lt;b&gt; <small>3 rows · user_id OWNED_BY d.users</small>",
            "<small>a row</small><ul><li><details open><summary>d.tags <small>1 row · post_id ACCESSED_BY d.&lt;b&gt; · access only</small>",
            "<li><small>2 more</small></li>",
            "id = '&lt;script&gt;'",
            "<td class=\"number\">3</td><td class=\"number\">1</td><td><small>keys are shown to accounts",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
        assert!(!html.contains("<script") && !html.contains("<i>") && !html.contains("<b>"));
        for tag in ["ul", "li", "details"] {
            let opened = html.matches(&format!("<{tag}>")).count()
                + html.matches(&format!("<{tag} ")).count();
            assert_eq!(opened, html.matches(&format!("</{tag}>")).count(), "{tag}");
        }
    }

    #[test]
    fn a_tree_that_is_too_deep_ends() {
        let mut below = json!({ "key": "id = 0", "links": [] });
        for _ in 0..100 {
            below = json!({ "key": "id = 1", "links": [{ "table": "t", "link": "l", "is_owned": true, "rows": 1, "shown": [below] }] });
        }
        let tree = json!({ "person": below });
        let asked = Asked {
            kind: "d.users",
            id: "1",
            found: Ok(&tree),
        };
        let html = render(&["d.users".to_owned()], Some(&asked));
        assert!(html.matches("<details").count() <= DEPTH_MAX + 1, "{html}");
        assert!(html.contains("1 more"));
    }

    #[test]
    fn what_is_not_there_is_said_and_the_form_stays_filled() {
        let asked = Asked {
            kind: "d.users",
            id: "70",
            found: Err("'users' has no row with the key <70>"),
        };
        let html = render(&["d.users".to_owned()], Some(&asked));
        assert!(html.contains("role=\"alert\">'users' has no row with the key &lt;70&gt;</p>"));
        assert!(html.contains("value=\"70\"") && !html.contains("class=\"tree\""));
        assert!(render(&[], None).contains("No table of people"));
    }
}
