//! Rust's clients end to end: sqlx and mysql_async. Prints PASS or FAIL for each check.

mod asynchronous;
mod sqlx_suite;

use std::error::Error;
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a check answers.
pub type Outcome = Result<(), Box<dyn Error>>;

static FAILED: AtomicBool = AtomicBool::new(false);

/// Address of the server from the environment: `mysql://user:password@host:port/database`.
pub fn url(database: &str) -> String {
    let get = |name: &str, fallback: &str| {
        std::env::var(format!("MANXDB_TEST_{name}")).unwrap_or_else(|_| fallback.to_owned())
    };
    format!(
        "mysql://{}:{}@{}:{}/{database}",
        get("USER", "root"),
        get("PASSWORD", ""),
        get("HOST", "127.0.0.1"),
        get("PORT", "3306"),
    )
}

/// Name of the database the suite makes.
pub fn database() -> String {
    std::env::var("MANXDB_TEST_DATABASE").unwrap_or_else(|_| "manx_test".to_owned())
}

/// Whether the server is MariaDB (the suite checks itself).
pub fn is_mariadb() -> bool {
    std::env::var("MANXDB_TEST_SERVER").is_ok_and(|name| name == "mariadb")
}

/// Runs one check and prints its line.
pub async fn check(name: &str, run: impl Future<Output = Outcome>) {
    match run.await {
        Ok(()) => println!("PASS {name}"),
        Err(error) => {
            FAILED.store(true, Ordering::Relaxed);
            let text: Vec<_> = error
                .to_string()
                .split_whitespace()
                .map(str::to_owned)
                .collect();
            println!("FAIL {name}: {}", text.join(" "));
        }
    }
}

/// Fails unless both are equal.
pub fn want<T: PartialEq + std::fmt::Debug>(what: &str, got: T, wanted: T) -> Outcome {
    if got == wanted {
        return Ok(());
    }
    Err(format!("{what}: got {got:?}, wanted {wanted:?}").into())
}

/// Fails unless `got` is one of the error numbers.
pub fn want_number(what: &str, got: Option<u16>, wanted: &[u16]) -> Outcome {
    match got {
        Some(number) if wanted.contains(&number) => Ok(()),
        other => Err(format!("{what}: got error {other:?}, wanted {wanted:?}").into()),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    sqlx_suite::run().await;
    asynchronous::run().await;
    if FAILED.load(Ordering::Relaxed) {
        std::process::exit(1);
    }
}
