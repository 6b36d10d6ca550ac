//! Trials in network and mount namespaces of their own: an XDP program is never given to an interface that
//! anybody else uses, and its maps are pinned in a BPF file system that ends with the trial.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// What makes them: a loopback interface, a BPF file system where carriers look for one, then this program
/// again.
const SCRIPT: &str =
    "ip link set lo up && mount -t bpf bpf /sys/fs/bpf && exec \"$0\" lab trial \"$1\"";

/// Whether this machine lets us make them.
///
/// # Errors
/// What is missing.
pub fn may() -> Result<(), String> {
    let made = Command::new("unshare")
        .args(["--net", "--mount", "ip", "link", "set", "lo", "up"])
        .stdin(Stdio::null())
        .output();
    let why = match made {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    Err(format!(
        "needs a network namespace of its own, that is unshare, ip, CAP_SYS_ADMIN and CAP_NET_ADMIN: {why}"
    ))
}

/// Runs a trial of a kind in them; its outcome.
///
/// # Errors
/// What it says when it fails.
pub fn within<T: Serialize, O: DeserializeOwned>(kind: &str, trial: &T) -> Result<O, String> {
    let failed = |error: &dyn std::fmt::Display| format!("a trial in namespaces: {error}");
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let mut child = Command::new("unshare")
        .args(["--net", "--mount", "sh", "-c", SCRIPT])
        .arg(program)
        .arg(kind)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&error))?;
    let asked = serde_json::to_string(trial).map_err(|error| failed(&error))?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin
            .write_all(asked.as_bytes())
            .map_err(|error| failed(&error))?;
    }
    let output = child.wait_with_output().map_err(|error| failed(&error))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(said.trim().trim_start_matches("manxdb: ").to_owned());
    }
    let answer = String::from_utf8_lossy(&output.stdout);
    let last = answer.lines().last().unwrap_or_default();
    serde_json::from_str(last).map_err(|error| failed(&format!("{error}: {last}")))
}

/// Reads a trial that [`within`] has sent, runs it, and writes its outcome.
///
/// # Errors
/// What failed.
pub fn answer<T: DeserializeOwned, O: Serialize>(
    run: impl FnOnce(&T) -> Result<O, String>,
) -> Result<(), String> {
    let trial = std::io::read_to_string(std::io::stdin()).map_err(|error| error.to_string())?;
    let trial = serde_json::from_str(&trial).map_err(|error| error.to_string())?;
    let outcome = serde_json::to_string(&run(&trial)?).map_err(|error| error.to_string())?;
    println!("{outcome}");
    Ok(())
}
