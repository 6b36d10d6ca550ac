//! The Redis server's settings.

use std::net::SocketAddr;
use std::path::PathBuf;

use super::file::Keys;
use super::resolve::{Resolver, path, pick, plain, quoted};
use crate::cli::{RedisArgs, RedisEngineChoice};
use crate::fault::Fault;

/// Least memory for keys and values, MiB.
const MEMORY_MB_MIN: usize = 16;
/// Most of it, MiB.
const MEMORY_MB_MAX: usize = 1 << 20;

/// How Redis clients are served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RedisSettings {
    /// Where they connect.
    pub listen: SocketAddr,
    /// Whether keys outlive the process.
    pub is_stored: bool,
    /// Memory for keys and values, bytes.
    pub memory_bytes: usize,
    /// Their password; `None`: none is asked for.
    pub password: Option<String>,
    /// File of their users.
    pub acl_file: Option<PathBuf>,
}

/// Settles them; none when Redis clients are not served.
///
/// # Errors
/// [`Fault::Config`] for values that cannot hold together.
pub(super) fn settle(
    r: &mut Resolver<'_>,
    args: &RedisArgs,
    keys: &Keys,
    insecure: bool,
) -> Result<Option<RedisSettings>, Fault> {
    let listen = r.pick(
        "redis_listen",
        args.redis_listen.as_ref(),
        keys.redis_listen.as_ref(),
        None,
        quoted,
    );
    let engine = pick!(
        r,
        args,
        keys,
        redis_engine,
        RedisEngineChoice::Rocksdb,
        quoted
    );
    let memory = pick!(r, args, keys, redis_memory_mb, 1024, plain);
    let password = r.pick(
        "redis_password",
        args.redis_password.as_ref(),
        keys.redis_password.as_ref(),
        None,
        |_| quoted(&"…"),
    );
    let acl_file = r.pick(
        "redis_acl_file",
        args.redis_acl_file.as_ref(),
        keys.redis_acl_file.as_ref(),
        None,
        path,
    );
    if !(MEMORY_MB_MIN..=MEMORY_MB_MAX).contains(&memory) {
        return Err(Fault::Config(format!(
            "redis_memory_mb is {memory} but must be {MEMORY_MB_MIN} to {MEMORY_MB_MAX}"
        )));
    }
    let Some(listen) = listen else {
        return Ok(None);
    };
    let password = password.filter(|password| !password.is_empty());
    if password.is_none() && !insecure {
        return Err(Fault::Config(
            "redis_listen needs redis_password, or insecure for clients without one".to_owned(),
        ));
    }
    Ok(Some(RedisSettings {
        listen,
        is_stored: engine == RedisEngineChoice::Rocksdb,
        memory_bytes: memory << 20,
        password,
        acl_file,
    }))
}

#[cfg(test)]
mod tests {
    use super::super::resolve::tests::resolved;

    #[test]
    fn redis_is_off_and_needs_a_password() {
        assert_eq!(resolved(&[], "").unwrap().0.redis, None);
        let open = ["--redis-listen", "127.0.0.1:6379"];
        let error = resolved(&open, "").unwrap_err().to_string();
        assert!(error.contains("redis_password"), "{error}");
        let (settings, _) = resolved(&open, "redis_password = \"secret\"").unwrap();
        assert!(settings.redis.is_some_and(|redis| redis.is_stored));
        let error = resolved(&[], "redis_memory_mb = 15")
            .unwrap_err()
            .to_string();
        assert!(error.contains("16"), "{error}");
    }
}
