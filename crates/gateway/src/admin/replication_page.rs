//! The page about a cluster that replicates (CURP), for people: roles, view, how commands are completed, and
//! how far backups and disks are behind.

use std::fmt::Write as _;

use serde_json::Value;

use super::page::{escaped, head_of_part, lacking, list, text};

/// The ways in which a command is completed: their names, and the round trips that each takes.
const WAYS: [(&str, &str, &str); 4] = [
    ("fast", "fast: all witnesses have recorded it", "1"),
    (
        "reads",
        "read at the master",
        "1, or 2 when the key was not synced",
    ),
    (
        "conflicts",
        "at the backups: it conflicts, or is recorded nowhere",
        "2; 1 from the master's own process",
    ),
    (
        "synced",
        "synced, after a witness refused or was slow",
        "2 to 3",
    ),
];

/// What a node of each state is to a reader who looks for trouble.
fn class(state: Option<&str>) -> &'static str {
    if state.is_some() {
        "serving"
    } else {
        "stopped"
    }
}

/// The cluster as one HTML page without scripts.
pub fn render(replication: &Value) -> String {
    let mut html = head_of_part("Replication");
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        html,
        "<p>Survives <b>{}</b> fault(s). Durability <b>{}</b>: {}. {}</p>",
        text(replication, "faults"),
        text(replication, "durability"),
        promise(replication),
        view(replication),
    );
    lacking(&mut html, replication);
    html.push_str("<h2>Nodes</h2>");
    nodes(&mut html, replication);
    html.push_str("<h2>How commands were completed</h2>");
    ways(&mut html, replication);
    html.push_str("<h2>At the master</h2>");
    at_master(&mut html, replication);
    html.push_str("</body></html>\n");
    html
}

/// What an acknowledgement says in the durability mode.
fn promise(replication: &Value) -> String {
    match replication.get("durability").and_then(Value::as_str) {
        Some("fsync") => {
            "what is acknowledged is on the disks of the master and all backups".to_owned()
        }
        _ => {
            let processes =
                number(replication, "faults").map_or(1, |faults| faults.saturating_add(1));
            format!("what is acknowledged is in the memory of {processes} processes")
        }
    }
}

fn view(replication: &Value) -> String {
    match (
        number(replication, "epoch"),
        number(replication, "witness_list"),
    ) {
        (Some(epoch), Some(list)) => {
            format!("Epoch <b>{epoch}</b>, list of witnesses <b>{list}</b>.")
        }
        _ => "The coordinator names no view.".to_owned(),
    }
}

fn nodes(html: &mut String, replication: &Value) {
    html.push_str(
        "<div class=\"scroll\"><table><tr><th>Node</th><th>Role</th><th>State</th><th>Address</th>\
         <th class=\"number\">Applied</th><th class=\"number\">Backlog</th>\
         <th class=\"number\">Not on disk</th></tr>",
    );
    let own = number(replication, "own");
    for node in list(replication, "nodes") {
        let state = node.get("state").and_then(Value::as_str);
        let is_own = own.is_some() && number(node, "number") == own;
        let _ = write!(
            html,
            "<tr><td>{}{}</td><td>{}</td><td><span class=\"state {}\">{}</span></td><td>{}</td>",
            text(node, "number"),
            if is_own {
                " <small>(this one)</small>"
            } else {
                ""
            },
            text(node, "role"),
            class(state),
            escaped(state.unwrap_or("does not answer")),
            text(node, "address"),
        );
        for key in ["applied", "backlog", "not_on_disk"] {
            let _ = write!(html, "<td class=\"number\">{}</td>", text(node, key));
        }
        html.push_str("</tr>");
    }
    html.push_str(
        "</table></div><p><small>Applied: commands of the log that a server has applied; all backups have \
         them. Backlog: commands of the master's log that a backup does not have. Not on disk: records of \
         the log that wait for a disk.</small></p>",
    );
}

fn ways(html: &mut String, replication: &Value) {
    let commands = replication.get("commands").unwrap_or(&Value::Null);
    let here = WAYS.iter().filter_map(|(key, name, trips)| {
        let count = number(commands, key)?;
        Some((name, trips, count))
    });
    let here: Vec<_> = here.collect();
    let all: u64 = here.iter().map(|(_, _, count)| count).sum();
    html.push_str(
        "<p><small>Those of this process since it started; a server that is not the master makes \
         none.</small></p><table><tr><th>Way</th><th>Round trips</th><th class=\"number\">Commands</th>\
         <th class=\"number\">Share</th></tr>",
    );
    for (name, trips, count) in here {
        let percent = (u128::from(count) * 100).checked_div(u128::from(all));
        let share = percent.map_or_else(String::new, |percent| format!("{percent} %"));
        let _ = write!(
            html,
            "<tr><td>{name}</td><td>{trips}</td><td class=\"number\">{count}</td>\
             <td class=\"number\">{share}</td></tr>"
        );
    }
    html.push_str("</table>");
}

fn at_master(html: &mut String, replication: &Value) {
    if number(replication, "not_synced").is_none() {
        html.push_str("<p>No master answers.</p>");
        return;
    }
    html.push_str("<table>");
    for (name, key) in [
        (
            "Updates answered before they were synced",
            "updates_before_sync",
        ),
        ("Updates synced first", "updates_after_sync"),
        ("Commands that not all backups have yet", "not_synced"),
        ("Records that some witness may still have", "not_collected"),
    ] {
        let value = text(replication, key);
        let _ = write!(
            html,
            "<tr><td>{name}</td><td class=\"number\">{value}</td></tr>"
        );
    }
    html.push_str("</table>");
}

fn number(of: &Value, key: &str) -> Option<u64> {
    of.get(key)?.as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_cluster_is_shown_with_its_roles_ways_and_backlogs() {
        let html = render(&json!({
            "own": 1, "durability": "fsync", "faults": 1, "epoch": 3, "witness_list": 2, "lacking": [],
            "commands": { "fast": 30, "conflicts": 9, "synced": 1 },
            "not_synced": 5, "not_collected": 6, "updates_before_sync": 31, "updates_after_sync": 9,
            "nodes": [
                { "number": 0, "role": "coordinator", "address": "10.0.0.1:7400", "state": "coordinates" },
                { "number": 1, "role": "server", "address": "10.0.0.2:7401", "state": "master", "not_on_disk": 2 },
                { "number": 2, "role": "server", "address": "10.0.0.3:7402", "state": "backup", "applied": 38, "backlog": 4, "not_on_disk": 0 },
            ],
        }));
        for piece in [
            "Survives <b>1</b> fault(s). Durability <b>fsync</b>: what is acknowledged is on the disks",
            "Epoch <b>3</b>, list of witnesses <b>2</b>.",
            "The cluster lacks nothing.",
            "<tr><td>1 <small>(this one)</small></td><td>server</td><td><span class=\"state serving\">master</span></td>\
             <td>10.0.0.2:7401</td><td class=\"number\"></td><td class=\"number\"></td><td class=\"number\">2</td>",
            "<td class=\"number\">38</td><td class=\"number\">4</td><td class=\"number\">0</td>",
            "<td class=\"number\">30</td><td class=\"number\">75 %</td>",
            "<td class=\"number\">1</td><td class=\"number\">2 %</td>",
            "<td>Commands that not all backups have yet</td><td class=\"number\">5</td>",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
        assert!(
            !html.contains("read at the master"),
            "no reads are counted here"
        );
    }

    #[test]
    fn a_cluster_of_which_nothing_answers_says_so_without_markup_of_others() {
        let html = render(&json!({
            "durability": "memory", "faults": 2,
            "lacking": ["unavailable: there is <no> master"],
            "nodes": [{ "number": 1, "role": "<b>", "state": null }],
        }));
        for piece in [
            "<p class=\"state stopped\">unavailable: there is &lt;no&gt; master</p>",
            "<td>&lt;b&gt;</td><td><span class=\"state stopped\">does not answer</span></td>",
            "The coordinator names no view.",
            "No master answers.",
            "in the memory of 3 processes",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
        assert!(!html.contains("this one"));
    }
}
