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
    /// As a number, for records: bit n is the n-th field.
    #[must_use]
    pub fn bits(self) -> u32 {
        [
            self.strict,
            self.no_zero_date,
            self.no_zero_in_date,
            self.error_for_division_by_zero,
            self.only_full_group_by,
            self.pipes_as_concat,
            self.ansi_quotes,
            self.no_backslash_escapes,
            self.like_without_escape,
            self.no_auto_value_on_zero,
            self.no_unsigned_subtraction,
            self.high_not_precedence,
            self.real_as_float,
            self.pad_char_to_full_length,
        ]
        .into_iter()
        .enumerate()
        .fold(0, |bits, (at, is_set)| bits | u32::from(is_set) << at)
    }

    /// Back from [`SqlMode::bits`].
    #[must_use]
    pub fn from_bits(bits: u32) -> Self {
        let is_set = |at: u32| bits >> at & 1 == 1;
        Self {
            strict: is_set(0),
            no_zero_date: is_set(1),
            no_zero_in_date: is_set(2),
            error_for_division_by_zero: is_set(3),
            only_full_group_by: is_set(4),
            pipes_as_concat: is_set(5),
            ansi_quotes: is_set(6),
            no_backslash_escapes: is_set(7),
            like_without_escape: is_set(8),
            no_auto_value_on_zero: is_set(9),
            no_unsigned_subtraction: is_set(10),
            high_not_precedence: is_set(11),
            real_as_float: is_set(12),
            pad_char_to_full_length: is_set(13),
        }
    }

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
