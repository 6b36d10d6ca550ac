//! The program as a child process.
#![allow(clippy::disallowed_methods)]

use std::process::{Command, Stdio};

/// The program, without the environment of whoever runs the tests.
pub fn laboratory() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_manxdb-lab"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("MANXDB_") {
            command.env_remove(name);
        }
    }
    command.current_dir(std::env::temp_dir());
    command
}

/// Exit code, standard output and standard error.
pub fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let done = command.stdin(Stdio::null()).output().unwrap();
    (
        done.status.code(),
        String::from_utf8_lossy(&done.stdout).into_owned(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    )
}
