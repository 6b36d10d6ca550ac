//! Tables whose rows are computed when they are read.

use std::sync::Arc;

use super::Table;
use crate::error::SqlResult;
use crate::types::{Collation, DataType, Row, TextSize};

/// Tables whose rows are computed: `information_schema`, `performance_schema`, mysql.
pub trait VirtualTables {
    /// Shape of `database.name`; every name that is not stored, in any case.
    fn table(&self, database: &str, name: &str) -> Option<Arc<Table>>;
    /// Its rows, as the session may see them.
    ///
    /// # Errors
    /// Whatever computing them meets.
    fn rows(&self, database: &str, name: &str) -> SqlResult<Vec<Row>>;
    /// Type of `@@name`, for result metadata; text unless the session knows better.
    fn variable_type(&self, name: &str, collation: Collation) -> DataType {
        let _ = name;
        DataType::Text {
            size: TextSize::Normal,
            collation,
        }
    }
    /// Type of `@name` where it is read: that of its value when the statement is bound, and text where it has
    /// none.
    fn user_variable_type(&self, name: &str, collation: Collation) -> DataType {
        let _ = name;
        DataType::Text {
            size: TextSize::Long,
            collation,
        }
    }
}

/// No computed tables: materialized views read stored ones.
pub(crate) struct NoTables;

impl VirtualTables for NoTables {
    fn table(&self, _database: &str, _name: &str) -> Option<Arc<Table>> {
        None
    }

    fn rows(&self, _database: &str, _name: &str) -> SqlResult<Vec<Row>> {
        Ok(Vec::new())
    }
}
