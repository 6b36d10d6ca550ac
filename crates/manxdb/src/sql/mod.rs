//! `manxdb sql`: a small client.

mod client;
mod output;
mod password;
mod prompt;
mod split;

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;
use std::process::ExitCode;

use crate::cli::SqlArgs;
use crate::fault::Fault;
use client::{Client, Style};
use split::Splitter;

/// Runs the statements of the command line, a file or standard input, or a prompt.
///
/// # Errors
/// No server, one that went away, or a file that cannot be read.
pub fn run(args: &SqlArgs) -> Result<ExitCode, Fault> {
    let terminal = std::io::stdout().is_terminal();
    let interactive =
        args.execute.is_none() && args.file.is_none() && std::io::stdin().is_terminal();
    let style = Style {
        tables: args.table || terminal,
        remarks: interactive,
    };
    let mut client = Client::connect(args, style)?;
    let all_well = if let Some(statements) = &args.execute {
        run_text(&mut client, statements, args.force)?
    } else if let Some(file) = &args.file {
        run_file(&mut client, file, args.force)?
    } else if interactive {
        prompt::run(&mut client)?;
        true
    } else {
        let mut text = Vec::new();
        std::io::stdin()
            .read_to_end(&mut text)
            .map_err(|error| Fault::io("standard input", error))?;
        run_text(&mut client, &String::from_utf8_lossy(&text), args.force)?
    };
    Ok(if all_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Runs all statements of a file.
///
/// # Errors
/// The file cannot be read, or the connection is gone.
pub fn run_file(client: &mut Client, file: &Path, force: bool) -> Result<bool, Fault> {
    let text = std::fs::read(file)
        .map_err(|error| Fault::io(format!("cannot read {}", file.display()), error))?;
    run_text(client, &String::from_utf8_lossy(&text), force)
}

/// Runs all statements of `text`; stops at the first that fails unless `force`. Returns whether
/// all succeeded.
///
/// # Errors
/// The connection is gone.
fn run_text(client: &mut Client, text: &str, force: bool) -> Result<bool, Fault> {
    let mut splitter = Splitter::default();
    let mut pieces = splitter.push(text);
    pieces.extend(splitter.finish());
    let mut all_well = true;
    for piece in pieces {
        if !client.run_piece(&piece)? {
            all_well = false;
            if !force {
                break;
            }
        }
    }
    Ok(all_well)
}
