//! The prompt: line editing, history, and the client's own commands.

use std::path::{Path, PathBuf};

use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::client::Client;
use super::split::Splitter;
use crate::fault::Fault;

/// File in the home directory that keeps what was typed.
const HISTORY_FILE: &str = ".manxdb_history";

/// Reads statements until the user leaves.
///
/// # Errors
/// The terminal cannot be read, or the connection is gone.
pub fn run(client: &mut Client) -> Result<(), Fault> {
    let mut editor =
        DefaultEditor::new().map_err(|error| Fault::Other(format!("terminal: {error}")))?;
    let history = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(HISTORY_FILE));
    if let Some(history) = &history {
        // Missing at the first start.
        let _ = editor.load_history(history);
    }
    println!(
        "Connected ({}). Statements end with ; or \\G. Leave with \\q.\n",
        client.description()
    );
    let mut splitter = Splitter::default();
    loop {
        match editor.readline(prompt(&splitter)) {
            Ok(line) => {
                remember(&mut editor, &line);
                if !take_line(client, &mut splitter, &line)? {
                    break;
                }
            }
            Err(ReadlineError::Interrupted) => splitter = Splitter::default(),
            Err(ReadlineError::Eof) => break,
            Err(error) => return Err(Fault::Other(format!("terminal: {error}"))),
        }
    }
    if let Some(history) = &history {
        // A read-only home is no reason to complain at the end.
        let _ = editor.save_history(history);
    }
    Ok(())
}

fn prompt(splitter: &Splitter) -> &'static str {
    match splitter.open_quote() {
        Some('\'') => "    '> ",
        Some('"') => "    \"> ",
        Some('`') => "    `> ",
        Some(_) => "    *> ",
        None if splitter.is_empty() => "manx> ",
        None => "    -> ",
    }
}

/// Statements that hold a password are not kept.
fn remember(editor: &mut DefaultEditor, line: &str) {
    let upper = line.to_uppercase();
    if !line.trim().is_empty() && !upper.contains("IDENTIFIED") && !upper.contains("PASSWORD") {
        let _ = editor.add_history_entry(line);
    }
}

/// False when the user leaves.
fn take_line(client: &mut Client, splitter: &mut Splitter, line: &str) -> Result<bool, Fault> {
    if splitter.is_empty() {
        let bare = line.trim().trim_end_matches(';').trim();
        match own_command(bare) {
            Some(Own::Leave) => return Ok(false),
            Some(Own::Source(file)) => {
                match super::run_file(client, Path::new(&file), false) {
                    Err(fault @ Fault::Io { .. }) => eprintln!("ERROR: {fault}"),
                    Err(gone) => return Err(gone),
                    Ok(_) => {}
                }
                return Ok(true);
            }
            Some(Own::Use(name)) => {
                client.use_database(&name)?;
                return Ok(true);
            }
            None => {}
        }
    }
    for piece in splitter.push(&format!("{line}\n")) {
        client.run_piece(&piece)?;
    }
    Ok(true)
}

/// What the client does itself.
#[derive(Debug, PartialEq, Eq)]
enum Own {
    Leave,
    Source(String),
    Use(String),
}

fn own_command(line: &str) -> Option<Own> {
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let argument = || rest.trim_matches(['`', '\'', '"']).to_owned();
    match word.to_lowercase().as_str() {
        "exit" | "quit" | "\\q" if rest.is_empty() => Some(Own::Leave),
        "source" | "\\." if !rest.is_empty() => Some(Own::Source(argument())),
        "use" | "\\u" if !rest.is_empty() => Some(Own::Use(argument())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_keeps_its_own_commands_from_the_server() {
        assert_eq!(own_command("exit"), Some(Own::Leave));
        assert_eq!(own_command("\\q"), Some(Own::Leave));
        assert_eq!(
            own_command("source dump.sql"),
            Some(Own::Source("dump.sql".into()))
        );
        assert_eq!(
            own_command("\\. 'a b.sql'"),
            Some(Own::Source("a b.sql".into()))
        );
        assert_eq!(own_command("USE `shop`"), Some(Own::Use("shop".into())));
        assert_eq!(own_command("SELECT 1"), None);
        assert_eq!(own_command("exit stage"), None);
    }
}
