//! The page about the pool that compactions are handed to, for people: control plane, workers, jobs, and why
//! jobs were sent home.

use std::fmt::Write as _;

use serde_json::Value;

use super::page::{escaped, head_of_part, list, text};

/// Counters of the control plane: their names, and what each counts.
const COUNTS: [(&str, &str); 6] = [
    ("taken", "jobs taken"),
    ("done", "results recorded"),
    ("lost", "attempts whose worker was not heard of in time"),
    ("failed", "attempts that failed"),
    (
        "late",
        "ends of attempts that were not the present one any more",
    ),
    ("refused", "results that databases refused"),
];

/// Jobs that are shown; the control plane's own report has all.
const JOBS_MAX: usize = 100;

/// The pool as one HTML page without scripts.
pub fn render(pool: &Value) -> String {
    let mut html = head_of_part("Compaction pool");
    let control: Vec<_> = list(pool, "control")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        html,
        "<p>This server hands its compactions to the pool behind <b>{}</b>, which knows it as database \
         <code>{}</code>. What the pool does not do in time this server does itself: <code>\
         manxdb_compaction_*</code> of its <a href=\"/metrics\">metrics</a> count both.</p>",
        escaped(&control.join(", ")),
        text(pool, "own"),
    );
    if let Some(why) = pool.get("silent").and_then(Value::as_str) {
        let _ = write!(
            html,
            "<p class=\"state stopped\">No control plane answers: {}. Compactions are done here until one \
             does.</p>",
            escaped(why)
        );
    } else {
        standing(&mut html, pool);
        html.push_str("<h2>Workers</h2>");
        workers(&mut html, pool);
        html.push_str("<h2>Jobs</h2>");
        jobs(&mut html, pool);
        html.push_str("<h2>Since this control plane leads</h2>");
        counts(&mut html, pool);
    }
    html.push_str("</body></html>\n");
    html
}

/// Who leads, and what needs somebody's attention.
fn standing(html: &mut String, pool: &Value) {
    let leads = pool.get("leads").and_then(Value::as_bool) == Some(true);
    let (class, told) = match (leads, text(pool, "leader").as_str()) {
        (true, "") => ("serving", "The only control plane answers.".to_owned()),
        (true, leader) => (
            "serving",
            format!("{leader} leads, in term {}.", text(pool, "term")),
        ),
        (false, "") => ("stopped", "No control plane leads.".to_owned()),
        (false, leader) => ("stopped", format!("{leader} leads and does not answer.")),
    };
    let _ = write!(html, "<p class=\"state {class}\">{told}</p>");
    if leads && list(pool, "workers").is_empty() {
        html.push_str(
            "<p class=\"state stopped\">The pool has no worker: <code>manxdb compactor worker</code> starts \
             one.</p>",
        );
    }
    for worker in list(pool, "banned").iter().filter_map(Value::as_str) {
        let _ = write!(
            html,
            "<p class=\"state stopped\">Worker {} gets nothing more: databases refused what it made.</p>",
            escaped(worker)
        );
    }
}

fn workers(html: &mut String, pool: &Value) {
    html.push_str(
        "<div class=\"scroll\"><table><tr><th>Worker</th><th class=\"number\">Zone</th>\
         <th class=\"number\">Running</th><th class=\"number\">At most</th><th class=\"number\">Speed</th>\
         <th class=\"number\">Memory left</th><th class=\"number\">Fetched</th><th class=\"number\">Put</th>\
         </tr>",
    );
    for worker in list(pool, "workers") {
        let _ = write!(html, "<tr><td><code>{}</code></td>", text(worker, "worker"));
        for key in ["zone", "running", "slots"] {
            let _ = write!(html, "<td class=\"number\">{}</td>", text(worker, key));
        }
        let _ = write!(
            html,
            "<td class=\"number\">{}/s</td>",
            megabytes(worker, "bytes_second")
        );
        for key in ["memory", "fetched", "put"] {
            let _ = write!(html, "<td class=\"number\">{}</td>", megabytes(worker, key));
        }
        html.push_str("</tr>");
    }
    html.push_str(
        "</table></div><p><small>Speed: bytes of inputs that the worker compacts in a second. Fetched and \
         put: since it started.</small></p>",
    );
}

fn jobs(html: &mut String, pool: &Value) {
    let jobs = list(pool, "jobs");
    if jobs.is_empty() {
        html.push_str("<p>None now.</p>");
        return;
    }
    html.push_str(
        "<div class=\"scroll\"><table><tr><th>Database</th><th class=\"number\">Job</th><th>Levels</th>\
         <th class=\"number\">Inputs</th><th class=\"number\">Attempt</th><th>State</th></tr>",
    );
    let own = pool.get("own");
    for job in jobs.iter().take(JOBS_MAX) {
        let this_one = if job.get("database") == own {
            " <small>(this one)</small>"
        } else {
            ""
        };
        let worker = text(job, "worker");
        let on = if worker.is_empty() {
            String::new()
        } else {
            format!(" on <code>{worker}</code>")
        };
        let _ = write!(
            html,
            "<tr><td><code>{}</code>{this_one}</td><td class=\"number\">{}</td><td>{} to {}</td>\
             <td class=\"number\">{}</td><td class=\"number\">{}</td><td>{}{on}</td></tr>",
            text(job, "database"),
            text(job, "number"),
            text(job, "start_level"),
            text(job, "output_level"),
            megabytes(job, "bytes"),
            text(job, "attempts"),
            text(job, "state"),
        );
    }
    html.push_str("</table></div>");
    if let Some(more @ 1..) = jobs.len().checked_sub(JOBS_MAX) {
        let _ = write!(html, "<p>And {more} more.</p>");
    }
}

fn counts(html: &mut String, pool: &Value) {
    html.push_str("<table><tr><th>What</th><th class=\"number\">Count</th></tr>");
    for (key, name) in COUNTS {
        let _ = write!(
            html,
            "<tr><td>{name}</td><td class=\"number\">{}</td></tr>",
            text(pool, key)
        );
    }
    for home in list(pool, "sent_home") {
        let _ = write!(
            html,
            "<tr><td>jobs sent home: {}</td><td class=\"number\">{}</td></tr>",
            text(home, "reason"),
            text(home, "count")
        );
    }
    html.push_str("</table>");
}

/// Bytes in megabytes, with one digit behind the point; nothing where there is no number.
fn megabytes(of: &Value, key: &str) -> String {
    let Some(bytes) = of.get(key).and_then(Value::as_u64) else {
        return String::new();
    };
    let tenths = bytes / 100_000;
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_pool_shows_its_workers_and_which_jobs_are_this_servers() {
        let job = |database: &str, state: &str, worker: Value| {
            json!({ "database": database, "number": 7, "start_level": 0, "output_level": 1,
                    "bytes": 12_345_678, "attempts": 2, "state": state, "worker": worker })
        };
        let html = render(&json!({
            "control": ["a:1", "b:1"], "own": "00aa", "leads": true, "leader": "a:1", "term": 3,
            "banned": ["00<b>"], "taken": 9, "done": 8,
            "sent_home": [{ "reason": "poison", "count": 4 }],
            "workers": [{ "worker": "00ff", "zone": 1, "running": 1, "slots": 2, "bytes_second": 99_999,
                          "memory": 1_000_000, "fetched": 2_500_000, "put": 0 }],
            "jobs": [job("00aa", "runs", json!("00ff")), job("00bb", "waits", Value::Null)],
        }));
        for piece in [
            "<b>a:1, b:1</b>",
            "a:1 leads, in term 3.",
            "Worker 00&lt;b&gt; gets nothing more",
            "<code>00aa</code> <small>(this one)</small>",
            "<td>runs on <code>00ff</code></td>",
            "<td>waits</td>",
            ">12.3 MB<",
            ">0.0 MB/s<",
            ">2.5 MB<",
            "jobs sent home: poison</td><td class=\"number\">4<",
            "results recorded</td><td class=\"number\">8<",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
        assert_eq!(html.matches("(this one)").count(), 1);
    }

    #[test]
    fn a_pool_that_is_away_or_has_no_worker_is_said_to_be_so() {
        let away =
            render(&json!({ "control": ["a:1"], "own": "00aa", "silent": "a:1: <refused>" }));
        assert!(away.contains("No control plane answers: a:1: &lt;refused&gt;."));
        assert!(!away.contains("<h2>Workers</h2>"));
        let idle =
            render(&json!({ "control": ["a:1"], "leads": true, "leader": "", "workers": [] }));
        assert!(idle.contains("The pool has no worker") && idle.contains("None now."));
        let lost = render(&json!({ "control": ["a:1"], "leads": false, "leader": "b:1" }));
        assert!(lost.contains("b:1 leads and does not answer.") && !lost.contains("has no worker"));
    }
}
