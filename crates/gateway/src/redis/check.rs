//! Whether the rows of a store make objects: `manxdb redis check`.
//!
//! Each key's row is read, and with it all its elements, into an object, as on the key's next use. Each element's
//! row must belong to its key's generation, or a row of garbage must say that nobody sees it.

use std::collections::BTreeSet;

use manxdb_redis::Keyspace;
use manxdb_redis::keyspace::{Load, rows};
use manxdb_storage::physical::hex;
use manxdb_storage::{Engine, StorageError};

use super::store::{each_page, get, open, value};

/// What a check found.
#[derive(Debug, Default)]
pub struct RowsReport {
    /// Keys.
    pub keys: u64,
    /// Rows of elements.
    pub elements: u64,
    /// What is wrong, a sentence each.
    pub findings: Vec<String>,
}

/// Checks all rows of Redis in `engine`, which nobody writes meanwhile.
///
/// # Errors
/// The store cannot be read.
pub fn check_rows(engine: &dyn Engine) -> Result<RowsReport, StorageError> {
    let mut report = RowsReport::default();
    let keyspace = open(engine)?;
    let mut names = Vec::new();
    each_page(engine, &rows::meta_prefix(), |page| {
        names.extend(page.into_iter().map(|(row, _)| row));
        true
    })?;
    for row in names {
        check_key(engine, &keyspace, row, &mut report)?;
    }
    check_elements(engine, &keyspace, &mut report)?;
    Ok(report)
}

fn shown(db: usize, key: &[u8]) -> String {
    let key = String::from_utf8_lossy(&key[..key.len().min(64)]);
    format!("key {key:?} of database {db}")
}

fn check_key(
    engine: &dyn Engine,
    keyspace: &Keyspace,
    row: Vec<u8>,
    report: &mut RowsReport,
) -> Result<(), StorageError> {
    let Some((db, epoch, key)) = rows::split_meta(&row) else {
        report
            .findings
            .push(format!("row {}: its key names no key of Redis", hex(&row)));
        return Ok(());
    };
    if keyspace.epoch(db) != epoch {
        return Ok(());
    }
    report.keys += 1;
    let name = shown(db, key);
    let loaded = value(engine, Load { row })?;
    let generation = loaded
        .meta
        .as_deref()
        .and_then(rows::decode_meta)
        .map(|entry| entry.generation);
    let Some(generation) = generation else {
        report
            .findings
            .push(format!("{name}: its row cannot be read"));
        return Ok(());
    };
    if generation > keyspace.reserved() {
        report.findings.push(format!(
            "{name}: its generation {generation} is beyond the last that is reserved, {}",
            keyspace.reserved()
        ));
    }
    let elements = loaded.elements.len();
    // An object of its own, which is dropped at once.
    let mut scratch = open(engine)?;
    if scratch.install(loaded).is_err() {
        report.findings.push(format!(
            "{name}: its {elements} rows of elements do not make the object that its row tells of"
        ));
    }
    Ok(())
}

fn check_elements(
    engine: &dyn Engine,
    keyspace: &Keyspace,
    report: &mut RowsReport,
) -> Result<(), StorageError> {
    let mut garbage = BTreeSet::new();
    each_page(engine, &rows::garbage_prefix(), |page| {
        garbage.extend(page.into_iter().map(|(row, _)| row));
        true
    })?;
    let is_garbage = |row: &[u8]| {
        garbage.iter().any(|name| {
            let prefix = rows::garbage_of(name);
            prefix.is_some_and(|prefix| row.starts_with(prefix))
        })
    };
    let mut failed = Ok(());
    // Whose rows were looked at last: rows of one key follow each other.
    let mut last: Option<Vec<u8>> = None;
    each_page(engine, &rows::element_space(), |page| {
        for (row, _) in page {
            let Some((db, epoch, key, generation)) = rows::split_element(&row) else {
                report
                    .findings
                    .push(format!("row {}: its key names no element", hex(&row)));
                continue;
            };
            let is_seen = keyspace.epoch(db) == epoch;
            report.elements += u64::from(is_seen);
            let prefix = rows::element_prefix(db, epoch, key, generation);
            if last.as_ref() == Some(&prefix) {
                continue;
            }
            last = Some(prefix);
            let meta = match get(engine, &rows::meta_key(db, epoch, key)) {
                Ok(meta) => meta,
                Err(error) => {
                    failed = Err(error);
                    return false;
                }
            };
            let owner = meta.as_deref().and_then(rows::decode_meta);
            let is_owned = owner.is_some_and(|entry| entry.generation == generation);
            let has_owner = is_owned && is_seen;
            if !has_owner && !is_garbage(&row) {
                report.findings.push(format!(
                    "{}: rows of its generation {generation} belong to no object, and no row of \
                     garbage names them",
                    shown(db, key)
                ));
            }
        }
        true
    })?;
    failed
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use manxdb_redis::server::{Server, Settings};
    use manxdb_redis::{Command, Stamp};
    use manxdb_storage::MemoryEngine;
    use manxdb_txn::{LocalOptions, LocalPath};

    use super::*;

    /// A list in rows, a small hash, a list that was deleted.
    fn store() -> (Arc<MemoryEngine>, LocalPath) {
        let engine = Arc::new(MemoryEngine::new());
        let path = LocalPath::open(engine.clone(), LocalOptions::default()).unwrap();
        let mut server = Server::new(open(engine.as_ref()).unwrap(), Settings::default(), 1);
        server.keyspace.complete();
        let client = server.connect("test".to_owned(), 1);
        let mut commands = vec![vec!["HSET".to_owned(), "h".into(), "f".into(), "v".into()]];
        for number in 0..300 {
            for list in ["kept", "gone"] {
                commands.push(vec!["RPUSH".into(), list.into(), format!("{number}")]);
            }
        }
        commands.push(vec!["DEL".into(), "gone".into()]);
        for words in commands {
            let handled = server.handle(client, &Command::of(&words), Stamp::new(1, 1));
            let mut rows = handled
                .effects
                .rows
                .into_iter()
                .map(|row| (row.key, row.value))
                .collect();
            let appended = path.append_rows(&mut rows).unwrap();
            path.sync_rows(&appended).unwrap();
        }
        (engine, path)
    }

    fn write(path: &LocalPath, row: Vec<u8>, value: Option<Vec<u8>>) {
        let appended = path.append_rows(&mut vec![(row, value)]).unwrap();
        path.sync_rows(&appended).unwrap();
    }

    #[test]
    fn rows_of_a_server_are_right_and_damaged_ones_are_found() {
        let (engine, path) = store();
        let report = check_rows(engine.as_ref()).unwrap();
        assert_eq!((report.keys, report.findings), (2, Vec::new()));
        assert!(report.elements >= 300, "{}", report.elements);

        let mut elements = Vec::new();
        each_page(engine.as_ref(), &rows::element_space(), |page| {
            elements.extend(page.into_iter().map(|(row, _)| row));
            true
        })
        .unwrap();
        let kept = elements
            .iter()
            .find(|row| rows::split_element(row).is_some_and(|(_, _, key, _)| key == b"kept"));
        write(&path, kept.unwrap().clone(), None);
        write(&path, rows::meta_key(0, 0, b"h"), Some(vec![9, 9]));
        write(
            &path,
            [&rows::element_prefix(0, 0, b"nobody", 7)[..], b"x"].concat(),
            Some(Vec::new()),
        );
        let findings = check_rows(engine.as_ref()).unwrap().findings.join("\n");
        for told in [
            "key \"h\" of database 0: its row cannot be read",
            "key \"kept\" of database 0: its 299 rows of elements do not make the object",
            "key \"nobody\" of database 0: rows of its generation 7 belong to no object",
        ] {
            assert!(findings.contains(told), "{findings}");
        }
        assert_eq!(findings.lines().count(), 3, "{findings}");
    }
}
