//! `manxdb serve --commit-path curp`: a server of a cluster that replicates rows.
//!
//! One thread runs the process's nodes: the CURP server, and the CURP client of its own commits. The
//! main thread follows what they become. While another server is master, MySQL connections are passed
//! on to it ([`super::pass_on`]). When this one is master, the rows that the cluster has are loaded into
//! an engine in the data directory, and served from there until another server takes over.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use manxdb_core::NodeId;
use manxdb_curp_sql::driver::KnownMaster;
use manxdb_curp_sql::{Commits, PrimaryDriver, PrimaryEvent, RowsView};
use manxdb_gateway::admin::AdminServer;
use manxdb_net::DataDirectory;
use manxdb_storage::{Engine, StorageError, Version, WriteBatch};
use manxdb_txn::{LocalOptions, LocalPath};

use super::admin::follower_sources;
use super::pass_on::{FindMaster, PassOn, Whereabouts};
use super::store::{Store, open_engine};
use super::{Server, TICK, certificate};
use crate::cluster::curp;
use crate::cluster::file::{ClusterFile, Node};
use crate::cluster::node::{begin_life, listen, other};
use crate::cluster::replication::{Counts, Replication};
use crate::config::{CurpAt, Settings};
use crate::fault::Fault;

/// The engine's directory in the data directory. What was in it at a start is of an earlier reign.
const ROWS: &str = "rows";
/// What is deleted where there is nothing else to write.
const ANY_KEY: &[u8] = &[0];
/// Bytes after which rows that are loaded become a batch.
const LOAD_BYTES: usize = 4 << 20;

/// Serves until it is told to stop.
///
/// # Errors
/// What keeps it from starting, or from going on.
pub fn run(
    settings: &Settings,
    at: &CurpAt,
    (mysql, admin): (TcpListener, TcpListener),
    root_password: Option<&str>,
    stop: &Arc<AtomicBool>,
) -> Result<ExitCode, Fault> {
    if settings.redis.is_some() {
        return Err(Fault::Config(
            "redis_listen is set, but commit_path is \"curp\": Redis's keys are replicated by a cluster \
             of their own (manxdb cluster up curp)"
                .to_owned(),
        ));
    }
    let (file, _) = ClusterFile::read(&at.cluster)?;
    let node = curp::sql_server(&file, at.node)?.clone();
    let data = DataDirectory::open(&settings.data).map_err(other)?;
    let durability = curp::durability(&file);
    let member = Membership::start(&file, &node, data)?;
    let find = find_master(&file, &node, member.master.clone());
    let counts = Counts::Server(node.number);
    let cluster = Arc::new(Replication::new(file, counts));
    let follow = || Following::start((&mysql, &admin), &find, settings, &cluster);
    let mut following = Some(follow()?);
    if let Err(fault) = empty(&settings.data.join(ROWS)) {
        tracing::warn!(%fault, "rows of an earlier reign stay on disk");
    }
    tracing::info!(node = node.number, mysql = %settings.mysql_listen, durability, "up");
    while !stop.load(Ordering::SeqCst) {
        let (commits, rows) = match member.events.recv_timeout(TICK) {
            Ok(PrimaryEvent::Begins { commits, rows }) => (commits, rows),
            Ok(PrimaryEvent::Ends) => continue,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                if member.is_over() {
                    break;
                }
                continue;
            }
        };
        let path = replicated_path(settings, &commits, &rows);
        drop(rows); // or the machine copies them at its next change
        if let Some(following) = following.take() {
            following.end();
        }
        let reign = path.and_then(|(store, path)| Server::over(store, path, settings));
        let listeners = (&mysql, &admin);
        let ended = reign.and_then(|server| {
            let server = Server {
                replication: Some(Arc::clone(&cluster)),
                ..server
            };
            reign_with(server, settings, listeners, root_password, &commits, stop)
        });
        match ended {
            Ok(code) if !commits.is_lost() => {
                member.stop()?;
                return Ok(code);
            }
            Ok(_) => {}
            Err(fault) if commits.is_lost() => tracing::warn!(%fault, "the reign ended early"),
            Err(fault) => return Err(fault),
        }
        tracing::info!("MySQL connections are passed on from now on");
        following = Some(follow()?);
    }
    if let Some(following) = following {
        following.end();
    }
    member.stop()?;
    Ok(ExitCode::SUCCESS)
}

/// What a server does with its listeners while another one is master.
struct Following {
    passing: PassOn,
    admin: AdminServer,
}

impl Following {
    fn start(
        (mysql, admin): (&TcpListener, &TcpListener),
        find: &FindMaster,
        settings: &Settings,
        cluster: &Arc<Replication>,
    ) -> Result<Self, Fault> {
        let passing = PassOn::start(clone(mysql)?, Arc::clone(find), settings.max_connections)?;
        let tls = settings.admin_tls.then(|| certificate(settings));
        let sources = follower_sources(Arc::clone(cluster), Arc::clone(find))?;
        let admin = AdminServer::start(clone(admin)?, tls.transpose()?, sources)
            .map_err(|error| Fault::io("cannot start the admin listener", error))?;
        tracing::info!(admin = %admin.address(), "another server is master, or none is");
        Ok(Self { passing, admin })
    }

    /// Ends it. What a page still asks of other nodes does not keep a new master from its reign.
    fn end(self) {
        drop(self.passing);
        let ending = thread::Builder::new().name("admin-end".to_owned());
        if let Err(error) = ending.spawn(move || drop(self.admin)) {
            tracing::warn!(%error, "no thread for the end of an admin listener");
        }
    }
}

fn clone(listener: &TcpListener) -> Result<TcpListener, Fault> {
    listener
        .try_clone()
        .map_err(|error| Fault::io("cannot share a listener", error))
}

/// Where MySQL clients reach whoever is master.
fn find_master(file: &ClusterFile, own: &Node, known: KnownMaster) -> FindMaster {
    let addresses: Vec<(u32, SocketAddr)> = file
        .nodes
        .iter()
        .filter_map(|node| Some((node.number, node.mysql?)))
        .collect();
    let own = own.number;
    Arc::new(move || match known.node() {
        Some(NodeId(node)) if node == own => Whereabouts::Here,
        Some(NodeId(node)) => {
            let at = addresses.iter().find(|(number, _)| *number == node);
            at.map_or(Whereabouts::Unknown, |(_, address)| {
                Whereabouts::At(*address)
            })
        }
        None => Whereabouts::Unknown,
    })
}

/// The nodes of this process, in their thread.
struct Membership {
    events: Receiver<PrimaryEvent>,
    master: KnownMaster,
    end: UnixStream,
    thread: JoinHandle<Result<(), Fault>>,
}

impl Membership {
    fn start(file: &ClusterFile, node: &Node, data: DataDirectory) -> Result<Self, Fault> {
        let listener = listen(node)?;
        let life = begin_life(&data)?;
        let (sender, events) = channel();
        let io = |error| Fault::io("cannot start the nodes of this process", error);
        let (server, client) = (
            NodeId(node.number),
            curp::client_of(file, NodeId(node.number)),
        );
        let lease = curp::options(file).lease;
        let driver = PrimaryDriver::new(server, client, lease, sender).map_err(io)?;
        let master = driver.known_master();
        let (end, ending) = UnixStream::pair().map_err(io)?;
        let (file, node) = (file.clone(), node.clone());
        let thread = thread::Builder::new()
            .name("curp".to_owned())
            .spawn(move || {
                curp::run_sql_server(&file, &node, (&data, life), listener, driver, &ending)
            })
            .map_err(io)?;
        Ok(Self {
            events,
            master,
            end,
            thread,
        })
    }

    /// Whether its thread has ended, which it does by itself only when something failed.
    fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    fn stop(self) -> Result<(), Fault> {
        drop(self.end);
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(Fault::Other("the nodes of this process failed".to_owned())))
    }
}

/// The commit path over an engine that has just these rows.
fn replicated_path(
    settings: &Settings,
    commits: &Arc<Commits>,
    rows: &RowsView,
) -> Result<(Store, Arc<LocalPath>), Fault> {
    let directory = settings.data.join(ROWS);
    empty(&directory)?;
    let engine = open_engine(settings, &directory)?;
    load(engine.as_ref(), rows)?;
    let confirm = Arc::clone(commits) as Arc<dyn manxdb_txn::Confirm>;
    let path = LocalPath::open_confirmed(engine.clone(), LocalOptions::default(), confirm)
        .map_err(manxdb_sql::error::SqlError::from)?;
    assert!(
        path.visible() >= rows.latest(),
        "versions go on behind those that replicas have"
    );
    Ok((Store::Replicated(engine), Arc::new(path)))
}

/// Removes what an earlier reign has left in a directory.
fn empty(directory: &Path) -> Result<(), Fault> {
    match std::fs::remove_dir_all(directory) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            let context = format!("cannot empty {}", directory.display());
            Err(Fault::io(context, error))
        }
        _ => Ok(()),
    }
}

/// Writes rows into an empty engine, a batch at a time. Nobody reads below the last of them: so each batch
/// has one version, from the newest that any row has on, and no version is given twice.
fn load(engine: &dyn Engine, rows: &RowsView) -> Result<(), StorageError> {
    let mut at = rows.latest();
    let mut batch = WriteBatch::default();
    let mut bytes = 0;
    rows.each_live(|key, version, value| {
        assert!(version <= rows.latest(), "no row is newer than the newest");
        if bytes >= LOAD_BYTES {
            engine.append(&std::mem::take(&mut batch))?;
            bytes = 0;
            at = Version(at.0 + 1);
        }
        bytes += key.len() + value.len();
        batch.writes.push((at, key.to_vec(), Some(value.to_vec())));
        Ok::<_, StorageError>(())
    })?;
    if batch.writes.is_empty() && rows.latest() > Version::ZERO {
        // Every row is deleted: nothing is left but the number of the last version.
        batch.writes.push((at, ANY_KEY.to_vec(), None));
    }
    if !batch.writes.is_empty() {
        engine.append(&batch)?;
    }
    Ok(())
}

/// Serves MySQL clients until the server is told to stop, or another one is master.
fn reign_with(
    server: Server,
    settings: &Settings,
    (mysql, admin): (&TcpListener, &TcpListener),
    root_password: Option<&str>,
    commits: &Arc<Commits>,
    stop: &Arc<AtomicBool>,
) -> Result<ExitCode, Fault> {
    let welcome = server.initialise(settings, root_password)?;
    let running = server.start(settings, clone(mysql)?, None, clone(admin)?)?;
    running.announce(settings, welcome.as_deref());
    let ending = Arc::new(AtomicBool::new(false));
    thread::scope(|threads| {
        threads.spawn(|| {
            while !ending.load(Ordering::SeqCst) {
                if stop.load(Ordering::SeqCst) || commits.is_lost() {
                    ending.store(true, Ordering::SeqCst);
                }
                thread::sleep(TICK);
            }
        });
        running.watch(&ending);
        ending.store(true, Ordering::SeqCst); // a client may have asked for the end
    });
    let grace = if commits.is_lost() {
        Duration::ZERO
    } else {
        Duration::from_secs(settings.shutdown_grace_seconds.into())
    };
    running.stop(grace)
}

#[cfg(test)]
mod tests {
    use manxdb_curp::Execute as _;
    use manxdb_curp_sql::{Effects, Owner, SqlCommand, SqlMachine};
    use manxdb_storage::MemoryEngine;

    use super::*;

    #[test]
    fn rows_are_loaded_and_no_version_comes_again() {
        let mut machine = SqlMachine::empty();
        machine.apply(&SqlCommand::Claim(Owner(1)).encode());
        let commit = |machine: &mut SqlMachine, version, key: &str, value: Option<&str>| {
            let write = (
                key.as_bytes().to_vec(),
                value.map(|value| value.as_bytes().to_vec()),
            );
            let effects = Effects {
                owner: Owner(1),
                version,
                shown: version - 1,
                writes: vec![write],
            };
            machine.apply(&SqlCommand::Commit(effects).encode());
        };
        commit(&mut machine, 3, "b", Some("one"));
        commit(&mut machine, 5, "a", Some("two"));
        commit(&mut machine, 8, "c", Some("three"));
        commit(&mut machine, 9, "c", None);
        let engine = MemoryEngine::new();
        load(&engine, &machine.view()).unwrap();
        assert_eq!(engine.latest().unwrap(), Version(9));
        let at = |key: &str, version| {
            let found = engine.get(key.as_bytes(), Version(version)).unwrap();
            found.map(|found| String::from_utf8(found.value).unwrap())
        };
        assert_eq!(at("b", 9).as_deref(), Some("one"));
        assert_eq!(at("a", 9).as_deref(), Some("two"));
        assert_eq!(at("c", 9), None);
        commit(&mut machine, 10, "a", None);
        commit(&mut machine, 11, "b", None);
        let deleted = MemoryEngine::new();
        load(&deleted, &machine.view()).unwrap();
        assert_eq!(
            deleted.latest().unwrap(),
            Version(11),
            "no version comes again"
        );
        let nothing = MemoryEngine::new();
        load(&nothing, &SqlMachine::empty().view()).unwrap();
        assert_eq!(nothing.latest().unwrap(), Version::ZERO);
    }
}
