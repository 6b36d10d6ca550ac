//! Tests of the program manxdb, and rules of the repository.

mod command_line;
mod layering;
mod server_process;
mod sql_on_rsi;
mod support;
