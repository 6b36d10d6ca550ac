//! The page about certificates: what became of each request, whether its certificate verifies, and the
//! certificate itself to take away.

use std::fmt::Write as _;

use serde_json::Value;

use super::page::{escaped, head_of_part, list, moment, text};

/// The list, without scripts.
pub fn render(certificates: &Value) -> String {
    let mut html = head_of_part("Certificates");
    html.push_str(
        "<p><a href=\"/ownership\">Ownership</a> <a href=\"/ownership/person\">A person's data</a></p>\
         <p>What became of requests to forget, signed. Each was made and verified just now; \
         <code>manxdb compliance verify</code> does so without the server. Reasons are in the certificates, \
         not here.</p>",
    );
    let all = list(certificates, "certificates");
    if all.is_empty() {
        html.push_str("<p>None so far. <code>GDPR FORGET</code> makes one.</p></body></html>\n");
        return html;
    }
    html.push_str("<div class=\"scroll\"><table><tr><th class=\"number\">Request</th>");
    for heading in [
        "Kind",
        "State",
        "Asked by",
        "Done",
        "Unreadable here",
        "Gone from files",
        "Unreadable in every copy",
        "Verified",
        "",
    ] {
        let _ = write!(html, "<th>{heading}</th>");
    }
    html.push_str("</tr>");
    for certificate in all {
        one(&mut html, certificate);
    }
    html.push_str("</table></div></body></html>\n");
    html
}

fn one(html: &mut String, certificate: &Value) {
    let number = text(certificate, "request");
    let state = text(certificate, "state");
    let class = if state == "done" {
        "serving"
    } else {
        "stopped"
    };
    // Writing to a String cannot fail, here and below.
    let _ = write!(
        html,
        "<tr><td class=\"number\">{number}</td><td>{}</td><td><span class=\"state {class}\">{state}</span></td><td>{}</td>",
        text(certificate, "kind"),
        text(certificate, "asked_by"),
    );
    for key in [
        "done",
        "unreadable_here",
        "gone_from_files",
        "unreadable_in_every_copy",
    ] {
        let time = moment(certificate, key);
        let time = if time.is_empty() {
            "not yet"
        } else {
            time.as_str()
        };
        let _ = write!(html, "<td class=\"when\">{time}</td>");
    }
    // A list that is missing is no list without problems.
    match certificate.get("problems").and_then(Value::as_array) {
        Some(problems) if problems.is_empty() => {
            html.push_str("<td><span class=\"state serving\">yes</span></td>");
        }
        problems => {
            let problems = problems.map(Vec::as_slice).unwrap_or_default();
            let told: Vec<&str> = problems.iter().filter_map(Value::as_str).collect();
            let told = escaped(&told.join("; "));
            let _ = write!(
                html,
                "<td><span class=\"state stopped\">no</span> <small>{told}</small></td>"
            );
        }
    }
    let _ = write!(
        html,
        "<td><a href=\"/ownership/certificate?request={number}\" download>JSON</a></td></tr>"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_certificate_is_verified_only_where_nothing_was_found() {
        let shown = json!({ "certificates": [
            { "request": 9, "kind": "d.<b>", "state": "done", "asked_by": "root@%", "done": "2026-01-31T18:30:00.5Z",
              "unreadable_here": "2026-01-31T18:30:01Z", "gone_from_files": null, "problems": [] },
            { "request": 8, "kind": "d.users", "state": "2 rows put off", "problems": ["audit record 5 was <changed>"] },
            { "request": 7, "kind": "d.users", "state": "done" },
        ]});
        let html = render(&shown);
        assert_eq!(html.matches(">yes</span>").count(), 1);
        assert_eq!(html.matches(">no</span>").count(), 2);
        for piece in [
            "d.&lt;b&gt;",
            "2026-01-31 18:30:00<",
            "audit record 5 was &lt;changed&gt;",
            "<td class=\"when\">not yet</td>",
            "<a href=\"/ownership/certificate?request=8\" download>JSON</a>",
        ] {
            assert!(html.contains(piece), "{piece}: {html}");
        }
        assert!(render(&json!({})).contains("None so far."));
    }
}
