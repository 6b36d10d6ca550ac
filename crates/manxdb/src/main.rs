//! The program `manxdb`; see the library beside it.
#![forbid(unsafe_code)]

use std::process::ExitCode;

/// A statement allocates some dozens of small pieces and frees most of them on the same thread,
/// often others' too: the system's allocator spends a quarter of a statement's time on that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    manxdb::run()
}
