//! The page about a cluster that orders transactions over regions (DAST), for people: how long local and
//! cross-region transactions take, what they wait for, and how its regions and nodes are.
//!
//! | file | |
//! |---|---|
//! | [`calls`] | latencies, reasons of waits, the slowest calls |
//! | [`regions`] | who leads and takes part, and how regions are ordered ahead of each other |
//! | here | what the cluster lacks, its nodes, and their messages |

mod calls;
mod regions;

use std::fmt::Write as _;

use serde_json::Value;

use super::page::{escaped, head, lacking, list, text};

/// The page; its script asks for it again every two seconds, and says when no answer comes.
pub fn render(geo: &Value) -> String {
    let mut html = head(
        "ManxDB: geo ordering",
        "<script src=\"/live.js\" defer></script>",
    );
    html.push_str(
        "<h1>Geo ordering</h1><nav><a href=\"/metrics\">Metrics</a><a href=\"/version\">Version</a>\
         <a href=\"/healthz\">Health</a><a href=\"/readyz\">Readiness</a></nav>\
         <p id=\"live\" role=\"status\"></p><main id=\"page\">",
    );
    cluster(&mut html, geo);
    html.push_str("<h2>Latencies of the last minute</h2>");
    calls::latencies(&mut html, geo);
    html.push_str("<h2>What transactions wait for</h2>");
    calls::waits(&mut html, geo);
    html.push_str("<h2>The slowest of ten minutes</h2>");
    calls::slowest(&mut html, geo);
    html.push_str("<h2>Regions</h2>");
    regions::regions(&mut html, geo);
    html.push_str("<h2>Nodes</h2>");
    nodes(&mut html, geo);
    html.push_str("<h2>Messages by kind</h2>");
    messages(&mut html, geo);
    html.push_str("</main></body></html>\n");
    html
}

/// What kind of a cluster it is, and what it lacks.
fn cluster(html: &mut String, geo: &Value) {
    let trips = if geo.get("is_ahead").and_then(Value::as_bool) == Some(true) {
        "one round trip between regions"
    } else {
        "two round trips between regions"
    };
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        html,
        "<p><b>{}</b> regions, {} ms apart; the nodes of one region are {} ms apart. Cross-region \
         transactions get their places <b>{}</b>: {trips}. As node <b>{}</b> sees it; every node shows the \
         whole cluster.</p>",
        list(geo, "regions").len(),
        text(geo, "wan_ms"),
        text(geo, "lan_ms"),
        text(geo, "crossing"),
        text(geo, "own"),
    );
    lacking(html, geo);
}

fn nodes(html: &mut String, geo: &Value) {
    html.push_str(
        "<div class=\"scroll\"><table><tr><th>Node</th><th>Region</th><th>Role</th><th>State</th>\
         <th>Address</th><th class=\"number\">Up for</th><th class=\"number\">Life</th>\
         <th class=\"number\">Local p99</th><th class=\"number\">Cross-region p99</th>\
         <th class=\"number\">Clock stretch</th><th class=\"number\">Records</th></tr>",
    );
    for node in list(geo, "nodes") {
        node_row(html, geo, node);
    }
    html.push_str(
        "</table></div><p><small>The link of a node is its own page. Life: how often it was started. 99th \
         percentiles of the last minute, of calls that the node answers. Clock stretch: the most of the last \
         minute by which its stamps lay behind the time. Records: what it keeps about transactions, bounded \
         while all is well.</small></p>",
    );
}

fn node_row(html: &mut String, geo: &Value, node: &Value) {
    let (number, own) = (text(node, "number"), text(geo, "own"));
    let link = match node.get("admin").and_then(Value::as_str) {
        Some(admin) => format!("<a href=\"{}/\">{number}</a>", escaped(admin)),
        None => number.clone(),
    };
    let this_one = if number == own {
        " <small>(this one)</small>"
    } else {
        ""
    };
    let state = node.get("state").and_then(Value::as_str);
    let _ = write!(
        html,
        "<tr><td>{link}{this_one}</td><td>{}</td><td>{}</td><td><span class=\"state {}\">{}</span></td>\
         <td>{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td>",
        text(node, "region"),
        text(node, "role"),
        class(state),
        escaped(state.unwrap_or("does not answer")),
        text(node, "address"),
        duration(number_at(node, "/uptime")),
        text(node, "life"),
    );
    for place in [
        "/classes/local/minute/p99",
        "/classes/cross-region/minute/p99",
        "/stretch_max",
    ] {
        let told = number_at(node, place).map_or_else(String::new, |told| duration(Some(told)));
        let _ = write!(html, "<td class=\"number\">{told}</td>");
    }
    let _ = write!(
        html,
        "<td class=\"number\">{}</td></tr>",
        text(node, "records")
    );
}

/// What a node of each state is to a reader who looks for trouble.
fn class(state: Option<&str>) -> &'static str {
    match state {
        Some("is out" | "recovers") | None => "stopped",
        Some(_) => "serving",
    }
}

fn messages(html: &mut String, geo: &Value) {
    html.push_str(
        "<details id=\"messages\"><summary>All nodes to each other</summary><table><tr><th>Kind</th>\
         <th class=\"number\">Sent</th><th class=\"number\">Per second since the start</th></tr>",
    );
    for kind in list(geo, "messages") {
        let rate = number_at(kind, "/rate").unwrap_or(0.0);
        let _ = write!(
            html,
            "<tr><td>{}</td><td class=\"number\">{}</td><td class=\"number\">{rate:.1}</td></tr>",
            text(kind, "kind"),
            text(kind, "sent"),
        );
    }
    html.push_str(
        "</table><p><small>Report and Cut, and Stream where transactions are ordered ahead, go out every \
         2.5 ms whether there are transactions or not; ack is of the connections.</small></p></details>",
    );
}

fn number_at(of: &Value, place: &str) -> Option<f64> {
    of.pointer(place)?.as_f64()
}

/// Units of durations: below which size, in seconds, by what factor, with how many digits behind the point.
const UNITS: [(f64, f64, usize, &str); 8] = [
    (0.000_000_5, 0.0, 0, ""),
    (0.000_1, 1e6, 0, " µs"),
    (0.01, 1e3, 2, " ms"),
    (0.1, 1e3, 1, " ms"),
    (1.0, 1e3, 0, " ms"),
    (120.0, 1.0, 2, " s"),
    (7_200.0, 1.0 / 60.0, 0, " min"),
    (f64::INFINITY, 1.0 / 3_600.0, 0, " h"),
];

/// Seconds as people read them, with their sign; a dash for none.
fn duration(seconds: Option<f64>) -> String {
    let Some(seconds) = seconds else {
        return "–".to_owned();
    };
    let size = seconds.abs();
    let unit = UNITS.iter().find(|(below, ..)| size < *below);
    let Some((_, factor, digits, unit)) = unit else {
        return "–".to_owned();
    };
    let sign = if seconds < 0.0 && *factor > 0.0 {
        "−"
    } else {
        ""
    };
    format!("{sign}{:.digits$}{unit}", size * factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Two regions, of which the second one answers nothing.
    pub fn example() -> Value {
        json!({
            "own": 1, "crossing": "ahead", "is_ahead": true, "wan_ms": 100.0, "lan_ms": 5.0,
            "minute_seconds": 50.0, "lacking": [], "reasons": ["ordering gate", "row in use", "elsewhere"],
            "regions": [
                {
                    "number": 0, "leader": 6, "view": 3, "replicas": 6, "live": 5, "epoch": 2, "closing": [4],
                    "joining": null, "bound": 0.0061, "stretch_max": 0.0425,
                    "classes": {
                        "local": {
                            "answered": 1_000, "open": 2, "given_up": 0,
                            "minute": { "count": 500, "p50": 0.0125, "p99": 0.015, "longest": 0.0201 },
                            "minute_waits": { "ordering gate": 3.0, "elsewhere": 1.0 },
                        },
                        "cross-region": {
                            "answered": 50, "open": 1, "given_up": 3,
                            "minute": { "count": 0, "p50": null, "p99": null, "longest": null },
                            "minute_waits": { "row in use": 0.5 },
                        },
                    },
                },
                { "number": 1, "leader": null, "classes": {} },
            ],
            "pairs": [{
                "region": 0, "other": 1, "lead": 0.0575, "told": 0.055, "heard": -0.2, "delay": null, "silent": 3.0,
            }],
            "slowest": [{
                "call": "40.7", "procedure": "payment", "class": "local", "node": 1, "region": 0,
                "took": 0.0553, "ago": 65.0, "waits": { "row in use": 0.0438, "ordering gate": 0.0073 },
            }],
            "nodes": [
                {
                    "number": 1, "role": "replica of shard 0", "region": 0, "address": "127.0.0.1:7401",
                    "admin": "http://127.0.0.1:7419", "state": "takes part", "uptime": 75.0, "life": 1,
                    "records": 12, "stretch_max": 0.0425,
                    "classes": { "local": { "minute": { "p99": 0.015 } }, "cross-region": { "minute": { "p99": null } } },
                },
                { "number": 9, "role": "<b>", "region": 1, "address": "127.0.0.1:7409", "admin": null, "state": null },
            ],
            "messages": [{ "kind": "Report", "sent": 4_000, "rate": 53.33 }],
        })
    }

    #[test]
    fn a_cluster_is_shown_with_its_nodes_and_messages() {
        let html = render(&example());
        for piece in [
            "<b>2</b> regions, 100.0 ms apart",
            "places <b>ahead</b>: one round trip",
            "The cluster lacks nothing.",
            "<td><a href=\"http://127.0.0.1:7419/\">1</a> <small>(this one)</small></td><td>0</td>\
             <td>replica of shard 0</td><td><span class=\"state serving\">takes part</span></td>\
             <td>127.0.0.1:7401</td><td class=\"number\">75.00 s</td><td class=\"number\">1</td>\
             <td class=\"number\">15.0 ms</td><td class=\"number\"></td><td class=\"number\">42.5 ms</td>\
             <td class=\"number\">12</td>",
            "<td>9</td><td>1</td><td>&lt;b&gt;</td><td><span class=\"state stopped\">does not answer</span></td>",
            "<tr><td>Report</td><td class=\"number\">4000</td><td class=\"number\">53.3</td></tr>",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
        assert_eq!(html.matches("<script").count(), 1, "the page's own");
    }

    #[test]
    fn what_is_lacking_comes_first_and_without_markup_of_others() {
        let html = render(&json!({ "lacking": ["unavailable: region <1> has no leader"] }));
        let line = "<p class=\"state stopped\">unavailable: region &lt;1&gt; has no leader</p>";
        assert!(html.contains(line), "{html}");
        assert!(!html.contains("lacks nothing"));
    }

    #[test]
    fn durations_are_as_long_as_they_need_to_be() {
        for (seconds, told) in [
            (Some(0.0), "0"),
            (Some(0.000_05), "50 µs"),
            (Some(0.002_5), "2.50 ms"),
            (Some(0.0125), "12.5 ms"),
            (Some(0.217_5), "218 ms"),
            (Some(1.25), "1.25 s"),
            (Some(-0.2), "−200 ms"),
            (Some(600.0), "10 min"),
            (Some(90_000.0), "25 h"),
            (None, "–"),
        ] {
            assert_eq!(duration(seconds), told);
        }
    }
}
