//! mysql_async: what the Lobsters workload connects with.

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Pool, Row, TxOpts, Value, params};

use crate::{Outcome, check, database, is_mariadb, url, want, want_number};

/// Error number of a failed call.
fn number<T>(result: &Result<T, mysql_async::Error>) -> Option<u16> {
    match result {
        Err(mysql_async::Error::Server(error)) => Some(error.code),
        _ => None,
    }
}

/// All checks with mysql_async.
pub async fn run() {
    // The pool follows @@socket as any program of its users would.
    let pool = match Opts::from_url(&url(&database())) {
        Ok(options) => Pool::new(options),
        Err(error) => return check("mysql_async: address", async { Err(error.into()) }).await,
    };
    check("mysql_async: migrate", migrate(&pool)).await;
    check("mysql_async: write and read", write_and_read(&pool)).await;
    check(
        "mysql_async: transactions and savepoints",
        transactions(&pool),
    )
    .await;
    check("mysql_async: errors", errors(&pool)).await;
    check("mysql_async: a conflict loses no update", conflict(&pool)).await;
    check("mysql_async: time-outs", time_outs(&pool)).await;
    check(
        "mysql_async: reset, ping and several results",
        connection_commands(&pool),
    )
    .await;
    let _ = pool.disconnect().await;
}

async fn migrate(pool: &Pool) -> Outcome {
    let mut link = pool.get_conn().await?;
    link.query_drop(
        "CREATE TABLE river (id INT AUTO_INCREMENT PRIMARY KEY, name VARCHAR(40) NOT NULL UNIQUE, km INT);
         CREATE TABLE bridge (id INT AUTO_INCREMENT PRIMARY KEY, river_id INT NOT NULL,
            built DATETIME(6), note TEXT, FOREIGN KEY (river_id) REFERENCES river (id) ON DELETE CASCADE)",
    )
    .await?;
    let tables: Vec<String> = link.query("SHOW TABLES LIKE '%ri%'").await?;
    want(
        "tables",
        tables,
        vec!["bridge".to_owned(), "river".to_owned()],
    )
}

async fn write_and_read(pool: &Pool) -> Outcome {
    let mut link = pool.get_conn().await?;
    link.exec_batch(
        "INSERT INTO river (name, km) VALUES (:name, :km)",
        [("Elbe", Some(1094)), ("Vltava", Some(430)), ("Styx", None)]
            .into_iter()
            .map(|(name, km)| params! { "name" => name, "km" => km }),
    )
    .await?;
    want("last id", link.last_insert_id(), Some(3))?;
    let rows: Vec<(i32, String, Option<i32>)> = link
        .exec(
            "SELECT id, name, km FROM river WHERE km > ? OR km IS NULL ORDER BY id",
            (500,),
        )
        .await?;
    want(
        "rows",
        rows,
        vec![(1, "Elbe".into(), Some(1094)), (3, "Styx".into(), None)],
    )?;
    link.exec_drop(
        "INSERT INTO bridge (river_id, built, note) VALUES (?, ?, ?)",
        (2, Value::Date(1357, 7, 9, 5, 31, 0, 250_000), "stone 🌉"),
    )
    .await?;
    let row: Option<Row> = link
        .exec_first("SELECT built, note FROM bridge WHERE river_id = ?", (2,))
        .await?;
    let row = row.ok_or("no bridge")?;
    want(
        "built",
        row.get(0),
        Some(Value::Date(1357, 7, 9, 5, 31, 0, 250_000)),
    )?;
    want("note", row.get(1), Some("stone 🌉".to_owned()))
}

async fn transactions(pool: &Pool) -> Outcome {
    let mut link = pool.get_conn().await?;
    let mut transaction = link.start_transaction(TxOpts::default()).await?;
    transaction
        .query_drop("INSERT INTO river (name) VALUES ('Kept')")
        .await?;
    transaction.query_drop("SAVEPOINT half").await?;
    transaction.query_drop("DELETE FROM river").await?;
    transaction.query_drop("ROLLBACK TO half").await?;
    transaction.commit().await?;
    let mut transaction = link.start_transaction(TxOpts::default()).await?;
    transaction
        .query_drop("DELETE FROM river WHERE name = 'Vltava'")
        .await?;
    let left: Option<i64> = transaction
        .query_first("SELECT COUNT(*) FROM bridge")
        .await?;
    want("cascade", left, Some(0))?;
    transaction.rollback().await?;
    let count: Option<(i64, i64)> = link
        .query_first("SELECT (SELECT COUNT(*) FROM river), (SELECT COUNT(*) FROM bridge)")
        .await?;
    want("rows", count, Some((4, 1)))
}

async fn errors(pool: &Pool) -> Outcome {
    let mut link = pool.get_conn().await?;
    let duplicate = link
        .exec_drop("INSERT INTO river (name) VALUES (?)", ("Elbe",))
        .await;
    want_number("duplicate", number(&duplicate), &[1062])?;
    let orphan = link
        .exec_drop("INSERT INTO bridge (river_id) VALUES (?)", (99,))
        .await;
    want_number("orphan", number(&orphan), &[1452])?;
    want_number("syntax", number(&link.query_drop("SELEKT").await), &[1064])?;
    want_number(
        "prepared syntax",
        number(&link.prep("SELEKT ?").await),
        &[1064],
    )?;
    link.query_drop("DO 0").await?;
    Ok(())
}

async fn add_one(link: &mut Conn) -> Result<(), mysql_async::Error> {
    let mut options = TxOpts::default();
    options.with_isolation_level(mysql_async::IsolationLevel::Serializable);
    let mut transaction = link.start_transaction(options).await?;
    let km: Option<i64> = transaction
        .exec_first("SELECT km FROM river WHERE id = ?", (1,))
        .await?;
    transaction
        .exec_drop(
            "UPDATE river SET km = ? WHERE id = ?",
            (km.unwrap_or(0) + 1, 1),
        )
        .await?;
    transaction.commit().await
}

async fn conflict(pool: &Pool) -> Outcome {
    let (mut first, mut second) = (pool.get_conn().await?, pool.get_conn().await?);
    first
        .query_drop("UPDATE river SET km = 0 WHERE id = 1")
        .await?;
    let mut done = 0;
    for _ in 0..10 {
        let (one, two) = tokio::join!(add_one(&mut first), add_one(&mut second));
        for result in [one, two] {
            match number(&result) {
                None => {
                    result?;
                    done += 1;
                }
                other => want_number("conflict", other, &[1213, 1205])?,
            }
        }
    }
    let km: Option<i64> = first
        .query_first("SELECT km FROM river WHERE id = 1")
        .await?;
    want("km", km, Some(done))?;
    want("progress", done >= 10, true)
}

async fn time_outs(pool: &Pool) -> Outcome {
    let (mut holder, mut waiter) = (pool.get_conn().await?, pool.get_conn().await?);
    let mut transaction = holder.start_transaction(TxOpts::default()).await?;
    transaction
        .query_drop("SELECT * FROM river WHERE id = 1 FOR UPDATE")
        .await?;
    waiter
        .query_drop("SET SESSION innodb_lock_wait_timeout = 1")
        .await?;
    let late = waiter
        .query_drop("UPDATE river SET km = 1 WHERE id = 1")
        .await;
    want_number("lock wait", number(&late), &[1205])?;
    if !is_mariadb() {
        waiter
            .query_drop("SET SESSION max_execution_time = 100")
            .await?;
        let slow = waiter
            .query_drop("SELECT COUNT(*) FROM river WHERE SLEEP(5) = 0")
            .await;
        want_number("statement", number(&slow), &[3024])?;
    }
    transaction.rollback().await?;
    Ok(())
}

async fn connection_commands(pool: &Pool) -> Outcome {
    let mut link = pool.get_conn().await?;
    link.query_drop("SET @kept = 1").await?;
    link.ping().await?;
    link.reset().await?;
    let kept: Option<Option<i64>> = link.query_first("SELECT @kept").await?;
    want("user variable after reset", kept, Some(None))?;
    let mut result = link.query_iter("SELECT 1; SELECT 2, 3").await?;
    let first: Vec<i64> = result.collect().await?;
    let second: Vec<(i64, i64)> = result.collect().await?;
    drop(result);
    want("first", first, vec![1])?;
    want("second", second, vec![(2, 3)])
}
