//! MySQL's dialect with the switches of `sql_mode`.

use std::any::TypeId;

use sqlparser::ast::{ColumnOption, Expr, Statement};
use sqlparser::dialect::{Dialect, MySqlDialect, Precedence};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::words::is_word;
use crate::types::SqlMode;

/// [`MySqlDialect`] under one `sql_mode`.
#[derive(Debug, Clone, Copy)]
pub(super) struct ModeDialect {
    pub(super) mode: SqlMode,
}

const MYSQL: MySqlDialect = MySqlDialect {};

/// Methods that answer as MySQL does.
macro_rules! as_mysql {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool { MYSQL.$name() })*
    };
}

impl Dialect for ModeDialect {
    fn dialect(&self) -> TypeId {
        TypeId::of::<MySqlDialect>()
    }

    fn is_identifier_start(&self, ch: char) -> bool {
        MYSQL.is_identifier_start(ch)
    }

    fn is_identifier_part(&self, ch: char) -> bool {
        MYSQL.is_identifier_part(ch)
    }

    fn is_delimited_identifier_start(&self, ch: char) -> bool {
        ch == '`' || (ch == '"' && self.mode.ansi_quotes)
    }

    fn identifier_quote_style(&self, identifier: &str) -> Option<char> {
        MYSQL.identifier_quote_style(identifier)
    }

    fn supports_string_literal_backslash_escape(&self) -> bool {
        !self.mode.no_backslash_escapes
    }

    fn supports_multiline_comment_hints(&self) -> bool {
        false
    }

    fn supports_bang_not_operator(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn supports_insert_table_alias(&self) -> bool {
        false
    }

    as_mysql!(
        supports_string_literal_concatenation,
        ignores_wildcard_escapes,
        supports_numeric_prefix,
        supports_bitwise_shift_operators,
        require_interval_qualifier,
        supports_limit_comma,
        supports_create_table_select,
        supports_insert_set,
        supports_user_host_grantee,
        supports_table_hints,
        requires_single_line_comment_whitespace,
        supports_match_against,
        supports_select_modifiers,
        supports_set_names,
        supports_comma_separated_set_assignments,
        supports_update_order_by,
        supports_data_type_signed_suffix,
        supports_cross_join_constraint,
        supports_double_ampersand_operator,
        supports_binary_kw_as_cast,
        supports_comment_optimizer_hint,
        supports_constraint_keyword_without_name,
        supports_key_column_option,
        supports_group_by_with_modifier,
        supports_left_associative_joins_without_parens,
    );

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if brackets_set_operation(parser) {
            return Some(bracketed_query(parser));
        }
        super::operator::prefix(parser, self.mode)
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        super::precedence::of_next(parser).map(Ok)
    }

    fn prec_value(&self, class: Precedence) -> u8 {
        super::precedence::level(class)
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        expr: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        super::operator::infix(parser, expr, self.mode)
            .or_else(|| MYSQL.parse_infix(parser, expr, precedence))
    }

    fn parse_statement(&self, parser: &mut Parser) -> Option<Result<Statement, ParserError>> {
        MYSQL.parse_statement(parser)
    }

    fn is_column_alias(&self, kw: &Keyword, parser: &mut Parser) -> bool {
        // Reserved in MySQL: behind a SELECT without FROM they begin a locking clause.
        !matches!(kw, Keyword::FOR | Keyword::LOCK) && MYSQL.is_column_alias(kw, parser)
    }

    fn is_table_factor_alias(&self, explicit: bool, kw: &Keyword, parser: &mut Parser) -> bool {
        MYSQL.is_table_factor_alias(explicit, kw, parser)
    }

    fn parse_column_option(
        &self,
        parser: &mut Parser,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        super::column::option(parser)
    }
}

fn bracketed_query(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.expect_token(&Token::LParen)?;
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Expr::Subquery(query))
}

/// Whether a scalar subquery whose first operand has brackets of its own comes next:
/// `((SELECT …) UNION …)`. Decided by looking for the second bracket's end, never by trying.
fn brackets_set_operation(parser: &Parser) -> bool {
    let token = |place: usize| parser.peek_nth_token_no_skip(place).token;
    if token(0) != Token::LParen || token(1) != Token::LParen {
        return false;
    }
    let mut place = 2;
    while token(place) == Token::LParen {
        place += 1;
    }
    let first = token(place);
    if !["SELECT", "WITH", "VALUES", "TABLE"]
        .iter()
        .any(|word| is_word(&first, word))
    {
        return false;
    }
    let mut depth = place - 1;
    while depth > 0 {
        place += 1;
        match token(place) {
            Token::LParen => depth += 1,
            Token::RParen => depth -= 1,
            Token::EOF => return false,
            _ => {}
        }
    }
    let behind = token(place + 1);
    ["UNION", "EXCEPT", "INTERSECT"]
        .iter()
        .any(|word| is_word(&behind, word))
}
