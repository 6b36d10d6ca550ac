//! What a scan uses of a row: at SERIALIZABLE a write of other columns does not end its reader.

use std::sync::Arc;

use jiff::tz::TimeZone;
use manxdb_txn::UsedPart;

use super::operator::Run;
use crate::catalog::Table;
use crate::encoding;
use crate::plan::physical::Scan;
use crate::types::Value;

/// The columns that a scan decodes: those shown, compared and computed with.
struct UsedColumns {
    table: Arc<Table>,
    wanted: Vec<bool>,
    zone: TimeZone,
}

impl UsedColumns {
    /// The used columns as they are, more exactly than `=` compares.
    fn of(&self, key: &[u8], record: &[u8]) -> Option<String> {
        let mut row = vec![Value::Null; self.table.columns.len()];
        let table = &self.table;
        let suffix = key.get(encoding::KEY_HEAD..)?;
        encoding::decode_columns(table, (suffix, record), &self.wanted, &self.zone, &mut row)
            .ok()?;
        Some(format!("{row:?}"))
    }
}

impl UsedPart for UsedColumns {
    fn same(&self, key: &[u8], old: &[u8], new: &[u8]) -> bool {
        match (self.of(key, old), self.of(key, new)) {
            (Some(old), Some(new)) => old == new,
            _ => false,
        }
    }
}

/// What `scan` uses of its rows, where validation will look at them.
pub(super) fn used_part(run: &Run<'_>, scan: &Scan) -> Option<Arc<dyn UsedPart>> {
    if run.mode.locks() || !run.txn().records(run.mode) || scan.key_slot.is_some() {
        return None;
    }
    Some(Arc::new(UsedColumns {
        table: Arc::clone(&scan.table),
        wanted: scan.wanted.clone(),
        zone: run.context.eval.time_zone.clone(),
    }))
}
