//! What a memory server goes by.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use manxdb_core::Nanos;
use manxdb_rack::memory::{Geometry, NAME_MAX, Superblock};
use serde::Deserialize;
use toml::Spanned;

use super::file;
use super::resolve::{Resolver, path, pick, plain, quoted};
use super::rows::{PROVIDER, RemoteSettings};
use crate::cli::MemoryArgs;
use crate::fault::Fault;

/// The file that is read when none is named.
const DEFAULT_FILE: &str = "manxdb-memory.toml";
/// Slots of a log where it is written to disk.
const LOG_SLOTS: u16 = 8;
/// What names of its environment variables begin with.
const PREFIX: &str = "MANXDB_MEMORY_";

/// The keys of its file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    directory: Option<Spanned<PathBuf>>,
    listen: Option<Spanned<SocketAddr>>,
    provider: Option<Spanned<String>>,
    token_file: Option<Spanned<PathBuf>>,
    server: Option<Spanned<u16>>,
    servers: Option<Spanned<u16>>,
    replicas: Option<Spanned<u16>>,
    name: Option<Spanned<String>>,
    size_mb: Option<Spanned<u64>>,
    populate: Option<Spanned<bool>>,
    places: Option<Spanned<u16>>,
    log_copies: Option<Spanned<u16>>,
    log_kb: Option<Spanned<u64>>,
    versions: Option<Spanned<u16>>,
    row_bytes: Option<Spanned<u64>>,
    node_bytes: Option<Spanned<u64>>,
    lease_ms: Option<Spanned<u64>>,
    disk: Option<Spanned<PathBuf>>,
    checkpoint_mb: Option<Spanned<u64>>,
    log_slots: Option<Spanned<u16>>,
    admin_listen: Option<Spanned<SocketAddr>>,
    log: Option<Spanned<String>>,
}

/// What a memory server goes by.
#[derive(Debug, Clone)]
pub struct MemorySettings {
    /// Where it meets its clients.
    pub at: Meeting,
    /// What it says about its memory.
    pub superblock: Superblock,
    /// The system is to give all of it before anybody comes in.
    pub populate: bool,
    /// Where what is committed is written to; nowhere: rows are in memory alone.
    pub disk: Option<DiskSettings>,
    /// Admin door.
    pub admin_listen: SocketAddr,
    /// Log filter.
    pub log: String,
}

/// Where a memory server meets its clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meeting {
    /// In a directory of this machine.
    Directory(PathBuf),
    /// At an address.
    Listen(SocketAddr, RemoteSettings),
}

/// Where what is committed is written to.
#[derive(Debug, Clone)]
pub struct DiskSettings {
    /// The directory.
    pub directory: PathBuf,
    /// Bytes of batches behind a checkpoint before there is another one, at least.
    pub checkpoint_bytes: u64,
}

/// Settles every setting.
///
/// # Errors
/// [`Fault::Config`] with file, line and column, or for values that cannot hold together.
pub fn load(args: &MemoryArgs, matches: &clap::ArgMatches) -> Result<MemorySettings, Fault> {
    let default = Path::new(DEFAULT_FILE);
    let file = match &args.config {
        Some(path) => Some(path.as_path()),
        None => Some(default).filter(|path| path.exists()),
    };
    let file = file.map(file::read::<Keys>).transpose()?;
    let none = Keys::default();
    let keys = file.as_ref().map_or(&none, |file| &file.keys);
    let text = file.as_ref().map(|file| &file.text);
    settle(&mut Resolver::new(Some(matches), text, PREFIX), args, keys)
}

fn settle(r: &mut Resolver<'_>, args: &MemoryArgs, keys: &Keys) -> Result<MemorySettings, Fault> {
    let at = meeting(r, args, keys)?;
    let server = pick!(r, args, keys, server, 0, plain);
    let servers = pick!(r, args, keys, servers, 1, plain);
    let replicas = pick!(r, args, keys, replicas, 1, plain);
    let log_copies = if replicas > 1 {
        replicas
    } else {
        servers.min(2)
    };
    let name = pick!(r, args, keys, name, "manxdb".to_owned(), quoted);
    let size_mb = pick!(r, args, keys, size_mb, 1024, plain);
    let lease_ms = pick!(r, args, keys, lease_ms, 5_000, plain);
    let disk = disk(r, args, keys)?;
    if let (Meeting::Listen(address, _), Some(disk)) = (&at, &disk) {
        return Err(Fault::Config(format!(
            "disk is {}, but listen is {address}: rows of memory servers that are reached from other \
             machines cannot be written to disk yet. Leave out one of both",
            disk.directory.display()
        )));
    }
    let slots = if disk.is_some() { LOG_SLOTS } else { 1 };
    let log_slots = pick!(r, args, keys, log_slots, slots, plain);
    if disk.is_none() && log_slots != 1 {
        return Err(Fault::Config(format!(
            "log_slots is {log_slots}, but disk is not set: there is nothing to wait for"
        )));
    }
    let geometry = Geometry {
        servers,
        replicas,
        bytes: times("size_mb", size_mb, 1 << 20)?,
        places: pick!(r, args, keys, places, 32, plain),
        log_copies: pick!(r, args, keys, log_copies, log_copies, plain),
        log_bytes: times("log_kb", pick!(r, args, keys, log_kb, 512, plain), 1 << 10)?,
        log_slots,
        versions: pick!(r, args, keys, versions, 4, plain),
        value: pick!(r, args, keys, row_bytes, 256, plain),
        node: pick!(r, args, keys, node_bytes, 8192, plain),
        lease: Nanos(times("lease_ms", lease_ms, 1_000_000)?),
    };
    let geometry = geometry.check();
    let geometry = geometry.map_err(|error| Fault::Config(error.to_string()))?;
    if server >= servers {
        return Err(Fault::Config(format!(
            "server is {server} but must be 0 to {}, because servers is {servers}",
            servers - 1
        )));
    }
    if name.is_empty() || name.len() > NAME_MAX {
        return Err(Fault::Config(format!(
            "name has {} bytes but must have 1 to {NAME_MAX}",
            name.len()
        )));
    }
    let listen = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 8090);
    Ok(MemorySettings {
        at,
        superblock: Superblock {
            name,
            server,
            directory: 0,
            geometry,
        },
        populate: pick!(r, args, keys, populate, false, plain),
        disk,
        admin_listen: pick!(r, args, keys, admin_listen, listen, quoted),
        log: pick!(r, args, keys, log, "info".to_owned(), quoted),
    })
}

fn meeting(r: &mut Resolver<'_>, args: &MemoryArgs, keys: &Keys) -> Result<Meeting, Fault> {
    let is_shared = args.directory.is_some() || keys.directory.is_some();
    let directory = PathBuf::from("./manxdb-memory");
    let directory = pick!(r, args, keys, directory, directory, path);
    let listen = args.listen.as_ref();
    let listen = r.pick("listen", listen, keys.listen.as_ref(), None, quoted);
    let provider = pick!(r, args, keys, provider, PROVIDER.to_owned(), quoted);
    let token_file = args.token_file.as_ref();
    let token_file = r.pick(
        "token_file",
        token_file,
        keys.token_file.as_ref(),
        None,
        path,
    );
    let refuse = |what: String| Err(Fault::Config(what));
    let Some(listen) = listen else {
        return match token_file {
            None => Ok(Meeting::Directory(directory)),
            Some(file) => refuse(format!(
                "token_file is {}, but listen is not set: nobody is asked for a token in a directory",
                file.display()
            )),
        };
    };
    if is_shared {
        return refuse(format!(
            "listen is {listen}, and directory is {}: a memory server has one of both",
            directory.display()
        ));
    }
    if listen.ip().is_unspecified() || listen.port() == 0 {
        return refuse(format!(
            "listen is {listen}: give an address and a port of this machine by which others reach it"
        ));
    }
    if token_file.is_none() && !listen.ip().to_canonical().is_loopback() {
        return refuse(format!(
            "listen is {listen}, which can be reached from elsewhere: give token_file, so that not \
             everybody can read and write all rows"
        ));
    }
    let remote = RemoteSettings {
        provider,
        token_file,
    };
    Ok(Meeting::Listen(listen, remote))
}

fn disk(
    r: &mut Resolver<'_>,
    args: &MemoryArgs,
    keys: &Keys,
) -> Result<Option<DiskSettings>, Fault> {
    let directory = r.pick("disk", args.disk.as_ref(), keys.disk.as_ref(), None, path);
    let checkpoint_mb = pick!(r, args, keys, checkpoint_mb, 256, plain);
    let checkpoint_bytes = times("checkpoint_mb", checkpoint_mb, 1 << 20)?;
    Ok(directory.map(|directory| DiskSettings {
        directory,
        checkpoint_bytes,
    }))
}

fn times(key: &str, value: u64, unit: u64) -> Result<u64, Fault> {
    let too_large = || Fault::Config(format!("{key} is {value}, which is too large"));
    value.checked_mul(unit).ok_or_else(too_large)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;

    fn loaded(flags: &[&str], text: &str) -> Result<MemorySettings, Fault> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("memory.toml");
        std::fs::write(&file, text).unwrap();
        let command = crate::cli::Cli::command();
        let file = file.to_str().unwrap();
        let flags = [&["manxdb", "memory", "--config", file], flags].concat();
        let matches = command.try_get_matches_from(flags).unwrap();
        let cli = crate::cli::Cli::from_arg_matches(&matches).unwrap();
        let crate::cli::Command::Memory(args) = cli.command else {
            panic!("not memory");
        };
        load(&args, crate::deepest(&matches))
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let settings = loaded(&["--server", "1"], "servers = 3\nserver = 2\n").unwrap();
        let superblock = settings.superblock;
        assert_eq!((superblock.server, superblock.geometry.servers), (1, 3));
        assert_eq!(superblock.geometry.log_copies, 2);
        assert_eq!(superblock.geometry.bytes, 1 << 30);
        assert_eq!(superblock.name, "manxdb");
        assert_eq!(superblock.geometry.log_slots, 1);
        assert!(settings.disk.is_none() && !settings.populate);
        assert!(loaded(&["--populate"], "").unwrap().populate);
        assert!(loaded(&[], "populate = true").unwrap().populate);
        let settings = loaded(&["--disk", "rows"], "checkpoint_mb = 3\n").unwrap();
        assert_eq!(settings.superblock.geometry.log_slots, 8);
        let disk = settings.disk.unwrap();
        assert_eq!(
            (disk.directory, disk.checkpoint_bytes),
            ("rows".into(), 3 << 20)
        );
    }

    #[test]
    fn a_server_listens_or_has_a_directory() {
        let at = |text| loaded(&[], text).unwrap().at;
        assert_eq!(at(""), Meeting::Directory("./manxdb-memory".into()));
        let remote = |provider: &str, token: Option<&str>| RemoteSettings {
            provider: provider.to_owned(),
            token_file: token.map(PathBuf::from),
        };
        let here = at("listen = \"127.0.0.1:7000\"");
        let address = "127.0.0.1:7000".parse().unwrap();
        assert_eq!(here, Meeting::Listen(address, remote(PROVIDER, None)));
        let there = "listen = \"10.0.0.1:7\"\ntoken_file = \"/t\"\nprovider = \"verbs;ofi_rxm\"";
        let address = "10.0.0.1:7".parse().unwrap();
        let there_is = Meeting::Listen(address, remote("verbs;ofi_rxm", Some("/t")));
        assert_eq!(at(there), there_is);
    }

    #[test]
    fn values_that_cannot_be_are_refused_by_name() {
        for (text, words) in [
            (
                "server = 1",
                "server is 1 but must be 0 to 0, because servers is 1",
            ),
            ("size_mb = 1", "are too few"),
            ("name = \"\"", "name has 0 bytes"),
            ("log_copies = 3", "copies of a log is 3 but must be 1 to 1"),
            (
                "servers = 2\nreplicas = 2",
                "memory servers is 2 but must be 3 to 64",
            ),
            (
                "servers = 4\nreplicas = 3\nlog_copies = 2",
                "copies of a log is 2 but must be 3 to 3",
            ),
            ("plaices = 3", "plaices"),
            ("lease_ms = 1", "the lease"),
            ("listen = \"0.0.0.0:7000\"", "by which others reach it"),
            ("listen = \"127.0.0.1:0\"", "by which others reach it"),
            (
                "listen = \"10.0.0.1:7000\"",
                "listen is 10.0.0.1:7000, which can be reached from elsewhere: give token_file",
            ),
            (
                "listen = \"127.0.0.1:7000\"\ndirectory = \"rows\"",
                "a memory server has one of both",
            ),
            (
                "listen = \"127.0.0.1:7000\"\ndisk = \"rows\"",
                "cannot be written to disk yet",
            ),
            ("token_file = \"/t\"", "but listen is not set"),
            ("log_slots = 8", "log_slots is 8, but disk is not set"),
            (
                "disk = \"rows\"\nlog_slots = 3",
                "slots of a log is 3 but must be 4 to 64",
            ),
        ] {
            let error = loaded(&[], text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
