//! Asking for a password without showing it.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

/// Reads one line from the terminal with echo off.
///
/// # Errors
/// Standard input is no terminal, or cannot be read.
pub fn ask() -> std::io::Result<String> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(std::io::Error::other(
            "there is no terminal to ask for a password: give --password=… or MANXDB_PASSWORD",
        ));
    }
    eprint!("Password: ");
    std::io::stderr().flush()?;
    let shown = tcgetattr(&input)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Flush, &hidden)?;
    let mut line = String::new();
    let read = input.lock().read_line(&mut line);
    tcsetattr(&input, OptionalActions::Flush, &shown)?;
    eprintln!();
    read?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}
