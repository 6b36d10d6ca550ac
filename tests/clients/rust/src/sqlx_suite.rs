//! sqlx: migrations, prepared statements, transactions.

use sqlx::mysql::{
    MySqlConnectOptions, MySqlDatabaseError, MySqlPool, MySqlPoolOptions, MySqlSslMode,
};
use sqlx::{ConnectOptions, Connection, Row};

use crate::{Outcome, check, database, is_mariadb, url, want, want_number};

/// Error number of a failed sqlx call.
fn number<T>(result: &Result<T, sqlx::Error>) -> Option<u16> {
    match result {
        Err(sqlx::Error::Database(error)) => error
            .try_downcast_ref::<MySqlDatabaseError>()
            .map(MySqlDatabaseError::number),
        _ => None,
    }
}

/// All checks with sqlx.
pub async fn run() {
    check("sqlx: create the database", create()).await;
    let pool = MySqlPoolOptions::new()
        .max_connections(4)
        .connect(&url(&database()))
        .await;
    let pool = match pool {
        Ok(pool) => pool,
        Err(error) => return check("sqlx: connect", async { Err(error.into()) }).await,
    };
    check("sqlx: log in without TLS", without_tls()).await;
    check("sqlx: migrate twice", migrate(&pool)).await;
    check("sqlx: write and read", write_and_read(&pool)).await;
    check("sqlx: transactions", transactions(&pool)).await;
    check("sqlx: errors", errors(&pool)).await;
    check("sqlx: a conflict loses no update", conflict(&pool)).await;
    check("sqlx: time-outs", time_outs(&pool)).await;
    pool.close().await;
}

async fn create() -> Outcome {
    let mut connection = sqlx::MySqlConnection::connect(&url("")).await?;
    let name = database();
    sqlx::raw_sql(&format!("DROP DATABASE IF EXISTS {name}"))
        .execute(&mut connection)
        .await?;
    sqlx::raw_sql(&format!("CREATE DATABASE {name}"))
        .execute(&mut connection)
        .await?;
    connection.ping().await?;
    connection.close().await?;
    Ok(())
}

/// sqlx's scramble is not the one the server can check: its password goes through RSA.
async fn without_tls() -> Outcome {
    let plain: MySqlConnectOptions = url("").parse()?;
    let plain = plain.ssl_mode(MySqlSslMode::Disabled);
    let mut connection = plain.connect().await?;
    let row: (String, String) = sqlx::query_as("SHOW STATUS LIKE 'Ssl_version'")
        .fetch_one(&mut connection)
        .await?;
    want("Ssl_version", row.1.as_str(), "")?;
    connection.close().await?;
    let wrong = plain.password("not it").connect().await;
    want_number("a wrong password", number(&wrong), &[1045])
}

async fn migrate(pool: &MySqlPool) -> Outcome {
    // Read at run time: sqlx's macros would be a quarter of what this program compiles.
    let migrations = sqlx::migrate::Migrator::new(std::path::Path::new("migrations")).await?;
    migrations.run(pool).await?;
    migrations.run(pool).await?;
    let count: i64 =
        sqlx::query_scalar("SELECT COUNT(*) FROM _sqlx_migrations WHERE success = TRUE")
            .fetch_one(pool)
            .await?;
    want("migrations", count, 2)
}

async fn write_and_read(pool: &MySqlPool) -> Outcome {
    let result = sqlx::query("INSERT INTO planet (name, mass) VALUES (?, ?), (?, ?)")
        .bind("Earth")
        .bind(5_972_i64)
        .bind("Mars 🪐")
        .bind(641_i64)
        .execute(pool)
        .await?;
    want("rows", result.rows_affected(), 2)?;
    want("id", result.last_insert_id(), 1)?;
    sqlx::query("INSERT INTO moon (planet_id, name, radius, photo, seen) VALUES (?, ?, ?, ?, ?)")
        .bind(1_u64)
        .bind("Luna")
        .bind(1737.4_f64)
        .bind(vec![0_u8, 255])
        .bind(true)
        .execute(pool)
        .await?;
    let row = sqlx::query(
        "SELECT m.id, p.name AS planet, m.radius, m.photo, m.seen, p.id AS planet_id \
         FROM moon m JOIN planet p ON p.id = m.planet_id WHERE m.name = ?",
    )
    .bind("Luna")
    .fetch_one(pool)
    .await?;
    want("id", row.try_get::<i32, _>("id")?, 1)?;
    want(
        "planet",
        row.try_get::<String, _>("planet")?,
        "Earth".to_owned(),
    )?;
    want(
        "radius",
        row.try_get::<Option<f64>, _>("radius")?,
        Some(1737.4),
    )?;
    want("photo", row.try_get::<Vec<u8>, _>("photo")?, vec![0, 255])?;
    want("seen", row.try_get::<bool, _>("seen")?, true)?;
    want("planet_id", row.try_get::<u64, _>("planet_id")?, 1)?;
    let names: Vec<(String,)> =
        sqlx::query_as("SELECT name FROM planet WHERE mass > ? ORDER BY mass DESC")
            .bind(0_i64)
            .fetch_all(pool)
            .await?;
    want(
        "names",
        names,
        vec![("Earth".to_owned(),), ("Mars 🪐".to_owned(),)],
    )
}

async fn transactions(pool: &MySqlPool) -> Outcome {
    let mut transaction = pool.begin().await?;
    sqlx::query("INSERT INTO planet (name) VALUES ('Venus')")
        .execute(&mut *transaction)
        .await?;
    let mut nested = transaction.begin().await?;
    sqlx::query("INSERT INTO planet (name) VALUES ('Vulcan')")
        .execute(&mut *nested)
        .await?;
    nested.rollback().await?;
    transaction.commit().await?;
    let mut dropped = pool.begin().await?;
    sqlx::query("DELETE FROM moon")
        .execute(&mut *dropped)
        .await?;
    drop(dropped);
    let planets: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM planet")
        .fetch_one(pool)
        .await?;
    let moons: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM moon")
        .fetch_one(pool)
        .await?;
    want("planets and moons", (planets, moons), (3, 1))
}

async fn errors(pool: &MySqlPool) -> Outcome {
    let duplicate = sqlx::query("INSERT INTO planet (name) VALUES (?)")
        .bind("Earth")
        .execute(pool)
        .await;
    want_number("duplicate", number(&duplicate), &[1062])?;
    let unique = duplicate
        .err()
        .and_then(|error| error.into_database_error())
        .is_some_and(|e| e.is_unique_violation());
    want("unique violation", unique, true)?;
    let orphan = sqlx::query("INSERT INTO moon (planet_id, name) VALUES (99, 'x')")
        .execute(pool)
        .await;
    want_number("orphan", number(&orphan), &[1452])?;
    let parent = sqlx::query("DELETE FROM planet WHERE name = 'Earth'")
        .execute(pool)
        .await;
    want_number("parent", number(&parent), &[1451])?;
    let syntax = sqlx::query("SELEKT ?").bind(1).execute(pool).await;
    want_number("syntax", number(&syntax), &[1064])?;
    let missing = sqlx::query("SELECT * FROM nothing").execute(pool).await;
    want_number("missing table", number(&missing), &[1146])
}

async fn add_one(pool: &MySqlPool) -> Result<(), sqlx::Error> {
    let mut connection = pool.acquire().await?;
    sqlx::raw_sql("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE")
        .execute(&mut *connection)
        .await?;
    let mut transaction = connection.begin().await?;
    let mass: i64 = sqlx::query_scalar("SELECT mass FROM planet WHERE id = 1")
        .fetch_one(&mut *transaction)
        .await?;
    sqlx::query("UPDATE planet SET mass = ? WHERE id = 1")
        .bind(mass + 1)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await
}

async fn conflict(pool: &MySqlPool) -> Outcome {
    sqlx::query("UPDATE planet SET mass = 0 WHERE id = 1")
        .execute(pool)
        .await?;
    let mut done = 0;
    for _ in 0..10 {
        let (first, second) = tokio::join!(add_one(pool), add_one(pool));
        for result in [first, second] {
            match number(&result) {
                None => {
                    result?;
                    done += 1;
                }
                other => want_number("conflict", other, &[1213, 1205])?,
            }
        }
    }
    let mass: i64 = sqlx::query_scalar("SELECT mass FROM planet WHERE id = 1")
        .fetch_one(pool)
        .await?;
    want("mass", mass, done)?;
    want("progress", done >= 10, true)
}

async fn time_outs(pool: &MySqlPool) -> Outcome {
    let mut holder = pool.begin().await?;
    sqlx::query("SELECT id FROM planet WHERE id = 1 FOR UPDATE")
        .execute(&mut *holder)
        .await?;
    let mut waiter = pool.acquire().await?;
    sqlx::raw_sql("SET SESSION innodb_lock_wait_timeout = 1")
        .execute(&mut *waiter)
        .await?;
    let late = sqlx::query("UPDATE planet SET mass = 1 WHERE id = 1")
        .execute(&mut *waiter)
        .await;
    want_number("lock wait", number(&late), &[1205])?;
    if !is_mariadb() {
        sqlx::raw_sql("SET SESSION max_execution_time = 100")
            .execute(&mut *waiter)
            .await?;
        let slow = sqlx::query("SELECT COUNT(*) FROM planet WHERE SLEEP(5) = 0")
            .execute(&mut *waiter)
            .await;
        want_number("statement", number(&slow), &[3024])?;
    }
    holder.rollback().await?;
    Ok(())
}
