//! A process that dies at any commit, and at any change of its vault or audit, while it holds, releases,
//! forgets with grace, takes back, or goes on with what is due: after the restart all is as before or as after.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use manxdb_fixtures::sql::hooked::{Hooked, Hooks};
use manxdb_fixtures::sql::{Client, connect, instance_audited, instance_audited_over};
use manxdb_storage::{Engine, MemoryEngine, Version};
use manxdb_txn::{CommitPath, Intent, LocalOptions, LocalPath, Reply, TxnError};
use manxdb_vault::{Disk, MemoryDisk, Place};

use super::holds::{MASTER, SCHEMA};

/// Commits and changes of disks that a statement may take at most; each of ours takes fewer.
const STEPS_MAX: u32 = 400;

/// Steps that a process does before it dies.
#[derive(Clone)]
struct Life(Arc<AtomicU32>);

impl Life {
    fn new() -> Self {
        Self(Arc::new(AtomicU32::new(u32::MAX)))
    }

    fn set(&self, steps: u32) {
        self.0.store(steps, Ordering::SeqCst);
    }

    /// Takes a step, unless the process is dead.
    fn step(&self) -> bool {
        let next = |left: u32| left.checked_sub(1);
        let taken = self
            .0
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, next);
        taken.is_ok()
    }
}

impl Hooks for Life {
    fn submit(&self, path: &LocalPath, intent: Intent) -> Reply<Result<Version, TxnError>> {
        if self.step() {
            path.submit(intent)
        } else {
            Reply::Ready(Err(TxnError::Interrupted))
        }
    }
}

struct MortalDisk {
    disk: Arc<MemoryDisk>,
    life: Life,
}

impl MortalDisk {
    fn change(&self) -> std::io::Result<()> {
        let dead = || std::io::Error::other("dead");
        self.life.step().then_some(()).ok_or_else(dead)
    }
}

impl Disk for MortalDisk {
    fn length(&self, place: Place) -> std::io::Result<u64> {
        self.disk.length(place)
    }

    fn read(&self, place: Place, offset: u64, bytes: &mut [u8]) -> std::io::Result<usize> {
        self.disk.read(place, offset, bytes)
    }

    fn write(&self, place: Place, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.change()?;
        self.disk.write(place, offset, bytes)
    }

    fn sync(&self, place: Place) -> std::io::Result<()> {
        self.change()?;
        self.disk.sync(place)
    }
}

/// What is done while the process may die.
#[derive(Clone, Copy)]
enum Deed {
    Statement(&'static str),
    /// So many days later it goes on with what is due.
    Due(i64),
}

/// All that a client sees, but for times.
fn shown(client: &mut Client) -> Vec<String> {
    let tables = ["users", "orders", "invoices", "votes"];
    let mut shown: Vec<String> = tables
        .iter()
        .map(|table| {
            format!(
                "{table} {:?}",
                client.rows(&format!("SELECT * FROM d.{table}"))
            )
        })
        .collect();
    for list in ["SHOW GDPR HOLDS", "SHOW GDPR REQUESTS"] {
        for row in client.rows(list) {
            shown.push(format!("{list}: {}", row[..5].join(" ")));
        }
    }
    let audit = client.rows("SHOW GDPR AUDIT");
    assert!(audit.iter().all(|row| row[5] == "whole"), "{audit:?}");
    let fenced = client.try_run("INSERT INTO d.votes VALUES (9, 1)");
    shown.push(format!(
        "{:?}",
        fenced.map(|_| ()).map_err(|error| error.code)
    ));
    shown
}

/// Does `deed` behind `setup` in a process that dies after so many steps; whether it came to its end, and
/// what there is after a restart.
fn crashed(setup: &str, deed: Deed, steps: u32) -> (bool, Vec<String>) {
    let engine = Arc::new(MemoryEngine::new());
    let (keys, audit) = (Arc::<MemoryDisk>::default(), Arc::<MemoryDisk>::default());
    let life = Life::new();
    let mortal = |disk: &Arc<MemoryDisk>| {
        Arc::new(MortalDisk {
            disk: Arc::clone(disk),
            life: life.clone(),
        })
    };
    let path = LocalPath::open(
        Arc::clone(&engine) as Arc<dyn Engine>,
        LocalOptions::default(),
    )
    .expect("an empty path opens");
    let path = Arc::new(Hooked {
        path: Arc::new(path),
        hooks: life.clone(),
    });
    let path = path as Arc<dyn CommitPath>;
    let (instance, host) = instance_audited_over(path, mortal(&keys), mortal(&audit), MASTER);
    let mut client = connect(&instance, "root");
    client.run(SCHEMA);
    client.run("UPDATE invoices SET paid = '1990-01-01'");
    if !setup.is_empty() {
        client.run(setup);
    }
    life.set(steps);
    let ended = match deed {
        Deed::Statement(statement) => client.try_run(statement).is_ok(),
        Deed::Due(days) => {
            host.pass_days(days);
            instance.resume_requests().is_ok()
        }
    };
    life.set(0);
    drop((client, instance));

    let (instance, host) = instance_audited(engine, keys.clone(), audit.clone(), MASTER);
    if let Deed::Due(days) = deed {
        host.pass_days(days);
    }
    instance.resume_requests().expect("what is due goes on");
    assert_eq!(
        audit.bytes(Place::First),
        audit.bytes(Place::Mirror),
        "both places of the audit hold the same after a start"
    );
    (ended, shown(&mut connect(&instance, "root")))
}

/// Dies at each step of `deed`; what came before it is given by `setup`.
fn is_as_before_or_as_after(setup: &str, deed: Deed) {
    // Without the deed: what is due is not due yet.
    let before = crashed(setup, Deed::Statement("DO 1"), STEPS_MAX).1;
    let after = crashed(setup, deed, STEPS_MAX);
    assert!(after.0, "it takes at most {STEPS_MAX} steps");
    let after = after.1;
    assert_ne!(before, after, "it changes something");
    let mut steps = 0;
    loop {
        let (ended, found) = crashed(setup, deed, steps);
        assert!(
            found == after || !ended && found == before,
            "after {steps} steps, ended: {ended}: {found:#?}\nbefore: {before:#?}\nafter: {after:#?}"
        );
        if ended {
            break;
        }
        steps += 1;
    }
    assert!(
        steps > 4,
        "commits and two places of the audit: {steps} steps"
    );
}

const HOLD: &str = "GDPR HOLD users 1 ON votes REASON 'case'";
const GRACE: &str = "GDPR FORGET users 1 REASON 'mail' GRACE 3 DAY";

#[test]
fn a_crash_while_rows_are_held_and_released() {
    is_as_before_or_as_after("", Deed::Statement(HOLD));
    is_as_before_or_as_after(HOLD, Deed::Statement("GDPR RELEASE users 1"));
}

#[test]
fn a_crash_while_held_rows_are_put_off() {
    is_as_before_or_as_after(HOLD, Deed::Statement("GDPR FORGET users 1"));
}

#[test]
fn a_crash_while_what_was_put_off_goes_after_a_release() {
    let put_off = format!("{HOLD}; GDPR FORGET users 1");
    is_as_before_or_as_after(&put_off, Deed::Statement("GDPR RELEASE users 1"));
}

#[test]
fn a_crash_while_a_request_gets_its_grace_and_is_taken_back() {
    is_as_before_or_as_after("", Deed::Statement(GRACE));
    is_as_before_or_as_after(GRACE, Deed::Statement("GDPR UNDO users 1"));
}

#[test]
fn a_crash_while_a_request_in_grace_is_carried_out() {
    is_as_before_or_as_after(GRACE, Deed::Statement("GDPR FORGET users 1"));
}

#[test]
fn a_crash_while_what_is_due_goes() {
    // After the restart it is due still, so it goes.
    let after = crashed(GRACE, Deed::Due(4), STEPS_MAX);
    assert!(after.0, "it takes at most {STEPS_MAX} steps");
    let mut steps = 0;
    loop {
        let (ended, found) = crashed(GRACE, Deed::Due(4), steps);
        assert_eq!(found, after.1, "after {steps} steps");
        if ended {
            break;
        }
        steps += 1;
    }
    assert!(
        steps > 4,
        "commits and two places of the audit: {steps} steps"
    );
}
