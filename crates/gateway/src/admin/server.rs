//! The HTTP listener and its routes.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use serde_json::{Value, json};
use tiny_http::{Header, Method, Request, Response, Server};

use super::health::{HealthReport, HealthState};
use super::login::{self, LogIn, Origin};
use super::metrics_text::{self, Gauge};
use super::{ownership_page, page, redis_page, views_page};

/// Pause between two looks at the stop flag, and between upkeeps of histograms.
const TICK: Duration = Duration::from_secs(1);
/// Longest body of a request, bytes.
const BODY_MAX: u64 = 64 * 1024;

/// What a request without a login is told.
const LOG_IN: &str = "log in with an account that has the privilege PROCESS; \
                      only from the machine itself, by address or as localhost, no login is needed\n";
/// How to log in, for browsers.
const CHALLENGE: &str = "Basic realm=\"ManxDB\", charset=\"UTF-8\"";

/// Writes a backup with a label into a directory and describes it.
pub type MakeBackup = dyn Fn(&Path, &str) -> Result<Value, String> + Send + Sync;

/// What the admin listener asks of the rest of the process.
pub struct AdminSources {
    /// How well the process does its work. Answers at once: it tells what is known already.
    pub health: Box<dyn Fn() -> HealthReport + Send + Sync>,
    /// Numbers read when metrics are asked for.
    pub gauges: Box<dyn Fn() -> Vec<Gauge> + Send + Sync>,
    /// Slow statements, newest first, as a JSON array of objects.
    pub slow: Box<dyn Fn() -> Value + Send + Sync>,
    /// What Redis clients have here, where they are served: `numbers` by section, `waits` by command, and
    /// `slow` commands, the newest first.
    pub redis: Option<Box<dyn Fn() -> Value + Send + Sync>>,
    /// Who may read what clients have written from other machines; `None`: nothing here shows any of it.
    pub log_in: Option<Box<LogIn>>,
    /// Whose the rows of each table are, where tables are: `tables`, `links`, `requests` to forget, the newest
    /// first, and whether rows are `sealed`. No value of a row is in it.
    pub ownership: Option<Box<dyn Fn() -> Value + Send + Sync>>,
    /// Materialized views, where there are some: `views` with what each holds and has done, and
    /// `views_memory`. No value of a row is in it.
    pub views: Option<Box<dyn Fn() -> Value + Send + Sync>>,
    /// Answers `POST /backup`.
    pub backup: Box<MakeBackup>,
    /// Secret that `POST /backup` must bring.
    pub token: String,
    /// Answer of `/version`.
    pub version: Value,
}

/// A running admin listener.
pub struct AdminServer {
    server: Arc<Server>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl AdminServer {
    /// Answers the requests of `listener` until it is dropped.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(listener: TcpListener, sources: AdminSources) -> Result<Self, std::io::Error> {
        if sources.log_in.is_some() {
            refused_reads().increment(0); // so that it is served from the start
        }
        let server = Server::from_listener(listener, None).map_err(std::io::Error::other)?;
        let server = Arc::new(server);
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let (server, stop) = (Arc::clone(&server), Arc::clone(&stop));
            let sources = Arc::new(sources);
            thread::Builder::new()
                .name("admin".to_owned())
                .spawn(move || listen(&server, &stop, &sources))?
        };
        Ok(Self {
            server,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.server.server_addr().to_ip()
    }
}

impl Drop for AdminServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            // Nothing is left to do for a thread that panicked.
            let _ = thread.join();
        }
    }
}

fn listen(server: &Server, stop: &AtomicBool, sources: &Arc<AdminSources>) {
    while !stop.load(Ordering::SeqCst) {
        // Histograms keep raw samples until this folds them into buckets.
        if let Some(recorder) = metrics_text::recorder() {
            recorder.run_upkeep();
        }
        match server.recv_timeout(TICK) {
            Ok(Some(request)) => dispatch(request, sources),
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "admin listener cannot accept"),
        }
    }
}

/// Answers at once, except for backups, which get a thread of their own.
fn dispatch(request: Request, sources: &Arc<AdminSources>) {
    if request.method() == &Method::Post && path(&request) == "/backup" {
        let sources = Arc::clone(sources);
        let spawned = thread::Builder::new()
            .name("admin-backup".to_owned())
            .spawn(move || answer_backup(request, &sources));
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread for a backup");
        }
        return;
    }
    let answer = get(&request, sources);
    send(request, answer);
}

/// Status, content type and body.
struct Answer {
    status: u16,
    content_type: &'static str,
    body: String,
}

impl Answer {
    fn text(status: u16, body: impl Into<String>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
        }
    }

    fn page(body: String) -> Self {
        Self {
            status: 200,
            content_type: "text/html; charset=utf-8",
            body,
        }
    }

    fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            content_type: "application/json",
            body: format!("{body:#}\n"),
        }
    }
}

fn path(request: &Request) -> &str {
    request.url().split(['?', '#']).next().unwrap_or_default()
}

fn get(request: &Request, sources: &AdminSources) -> Answer {
    if !matches!(request.method(), Method::Get | Method::Head) {
        return Answer::text(405, "method not allowed\n");
    }
    if let Some(log_in) = &sources.log_in
        && !login::is_open(path(request))
        && !login::may_read(origin(request), log_in)
    {
        refused_reads().increment(1);
        return Answer::text(401, LOG_IN);
    }
    match path(request) {
        "/healthz" if wants_json(request) => Answer::json(200, &(sources.health)().json()),
        "/healthz" => Answer::text(200, format!("{}\n", (sources.health)())),
        "/readyz" => ready(&(sources.health)()),
        "/version" => Answer::json(200, &sources.version),
        "/metrics" => Answer {
            status: 200,
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            body: metrics_text::render(&(sources.gauges)()),
        },
        "/slow" => Answer::json(200, &(sources.slow)()),
        "/console.css" => Answer {
            status: 200,
            content_type: "text/css; charset=utf-8",
            body: page::STYLE.to_owned(),
        },
        "/console.js" => Answer {
            status: 200,
            content_type: "text/javascript; charset=utf-8",
            body: page::SCRIPT.to_owned(),
        },
        "/redis" => redis(sources, wants_json(request)),
        "/ownership" => ownership(sources, wants_json(request)),
        "/views" => views(sources, wants_json(request)),
        "/" => Answer::page(page::render(
            &sources.version,
            &(sources.health)(),
            &(sources.slow)(),
            &parts(sources),
        )),
        _ => Answer::text(404, "not found\n"),
    }
}

fn redis(sources: &AdminSources, wants_json: bool) -> Answer {
    match &sources.redis {
        None => Answer::text(404, "Redis clients are not served here: --redis-listen\n"),
        Some(redis) if wants_json => Answer::json(200, &redis()),
        Some(redis) => Answer::page(redis_page::render(&redis())),
    }
}

fn refused_reads() -> metrics::Counter {
    metrics::counter!("manxdb_admin_refused_reads_total")
}

fn origin(request: &Request) -> Origin<'_> {
    let names = ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"];
    Origin {
        peer: request.remote_addr().map(SocketAddr::ip),
        host: header(request, "Host"),
        is_forwarded: names.iter().any(|name| header(request, name).is_some()),
        authorization: header(request, "Authorization"),
    }
}

fn ownership(sources: &AdminSources, wants_json: bool) -> Answer {
    match &sources.ownership {
        None => Answer::text(404, "no tables are here\n"),
        Some(ownership) if wants_json => Answer::json(200, &ownership()),
        Some(ownership) => Answer::page(ownership_page::render(&ownership())),
    }
}

fn views(sources: &AdminSources, wants_json: bool) -> Answer {
    match &sources.views {
        None => Answer::text(404, "no views are here\n"),
        Some(views) if wants_json => Answer::json(200, &views()),
        Some(views) => Answer::page(views_page::render(&views())),
    }
}

/// Pages about parts of this server, and what they are called.
fn parts(sources: &AdminSources) -> Vec<(&'static str, &'static str)> {
    let all = [
        (sources.ownership.is_some(), ("/ownership", "Ownership")),
        (sources.views.is_some(), ("/views", "Views")),
        (sources.redis.is_some(), ("/redis", "Redis")),
    ];
    let here = all.into_iter().filter(|(is_here, _)| *is_here);
    here.map(|(_, page)| page).collect()
}

/// Whether statements are sent here.
fn ready(health: &HealthReport) -> Answer {
    match health.state {
        HealthState::Ok => Answer::text(200, "ready\n"),
        HealthState::Degraded => Answer::text(200, format!("ready, {health}\n")),
        HealthState::Unavailable => Answer::text(503, format!("{health}\n")),
    }
}

/// Browsers and probes that accept anything get text.
fn wants_json(request: &Request) -> bool {
    header(request, "Accept").is_some_and(|accepted| accepted.starts_with("application/json"))
}

fn answer_backup(mut request: Request, sources: &AdminSources) {
    let answer = match may_back_up(&request, &sources.token) {
        Err(why) => Answer::json(403, &json!({ "error": why })),
        Ok(()) => match backup_order(&mut request) {
            Err(why) => Answer::json(400, &json!({ "error": why })),
            Ok((directory, label)) => match (sources.backup)(&directory, &label) {
                Ok(done) => Answer::json(200, &done),
                Err(why) => Answer::json(500, &json!({ "error": why })),
            },
        },
    };
    send(request, answer);
}

/// A backup holds all data: only those who can read the data directory may start one.
fn may_back_up(request: &Request, token: &str) -> Result<(), &'static str> {
    if !login::is_from_this_machine(origin(request)) {
        return Err("backups are started from the machine itself, by address or as localhost");
    }
    if header(request, "Origin").is_some() {
        return Err("backups are not started from web pages");
    }
    let brought = header(request, "Authorization").unwrap_or_default();
    let expected = format!("Bearer {token}");
    let is_right = verify_slices_are_equal(brought.as_bytes(), expected.as_bytes()).is_ok();
    if token.is_empty() || !is_right {
        return Err("wrong or missing token; it is in the file admin-token of the data directory");
    }
    Ok(())
}

fn header<'a>(request: &'a Request, name: &'static str) -> Option<&'a str> {
    request
        .headers()
        .iter()
        .find(|header| header.field.equiv(name))
        .map(|header| header.value.as_str())
}

/// Directory and label from the body.
fn backup_order(request: &mut Request) -> Result<(PathBuf, String), String> {
    let mut body = String::new();
    request
        .as_reader()
        .take(BODY_MAX)
        .read_to_string(&mut body)
        .map_err(|error| error.to_string())?;
    let body: Value = serde_json::from_str(&body).map_err(|error| error.to_string())?;
    let directory = body.get("directory").and_then(Value::as_str);
    let directory = PathBuf::from(directory.ok_or("'directory' is missing")?);
    if !directory.is_absolute() {
        return Err("'directory' must be an absolute path".to_owned());
    }
    let label = body.get("label").and_then(Value::as_str);
    Ok((directory, label.ok_or("'label' is missing")?.to_owned()))
}

fn send(request: Request, answer: Answer) {
    let mut response = Response::from_string(answer.body).with_status_code(answer.status);
    let content_type = Header::from_bytes("Content-Type", answer.content_type);
    // The page runs its own script and shows its own style; text of clients on it stays text.
    let policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                  frame-ancestors 'none'; base-uri 'none'";
    let policy = Header::from_bytes("Content-Security-Policy", policy);
    let challenge = match answer.status {
        401 => Header::from_bytes("WWW-Authenticate", CHALLENGE),
        _ => Err(()),
    };
    for header in [content_type, policy, challenge].into_iter().flatten() {
        response.add_header(header);
    }
    if let Err(error) = request.respond(response) {
        tracing::debug!(%error, "admin client left");
    }
}
