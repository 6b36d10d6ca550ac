//! What every process of ManxDB asks of the operating system: a log, signals, listeners, file
//! descriptors, randomness, and the program beside its own; and what version it is.

use std::ffi::OsString;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use manxdb_gateway::mysql::SERVER_VERSION;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::fault::Fault;

/// Logs to standard error what `filter` lets pass.
///
/// # Errors
/// A filter that cannot be read.
pub fn start_log(filter: &str) -> Result<(), Fault> {
    let filter = tracing_subscriber::EnvFilter::try_new(filter)
        .map_err(|error| Fault::Config(format!("log = \"{filter}\": {error}")))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        .try_init()
        .map_err(|error| Fault::Other(format!("cannot start logging: {error}")))
}

/// Logs what the environment variable `MANXDB_LOG` lets pass, or else `default`.
///
/// # Errors
/// A filter that cannot be read.
pub fn start_log_of_environment(default: &str) -> Result<(), Fault> {
    start_log(&std::env::var("MANXDB_LOG").unwrap_or_else(|_| default.to_owned()))
}

/// Sets `stop` at the first SIGTERM or SIGINT; the second one ends the process.
///
/// # Errors
/// The operating system's.
pub fn watch_signals(stop: &Arc<AtomicBool>) -> io::Result<()> {
    for signal in [SIGTERM, SIGINT] {
        // In this order: the second signal finds the flag set and exits.
        signal_hook::flag::register_conditional_shutdown(signal, 1, Arc::clone(stop))?;
        signal_hook::flag::register(signal, Arc::clone(stop))?;
    }
    Ok(())
}

/// A stream that becomes readable when the process is told to end.
///
/// # Errors
/// The operating system's.
pub fn stop_signal() -> Result<UnixStream, Fault> {
    let io = |error| Fault::io("cannot watch signals", error);
    let (stop, raised) = UnixStream::pair().map_err(io)?;
    for signal in [SIGTERM, SIGINT] {
        let raised = raised.try_clone().map_err(io)?;
        signal_hook::low_level::pipe::register(signal, raised).map_err(io)?;
    }
    Ok(stop)
}

/// Listens at `address` for what the fault calls `listener`; `flag` is the option that moves it.
///
/// # Errors
/// The address is taken, or none of this machine's.
pub fn listen(
    address: SocketAddr,
    listener: &'static str,
    flag: &'static str,
) -> Result<TcpListener, Fault> {
    TcpListener::bind(address).map_err(|error| Fault::Listen {
        address,
        listener,
        flag,
        reason: match error.kind() {
            io::ErrorKind::AddrInUse => "the port is in use".to_owned(),
            _ => error.to_string(),
        },
    })
}

/// What an admin listener answers at `/version`.
pub fn version() -> Value {
    json!({
        "name": "ManxDB",
        "version": env!("CARGO_PKG_VERSION"),
        "mysql_version": SERVER_VERSION,
    })
}

/// Raises the limit of open file descriptors to `wanted`, or as far as the system allows; a higher
/// limit stays. Returns the limit that holds then.
pub fn raise_descriptor_limit(wanted: u64) -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let Some(current) = current.filter(|current| *current < wanted) else {
        return current.unwrap_or(u64::MAX);
    };
    let raised = maximum.map_or(wanted, |maximum| maximum.min(wanted));
    let asked = Rlimit {
        current: Some(raised),
        maximum,
    };
    match setrlimit(Resource::Nofile, asked) {
        Ok(()) => raised,
        Err(_) => current,
    }
}

/// A random number: an identity that no other process draws.
///
/// # Errors
/// The system gives no random numbers.
pub fn random_u64() -> Result<u64, Fault> {
    let mut bytes = [0; 8];
    fill_with_random(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// Letters and digits that cannot be mistaken for each other.
const ALPHABET: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz23456789A";
/// 24 characters of 5 bits each.
const SECRET_CHARACTERS: usize = 24;

/// A secret of 120 random bits, easy to type.
///
/// # Errors
/// The system gives no random numbers.
pub fn random_secret() -> Result<String, Fault> {
    let mut bytes = [0; SECRET_CHARACTERS];
    fill_with_random(&mut bytes)?;
    let pick = |byte: &u8| char::from(ALPHABET[usize::from(byte % 32)]); // 32 letters
    Ok(bytes.iter().map(pick).collect())
}

fn fill_with_random(bytes: &mut [u8]) -> Result<(), Fault> {
    aws_lc_rs::rand::fill(bytes)
        .map_err(|_| Fault::Other("the system gives no random numbers".to_owned()))
}

/// The path of the program `name` in the directory of this process's own program, whether it is
/// there or not.
///
/// # Errors
/// The system does not say which program this process runs.
pub fn program_beside(name: &str) -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(name))
}

/// Replaces this process by the program `name` beside its own, with the same arguments: the exit
/// code and all signals are that program's.
///
/// # Errors
/// Returns only when the program cannot be run; `way_out` says how to get a missing one.
pub fn become_program(name: &str, way_out: &str) -> Fault {
    use std::os::unix::process::CommandExt as _;
    let program = match program_beside(name) {
        Ok(program) => program,
        Err(error) => return Fault::io(format!("cannot find {name}"), error),
    };
    let mut arguments = std::env::args_os();
    let called = arguments.next().unwrap_or_else(|| OsString::from(name));
    let mut command = std::process::Command::new(&program);
    // Its usage lines show the command as it was typed.
    let error = command.arg0(called).args(arguments).exec();
    if error.kind() == io::ErrorKind::NotFound {
        return Fault::Other(format!("{name} is not at {}: {way_out}", program.display()));
    }
    Fault::io(format!("cannot run {}", program.display()), error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_long_enough_and_differ() {
        let secret = random_secret().unwrap();
        assert_eq!(secret.len(), SECRET_CHARACTERS);
        assert_ne!(secret, random_secret().unwrap());
    }

    #[test]
    fn a_limit_of_descriptors_is_never_lowered() {
        let before = raise_descriptor_limit(0);
        assert_eq!(raise_descriptor_limit(1), before);
        assert!(raise_descriptor_limit(u64::MAX) >= before);
    }
}
