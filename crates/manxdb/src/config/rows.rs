//! Where rows are.

use std::path::PathBuf;

use super::file::Keys;
use super::resolve::{Resolver, path, pick, plain, quoted};
use crate::cli::{CommitPathChoice, RowsArgs};
use crate::fault::Fault;

/// Where rows are, and how they are reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// In the data directory.
    Local,
    /// In memory servers that meet their clients in a directory; so many clients are this server.
    Memory(PathBuf, u16),
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
    match (choice, memory) {
        (CommitPathChoice::Local, None) => Ok(Rows::Local),
        (CommitPathChoice::Local, Some(_)) => Err(Fault::Config(
            "memory is set, but commit_path is \"local\": set commit_path = \"rsi\" to have rows in \
             memory servers, or leave memory out"
                .to_owned(),
        )),
        (CommitPathChoice::Rsi, None) => Err(Fault::Config(
            "commit_path is \"rsi\", but memory is not set: give the directory of the memory servers \
             (manxdb memory --directory)"
                .to_owned(),
        )),
        (CommitPathChoice::Rsi, Some(_)) if !(1..=256).contains(&clients) => Err(Fault::Config(
            format!("memory_clients is {clients} but must be 1 to 256"),
        )),
        (CommitPathChoice::Rsi, Some(directory)) => Ok(Rows::Memory(directory, clients)),
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
        let (settings, _) = resolved(&["--memory-clients", "3"], text).unwrap();
        assert_eq!(settings.rows, Rows::Memory("/run/rows".into(), 3));
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
