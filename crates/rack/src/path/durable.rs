//! Commits that count when they are on disk, where a log archiver writes what is committed: of memory without
//! one they count at once.
//!
//! A commit that has not come to disk for long is there for everybody, and its end is unknown to who
//! has asked: memory may be lost before. One that finds no room in its log, because what is there is not
//! written, has not begun.

use std::thread;
use std::time::{Duration, Instant};

use manxdb_fabric::Fabric;
use manxdb_rsi::Await;
use manxdb_storage::StorageError;
use manxdb_txn::TxnError;

use super::clients::Clients;

/// How long the disk may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at how far it is, at first and at most.
const REST: (Duration, Duration) = (Duration::from_micros(50), Duration::from_millis(2));
const _: () = assert!(
    REST.0.as_nanos() < REST.1.as_nanos() && REST.1.as_nanos() < PATIENCE.as_nanos(),
    "looks become rarer, and there are several of them"
);

/// What is known of a commit whose way to the disk is not seen to its end.
const NOT_YET: &str = "it is in memory, and not on disk yet";

/// Waits until the disk has something. Any client looks, so that waiting takes nobody's turn.
pub(super) fn wait<F: Fabric + Send>(clients: &Clients<F>, wait: &Await) -> Result<(), TxnError> {
    let until = Instant::now() + PATIENCE;
    let mut rest = REST.0;
    loop {
        let looked = clients.with(|client, _| {
            let look = client.carrier_mut().run_while(wait.clone(), || false);
            let look = look.map_err(|why| TxnError::Unknown(why.to_string()))?;
            let look = look.transpose();
            look.map_err(|fault| TxnError::Unknown(fault.to_string()))
        });
        let looked = looked.map_err(|why| TxnError::Unknown(format!("{NOT_YET}: {why}")))?;
        if looked.is_some() {
            return Ok(());
        }
        if Instant::now() >= until {
            return Err(TxnError::Unknown(format!("{NOT_YET}: {}", why())));
        }
        thread::sleep(rest);
        rest = REST.1.min(2 * rest);
    }
}

/// Pauses before a commit is tried again that has found no room in its log, unless it has waited long
/// enough.
pub(super) fn may_try_again(until: Instant) -> Result<(), TxnError> {
    if Instant::now() >= until {
        return Err(StorageError::Full(why()).into());
    }
    thread::sleep(REST.1);
    Ok(())
}

fn why() -> String {
    let seconds = PATIENCE.as_secs();
    format!(
        "the log archiver of the memory servers has not written for {seconds} s what is committed (the disk \
         may be full; their logs say)"
    )
}
