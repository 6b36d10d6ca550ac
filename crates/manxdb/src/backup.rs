//! `manxdb backup`: of a running server through its admin listener, of files directly.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use manxdb_storage::backup::{self, Manifest};
use manxdb_storage::{Options, RocksEngine, StorageError};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};

use crate::cli::{BackupCommand, TlsMode};
use crate::fault::Fault;
use crate::mysql_client::Stream;
use crate::serve::{CERTIFICATE_FILE, TOKEN_FILE};

/// How long a listener may take to accept.
const CONNECT_PATIENCE: Duration = Duration::from_secs(5);

/// Runs one backup command.
///
/// # Errors
/// What went wrong, in one line.
pub fn run(command: &BackupCommand) -> Result<ExitCode, Fault> {
    match command {
        BackupCommand::Create {
            directory,
            label,
            data,
            admin,
        } => create(
            directory,
            &label.clone().unwrap_or_else(now_label),
            data,
            *admin,
        ),
        BackupCommand::Verify { directory } => verify(directory),
        BackupCommand::List { directory } => list(directory),
        BackupCommand::Salvage { data, into } => salvage(data, into),
        BackupCommand::Restore {
            directory,
            label,
            data,
        } => restore(directory, label.as_deref(), data),
    }
}

/// The time as a label that is a file name everywhere.
fn now_label() -> String {
    jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H-%M-%SZ")
        .to_string()
}

fn create(
    directory: &Path,
    label: &str,
    data: &Path,
    admin: SocketAddr,
) -> Result<ExitCode, Fault> {
    if !data.exists() {
        let data = data.display();
        return Err(Fault::Other(format!("there is no data directory {data}")));
    }
    let directory = std::path::absolute(directory)
        .map_err(|error| Fault::io(directory.display().to_string(), error))?;
    // The store's own lock tells whether a server uses the directory.
    let manifest = match RocksEngine::open(data, &Options::default()) {
        Ok(engine) => backup::create(&engine, &directory, label)?,
        Err(StorageError::InUse(_)) => ask_server(data, admin, &directory, label)?,
        Err(error) => return Err(error.into()),
    };
    println!("backup '{}' is in {}", manifest.label, directory.display());
    print_manifest(&manifest);
    Ok(ExitCode::SUCCESS)
}

/// The server that has the data directory open makes the backup.
fn ask_server(
    data: &Path,
    admin: SocketAddr,
    directory: &Path,
    label: &str,
) -> Result<Manifest, Fault> {
    let token_file = data.join(TOKEN_FILE);
    let token = std::fs::read_to_string(&token_file)
        .map_err(|error| Fault::io(format!("cannot read {}", token_file.display()), error))?;
    let body = json!({ "directory": directory, "label": label }).to_string();
    let silent = |error| {
        let what = "a server uses the data directory, but its admin listener";
        Fault::io(
            format!("{what} {admin} does not answer (see --admin)"),
            error,
        )
    };
    let connected = TcpStream::connect_timeout(&admin, CONNECT_PATIENCE).map_err(silent)?;
    let mut stream = Stream::Plain(connected);
    speak_tls(&mut stream, data, admin)?;
    let answer = post(&mut stream, admin, &token, &body).map_err(silent)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    if !head.starts_with("HTTP/1.1 200") {
        let why = body.get("error").and_then(Value::as_str);
        let status = head.lines().next().unwrap_or_default();
        return Err(Fault::Other(why.unwrap_or(status).to_owned()));
    }
    serde_json::from_value(body)
        .map_err(|error| Fault::Other(format!("the server's answer is not understood: {error}")))
}

/// Speaks TLS where the server has left its certificate in the data directory, and with no other server:
/// the token comes next.
fn speak_tls(stream: &mut Stream, data: &Path, admin: SocketAddr) -> Result<(), Fault> {
    let file = data.join(CERTIFICATE_FILE);
    if !file.exists() {
        return Ok(());
    }
    let unreadable = |error| Fault::Other(format!("cannot read {}: {error}", file.display()));
    let expected = CertificateDer::from_pem_file(&file).map_err(unreadable)?;
    stream.start_tls(&admin.ip().to_string(), TlsMode::Required, None)?;
    if stream.server_certificate() == Some(&expected) {
        return Ok(());
    }
    Err(Fault::Other(format!(
        "the admin listener {admin} shows another certificate than {}: it is another server's (see --admin)",
        file.display()
    )))
}

fn post(
    stream: &mut Stream,
    admin: SocketAddr,
    token: &str,
    body: &str,
) -> std::io::Result<String> {
    let length = body.len();
    write!(
        stream,
        "POST /backup HTTP/1.0\r\nHost: {admin}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )?;
    stream.flush()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn verify(directory: &Path) -> Result<ExitCode, Fault> {
    let report = backup::verify(directory)?;
    for problem in &report.problems {
        println!("{problem}");
    }
    let (backups, files, bytes) = (report.backups.len(), report.files, report.bytes);
    println!("{backups} backups, {files} files, {bytes} bytes read");
    if report.problems.is_empty() {
        println!("all is well");
        Ok(ExitCode::SUCCESS)
    } else {
        println!("{} problems", report.problems.len());
        Ok(ExitCode::FAILURE)
    }
}

fn list(directory: &Path) -> Result<ExitCode, Fault> {
    for manifest in backup::list(directory)? {
        print_manifest(&manifest);
    }
    Ok(ExitCode::SUCCESS)
}

fn print_manifest(manifest: &Manifest) {
    let seconds = i64::try_from(manifest.created_seconds).unwrap_or(0);
    let created = jiff::Timestamp::from_second(seconds)
        .map(|at| at.to_string())
        .unwrap_or_default();
    let bytes: u64 = manifest.files.iter().map(|file| file.size_bytes).sum();
    println!(
        "{}  {created}  {} files  {bytes} bytes  {} bytes added",
        manifest.label,
        manifest.files.len(),
        manifest.added_bytes
    );
}

fn restore(directory: &Path, label: Option<&str>, data: &Path) -> Result<ExitCode, Fault> {
    let label = match label {
        Some(label) => label.to_owned(),
        None => newest(directory)?,
    };
    let manifest = backup::restore(directory, &label, data)?;
    println!("backup '{label}' is restored into {}", data.display());
    print_manifest(&manifest);
    println!("Start it: manxdb serve --data {}", data.display());
    Ok(ExitCode::SUCCESS)
}

fn salvage(data: &Path, into: &Path) -> Result<ExitCode, Fault> {
    let salvaged = manxdb_storage::rocks::salvage::salvage(data, into)?;
    for file in &salvaged.lost {
        println!("lost: {file}");
    }
    println!(
        "what could be read of {} is in {}\nCopy it out: manxdb serve --data {}, then mysqldump",
        data.display(),
        into.display(),
        into.display()
    );
    Ok(ExitCode::SUCCESS)
}

fn newest(directory: &Path) -> Result<String, Fault> {
    let newest = backup::list(directory)?.pop();
    newest
        .map(|manifest| manifest.label)
        .ok_or_else(|| Fault::Other(format!("there are no backups in {}", directory.display())))
}
