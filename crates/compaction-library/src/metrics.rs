//! Numbers for operators, for Prometheus.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use tiny_http::{Response, Server};

/// Answers `GET /metrics` until it is dropped.
pub struct Metrics(Arc<Server>);

impl Drop for Metrics {
    fn drop(&mut self) {
        self.0.unblock();
    }
}

/// Serves `numbers`, by name and labels.
///
/// # Errors
/// The address cannot be listened on.
pub fn serve(
    address: SocketAddr,
    numbers: impl Fn() -> Vec<(String, u64)> + Send + 'static,
) -> Result<Metrics, String> {
    let cannot = |why: String| format!("compaction_metrics {address}: {why}");
    let server = Server::http(address).map_err(|error| cannot(error.to_string()))?;
    let server = Arc::new(server);
    let answering = Arc::clone(&server);
    let thread = std::thread::Builder::new().name("compaction-metrics".to_owned());
    let thread = thread.spawn(move || {
        for request in answering.incoming_requests() {
            let answer = match request.url() {
                "/metrics" => Response::from_string(text(&numbers())),
                _ => Response::from_string("metrics are at /metrics\n").with_status_code(404),
            };
            let _ = request.respond(answer); // who asked has gone
        }
    });
    thread.map_err(|error| cannot(error.to_string()))?;
    Ok(Metrics(server))
}

/// As Prometheus reads them; numbers of one name stand together.
fn text(numbers: &[(String, u64)]) -> String {
    let (mut text, mut last) = (String::new(), "");
    for (name, value) in numbers {
        let family = name.split('{').next().unwrap_or(name);
        if family != last {
            let kind = if family.ends_with("_total") {
                "counter"
            } else {
                "gauge"
            };
            let _ = writeln!(text, "# TYPE {family} {kind}"); // writing to a string cannot fail
            last = family;
        }
        let _ = writeln!(text, "{name} {value}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_name_has_its_kind_once() {
        let numbers = [
            ("a_total{reason=\"x\"}", 1),
            ("a_total{reason=\"y\"}", 2),
            ("b", 3),
        ];
        let numbers = numbers.map(|(name, value)| (name.to_owned(), value));
        let expected = "# TYPE a_total counter\na_total{reason=\"x\"} 1\n\
                        a_total{reason=\"y\"} 2\n# TYPE b gauge\nb 3\n";
        assert_eq!(text(&numbers), expected);
    }
}
