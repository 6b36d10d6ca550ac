//! What the admin listener answers to which path.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use rustls::ServerConfig;
use serde_json::{Value, json};

use super::health::{HealthReport, HealthState};
use super::http::{Answer, HttpServer, Request};
use super::login::{self, LogIn, Origin};
use super::metrics_text::{self, Gauge};
use super::owners::{self, Owners};
use super::{
    compaction_page, geo_page, ownership_page, page, redis_page, replication_page, views_page,
};

/// What a request without a login is told.
const LOG_IN: &str = "log in with an account that has the privilege PROCESS; \
                      only from the machine itself, by address or as localhost, no login is needed\n";

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
    /// Whose the rows of each table are, where tables are, and what is shown of people.
    pub ownership: Option<Box<dyn Owners>>,
    /// Materialized views, where there are some: `views` with what each holds and has done, and
    /// `views_memory`. No value of a row is in it.
    pub views: Option<Box<dyn Fn() -> Value + Send + Sync>>,
    /// The pool that compactions are handed to, where they are: `control` planes, this database's name
    /// (`own`), `workers`, `jobs`, counters; or why no control plane answers (`silent`). It asks them, and
    /// waits for the answer. No value of a row is in it.
    pub compaction: Option<Box<dyn Fn() -> Value + Send + Sync>>,
    /// The cluster that replicates and that this process belongs to, where it does: `nodes` with role, state
    /// and backlog of each, the view, `commands` by the way in which they were completed, and what is
    /// `lacking`. Nothing of what clients have written is in it.
    pub replication: Option<Box<dyn Fn() -> Value + Send + Sync>>,
    /// The cluster over regions that this process is a node of, where it is: `regions` with latencies and
    /// waits by class, `pairs` of regions, `nodes`, `slowest` calls, `messages`, and what is `lacking`. Of
    /// what clients have written nothing but names of procedures is in it.
    pub geo: Option<Box<dyn Fn() -> Value + Send + Sync>>,
    /// Answers `POST /backup`.
    pub backup: Box<MakeBackup>,
    /// Secret that `POST /backup` must bring.
    pub token: String,
    /// Answer of `/version`.
    pub version: Value,
}

impl AdminSources {
    /// Of a process that has health and numbers to show, and no rows: its statements are none, and `no_backup`
    /// is what `POST /backup` is told. Everything else is not here.
    #[must_use]
    pub fn new(
        health: impl Fn() -> HealthReport + Send + Sync + 'static,
        gauges: impl Fn() -> Vec<Gauge> + Send + Sync + 'static,
        no_backup: &'static str,
        token: String,
        version: Value,
    ) -> Self {
        Self {
            health: Box::new(health),
            gauges: Box::new(gauges),
            slow: Box::new(|| json!([])),
            redis: None,
            log_in: None,
            ownership: None,
            views: None,
            compaction: None,
            replication: None,
            geo: None,
            backup: Box::new(move |_, _| Err(no_backup.to_owned())),
            token,
            version,
        }
    }
}

/// A running admin listener; it ends when it is dropped.
pub struct AdminServer {
    http: HttpServer,
}

impl AdminServer {
    /// Answers the requests of `listener` until it is dropped; with `tls`, to clients that speak it alone.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(
        listener: TcpListener,
        tls: Option<Arc<ServerConfig>>,
        sources: AdminSources,
    ) -> Result<Self, std::io::Error> {
        if sources.log_in.is_some() {
            refused_reads().increment(0); // so that it is served from the start
        }
        // Histograms keep raw samples until this folds them into buckets.
        let upkeep = || {
            if let Some(recorder) = metrics_text::recorder() {
                recorder.run_upkeep();
            }
        };
        let handler = Box::new(move |request: &Request| answer(request, &sources));
        let http = HttpServer::start(listener, tls, handler, upkeep)?;
        Ok(Self { http })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.http.address()
    }
}

fn answer(request: &Request, sources: &AdminSources) -> Answer {
    if owners::is_about_people(request.path()) {
        return match &sources.ownership {
            None => Answer::text(404, "no tables are here\n"),
            Some(of) => {
                let answer = owners::answer(&**of, request, origin(request), wants_json(request));
                if answer.status == 401 || answer.status == 403 {
                    refused_reads().increment(1);
                }
                answer
            }
        };
    }
    match (request.method.as_str(), request.path()) {
        ("POST", "/backup") => back_up(request, sources),
        ("GET" | "HEAD", path) => get(request, path, sources),
        _ => Answer::text(405, "method not allowed\n"),
    }
}

fn get(request: &Request, path: &str, sources: &AdminSources) -> Answer {
    if let Some(log_in) = &sources.log_in
        && !login::is_open(path)
        && !login::may_read(origin(request), log_in)
    {
        refused_reads().increment(1);
        return Answer::text(401, LOG_IN);
    }
    match path {
        "/healthz" if wants_json(request) => Answer::json(200, &(sources.health)().json()),
        "/healthz" => Answer::text(200, format!("{}\n", (sources.health)())),
        "/readyz" => ready(&(sources.health)()),
        "/version" => Answer::json(200, &sources.version),
        "/metrics" => Answer {
            status: 200,
            content_type: "text/plain; version=0.0.4; charset=utf-8",
            body: metrics_text::render(&(sources.gauges)()),
            extra: Vec::new(),
        },
        "/slow" => Answer::json(200, &(sources.slow)()),
        "/console.css" => Answer {
            status: 200,
            content_type: "text/css; charset=utf-8",
            body: page::STYLE.to_owned(),
            extra: Vec::new(),
        },
        "/console.js" => script(page::SCRIPT),
        "/live.js" => script(page::LIVE_SCRIPT),
        "/redis" => redis(sources, wants_json(request)),
        "/ownership" => ownership(sources, wants_json(request)),
        "/views" => views(sources, wants_json(request)),
        "/compaction" => compaction(sources, wants_json(request)),
        "/replication" => replication(sources, wants_json(request)),
        "/geo" => geo(sources, wants_json(request)),
        // A node serves no statements: the cluster is what it has to show.
        "/" if sources.geo.is_some() => geo(sources, wants_json(request)),
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
        peer: Some(request.peer),
        host: request.header("Host"),
        is_forwarded: names.iter().any(|name| request.header(name).is_some()),
        authorization: request.header("Authorization"),
    }
}

fn ownership(sources: &AdminSources, wants_json: bool) -> Answer {
    match &sources.ownership {
        None => Answer::text(404, "no tables are here\n"),
        Some(ownership) if wants_json => Answer::json(200, &ownership.overview()),
        Some(ownership) => Answer::page(ownership_page::render(&ownership.overview())),
    }
}

fn views(sources: &AdminSources, wants_json: bool) -> Answer {
    match &sources.views {
        None => Answer::text(404, "no views are here\n"),
        Some(views) if wants_json => Answer::json(200, &views()),
        Some(views) => Answer::page(views_page::render(&views())),
    }
}

fn compaction(sources: &AdminSources, wants_json: bool) -> Answer {
    match &sources.compaction {
        None => Answer::text(
            404,
            "compactions are not handed to a pool: --compaction remote\n",
        ),
        Some(compaction) if wants_json => Answer::json(200, &compaction()),
        Some(compaction) => Answer::page(compaction_page::render(&compaction())),
    }
}

fn replication(sources: &AdminSources, wants_json: bool) -> Answer {
    match &sources.replication {
        None => Answer::text(404, "no cluster that replicates (CURP) is here\n"),
        Some(replication) if wants_json => Answer::json(200, &replication()),
        Some(replication) => Answer::page(replication_page::render(&replication())),
    }
}

fn geo(sources: &AdminSources, wants_json: bool) -> Answer {
    match &sources.geo {
        None => Answer::text(404, "no node of a cluster over regions (DAST) is here\n"),
        Some(geo) if wants_json => Answer::json(200, &geo()),
        Some(geo) => Answer::page(geo_page::render(&geo())),
    }
}

fn script(text: &str) -> Answer {
    Answer {
        status: 200,
        content_type: "text/javascript; charset=utf-8",
        body: text.to_owned(),
        extra: Vec::new(),
    }
}

/// Pages about parts of this server, and what they are called.
fn parts(sources: &AdminSources) -> Vec<(&'static str, &'static str)> {
    let all = [
        (sources.ownership.is_some(), ("/ownership", "Ownership")),
        (sources.views.is_some(), ("/views", "Views")),
        (sources.redis.is_some(), ("/redis", "Redis")),
        (
            sources.compaction.is_some(),
            ("/compaction", "Compaction pool"),
        ),
        (
            sources.replication.is_some(),
            ("/replication", "Replication"),
        ),
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
    request
        .header("Accept")
        .is_some_and(|accepted| accepted.starts_with("application/json"))
}

fn back_up(request: &Request, sources: &AdminSources) -> Answer {
    if let Err(why) = may_back_up(request, &sources.token) {
        return Answer::json(403, &json!({ "error": why }));
    }
    match backup_order(&request.body) {
        Err(why) => Answer::json(400, &json!({ "error": why })),
        Ok((directory, label)) => match (sources.backup)(&directory, &label) {
            Ok(done) => Answer::json(200, &done),
            Err(why) => Answer::json(500, &json!({ "error": why })),
        },
    }
}

/// A backup holds all data: only those who can read the data directory may start one.
fn may_back_up(request: &Request, token: &str) -> Result<(), &'static str> {
    if !login::is_from_this_machine(origin(request)) {
        return Err("backups are started from the machine itself, by address or as localhost");
    }
    if request.header("Origin").is_some() {
        return Err("backups are not started from web pages");
    }
    let brought = request.header("Authorization").unwrap_or_default();
    let expected = format!("Bearer {token}");
    let is_right = verify_slices_are_equal(brought.as_bytes(), expected.as_bytes()).is_ok();
    if token.is_empty() || !is_right {
        return Err("wrong or missing token; it is in the file admin-token of the data directory");
    }
    Ok(())
}

/// Directory and label from the body.
fn backup_order(body: &[u8]) -> Result<(PathBuf, String), String> {
    let body: Value = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let directory = body.get("directory").and_then(Value::as_str);
    let directory = PathBuf::from(directory.ok_or("'directory' is missing")?);
    if !directory.is_absolute() {
        return Err("'directory' must be an absolute path".to_owned());
    }
    let label = body.get("label").and_then(Value::as_str);
    Ok((directory, label.ok_or("'label' is missing")?.to_owned()))
}
