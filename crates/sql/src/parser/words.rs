//! Matching words in the token stream without caring whether `sqlparser` knows them.

use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Whether the token is the unquoted word `word`, in any case.
pub(super) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(w) if w.quote_style.is_none() && w.value.eq_ignore_ascii_case(word))
}

/// Whether the next token is `word`.
pub(super) fn peek_is(parser: &Parser, word: &str) -> bool {
    is_word(&parser.peek_token_ref().token, word)
}

/// Takes `word` if it comes next.
pub(super) fn take(parser: &mut Parser, word: &str) -> bool {
    let found = peek_is(parser, word);
    if found {
        parser.advance_token();
    }
    found
}

/// Takes all of `words` if they come next, or none.
pub(super) fn take_all(parser: &mut Parser, words: &[&str]) -> bool {
    for (taken, word) in words.iter().enumerate() {
        if !take(parser, word) {
            for _ in 0..taken {
                parser.prev_token();
            }
            return false;
        }
    }
    true
}

/// Takes one of `words` if it comes next; which.
pub(super) fn take_any(parser: &mut Parser, words: &[&'static str]) -> Option<&'static str> {
    words.iter().find(|word| take(parser, word)).copied()
}

/// Takes `word` or fails there.
pub(super) fn expect(parser: &mut Parser, word: &str) -> Result<(), ParserError> {
    if take(parser, word) {
        return Ok(());
    }
    parser.expected(word, parser.peek_token())
}

/// Whether the statement ends here.
pub(super) fn at_end(parser: &Parser) -> bool {
    matches!(parser.peek_token_ref().token, Token::EOF | Token::SemiColon)
}

/// A name: word, quoted word or string.
pub(super) fn name(parser: &mut Parser) -> Result<String, ParserError> {
    let token = parser.peek_token();
    match token.token {
        Token::Word(word) => {
            parser.advance_token();
            Ok(word.value)
        }
        Token::SingleQuotedString(text) => {
            parser.advance_token();
            Ok(text)
        }
        _ => parser.expected("name", token),
    }
}

/// A name in back-quotes.
pub(crate) fn quote_name(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}
