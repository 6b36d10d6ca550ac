//! Prometheus metrics over HTTP.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tiny_http::{Response, Server};

use crate::fault::Fault;

/// Answers `GET /metrics` until it is dropped.
pub struct Metrics(Arc<Server>);

impl Drop for Metrics {
    fn drop(&mut self) {
        self.0.unblock();
    }
}

/// Serves what `text` says, if an address was given.
///
/// # Errors
/// The address cannot be listened on.
pub fn serve(
    address: Option<SocketAddr>,
    text: impl Fn() -> String + Send + 'static,
) -> Result<Option<Metrics>, Fault> {
    let Some(address) = address else {
        return Ok(None);
    };
    let listen = |reason: String| Fault::Listen {
        address,
        door: "metrics",
        flag: "metrics",
        reason,
    };
    let listener = TcpListener::bind(address).map_err(|error| listen(error.to_string()))?;
    let server =
        Server::from_listener(listener, None).map_err(|error| listen(error.to_string()))?;
    let server = Arc::new(server);
    let answering = Arc::clone(&server);
    std::thread::spawn(move || {
        for request in answering.incoming_requests() {
            let answer = match request.url() {
                "/metrics" => Response::from_string(text()),
                _ => Response::from_string("metrics are at /metrics\n").with_status_code(404),
            };
            let _ = request.respond(answer); // who asked has gone
        }
    });
    Ok(Some(Metrics(server)))
}
