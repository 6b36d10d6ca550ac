//! A pool of processes for one test.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};

use manxdb_compaction::order::STAGING;
use manxdb_compaction::transport::link::Route;
use manxdb_compaction::transport::security::Security;
use manxdb_compaction::transport::wire::proto::ReportReply;

use crate::database::{load_of, service};
use crate::judge::judge;
use crate::process::{Process, until};
use crate::proxy::Proxy;
use crate::settings::Settings;

pub struct Cluster {
    directory: tempfile::TempDir,
    /// What all are told.
    common: Settings,
    control: Option<Process>,
    pub address: SocketAddr,
    /// Where several control planes are, if there are several.
    planes: Vec<SocketAddr>,
    security: Security,
    roads: Vec<std::sync::Arc<Proxy>>,
    started: u64,
}

/// A process with its way to the control plane.
pub struct Member {
    process: Process,
    pub road: std::sync::Arc<Proxy>,
    settings: Settings,
    /// The worker's identity.
    pub id: u64,
}

impl Deref for Member {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl DerefMut for Member {
    fn deref_mut(&mut self) -> &mut Process {
        &mut self.process
    }
}

impl Member {
    pub fn path(&self) -> PathBuf {
        self.settings.path("database")
    }
}

impl Cluster {
    pub fn new() -> Self {
        Self::with(&Settings::default(), Security::default())
    }

    /// With settings for all processes.
    pub fn with(common: &Settings, security: Security) -> Self {
        let mut cluster = Self::without_control(common, security);
        cluster.start_control();
        cluster
    }

    /// Without a control plane so far.
    pub fn without_control(common: &Settings, security: Security) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let volume = directory.path().join("volume");
        std::fs::create_dir(&volume).unwrap();
        Self {
            common: common.clone().with("volume", volume.display()),
            directory,
            control: None,
            address: "127.0.0.1:9".parse().unwrap(),
            planes: Vec::new(),
            security,
            roads: Vec::new(),
            started: 0,
        }
    }

    /// Starts a control plane over etcd, anywhere or where it was before; why it does not start, if
    /// it does not.
    pub fn try_plane(
        &mut self,
        etcd: &str,
        listen: Option<SocketAddr>,
    ) -> Result<(Process, SocketAddr), String> {
        self.started += 1;
        let listen = listen.map_or_else(|| "127.0.0.1:0".to_owned(), |at| at.to_string());
        let settings = self.settings("control").with("etcd", etcd);
        let settings = settings.with("listen", listen);
        let name = format!("plane{}", self.started);
        let (plane, said) = Process::start(&name, self.path(), &settings);
        if let Some(why) = said.strip_prefix("refused: ") {
            return Err(why.to_owned());
        }
        let address = said.parse().unwrap();
        if !self.planes.contains(&address) {
            self.planes.push(address);
        }
        Ok((plane, address))
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn store(&self) -> PathBuf {
        self.path().join("control.store")
    }

    fn settings(&self, role: &str) -> Settings {
        self.common.clone().with("role", role)
    }

    /// Starts the control plane, elsewhere than before; all roads lead there then.
    pub fn start_control(&mut self) {
        let refused = self.try_control();
        assert_eq!(refused, None);
    }

    /// The same; why it does not start, if it does not.
    pub fn try_control(&mut self) -> Option<String> {
        let settings = self
            .settings("control")
            .with("store", self.store().display());
        let (control, said) = Process::start("control", self.path(), &settings);
        if let Some(why) = said.strip_prefix("refused: ") {
            return Some(why.to_owned());
        }
        self.control = Some(control);
        self.address = said.parse().unwrap();
        for road in &self.roads {
            road.lead_to(self.address);
        }
        None
    }

    pub fn control(&mut self) -> &mut Process {
        self.control.as_mut().unwrap()
    }

    pub fn kill_control(&mut self) {
        self.control().kill();
        self.control = None;
    }

    fn member(&mut self, name: &str, settings: Settings) -> Member {
        let road = std::sync::Arc::new(Proxy::start(self.address));
        self.roads.push(std::sync::Arc::clone(&road));
        let settings = match self.planes.as_slice() {
            [] => settings.with("control", road.address),
            planes => settings.with("control", joined(planes).join(",")),
        };
        let (process, said) = Process::start(name, self.path(), &settings);
        Member {
            process,
            road,
            settings,
            id: said.parse().unwrap_or(0),
        }
    }

    /// Starts a worker.
    pub fn worker(&mut self, more: &[(&str, &str)]) -> Member {
        self.started += 1;
        let name = format!("worker{}", self.started);
        let settings = self.settings("worker").changed(more);
        self.member(&name, settings)
    }

    /// Starts a worker that does not do what it should.
    pub fn bad_worker(&mut self, trick: &str) -> Member {
        self.started += 1;
        let name = format!("worker{}", self.started);
        let settings = self.settings("bad_worker").with("trick", trick);
        self.member(&name, settings)
    }

    /// Starts a new database.
    pub fn database(&mut self, more: &[(&str, &str)]) -> Member {
        self.started += 1;
        let name = format!("database{}", self.started);
        let path = self.path().join("volume").join(&name);
        let settings = self
            .settings("database")
            .with("database", path.display())
            .with(
                "ledger",
                self.path().join(format!("{name}.ledger")).display(),
            )
            .with("id", self.started)
            .changed(more);
        self.member(&name, settings)
    }

    /// Starts a database that ended again, or is killed now, on what it left.
    pub fn again(&mut self, former: Member) -> Member {
        self.again_with(former, &[])
    }

    /// The same, with other settings.
    pub fn again_with(&mut self, former: Member, more: &[(&str, &str)]) -> Member {
        let name = former.name.clone();
        let settings = former
            .settings
            .clone()
            .changed(&[("die", "")])
            .changed(more);
        drop(former);
        self.member(&name, settings)
    }

    /// A way to the control plane that no fault is on.
    pub fn route(&self) -> Route {
        match self.planes.as_slice() {
            [] => Route::new(&[self.address.to_string()], &self.security).unwrap(),
            planes => Route::new(&joined(planes), &self.security).unwrap(),
        }
    }

    pub fn report(&self) -> ReportReply {
        self.route().report().unwrap()
    }

    /// Closes databases and judges each; no job may be left anywhere.
    pub fn finish(&self, mut databases: Vec<Member>) {
        for database in &mut databases {
            database.ask("stop");
            let name = database.name.clone();
            until(&format!("every job of {name} has ended"), || {
                let ended = database.count("installed") + database.count("local");
                ended == database.count("asked")
            });
            let last = database.ask("close");
            assert!(last.contains(" errors=0 "), "{last}");
            database.ended();
        }
        if self.control.is_some() || !self.planes.is_empty() {
            until("the control plane has no job left", || {
                self.report().jobs.is_empty()
            });
        }
        for database in databases {
            settle(&database);
            let ledger = database.settings.path("ledger");
            let batches = judge(&database.path(), &ledger, load_of(&database.settings));
            assert!(batches > 0, "{} wrote nothing", database.name);
        }
    }
}

fn joined(planes: &[SocketAddr]) -> Vec<String> {
    planes.iter().map(ToString::to_string).collect()
}

/// A job that was asked for just before its database closed may be done by a worker that hears of that
/// too late. What it has written, the next session of the database removes.
fn settle(database: &Member) {
    let staging = database.path().join(STAGING);
    until("attempts leave nothing", || {
        let is_empty = || std::fs::read_dir(&staging).map_or(0, Iterator::count) == 0;
        if !is_empty() {
            drop(service(&database.settings, &database.path()));
        }
        is_empty()
    });
}
