//! One value for every setting, and the reason for it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::parser::ValueSource;
use toml::Spanned;

use super::compaction::{self, RemoteCompaction};
use super::file::{ConfigFile, Keys, Text};
use super::redis::{self, RedisSettings};
use super::rows::{self, Rows};
use super::vault::{self, VaultSettings};
use crate::cli::{
    CompactionArgs, DurabilityChoice, IsolationChoice, RedisArgs, RowsArgs, SettingsArgs, VaultArgs,
};
use crate::fault::Fault;

/// Largest `max_allowed_packet_mb`, as in MySQL.
const PACKET_MB_MAX: usize = 1024;

/// Largest `write_buffer_mb`.
const WRITE_BUFFER_MB_MAX: usize = 4096;

/// What names of its environment variables begin with.
const PREFIX: &str = "MANXDB_";

/// What `serve` goes by.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Data directory.
    pub data: PathBuf,
    /// MySQL listener.
    pub mysql_listen: SocketAddr,
    /// Admin listener.
    pub admin_listen: SocketAddr,
    /// Whether the admin listener speaks HTTPS alone.
    pub admin_tls: bool,
    /// Root without a password on the first start.
    pub insecure: bool,
    /// When a commit counts as done.
    pub durability: DurabilityChoice,
    /// Level of transactions that do not ask for another.
    pub transaction_isolation: IsolationChoice,
    /// Certificate and key, both or none.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Client connections at a time.
    pub max_connections: usize,
    /// Longest packet, bytes.
    pub max_allowed_packet: usize,
    /// Block cache, bytes.
    pub block_cache_bytes: usize,
    /// One write buffer, bytes.
    pub write_buffer_bytes: usize,
    /// Memory of one statement, bytes.
    pub statement_memory_bytes: usize,
    /// Where statements may read and write files; `None` for nowhere.
    pub secure_file_priv: Option<String>,
    /// Slow from here, microseconds.
    pub long_query_micros: i64,
    /// Grace at shutdown, seconds.
    pub shutdown_grace_seconds: u32,
    /// Who compacts, when it is somebody else.
    pub compaction: Option<RemoteCompaction>,
    /// Where rows are.
    pub rows: Rows,
    /// Redis clients, when they are served.
    pub redis: Option<RedisSettings>,
    /// Where keys of people are.
    pub vault: VaultSettings,
    /// Log filter.
    pub log: String,
}

/// One line of `config explain`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// Name of the key.
    pub key: &'static str,
    /// Value in TOML.
    pub value: String,
    /// Where the value comes from.
    pub origin: String,
}

pub(super) struct Resolver<'a> {
    matches: Option<&'a clap::ArgMatches>,
    file: Option<&'a Text>,
    /// What names of environment variables begin with.
    prefix: &'static str,
    explained: Vec<Explained>,
}

impl<'a> Resolver<'a> {
    pub(super) fn new(
        matches: Option<&'a clap::ArgMatches>,
        file: Option<&'a Text>,
        prefix: &'static str,
    ) -> Self {
        Self {
            matches,
            file,
            prefix,
            explained: Vec::new(),
        }
    }

    /// The value that holds for `key`; `show` writes it as TOML.
    pub(super) fn pick<T: Clone>(
        &mut self,
        key: &'static str,
        flag: Option<&T>,
        file: Option<&Spanned<T>>,
        default: Option<T>,
        show: impl Fn(&T) -> String,
    ) -> Option<T> {
        let (value, origin) = match (flag, file) {
            (Some(value), _) => (Some(value.clone()), self.flag_origin(key)),
            (None, Some(spanned)) => (
                Some(spanned.get_ref().clone()),
                self.file_origin(spanned.span().start),
            ),
            (None, None) => (default, "default".to_owned()),
        };
        self.explained.push(Explained {
            key,
            value: value.as_ref().map_or_else(|| "unset".to_owned(), show),
            origin,
        });
        value
    }

    fn flag_origin(&self, key: &str) -> String {
        let source = self.matches.and_then(|m| m.value_source(key));
        if source == Some(ValueSource::EnvVariable) {
            format!("environment {}{}", self.prefix, key.to_uppercase())
        } else {
            format!("flag --{}", key.replace('_', "-"))
        }
    }

    fn file_origin(&self, offset: usize) -> String {
        self.file.map_or_else(String::new, |file| {
            format!("{} line {}", file.path.display(), file.line(offset))
        })
    }
}

pub(super) fn quoted(value: &impl std::fmt::Display) -> String {
    format!("\"{value}\"")
}

// As a function over the type of the setting, not over any path.
#[allow(clippy::ptr_arg)]
pub(super) fn path(value: &PathBuf) -> String {
    quoted(&value.display())
}

pub(super) fn plain(value: &impl std::fmt::Display) -> String {
    value.to_string()
}

fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// Settles every setting.
///
/// # Errors
/// [`Fault::Config`] for values that cannot hold together.
pub fn resolve(
    args: &SettingsArgs,
    matches: &clap::ArgMatches,
    file: Option<&ConfigFile>,
) -> Result<(Settings, Vec<Explained>), Fault> {
    settle(args, Some(matches), file)
}

/// Whether a file alone makes settings that can hold.
///
/// # Errors
/// [`Fault::Config`].
pub fn check(file: &ConfigFile) -> Result<(), Fault> {
    settle(&no_flags(), None, Some(file)).map(|_| ())
}

/// Settles the settings of compactions, by flags alone.
///
/// # Errors
/// [`Fault::Config`] for values that cannot hold together.
pub fn compaction(args: &CompactionArgs) -> Result<Option<RemoteCompaction>, Fault> {
    let mut r = Resolver::new(None, None, PREFIX);
    compaction::settle(&mut r, args, &Keys::default())
}

fn no_flags() -> SettingsArgs {
    SettingsArgs {
        config: None,
        data: None,
        mysql_listen: None,
        admin_listen: None,
        admin_tls: None,
        insecure: None,
        durability: None,
        transaction_isolation: None,
        tls_cert: None,
        tls_key: None,
        max_connections: None,
        max_allowed_packet_mb: None,
        block_cache_mb: None,
        write_buffer_mb: None,
        statement_memory_mb: None,
        secure_file_priv: None,
        long_query_ms: None,
        shutdown_grace_seconds: None,
        compaction: CompactionArgs::default(),
        rows: RowsArgs::default(),
        redis: RedisArgs::default(),
        vault: VaultArgs::default(),
        log: None,
    }
}

/// Picks `$key` with its default.
macro_rules! pick {
    ($resolver:ident, $args:ident, $keys:ident, $key:ident, $default:expr, $show:expr) => {{
        let default = $default;
        $resolver
            .pick(
                stringify!($key),
                $args.$key.as_ref(),
                $keys.$key.as_ref(),
                Some(default.clone()),
                $show,
            )
            .unwrap_or(default)
    }};
}
pub(super) use pick;

fn settle(
    args: &SettingsArgs,
    matches: Option<&clap::ArgMatches>,
    file: Option<&ConfigFile>,
) -> Result<(Settings, Vec<Explained>), Fault> {
    let none = Keys::default();
    let keys = file.map_or(&none, |file| &file.keys);
    let mut r = Resolver::new(matches, file.map(|file| &file.text), PREFIX);
    let insecure = pick!(r, args, keys, insecure, false, plain);
    let data = pick!(r, args, keys, data, PathBuf::from("./manxdb-data"), path);
    let rows = rows::settle(&mut r, &args.rows, keys)?;
    let settings = Settings {
        vault: vault::settle(&mut r, &args.vault, keys, &data, &rows)?,
        data,
        mysql_listen: pick!(r, args, keys, mysql_listen, loopback(3306), quoted),
        admin_listen: pick!(r, args, keys, admin_listen, loopback(8088), quoted),
        admin_tls: pick!(r, args, keys, admin_tls, false, plain),
        insecure,
        durability: pick!(r, args, keys, durability, DurabilityChoice::Sync, quoted),
        transaction_isolation: pick!(
            r,
            args,
            keys,
            transaction_isolation,
            IsolationChoice::RepeatableRead,
            quoted
        ),
        tls: tls_files(&mut r, args, keys)?,
        max_connections: pick!(r, args, keys, max_connections, 1000, plain),
        max_allowed_packet: mebibytes(
            "max_allowed_packet_mb",
            pick!(r, args, keys, max_allowed_packet_mb, 64, plain),
            PACKET_MB_MAX,
        )?,
        block_cache_bytes: mebibytes(
            "block_cache_mb",
            pick!(r, args, keys, block_cache_mb, 256, plain),
            1 << 20,
        )?,
        write_buffer_bytes: mebibytes(
            "write_buffer_mb",
            pick!(r, args, keys, write_buffer_mb, 64, plain),
            WRITE_BUFFER_MB_MAX,
        )?,
        statement_memory_bytes: mebibytes(
            "statement_memory_mb",
            pick!(r, args, keys, statement_memory_mb, 256, plain),
            1 << 20,
        )?,
        secure_file_priv: r.pick(
            "secure_file_priv",
            args.secure_file_priv.as_ref(),
            keys.secure_file_priv.as_ref(),
            None,
            quoted,
        ),
        long_query_micros: i64::from(pick!(r, args, keys, long_query_ms, 1000, plain)) * 1000,
        shutdown_grace_seconds: pick!(r, args, keys, shutdown_grace_seconds, 10, plain),
        compaction: compaction::settle(&mut r, &args.compaction, keys)?,
        rows,
        redis: redis::settle(&mut r, &args.redis, keys, insecure)?,
        log: pick!(r, args, keys, log, "info".to_owned(), quoted),
    };
    if settings.rows != Rows::Local && settings.compaction.is_some() {
        return Err(Fault::Config(
            "compaction is \"remote\", but commit_path is not \"local\": rows that are elsewhere are \
             not compacted"
                .to_owned(),
        ));
    }
    if settings.max_connections == 0 {
        return Err(Fault::Config(
            "max_connections must be at least 1".to_owned(),
        ));
    }
    Ok((settings, r.explained))
}

fn tls_files(
    r: &mut Resolver<'_>,
    args: &SettingsArgs,
    keys: &Keys,
) -> Result<Option<(PathBuf, PathBuf)>, Fault> {
    let certificate = r.pick(
        "tls_cert",
        args.tls_cert.as_ref(),
        keys.tls_cert.as_ref(),
        None,
        path,
    );
    let key = r.pick(
        "tls_key",
        args.tls_key.as_ref(),
        keys.tls_key.as_ref(),
        None,
        path,
    );
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
        (None, None) => Ok(None),
        _ => Err(Fault::Config(
            "tls_cert and tls_key belong together: give both or none".to_owned(),
        )),
    }
}

fn mebibytes(key: &str, value: usize, max: usize) -> Result<usize, Fault> {
    if value == 0 || value > max {
        return Err(Fault::Config(format!(
            "{key} is {value} but must be 1 to {max}"
        )));
    }
    Ok(value << 20)
}

#[cfg(test)]
pub(super) mod tests {
    use std::path::Path;

    use super::super::file::parse;
    use super::*;
    use clap::{CommandFactory as _, FromArgMatches as _};

    pub fn resolved(flags: &[&str], text: &str) -> Result<(Settings, Vec<Explained>), Fault> {
        let command = crate::cli::Cli::command();
        let matches = command
            .try_get_matches_from([&["manxdb", "config", "explain"], flags].concat())
            .unwrap();
        let cli = crate::cli::Cli::from_arg_matches(&matches).unwrap();
        let crate::cli::Command::Config(crate::cli::ConfigCommand::Explain(args)) = cli.command
        else {
            panic!("not explain");
        };
        let file = parse(Path::new("manxdb.toml"), text.to_owned())?;
        resolve(&args, crate::deepest(&matches), Some(&file))
    }

    fn origin<'a>(explained: &'a [Explained], key: &str) -> &'a str {
        &explained.iter().find(|e| e.key == key).unwrap().origin
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let (settings, explained) = resolved(
            &["--log", "debug"],
            "# ours\nlog = \"warn\"\nmax_connections = 7\n",
        )
        .unwrap();
        assert_eq!(settings.log, "debug");
        assert_eq!(settings.max_connections, 7);
        assert_eq!(settings.mysql_listen.port(), 3306);
        assert_eq!(origin(&explained, "log"), "flag --log");
        assert_eq!(origin(&explained, "max_connections"), "manxdb.toml line 3");
        assert_eq!(origin(&explained, "mysql_listen"), "default");
    }

    #[test]
    fn every_flag_is_explained_once() {
        let (_, explained) = resolved(&[], "").unwrap();
        let mut explained: Vec<_> = explained.iter().map(|e| e.key.to_owned()).collect();
        explained.sort_unstable();
        let mut command = crate::cli::Cli::command();
        command.build();
        let explain = command
            .find_subcommand("config")
            .and_then(|config| config.find_subcommand("explain"))
            .unwrap();
        let mut flags: Vec<_> = explain
            .get_arguments()
            .filter_map(|argument| argument.get_long())
            .filter(|flag| !["config", "help"].contains(flag))
            .map(|flag| flag.replace('-', "_"))
            .collect();
        flags.sort_unstable();
        assert_eq!(explained, flags);
    }

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        for (text, name) in [
            ("max_connections = 0", "max_connections"),
            ("max_allowed_packet_mb = 2000", "max_allowed_packet_mb"),
            ("tls_cert = \"c.pem\"", "tls_key"),
        ] {
            let error = resolved(&[], text).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
        }
    }

    #[test]
    fn commits_are_on_disk_unless_asked_otherwise() {
        let (settings, _) = resolved(&[], "").unwrap();
        assert_eq!(settings.durability, DurabilityChoice::Sync);
        let (settings, _) = resolved(&[], "durability = \"async\"").unwrap();
        assert_eq!(settings.durability, DurabilityChoice::Async);
        assert_eq!(
            settings.transaction_isolation,
            IsolationChoice::RepeatableRead
        );
        let (settings, _) = resolved(&[], "transaction_isolation = \"serializable\"").unwrap();
        assert_eq!(
            settings.transaction_isolation,
            IsolationChoice::Serializable
        );
    }
}
