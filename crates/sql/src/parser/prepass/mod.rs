//! Token rewriting: what `sqlparser` has no word for is lifted out or put in words it knows.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::dialect::ModeDialect;
use super::words::is_word;
use super::{Parsed, message};
use crate::catalog::OwnershipAnnotation;
use crate::error::{SqlError, SqlResult};
use crate::expr::SqlMode;

type Tokens = Vec<TokenWithSpan>;

/// `?` in the statement.
pub(super) fn count_params(tokens: &[TokenWithSpan]) -> usize {
    tokens
        .iter()
        .filter(|token| matches!(token.token, Token::Placeholder(_)))
        .count()
}

/// Numbers `?`, gives `||` its meaning under the mode, makes double-quoted text plain text,
/// joins `@` with a quoted name, and keeps the tree shallow.
pub(super) fn operators(tokens: Tokens, mode: SqlMode) -> SqlResult<Tokens> {
    let mut out: Tokens = Vec::with_capacity(tokens.len());
    let mut params = 0;
    for mut token in tokens {
        match &token.token {
            Token::Placeholder(_) => {
                token.token = Token::Placeholder(format!("?{params}"));
                params += 1;
            }
            Token::StringConcat if !mode.pipes_as_concat => {
                token.token = keyword("OR", Keyword::OR);
            }
            Token::DoubleQuotedString(text) => {
                token.token = Token::SingleQuotedString(text.clone());
            }
            Token::Word(word) => {
                if let Some(bits) = bits_of_word(word, out.last()) {
                    token.token = Token::SingleQuotedByteStringLiteral(bits.to_owned());
                }
            }
            _ => {}
        }
        if joins_variable(out.last(), &token)
            && let (Some(last), Some(text)) = (out.last_mut(), text_of(&token.token))
        {
            let name = format!("@{text}");
            last.token = Token::make_word(&name, None);
            last.span.end = token.span.end;
            continue;
        }
        out.push(token);
    }
    let out = super::depth::balance(out);
    super::depth::check(&out)?;
    Ok(out)
}

/// The digits of `0b101`, which is read as a name; a small `b` only, and no name behind a point.
fn bits_of_word<'a>(word: &'a Word, last: Option<&TokenWithSpan>) -> Option<&'a str> {
    let digits = word.value.strip_prefix("0b")?;
    let is_name =
        word.quote_style.is_some() || last.is_some_and(|last| last.token == Token::Period);
    let are_bits = !digits.is_empty() && digits.bytes().all(|digit| matches!(digit, b'0' | b'1'));
    (are_bits && !is_name).then_some(digits)
}

fn keyword(text: &str, keyword: Keyword) -> Token {
    Token::Word(Word {
        value: text.into(),
        quote_style: None,
        keyword,
    })
}

/// A lone `@` directly before a quoted name.
fn joins_variable(last: Option<&TokenWithSpan>, token: &TokenWithSpan) -> bool {
    let Some(last) = last else { return false };
    let quoted = match &token.token {
        Token::SingleQuotedString(_) => true,
        Token::Word(word) => word.quote_style.is_some(),
        _ => false,
    };
    quoted
        && last.span.end == token.span.start
        && match &last.token {
            Token::AtSign => true,
            Token::Word(word) => word.value == "@",
            _ => false,
        }
}

fn text_of(token: &Token) -> Option<String> {
    match token {
        Token::SingleQuotedString(text) => Some(text.clone()),
        Token::Word(word) => Some(word.value.clone()),
        _ => None,
    }
}

/// How many tokens before the statement that is explained: `EXPLAIN FORMAT = TREE` and its kin;
/// 0 where nothing is explained.
pub(super) fn explain_length(tokens: &[TokenWithSpan]) -> usize {
    let is = |at: usize, words: &[&str]| {
        let token = tokens.get(at).map(|t| &t.token);
        token.is_some_and(|token| words.iter().any(|word| is_word(token, word)))
    };
    if !is(0, &["EXPLAIN", "DESCRIBE", "DESC"]) {
        return 0;
    }
    let mut at = 1;
    if is(at, &["ANALYZE"]) {
        at += 1;
    }
    if is(at, &["FORMAT"]) && tokens.get(at + 1).is_some_and(|t| t.token == Token::Eq) {
        at += 3;
    }
    let explains = is(
        at,
        &["SELECT", "WITH", "INSERT", "REPLACE", "UPDATE", "DELETE"],
    );
    if explains { at } else { 0 }
}

/// Lifts out what belongs beside the tree, by kind of statement.
pub(super) fn lift(
    dialect: &ModeDialect,
    tokens: Tokens,
    parsed: &mut Parsed,
) -> SqlResult<Tokens> {
    if explain_length(&tokens) > 0 {
        let mut tokens = without_default_format(tokens);
        let inner = tokens.split_off(explain_length(&tokens));
        tokens.extend(lift(dialect, inner, parsed)?);
        return Ok(tokens);
    }
    let at = |index: usize, word: &str| tokens.get(index).is_some_and(|t| is_word(&t.token, word));
    if at(0, "CREATE") {
        let table = (1..4).find(|index| at(*index, "TABLE"));
        let view = (1..16).find(|index| at(*index, "VIEW"));
        let index = (1..4).find(|index| at(*index, "INDEX"));
        return match (table, view, index) {
            (Some(_), _, _) => create_table(dialect, tokens, parsed),
            (None, Some(view), _) => create_view(dialect, tokens, view, parsed),
            (None, None, Some(_)) => create_index(tokens),
            _ => Ok(tokens),
        };
    }
    if at(0, "ALTER") {
        let view = (1..16).find(|index| at(*index, "VIEW"));
        return match view {
            Some(view) => create_view(dialect, tokens, view, parsed),
            None => Ok(tokens),
        };
    }
    if at(0, "DROP") && at(1, "INDEX") {
        return Ok(without_algorithm(tokens));
    }
    if at(0, "UPDATE") || at(0, "DELETE") {
        return Ok(modifiers(tokens, parsed));
    }
    if at(0, "INSERT") {
        return Ok(new_row_values(tokens));
    }
    if at(0, "SELECT") || at(0, "WITH") {
        return into_variables(tokens, parsed);
    }
    if at(0, "EXPLAIN") || at(0, "DESCRIBE") || at(0, "DESC") {
        return Ok(without_default_format(tokens));
    }
    Ok(tokens)
}

/// Annotations, FULLTEXT refused, options behind the bracket.
fn create_table(dialect: &ModeDialect, tokens: Tokens, parsed: &mut Parsed) -> SqlResult<Tokens> {
    let tokens = annotations(tokens, parsed);
    let Some(close) = closing_bracket(&tokens) else {
        return Ok(tokens);
    };
    refuse_special_indexes(&tokens[..close])?;
    let mut parser = Parser::new(dialect).with_tokens_with_locations(tokens[close + 1..].to_vec());
    let mut taken = 0;
    loop {
        let option = super::alter::option(&mut parser)
            .map_err(|error| message::from_parser(&error, &parsed.text))?;
        let Some(option) = option else { break };
        parsed.table_options.push(option);
        taken = parser.index();
        let _ = parser.consume_token(&Token::Comma);
    }
    let mut tokens = tokens;
    if tokens
        .get(close + 1 + taken)
        .is_some_and(|t| is_word(&t.token, "PARTITION"))
    {
        return Err(SqlError::not_supported("PARTITION BY"));
    }
    tokens.drain(close + 1..close + 1 + taken);
    Ok(tokens)
}

/// Position of the bracket that closes the first one.
fn closing_bracket(tokens: &[TokenWithSpan]) -> Option<usize> {
    let open = tokens.iter().position(|t| t.token == Token::LParen)?;
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth -= 1;
                if depth == 0 {
                    return Some(index);
                }
            }
            _ => {}
        }
    }
    None
}

fn refuse_special_indexes(tokens: &[TokenWithSpan]) -> SqlResult<()> {
    for pair in tokens.windows(2) {
        let [before, token] = pair else { continue };
        if matches!(before.token, Token::Comma | Token::LParen) {
            for feature in ["FULLTEXT", "SPATIAL"] {
                if is_word(&token.token, feature) {
                    return Err(SqlError::not_supported(feature));
                }
            }
        }
    }
    Ok(())
}

/// The annotation a word stands for.
fn link(token: &Token) -> Option<OwnershipAnnotation> {
    [
        ("OWNED_BY", OwnershipAnnotation::OwnedBy),
        ("OWNS", OwnershipAnnotation::Owns),
        ("ACCESSED_BY", OwnershipAnnotation::AccessedBy),
        ("ACCESSES", OwnershipAnnotation::Accesses),
    ]
    .into_iter()
    .find(|(word, _)| is_word(token, word))
    .map(|(_, annotation)| annotation)
}

/// Notes annotations and leaves plain REFERENCES; cuts ON GET and ON DEL items.
fn annotations(tokens: Tokens, parsed: &mut Parsed) -> Tokens {
    let mut out: Tokens = Vec::with_capacity(tokens.len());
    let mut index = 0;
    while let Some(token) = tokens.get(index) {
        let next = tokens.get(index + 1);
        let after = tokens.get(index + 2);
        let next_is = |word: &str| next.is_some_and(|t| is_word(&t.token, word));
        if index == 1 && is_word(&token.token, "DATA_SUBJECT") {
            parsed.annotations.data_subject = true;
            index += 1;
            continue;
        }
        let rule = token.token == Token::Comma
            && next_is("ON")
            && after.is_some_and(|t| is_word(&t.token, "GET") || is_word(&t.token, "DEL"));
        if rule {
            index = cut_rule(&tokens, index + 1, parsed);
            continue;
        }
        let named =
            |t: Option<&TokenWithSpan>| t.is_some_and(|t| matches!(t.token, Token::Word(_)));
        let mut annotation = link(&token.token).filter(|_| named(next) && !out.is_empty());
        let mut skipped = 1;
        if annotation.is_some() && next_is("REFERENCES") {
            skipped = 2;
        } else if is_word(&token.token, "REFERENCES") {
            annotation = Some(OwnershipAnnotation::References);
            if next_is("ONLY") && named(after) {
                annotation = Some(OwnershipAnnotation::ReferencesOnly);
                skipped = 2;
            } else if let Some(inner) = next.and_then(|t| link(&t.token)).filter(|_| named(after)) {
                annotation = Some(inner);
                skipped = 2;
            }
        }
        let names_column = matches!(
            out.last().map(|t| &t.token),
            Some(Token::Comma | Token::LParen)
        );
        match annotation.filter(|_| !names_column) {
            Some(annotation) => {
                out.push(TokenWithSpan {
                    token: keyword("REFERENCES", Keyword::REFERENCES),
                    span: token.span,
                });
                if let Some(table) = tokens.get(index + skipped) {
                    let start = table.span.start;
                    let place = (start.line, start.column);
                    parsed.annotations.references.push((place, annotation));
                }
                index += skipped;
            }
            None => {
                out.push(token.clone());
                index += 1;
            }
        }
    }
    out
}

/// Cuts one `ON GET … | ON DEL …` item that begins at `start`; where the next item begins.
fn cut_rule(tokens: &[TokenWithSpan], start: usize, parsed: &mut Parsed) -> usize {
    let mut depth = 0_usize;
    let mut words = Vec::new();
    let mut index = start;
    while let Some(token) = tokens.get(index) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => break,
            _ => {}
        }
        words.push(token.token.to_string());
        index += 1;
    }
    parsed.annotations.rules.push(words.join(" "));
    index
}

/// Drops ALGORITHM, DEFINER and SQL SECURITY before VIEW, unwraps a quoted body, keeps its text.
fn create_view(
    dialect: &ModeDialect,
    mut tokens: Tokens,
    view: usize,
    parsed: &mut Parsed,
) -> SqlResult<Tokens> {
    let prelude = tokens.iter().take(view).position(|t| {
        ["ALGORITHM", "DEFINER", "SQL"]
            .iter()
            .any(|w| is_word(&t.token, w))
    });
    let mut view = view;
    if let Some(start) = prelude {
        tokens.drain(start..view);
        view = start;
    }
    let body = tokens
        .iter()
        .skip(view)
        .position(|t| is_word(&t.token, "AS"))
        .map(|distance| view + distance + 1);
    let Some(body) = body else { return Ok(tokens) };
    if let Some(Token::SingleQuotedString(text)) = tokens.get(body).map(|t| &t.token) {
        let text = text.trim().trim_matches('"').to_string();
        tokens.truncate(body);
        tokens.extend(operators(super::tokenize(dialect, &text)?, dialect.mode)?);
        parsed.view_query = Some(text);
        return Ok(tokens);
    }
    let end = tokens.len();
    let ends_with = |words: &[&str]| {
        end >= words.len()
            && words
                .iter()
                .zip(&tokens[end - words.len()..])
                .all(|(word, token)| is_word(&token.token, word))
    };
    if ends_with(&["CHECK", "OPTION"]) {
        return Err(SqlError::not_supported("VIEW … WITH CHECK OPTION"));
    }
    if let Some(token) = tokens.get(body) {
        parsed.view_query = Some(text_from(&parsed.text, token).trim().to_string());
    }
    Ok(tokens)
}

/// The statement's text from `token` on.
fn text_from<'a>(text: &'a str, token: &TokenWithSpan) -> &'a str {
    let start = token.span.start;
    let line_index = usize::try_from(start.line).unwrap_or(1).saturating_sub(1);
    let column = usize::try_from(start.column).unwrap_or(1).saturating_sub(1);
    let before: usize = text
        .split_inclusive('\n')
        .take(line_index)
        .map(str::len)
        .sum();
    let rest = text.get(before..).unwrap_or_default();
    let inside: usize = rest.chars().take(column).map(char::len_utf8).sum();
    rest.get(inside..).unwrap_or_default()
}

/// Drops `FORMAT = TRADITIONAL` behind EXPLAIN: it is the default, and `sqlparser` reads every
/// format but this one.
fn without_default_format(mut tokens: Tokens) -> Tokens {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|t| is_word(&t.token, word));
    let named = tokens.get(2).is_some_and(|t| t.token == Token::Eq);
    if is(1, "FORMAT") && named && is(3, "TRADITIONAL") {
        tokens.drain(1..4);
    }
    tokens
}

fn create_index(tokens: Tokens) -> SqlResult<Tokens> {
    for feature in ["FULLTEXT", "SPATIAL"] {
        if tokens.get(1).is_some_and(|t| is_word(&t.token, feature)) {
            return Err(SqlError::not_supported(feature));
        }
    }
    Ok(without_algorithm(tokens))
}

/// Drops trailing `ALGORITHM [=] x` and `LOCK [=] x`.
fn without_algorithm(mut tokens: Tokens) -> Tokens {
    loop {
        let cut = (2..=3).find(|length| {
            tokens.len() > *length && {
                let start = &tokens[tokens.len() - length];
                let eq = *length == 2 || tokens[tokens.len() - 2].token == Token::Eq;
                eq && (is_word(&start.token, "ALGORITHM") || is_word(&start.token, "LOCK"))
            }
        });
        match cut {
            Some(length) => tokens.truncate(tokens.len() - length),
            None => return tokens,
        }
    }
}

/// Cuts `INTO @a, @b` out of a SELECT.
fn into_variables(mut tokens: Tokens, parsed: &mut Parsed) -> SqlResult<Tokens> {
    let mut depth = 0_usize;
    let mut place = None;
    for (index, token) in tokens.iter().enumerate() {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            word if depth == 0 && is_word(word, "INTO") => place = Some(index),
            _ => {}
        }
    }
    let Some(start) = place else {
        return Ok(tokens);
    };
    let mut end = start + 1;
    while let Some(Token::Word(word)) = tokens.get(end).map(|t| &t.token) {
        let Some(name) = word.value.strip_prefix('@') else {
            return Err(SqlError::not_supported(
                "SELECT INTO OUTFILE, DUMPFILE or a local variable",
            ));
        };
        parsed.into_variables.push(name.to_string());
        end += 1;
        if tokens.get(end).is_some_and(|t| t.token == Token::Comma) {
            end += 1;
        } else {
            break;
        }
    }
    tokens.drain(start..end);
    Ok(tokens)
}

/// Drops LOW_PRIORITY and QUICK behind UPDATE and DELETE, notes IGNORE.
fn modifiers(mut tokens: Tokens, parsed: &mut Parsed) -> Tokens {
    loop {
        let Some(word) = tokens.get(1).map(|t| &t.token) else {
            return tokens;
        };
        // A table may be called so: then a table's follower comes next.
        let modifier = ["LOW_PRIORITY", "QUICK", "IGNORE"]
            .iter()
            .any(|name| is_word(word, name));
        let table_name = tokens.get(2).is_some_and(|t| {
            is_word(&t.token, "SET") || is_word(&t.token, "AS") || t.token == Token::Period
        });
        if !modifier || table_name {
            return tokens;
        }
        parsed.ignore |= is_word(word, "IGNORE");
        tokens.remove(1);
    }
}

/// `VALUES(column)` in ON DUPLICATE KEY UPDATE becomes a column of the row alias
/// [`super::VALUES_ALIAS`].
fn new_row_values(mut tokens: Tokens) -> Tokens {
    let start = tokens.windows(4).position(|four| {
        ["ON", "DUPLICATE", "KEY", "UPDATE"]
            .iter()
            .zip(four)
            .all(|(word, token)| is_word(&token.token, word))
    });
    let Some(mut index) = start else {
        return tokens;
    };
    while index + 3 < tokens.len() {
        let call =
            is_word(&tokens[index].token, "VALUES") && tokens[index + 1].token == Token::LParen;
        let close = (index + 3..(index + 8).min(tokens.len()))
            .find(|at| tokens[*at].token == Token::RParen);
        if let (true, Some(close)) = (call, close) {
            let column = tokens[close - 1].clone();
            let span = tokens[index].span;
            let alias = TokenWithSpan {
                token: Token::make_word(super::VALUES_ALIAS, Some('`')),
                span,
            };
            let period = TokenWithSpan {
                token: Token::Period,
                span,
            };
            tokens.splice(index..=close, [alias, period, column]);
            index += 3;
        } else {
            index += 1;
        }
    }
    tokens
}
