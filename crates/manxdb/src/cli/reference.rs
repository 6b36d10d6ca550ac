//! The reference pages that are made from the command line: docs/reference/commands.md and settings.md.
//!
//! `REFERENCE=write cargo test -p manxdb reference` writes them; without it the test says where they
//! differ from what `--help` tells.

use std::fmt::Write as _;
use std::path::Path;

use clap::{Arg, Command, CommandFactory as _};

use super::Cli;
use crate::config::defaults;

const COMMANDS_HEAD: &str = "\
# Commands

Made from the text of `--help`, and held equal to it by a test. Commands of `manxdb-lab` (bench, cluster, \
lab, sim) are told by their own `--help`.
";

const SETTINGS_HEAD: &str = "\
# Settings of `manxdb serve`

Made from the command line and its defaults, and held equal to them by a test. A flag wins over the \
environment variable, that over the key in `manxdb.toml`, that over the default; `manxdb config explain` \
shows what holds and why, `manxdb config check FILE` says what is wrong with a file. The variable of a \
setting is `MANXDB_` and its key in capitals.

| key | flag | default | what it sets |
|---|---|---|---|
";

/// Text of a cell or line: in one line, without what Markdown takes for markup.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .replace('|', "\\|")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

fn help_of(arg: &Arg) -> String {
    let help = arg.get_long_help().or_else(|| arg.get_help());
    let mut text = one_line(&help.map(ToString::to_string).unwrap_or_default());
    let choices: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|choice| !choice.is_hide_set())
        .map(|choice| {
            let meaning = choice.get_help().map(ToString::to_string);
            let meaning = meaning.map_or_else(String::new, |text| format!(": {}", one_line(&text)));
            format!("`{}`{meaning}", choice.get_name())
        })
        .collect();
    let takes_choice = arg.get_action().takes_values() && choices != ["`true`", "`false`"];
    if takes_choice && !choices.is_empty() {
        let _ = write!(text, " ({})", choices.join("; "));
    }
    text
}

/// `--flag VALUE`, or the value's name alone.
fn usage_of(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values: Vec<&str> = names.iter().map(clap::builder::Str::as_str).collect();
    let values = if arg.get_action().takes_values() {
        values.join(" ")
    } else {
        String::new()
    };
    let flag = arg.get_long().map(|long| format!("--{long}"));
    match (flag, values.is_empty()) {
        (Some(flag), true) => flag,
        (Some(flag), false) => format!("{flag} {values}"),
        (None, _) => values,
    }
}

fn shown(command: &Command) -> Vec<&Arg> {
    let arguments = command.get_arguments();
    arguments
        .filter(|arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str()))
        .collect()
}

fn write_command(out: &mut String, path: &str, command: &Command) {
    let about = command.get_long_about().or_else(|| command.get_about());
    let about = one_line(&about.map(ToString::to_string).unwrap_or_default());
    let about = about.trim_end_matches('.');
    let _ = writeln!(out, "\n## `{path}`\n\n{about}.");
    let arguments = shown(command);
    if !arguments.is_empty() {
        out.push_str("\n| argument | default | meaning |\n|---|---|---|\n");
    }
    for arg in arguments {
        let default: Vec<String> = arg
            .get_default_values()
            .iter()
            .map(|value| format!("`{}`", value.to_string_lossy()))
            .collect();
        let usage = one_line(&usage_of(arg));
        let _ = writeln!(
            out,
            "| `{usage}` | {} | {} |",
            default.join(" "),
            help_of(arg)
        );
    }
    if let Some(after) = command.get_after_help() {
        let _ = writeln!(out, "\n```text\n{}\n```", after.to_string().trim_end());
    }
    for below in command.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            write_command(out, &format!("{path} {}", below.get_name()), below);
        }
    }
}

fn commands() -> String {
    let mut root = Cli::command();
    root.build();
    let mut out = COMMANDS_HEAD.to_owned();
    write_command(&mut out, "manxdb", &root);
    out
}

fn settings() -> String {
    let mut root = Cli::command();
    root.build();
    let serve = root.find_subcommand("serve").unwrap();
    let mut out = SETTINGS_HEAD.to_owned();
    for setting in defaults() {
        let of_setting = |arg: &&&Arg| {
            let long = arg.get_long().map(|long| long.replace('-', "_"));
            long.as_deref() == Some(setting.key)
        };
        let arguments = shown(serve);
        let arg = arguments.iter().find(of_setting);
        let arg = arg.unwrap_or_else(|| panic!("serve has no flag for {}", setting.key));
        let _ = writeln!(
            out,
            "| `{}` | `{}` | `{}` | {} |",
            setting.key,
            one_line(&usage_of(arg)),
            one_line(&setting.value),
            help_of(arg)
        );
    }
    out
}

/// The page is as `text`, or is written so when asked to.
fn holds(name: &str, text: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let path = root.join(name);
    if std::env::var_os("REFERENCE").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = kept
        .lines()
        .zip(text.lines())
        .find(|(kept, told)| kept != told);
    assert!(
        kept == text,
        "docs/reference/{name} is not what --help tells; REFERENCE=write makes it so; first at: {differing:?}"
    );
}

#[test]
fn the_reference_of_commands_is_what_help_tells() {
    holds("commands.md", &commands());
}

#[test]
fn the_reference_of_settings_is_what_help_and_defaults_tell() {
    holds("settings.md", &settings());
}
