//! Who leads and takes part in each region, and how regions are ordered ahead of each other.

use std::fmt::Write as _;

use serde_json::Value;

use super::{duration, number_at};
use crate::admin::page::{list, text};

/// The regions, and pairs of them where transactions are ordered ahead.
pub fn regions(html: &mut String, geo: &Value) {
    html.push_str(
        "<div class=\"scroll\"><table><tr><th>Region</th><th>Managers' leader</th>\
         <th class=\"number\">View</th><th>Replicas</th><th class=\"number\">Epoch</th>\
         <th class=\"number\">Bound ahead by</th><th class=\"number\">Clock stretch</th></tr>",
    );
    for region in list(geo, "regions") {
        region_row(html, region);
    }
    html.push_str(
        "</table></div><p><small>View: how often the leader was replaced. Epoch: changes of who takes part. \
         Clock stretch: the most of the last minute by which stamps of a replica lay behind the time, because \
         a cross-region transaction is not decided, or the bound stands still: local transactions go on \
         meanwhile.</small></p>",
    );
    if geo.get("is_ahead").and_then(Value::as_bool) == Some(true) {
        pairs(html, geo);
    }
}

fn region_row(html: &mut String, region: &Value) {
    let leader = match text(region, "leader") {
        none if none.is_empty() => "<span class=\"state stopped\">none answers</span>".to_owned(),
        leader => format!("node {leader}"),
    };
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        html,
        "<tr><td>{}</td><td>{leader}</td><td class=\"number\">{}</td><td>{}</td>\
         <td class=\"number\">{}</td><td class=\"number\">{}</td><td class=\"number\">{}</td></tr>",
        text(region, "number"),
        text(region, "view"),
        members(region),
        text(region, "epoch"),
        duration(number_at(region, "/bound")),
        duration(number_at(region, "/stretch_max")),
    );
}

/// How many of a region's replicas take part, and who comes and goes.
fn members(region: &Value) -> String {
    let live = text(region, "live");
    if live.is_empty() {
        return "not known".to_owned();
    }
    let all = text(region, "replicas");
    let class = if live == all { "serving" } else { "stopped" };
    let mut told = format!("<span class=\"state {class}\">{live} of {all} take part</span>");
    let closing: Vec<String> = list(region, "closing")
        .iter()
        .map(Value::to_string)
        .collect();
    if !closing.is_empty() {
        let _ = write!(
            told,
            "; transactions of {} are collected",
            closing.join(", ")
        );
    }
    let joining = text(region, "joining");
    if !joining.is_empty() {
        let _ = write!(told, "; {joining} is let in");
    }
    told
}

fn pairs(html: &mut String, geo: &Value) {
    html.push_str(
        "<h3>Ordered ahead, region by region</h3><div class=\"scroll\"><table><tr><th>Region</th><th>With</th>\
         <th class=\"number\">Lead</th><th class=\"number\">Mark told, ahead by</th>\
         <th class=\"number\">Mark heard, ahead by</th><th class=\"number\">Stream takes</th>\
         <th class=\"number\">Silent for</th></tr>",
    );
    for pair in list(geo, "pairs") {
        let _ = write!(
            html,
            "<tr><td>{}</td><td>region {}</td>",
            text(pair, "region"),
            text(pair, "other")
        );
        for (place, is_late) in [
            ("/lead", false),
            ("/told", false),
            (
                "/heard",
                number_at(pair, "/heard").is_some_and(|heard| heard < 0.0),
            ),
            ("/delay", false),
            ("/silent", false),
        ] {
            let class = if is_late { " stopped" } else { "" };
            let told = duration(number_at(pair, place));
            let _ = write!(html, "<td class=\"number{class}\">{told}</td>");
        }
        html.push_str("</tr>");
    }
    html.push_str(
        "</table></div><p><small>A region tells each other one marks: up to there it will give no place any \
         more. Lead: how far ahead of its time it tells them. A mark heard that is behind the time holds the \
         region's order back, and its clocks stretch. The least mark heard is the region's bound.</small></p>",
    );
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn regions_and_pairs_say_who_holds_up_whom() {
        let mut html = String::new();
        regions(&mut html, &example());
        for piece in [
            "<tr><td>0</td><td>node 6</td><td class=\"number\">3</td>\
             <td><span class=\"state stopped\">5 of 6 take part</span>; transactions of 4 are collected</td>\
             <td class=\"number\">2</td><td class=\"number\">6.10 ms</td><td class=\"number\">42.5 ms</td></tr>",
            "<tr><td>1</td><td><span class=\"state stopped\">none answers</span></td>",
            "<td>not known</td>",
            "<tr><td>0</td><td>region 1</td><td class=\"number\">57.5 ms</td><td class=\"number\">55.0 ms</td>\
             <td class=\"number stopped\">−200 ms</td><td class=\"number\">–</td><td class=\"number\">3.00 s</td>",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
    }

    #[test]
    fn anticipated_places_have_no_marks() {
        let mut geo = example();
        geo["is_ahead"] = Value::Bool(false);
        let mut html = String::new();
        regions(&mut html, &geo);
        assert!(!html.contains("Lead"), "{html}");
    }
}
