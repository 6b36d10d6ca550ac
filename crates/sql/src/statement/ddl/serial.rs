//! SERIAL columns.

use sqlparser::ast::{self, ColumnOption, DataType as Ast};
use sqlparser::tokenizer::Token;

use super::define::NamedOption;

/// What SERIAL stands for, together with [`serial_options`].
pub(super) const SERIAL: Ast = Ast::BigIntUnsigned(None);

/// The options of a SERIAL column: BIGINT UNSIGNED NOT NULL AUTO_INCREMENT UNIQUE, and its own.
/// `None` for another type.
pub(super) fn serial_options(data_type: &Ast, options: &[NamedOption]) -> Option<Vec<NamedOption>> {
    let Ast::Custom(name, _) = data_type else {
        return None;
    };
    if !name.to_string().eq_ignore_ascii_case("SERIAL") {
        return None;
    }
    let automatic = ColumnOption::DialectSpecific(vec![Token::make_keyword("AUTO_INCREMENT")]);
    let unique = ColumnOption::Unique(ast::UniqueConstraint {
        name: None,
        index_name: None,
        index_type_display: ast::KeyOrIndexDisplay::None,
        index_type: None,
        columns: Vec::new(),
        index_options: Vec::new(),
        characteristics: None,
        nulls_distinct: ast::NullsDistinctOption::None,
        include: Vec::new(),
    });
    let implied = [ColumnOption::NotNull, automatic, unique];
    let mut all: Vec<NamedOption> = implied.map(|option| (None, option)).to_vec();
    all.extend_from_slice(options);
    Some(all)
}
