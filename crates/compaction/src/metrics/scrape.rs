//! Where Prometheus gets numbers from, over HTTP.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use tiny_http::{Response, Server};

/// Answers `GET /metrics` until it is dropped.
pub struct Scraped(Arc<Server>);

impl Drop for Scraped {
    fn drop(&mut self) {
        self.0.unblock();
    }
}

/// Serves what `text` says.
///
/// # Errors
/// Why the address cannot be listened on.
pub fn serve(
    address: SocketAddr,
    text: impl Fn() -> String + Send + 'static,
) -> Result<Scraped, String> {
    let listener = TcpListener::bind(address).map_err(|error| error.to_string())?;
    let server = Server::from_listener(listener, None).map_err(|error| error.to_string())?;
    let server = Arc::new(server);
    let answering = Arc::clone(&server);
    let thread = std::thread::Builder::new().name("compaction-metrics".to_owned());
    let thread = thread.spawn(move || {
        for request in answering.incoming_requests() {
            let answer = match request.url() {
                "/metrics" => Response::from_string(text()),
                _ => Response::from_string("metrics are at /metrics\n").with_status_code(404),
            };
            let _ = request.respond(answer); // who asked has gone
        }
    });
    thread.map_err(|error| error.to_string())?;
    Ok(Scraped(server))
}
