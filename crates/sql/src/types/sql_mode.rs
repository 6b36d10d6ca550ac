//! The bits of `sql_mode` that parsing and evaluation depend on.

/// Bits of `sql_mode` that change evaluation.
#[allow(clippy::struct_excessive_bools, reason = "independent flags")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SqlMode {
    /// `STRICT_TRANS_TABLES` or `STRICT_ALL_TABLES`.
    pub strict: bool,
    /// `NO_ZERO_DATE`.
    pub no_zero_date: bool,
    /// `NO_ZERO_IN_DATE`.
    pub no_zero_in_date: bool,
    /// `ERROR_FOR_DIVISION_BY_ZERO`.
    pub error_for_division_by_zero: bool,
    /// `ONLY_FULL_GROUP_BY`.
    pub only_full_group_by: bool,
    /// `PIPES_AS_CONCAT`.
    pub pipes_as_concat: bool,
    /// `ANSI_QUOTES`.
    pub ansi_quotes: bool,
    /// `NO_BACKSLASH_ESCAPES`: backslashes in quotes are themselves.
    pub no_backslash_escapes: bool,
    /// `NO_BACKSLASH_ESCAPES` as LIKE has it: without ESCAPE no character escapes. Apart, because
    /// stored expressions are read without escapes whatever the mode they were written in.
    pub like_without_escape: bool,
    /// `NO_AUTO_VALUE_ON_ZERO`.
    pub no_auto_value_on_zero: bool,
    /// `NO_UNSIGNED_SUBTRACTION`.
    pub no_unsigned_subtraction: bool,
    /// `HIGH_NOT_PRECEDENCE`.
    pub high_not_precedence: bool,
    /// `REAL_AS_FLOAT`.
    pub real_as_float: bool,
    /// `PAD_CHAR_TO_FULL_LENGTH`.
    pub pad_char_to_full_length: bool,
}

impl SqlMode {
    /// The mode the text of a view is read in: whatever else holds in the session, text is parsed
    /// as it is by default.
    #[must_use]
    pub fn of_view_text(self) -> Self {
        Self {
            pipes_as_concat: false,
            ansi_quotes: false,
            no_backslash_escapes: false,
            like_without_escape: false,
            high_not_precedence: false,
            real_as_float: false,
            ..self
        }
    }
}
