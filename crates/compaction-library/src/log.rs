//! Where the log goes: the program that this is loaded into has one of its own, in another form.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;

/// Begins the log of this library, once in a program: the first service decides.
///
/// # Errors
/// The file cannot be written to, or `level` is no level.
pub fn start(file: Option<&Path>, level: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(level).map_err(|error| {
        format!("compaction_log_level is '{level}', no level such as info or debug: {error}")
    })?;
    match file {
        None => begin(filter, std::io::stderr),
        Some(path) => {
            let file = OpenOptions::new().create(true).append(true).open(path);
            let file =
                file.map_err(|error| format!("compaction_log {}: {error}", path.display()))?;
            begin(filter, Mutex::new(file));
        }
    }
    Ok(())
}

fn begin(filter: EnvFilter, writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static) {
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false);
    let _ = log.with_writer(writer).try_init(); // there is one: it stays
}
