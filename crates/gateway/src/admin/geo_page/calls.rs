//! Latencies of calls, what they waited for, and the slowest.

use std::fmt::Write as _;

use serde_json::Value;

use super::{duration, number_at};
use crate::admin::page::{escaped, list, text};

/// The classes.
const CLASSES: [&str; 2] = ["local", "cross-region"];

/// What the reasons mean.
const MEANINGS: [(&str, &str); 8] = [
    (
        "ordering gate",
        "until all clocks of the region have passed its place, and two replicas of the shard hold it",
    ),
    (
        "cross-region ahead",
        "behind a cross-region one of the region whose place is not decided",
    ),
    ("input", "for a value that another shard gives"),
    (
        "row in use",
        "for a row of an earlier one that waits for a value of another shard",
    ),
    (
        "managers' ledger",
        "until the managers of a region agree on its place; part of what is elsewhere",
    ),
    (
        "session order",
        "until the clock is past what its session has seen",
    ),
    (
        "strict order",
        "until no region can stamp before it any more",
    ),
    (
        "elsewhere",
        "on its way between nodes, or worked on or waiting at another node",
    ),
];

/// The reason that managers count and that is in another one too.
const LEDGER: &str = "managers' ledger";

fn class_at<'v>(region: &'v Value, class: &str) -> &'v Value {
    let classes = region.get("classes").and_then(|classes| classes.get(class));
    classes.unwrap_or(&Value::Null)
}

/// A row for each region and class.
pub fn latencies(html: &mut String, geo: &Value) {
    html.push_str(
        "<div class=\"scroll\"><table><tr><th>Region</th><th>Transactions</th>\
         <th class=\"number\">Answered per second</th><th class=\"number\">p50</th>\
         <th class=\"number\">p99</th><th>p99 since the page was opened</th>\
         <th class=\"number\">Longest</th><th class=\"number\">Not answered yet</th>\
         <th class=\"number\">Given up</th><th class=\"number\">Answered since the start</th></tr>",
    );
    let minute = number_at(geo, "/minute_seconds").filter(|minute| *minute > 0.0);
    for region in list(geo, "regions") {
        for class in CLASSES {
            latency_row(html, region, class, minute);
        }
    }
    html.push_str(
        "</table></div><p><small>From the arrival of a call at the replica that answers it to the answer; the \
         way to the client is not in it. Of a transaction of one region none of it is a wait for other \
         regions, but where it reads a row in use. Percentiles are at most a tenth too high.</small></p>",
    );
}

fn latency_row(html: &mut String, region: &Value, class: &str, minute: Option<f64>) {
    let of = class_at(region, class);
    let number = text(region, "number");
    let count = number_at(of, "/minute/count").unwrap_or(0.0);
    let rate = minute.map_or(0.0, |minute| count / minute);
    let p99 = number_at(of, "/minute/p99");
    let value = p99.map_or_else(String::new, |p99| p99.to_string());
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        html,
        "<tr><td>{number}</td><td>{class}</td><td class=\"number\">{rate:.1}</td>\
         <td class=\"number\">{}</td><td class=\"number\"><b>{}</b></td>\
         <td class=\"trend\" data-series=\"{number} {class}\" data-value=\"{value}\"></td>\
         <td class=\"number\">{}</td>",
        duration(number_at(of, "/minute/p50")),
        duration(p99),
        duration(number_at(of, "/minute/longest")),
    );
    for key in ["open", "given_up", "answered"] {
        let _ = write!(html, "<td class=\"number\">{}</td>", text(of, key));
    }
    html.push_str("</tr>");
}

/// For each class the reasons, and what a call waited for each on average.
pub fn waits(html: &mut String, geo: &Value) {
    html.push_str(
        "<p><small>Of a call on average, in the last minute, as samples at the replica that answers it say; \
         the share is that of all time that calls of the class took.</small></p><div class=\"pair\">",
    );
    for class in CLASSES {
        let _ = write!(
            html,
            "<section><h3>A {class} transaction</h3><table><tr><th>Waits for</th>"
        );
        for region in list(geo, "regions") {
            let _ = write!(
                html,
                "<th class=\"number\">Region {}</th>",
                text(region, "number")
            );
        }
        html.push_str("<th class=\"share\">Share</th></tr>");
        for reason in list(geo, "reasons").iter().filter_map(Value::as_str) {
            reason_row(html, geo, class, reason);
        }
        html.push_str("</table></section>");
    }
    html.push_str("</div>");
}

fn waited(region: &Value, class: &str, reason: &str) -> f64 {
    let waits = class_at(region, class).get("minute_waits");
    let waited = waits
        .and_then(|waits| waits.get(reason))
        .and_then(Value::as_f64);
    waited.unwrap_or(0.0)
}

/// What calls of a class took in all regions, by the sums of their waits.
fn all_time(geo: &Value, class: &str) -> f64 {
    let reasons = list(geo, "reasons").iter().filter_map(Value::as_str);
    let reasons: Vec<&str> = reasons.filter(|reason| *reason != LEDGER).collect();
    let regions = list(geo, "regions").iter();
    let of = |region| {
        reasons
            .iter()
            .map(|reason| waited(region, class, reason))
            .sum::<f64>()
    };
    regions.map(of).sum()
}

/// A reason for which nothing has waited has no row.
fn reason_row(html: &mut String, geo: &Value, class: &str, reason: &str) {
    let regions = list(geo, "regions");
    let sum: f64 = regions
        .iter()
        .map(|region| waited(region, class, reason))
        .sum();
    if sum <= 0.0 {
        return;
    }
    let meaning = MEANINGS.iter().find(|(known, _)| *known == reason);
    let meaning = meaning.map_or("", |(_, meaning)| meaning);
    let _ = write!(html, "<tr><td>{reason}<br><small>{meaning}</small></td>");
    for region in regions {
        let count = number_at(class_at(region, class), "/minute/count").unwrap_or(0.0);
        let waited = waited(region, class, reason);
        let told = if waited <= 0.0 {
            "–".to_owned()
        } else if count > 0.0 {
            duration(Some(waited / count))
        } else {
            "none is answered".to_owned()
        };
        let _ = write!(html, "<td class=\"number\">{told}</td>");
    }
    let percent = 100.0 * sum / all_time(geo, class).max(sum);
    let _ = write!(
        html,
        "<td class=\"share\">{percent:.0} %<svg class=\"bar\" viewBox=\"0 0 100 1\" \
         preserveAspectRatio=\"none\" aria-hidden=\"true\"><rect width=\"{percent:.1}\" height=\"1\"/></svg>\
         </td></tr>"
    );
}

/// The slowest calls of both classes.
pub fn slowest(html: &mut String, geo: &Value) {
    let calls = list(geo, "slowest");
    if calls.is_empty() {
        html.push_str("<p>No call was answered.</p>");
        return;
    }
    html.push_str(
        "<div class=\"scroll\"><table><tr><th>Transaction</th><th>Procedure</th>\
         <th>Answered by</th><th class=\"number\">Ago</th><th class=\"number\">Took</th>\
         <th>Waited for</th></tr>",
    );
    for call in calls {
        let _ = write!(
            html,
            "<tr><td class=\"when\">{}</td><td>{}<br><small>{}</small></td>\
             <td class=\"when\">node {}, region {}</td><td class=\"number\">{}</td>\
             <td class=\"number\">{}</td><td>{}</td></tr>",
            text(call, "class"),
            text(call, "procedure"),
            text(call, "call"),
            text(call, "node"),
            text(call, "region"),
            duration(number_at(call, "/ago")),
            duration(number_at(call, "/took")),
            longest_waits(call),
        );
    }
    html.push_str(
        "</table></div><p><small>Below the procedure stands the call: its client's node and number. What each waited for is sampled every \
         7.3 ms.</small></p>",
    );
}

/// The waits of a call, the longest first.
fn longest_waits(call: &Value) -> String {
    let waits = call
        .get("waits")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let waits = waits.filter_map(|(reason, waited)| Some((reason.as_str(), waited.as_f64()?)));
    let mut waits: Vec<(&str, f64)> = waits.collect();
    waits.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let told = waits
        .iter()
        .map(|(reason, waited)| format!("{} {}", escaped(reason), duration(Some(*waited))));
    told.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    fn shown(part: fn(&mut String, &Value)) -> String {
        let mut html = String::new();
        part(&mut html, &example());
        html
    }

    #[test]
    fn latencies_have_a_row_for_each_region_and_class() {
        let html = shown(latencies);
        for piece in [
            "<tr><td>0</td><td>local</td><td class=\"number\">10.0</td><td class=\"number\">12.5 ms</td>\
             <td class=\"number\"><b>15.0 ms</b></td>\
             <td class=\"trend\" data-series=\"0 local\" data-value=\"0.015\"></td>\
             <td class=\"number\">20.1 ms</td><td class=\"number\">2</td><td class=\"number\">0</td>\
             <td class=\"number\">1000</td></tr>",
            "<tr><td>0</td><td>cross-region</td><td class=\"number\">0.0</td><td class=\"number\">–</td>",
            "<tr><td>1</td><td>cross-region</td>",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
    }

    #[test]
    fn waits_are_told_of_a_call_and_as_shares() {
        let html = shown(waits);
        for piece in [
            "<th class=\"number\">Region 0</th><th class=\"number\">Region 1</th>",
            "passed its place, and two replicas of the shard hold it</small></td>\
             <td class=\"number\">6.00 ms</td><td class=\"number\">–</td><td class=\"share\">75 %",
            "<rect width=\"75.0\" height=\"1\"/>",
            "<td class=\"number\">2.00 ms</td><td class=\"number\">–</td><td class=\"share\">25 %",
            "<td class=\"number\">none is answered</td><td class=\"number\">–</td><td class=\"share\">100 %",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
        assert!(
            !html.contains("strict order"),
            "nothing has waited for that"
        );
    }

    #[test]
    fn a_slow_call_says_what_it_waited_for_the_longest_first() {
        let html = shown(slowest);
        let row = "<td class=\"when\">local</td><td>payment<br><small>40.7</small></td><td class=\"when\">node 1, region 0</td>\
                   <td class=\"number\">65.00 s</td><td class=\"number\">55.3 ms</td>\
                   <td>row in use 43.8 ms, ordering gate 7.30 ms</td>";
        assert!(html.contains(row), "{html}");
        let mut none = String::new();
        slowest(&mut none, &Value::Null);
        assert_eq!(none, "<p>No call was answered.</p>");
    }
}
