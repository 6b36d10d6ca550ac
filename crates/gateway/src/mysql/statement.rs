//! What the frontend remembers of a prepared statement, beside the session's plan.

use std::collections::BTreeMap;

use super::params::ParamType;
use super::sink::CursorRows;

/// Long data of all parameters of one statement may take this much, in multiples of
/// `max_allowed_packet`.
const LONG_DATA_PACKETS_MAX: usize = 4;

/// A prepared statement as its client sees it.
#[derive(Debug, Default)]
pub struct FrontendStatement {
    /// Number of `?`.
    pub param_count: usize,
    /// Types bound by the last execution that bound any.
    pub types: Vec<ParamType>,
    /// Parameters sent in pieces.
    pub long_data: BTreeMap<u16, Vec<u8>>,
    /// A piece was refused; COM_STMT_SEND_LONG_DATA has no answer, so EXECUTE tells.
    pub long_data_refused: bool,
    /// Rows waiting for COM_STMT_FETCH.
    pub cursor: Option<CursorRows>,
}

impl FrontendStatement {
    /// A statement with `param_count` parameters.
    #[must_use]
    pub fn new(param_count: usize) -> Self {
        Self {
            param_count,
            ..Self::default()
        }
    }

    /// Appends a piece of parameter `index`.
    pub fn append_long_data(&mut self, index: u16, piece: &[u8], max_allowed_packet: usize) {
        let held: usize = self.long_data.values().map(Vec::len).sum();
        let limit = max_allowed_packet.saturating_mul(LONG_DATA_PACKETS_MAX);
        if usize::from(index) >= self.param_count || held + piece.len() > limit {
            self.long_data_refused = true;
            return;
        }
        self.long_data
            .entry(index)
            .or_default()
            .extend_from_slice(piece);
    }

    /// COM_STMT_RESET: drops long data and the cursor.
    pub fn reset(&mut self) {
        self.long_data.clear();
        self.long_data_refused = false;
        self.cursor = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_add_up_until_the_limit() {
        let mut statement = FrontendStatement::new(1);
        statement.append_long_data(0, b"ab", 1);
        statement.append_long_data(0, b"cd", 1);
        assert_eq!(statement.long_data[&0], b"abcd");
        statement.append_long_data(0, b"e", 1);
        assert!(statement.long_data_refused);
    }

    #[test]
    fn a_piece_for_a_parameter_that_does_not_exist_is_refused() {
        let mut statement = FrontendStatement::new(1);
        statement.append_long_data(1, b"x", 1 << 20);
        assert!(statement.long_data_refused);
        statement.reset();
        assert!(!statement.long_data_refused && statement.long_data.is_empty());
    }
}
