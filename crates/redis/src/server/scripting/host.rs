//! What a script that runs asks of the process around the server.

use crate::keyspace::{Keyspace, Load, LoadedRow};
use crate::server::Server;

/// Whether a script may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptFate {
    /// It may.
    GoesOn,
    /// The process ends: the script does too, and nothing that it wrote is kept.
    IsAbandoned,
}

/// The process around a server while a script runs. A script may touch keys that nobody named before, and
/// may run for long.
pub trait ScriptHost {
    /// Reads a value of the store now; `None` when it cannot be read.
    fn load(&mut self, load: Load) -> Option<LoadedRow>;

    /// Reads the names of all keys now, if they are not known; `false` when they cannot be read.
    fn load_names(&mut self, keyspace: &mut Keyspace) -> bool;

    /// Called now and then, at least every [`crate::scripts::INSTRUCTIONS`] of Lua: the place to look at the clock and to
    /// let other connections end the script ([`Server::handle_while_busy`]).
    fn interrupt(&mut self, server: &mut Server) -> ScriptFate;

    /// Microseconds since some time; commands inside others are timed with it. Where there is no clock, it
    /// stands still.
    fn micros(&mut self) -> u64 {
        0
    }

    /// Fills `bytes` with what nobody can guess; whether it could.
    fn secret(&mut self, _bytes: &mut [u8]) -> bool {
        false
    }

    /// What the file of users says, or why it cannot be read; `None` where there is no such file.
    fn read_users(&mut self) -> Option<Result<String, String>> {
        None
    }

    /// Puts a text in place of that of the file of users, durably and as a whole; why it could not be done.
    /// `None` where there is no such file.
    fn write_users(&mut self, _text: &str) -> Option<Result<(), String>> {
        None
    }
}

/// Everything is in memory, and nobody interrupts.
#[derive(Debug, Default)]
pub struct NoHost;

impl ScriptHost for NoHost {
    fn load(&mut self, _load: Load) -> Option<LoadedRow> {
        None
    }

    fn load_names(&mut self, _keyspace: &mut Keyspace) -> bool {
        false
    }

    fn interrupt(&mut self, _server: &mut Server) -> ScriptFate {
        ScriptFate::GoesOn
    }
}
