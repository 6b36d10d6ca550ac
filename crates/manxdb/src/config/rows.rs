//! Where rows are.

use std::path::PathBuf;
use std::time::Duration;

use manxdb_rack::path::SNAPSHOT_AGE;

use super::file::Keys;
use super::resolve::{Resolver, path, pick, plain, quoted};
use crate::cli::{CommitPathChoice, RowsArgs};
use crate::fault::Fault;

/// Where rows are, and how they are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// In the data directory.
    Local,
    /// In memory servers, which this server is so many clients of.
    Memory(MemoryAt, MemoryUse),
    /// Replicated by a cluster, of which this server is one.
    Curp(CurpAt),
}

/// Which server of which cluster this is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CurpAt {
    /// The cluster's file, or its directory.
    pub cluster: PathBuf,
    /// The server's number there.
    pub node: u32,
}

/// What a server does with memory servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// Transactions that it does at a time.
    pub clients: u16,
    /// How long a transaction keeps for itself what it sees.
    pub snapshot: Duration,
}

/// Where memory servers are met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryAt {
    /// In a directory of this machine.
    Directory(PathBuf),
    /// At addresses, in the order of their numbers.
    Addresses(Vec<String>, RemoteSettings),
}

/// How memory of other machines is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSettings {
    /// The provider of libfabric.
    pub provider: String,
    /// The file of the token that memory servers ask for, if they do.
    pub token_file: Option<PathBuf>,
}

/// The provider that is there wherever libfabric is.
pub(super) const PROVIDER: &str = "tcp;ofi_rxm";
/// Seconds that a transaction keeps for itself what it sees, at most: all that goes meanwhile waits for its room, on every server.
const SNAPSHOT_MAX: u32 = 24 * 60 * 60;
/// What addresses begin with.
const SCHEME: &str = "tcp://";

/// Where memory servers are, by what was given.
fn memory_at(given: PathBuf, remote: RemoteSettings) -> Result<MemoryAt, Fault> {
    let addresses = given.to_str().and_then(|text| text.strip_prefix(SCHEME));
    let Some(addresses) = addresses else {
        if let Some(file) = remote.token_file {
            return Err(Fault::Config(format!(
                "memory_token_file is {}, but memory is a directory of this machine",
                file.display()
            )));
        }
        return Ok(MemoryAt::Directory(given));
    };
    let addresses: Vec<String> = addresses.split(',').map(str::to_owned).collect();
    for address in &addresses {
        let port = address
            .rsplit_once(':')
            .map(|(host, port)| (host.is_empty(), port.parse()));
        if !matches!(port, Some((false, Ok(1_u16..)))) {
            return Err(Fault::Config(format!(
                "memory has the address '{address}', but each must be HOST:PORT: \
                 tcp://one:7000,two:7000"
            )));
        }
    }
    Ok(MemoryAt::Addresses(addresses, remote))
}

/// Settles where rows are.
///
/// # Errors
/// [`Fault::Config`] for values that cannot hold together.
pub(super) fn settle(r: &mut Resolver<'_>, args: &RowsArgs, keys: &Keys) -> Result<Rows, Fault> {
    let choice = pick!(r, args, keys, commit_path, CommitPathChoice::Local, quoted);
    let memory = r.pick(
        "memory",
        args.memory.as_ref(),
        keys.memory.as_ref(),
        None,
        path,
    );
    let clients = pick!(r, args, keys, memory_clients, 8, plain);
    let remote = RemoteSettings {
        provider: pick!(r, args, keys, memory_provider, PROVIDER.to_owned(), quoted),
        token_file: r.pick(
            "memory_token_file",
            args.memory_token_file.as_ref(),
            keys.memory_token_file.as_ref(),
            None,
            path,
        ),
    };
    let default = u32::try_from(SNAPSHOT_AGE.as_secs()).unwrap_or(u32::MAX);
    let snapshot = pick!(r, args, keys, memory_snapshot_seconds, default, plain);
    let cluster = r.pick(
        "curp_cluster",
        args.curp_cluster.as_ref(),
        keys.curp_cluster.as_ref(),
        None,
        path,
    );
    let node = r.pick(
        "curp_node",
        args.curp_node.as_ref(),
        keys.curp_node.as_ref(),
        None,
        plain,
    );
    if choice != CommitPathChoice::Curp && (cluster.is_some() || node.is_some()) {
        return Err(Fault::Config(format!(
            "curp_cluster or curp_node is set, but commit_path is \"{choice}\": set commit_path = \
             \"curp\" to have rows replicated, or leave them out"
        )));
    }
    match (choice, memory) {
        (CommitPathChoice::Curp, Some(_)) => Err(Fault::Config(
            "memory is set, but commit_path is \"curp\": replicated rows are not in memory servers"
                .to_owned(),
        )),
        (CommitPathChoice::Curp, None) => match (cluster, node) {
            (Some(cluster), Some(node)) => Ok(Rows::Curp(CurpAt { cluster, node })),
            _ => Err(Fault::Config(
                "commit_path is \"curp\": give the file of the cluster as curp_cluster and the number \
                 of this server in it as curp_node (manxdb cluster up curp --sql starts all of them)"
                    .to_owned(),
            )),
        },
        (CommitPathChoice::Local, None) => Ok(Rows::Local),
        (CommitPathChoice::Local, Some(_)) => Err(Fault::Config(
            "memory is set, but commit_path is \"local\": set commit_path = \"rsi\" to have rows in \
             memory servers, or leave memory out"
                .to_owned(),
        )),
        (CommitPathChoice::Rsi, None) => Err(Fault::Config(
            "commit_path is \"rsi\", but memory is not set: give the directory of the memory servers \
             (manxdb memory --directory), or their addresses (manxdb memory --listen)"
                .to_owned(),
        )),
        (CommitPathChoice::Rsi, Some(_)) if !(1..=256).contains(&clients) => Err(Fault::Config(
            format!("memory_clients is {clients} but must be 1 to 256"),
        )),
        (CommitPathChoice::Rsi, Some(_)) if !(1..=SNAPSHOT_MAX).contains(&snapshot) => {
            Err(Fault::Config(format!(
                "memory_snapshot_seconds is {snapshot} but must be 1 to {SNAPSHOT_MAX}"
            )))
        }
        (CommitPathChoice::Rsi, Some(memory)) => {
            let snapshot = Duration::from_secs(snapshot.into());
            let used = MemoryUse { clients, snapshot };
            Ok(Rows::Memory(memory_at(memory, remote)?, used))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::resolve::tests::resolved;
    use super::*;

    #[test]
    fn rows_are_local_unless_asked_otherwise() {
        assert_eq!(resolved(&[], "").unwrap().0.rows, Rows::Local);
        let text = "commit_path = \"rsi\"\nmemory = \"/run/rows\"\n";
        let flags = ["--memory-clients", "3", "--memory-snapshot-seconds", "7"];
        let (settings, _) = resolved(&flags, text).unwrap();
        let directory = MemoryAt::Directory("/run/rows".into());
        let used = MemoryUse {
            clients: 3,
            snapshot: Duration::from_secs(7),
        };
        assert_eq!(settings.rows, Rows::Memory(directory, used));
    }

    #[test]
    fn replicated_rows_are_of_a_server_of_a_cluster() {
        let text = "commit_path = \"curp\"\ncurp_cluster = \"/c/cluster.toml\"\n";
        let (settings, _) = resolved(&["--curp-node", "2"], text).unwrap();
        let at = CurpAt {
            cluster: "/c/cluster.toml".into(),
            node: 2,
        };
        assert_eq!(settings.rows, Rows::Curp(at));
    }

    #[test]
    fn memory_servers_are_at_addresses() {
        let text = "commit_path = \"rsi\"\nmemory = \"tcp://one:7000,[::1]:7001\"\n";
        let flags = [
            "--memory-token-file",
            "/t",
            "--memory-provider",
            "verbs;ofi_rxm",
        ];
        let (settings, _) = resolved(&flags, text).unwrap();
        let remote = RemoteSettings {
            provider: "verbs;ofi_rxm".to_owned(),
            token_file: Some("/t".into()),
        };
        let used = MemoryUse {
            clients: 8,
            snapshot: Duration::from_secs(600),
        };
        let addresses = vec!["one:7000".to_owned(), "[::1]:7001".to_owned()];
        assert_eq!(
            settings.rows,
            Rows::Memory(MemoryAt::Addresses(addresses, remote), used)
        );
    }

    #[test]
    fn what_does_not_belong_together_is_refused_by_name() {
        let rsi = "commit_path = \"rsi\"\nmemory = \"/run/rows\"\n";
        for (text, words) in [
            (
                "memory = \"/run/rows\"".to_owned(),
                "commit_path is \"local\"",
            ),
            ("commit_path = \"rsi\"".to_owned(), "memory is not set"),
            (format!("{rsi}memory_clients = 0"), "memory_clients is 0"),
            (
                format!("{rsi}memory_snapshot_seconds = 0"),
                "memory_snapshot_seconds is 0 but must be 1 to 86400",
            ),
            (
                format!("{rsi}memory_snapshot_seconds = 86401"),
                "memory_snapshot_seconds is 86401 but must be 1 to 86400",
            ),
            (
                format!("{rsi}memory_token_file = \"/t\""),
                "memory_token_file is /t, but memory is a directory",
            ),
            ("commit_path = \"curp\"".to_owned(), "as curp_cluster"),
            ("curp_node = 1".to_owned(), "commit_path is \"local\""),
            (
                "commit_path = \"curp\"\nmemory = \"/m\"".to_owned(),
                "memory is set, but commit_path is \"curp\"",
            ),
            (
                "commit_path = \"rsi\"\nmemory = \"tcp://one:7000,two\"".to_owned(),
                "memory has the address 'two', but each must be HOST:PORT",
            ),
            (
                format!(
                    "{rsi}compaction = \"remote\"\ncontrol = [\"a:1\"]\ncompaction_volume = \"v=/v\""
                ),
                "are not compacted",
            ),
        ] {
            let error = resolved(&[], &text).unwrap_err().to_string();
            assert!(error.contains(words), "{error}");
        }
    }
}
