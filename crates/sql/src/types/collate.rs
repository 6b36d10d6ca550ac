//! Comparing and keying text under a collation.
//!
//! A sort key is self-delimiting and its byte order is the collation's order, so it can stand in
//! the middle of a key. Three shapes:
//! - PAD SPACE with one weight a character (`general_ci`, bin): weights as UTF-8-like bytes; every
//!   space is followed by a byte telling whether what follows the run of spaces sorts below (0),
//!   ends (1) or sorts above (2) a space, so `'a'` equals `'a  '` and still sorts above `'a\t'`.
//! - UCA: the sort key of `icu_collator`, zero bytes escaped, ended by `00 00`. `unicode_ci` trims
//!   trailing spaces first.
//! - binary and `0900_bin`: the bytes, escaped alike.

use std::cmp::Ordering;
use std::sync::OnceLock;

use icu_collator::options::{CollatorOptions, Strength};
use icu_collator::{Collator, CollatorBorrowed, CollatorPreferences};
use icu_locale_core::locale;

use super::data_type::Collation;
use super::general_ci::weight;

/// Compares two texts.
#[must_use]
pub fn compare_text(collation: Collation, a: &str, b: &str) -> Ordering {
    match collation {
        Collation::Binary | Collation::Bin0900 => a.cmp(b),
        Collation::Bin => compare_padded(a.chars().map(u32::from), b.chars().map(u32::from)),
        Collation::GeneralCi => {
            if a == b {
                return Ordering::Equal;
            }
            compare_padded(a.chars().map(weight), b.chars().map(weight))
        }
        Collation::UnicodeCi => compare_primary(a.trim_end_matches(' '), b.trim_end_matches(' ')),
        Collation::EsperantoCi => {
            let (a, b) = (a.trim_end_matches(' '), b.trim_end_matches(' '));
            if a == b {
                return Ordering::Equal;
            }
            esperanto().compare(a, b)
        }
        Collation::Uca0900AiCi => compare_primary(a, b),
        Collation::Uca0900AsCs => {
            if a == b {
                return Ordering::Equal;
            }
            tertiary().compare(a, b)
        }
    }
}

/// Whether two texts are equal under `=`.
#[must_use]
pub fn text_equal(collation: Collation, a: &str, b: &str) -> bool {
    a == b
        || (!matches!(collation, Collation::Binary | Collation::Bin0900)
            && compare_text(collation, a, b).is_eq())
}

fn compare_padded(mut a: impl Iterator<Item = u32>, mut b: impl Iterator<Item = u32>) -> Ordering {
    const SPACE: u32 = 0x20;
    loop {
        let (left, right) = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (left, right) => (left.unwrap_or(SPACE), right.unwrap_or(SPACE)),
        };
        if left != right {
            return left.cmp(&right);
        }
    }
}

fn compare_primary(a: &str, b: &str) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    if a.is_ascii() && b.is_ascii() {
        let ranks = ascii_ranks();
        let rank = |byte: u8| ranks[usize::from(byte & 0x7f)];
        return a
            .bytes()
            .map(rank)
            .filter(|rank| *rank > 0)
            .cmp(b.bytes().map(rank).filter(|rank| *rank > 0));
    }
    primary().compare(a, b)
}

/// Place of each ASCII character in the primary order, 0 for ignorable ones. Exact, because the
/// root collation has no contraction or expansion within ASCII.
fn ascii_ranks() -> &'static [u8; 128] {
    static RANKS: OnceLock<[u8; 128]> = OnceLock::new();
    RANKS.get_or_init(|| {
        let mut keys: Vec<(Vec<u8>, u8)> = (0..128u8)
            .map(|byte| {
                let mut key = Vec::new();
                write_uca(primary(), &char::from(byte).to_string(), &mut key);
                (key, byte)
            })
            .collect();
        keys.sort();
        let mut ranks = [0u8; 128];
        let mut rank = 0u8;
        let mut previous: &[u8] = &[];
        for (key, byte) in &keys {
            if key.as_slice() != previous {
                rank += 1;
                previous = key;
            }
            ranks[usize::from(*byte)] = if key.is_empty() { 0 } else { rank };
        }
        ranks
    })
}

/// The beginning of `text` as a number in the order of [`compare_text`]: two texts that both have
/// one compare as the numbers do when these differ, and are still to be compared otherwise.
#[must_use]
pub fn sort_head(collation: Collation, text: &str) -> Option<u64> {
    let ranks = match collation {
        Collation::Binary | Collation::Bin0900 => return Some(pack(text.bytes())),
        Collation::Uca0900AiCi => ascii_ranks(),
        _ => return None,
    };
    // A combining mark anywhere may change what stands before it.
    text.is_ascii().then(|| {
        let units = text.bytes().map(|byte| ranks[usize::from(byte & 0x7f)]);
        pack(units.filter(|rank| *rank > 0))
    })
}

/// The first eight units, the first one highest; missing ones are 0, which is least.
fn pack(units: impl Iterator<Item = u8>) -> u64 {
    let mut packed = [0; 8];
    for (slot, unit) in packed.iter_mut().zip(units) {
        *slot = unit;
    }
    u64::from_be_bytes(packed)
}

fn collator(language: CollatorPreferences, strength: Strength) -> CollatorBorrowed<'static> {
    let mut options = CollatorOptions::default();
    options.strength = Some(strength);
    // Every language is compiled in; there is no input that could make this fail.
    #[expect(clippy::expect_used)]
    Collator::try_new(language, options).expect("the collation is compiled in")
}

fn primary() -> &'static CollatorBorrowed<'static> {
    static PRIMARY: OnceLock<CollatorBorrowed<'static>> = OnceLock::new();
    PRIMARY.get_or_init(|| collator(CollatorPreferences::default(), Strength::Primary))
}

fn tertiary() -> &'static CollatorBorrowed<'static> {
    static TERTIARY: OnceLock<CollatorBorrowed<'static>> = OnceLock::new();
    TERTIARY.get_or_init(|| collator(CollatorPreferences::default(), Strength::Tertiary))
}

fn esperanto() -> &'static CollatorBorrowed<'static> {
    static ESPERANTO: OnceLock<CollatorBorrowed<'static>> = OnceLock::new();
    ESPERANTO.get_or_init(|| collator(locale!("eo").into(), Strength::Primary))
}

fn write_uca(collator: &CollatorBorrowed<'static>, text: &str, out: &mut Vec<u8>) {
    let Ok(()) = collator.write_sort_key_to(text, out);
}

/// Appends the sort key of `text`.
pub fn sort_key(collation: Collation, text: &str, out: &mut Vec<u8>) {
    match collation {
        Collation::Binary | Collation::Bin0900 => write_escaped(text.as_bytes(), out),
        Collation::Bin => write_padded(text, u32::from, out),
        Collation::GeneralCi => write_padded(text, weight, out),
        Collation::UnicodeCi => write_primary_key(text.trim_end_matches(' '), out),
        Collation::EsperantoCi => write_uca_key(esperanto(), text.trim_end_matches(' '), out),
        Collation::Uca0900AiCi => write_primary_key(text, out),
        Collation::Uca0900AsCs => write_uca_key(tertiary(), text, out),
    }
}

/// The primary key, put together from pieces where that is exact.
fn write_primary_key(text: &str, out: &mut Vec<u8>) {
    let start = out.len();
    if write_ascii_key(text.as_bytes(), out) {
        out.extend_from_slice(&[0, 0]);
    } else {
        out.truncate(start);
        write_uca_key(primary(), text, out);
    }
}

/// Pieces of the primary keys of ASCII text. Letters and digits have one byte each. Other
/// characters share lead bytes, which a key leaves out when they follow each other; alone
/// between letters or digits, or at the end, they always look the same.
struct AsciiPieces {
    /// Key of a letter or digit, 0 for others.
    alphanumeric: [u8; 128],
    /// Between letters or digits, or in front of one; empty for what has no place here.
    inside: Vec<Vec<u8>>,
    /// At the end.
    last: Vec<Vec<u8>>,
}

fn ascii_pieces() -> &'static AsciiPieces {
    static PIECES: OnceLock<AsciiPieces> = OnceLock::new();
    PIECES.get_or_init(|| {
        let key = |text: &str| {
            let mut key = Vec::new();
            write_uca(primary(), text, &mut key);
            key
        };
        let mut pieces = AsciiPieces {
            alphanumeric: [0; 128],
            inside: vec![Vec::new(); 128],
            last: vec![Vec::new(); 128],
        };
        for byte in 0..128u8 {
            let (at, character) = (usize::from(byte), char::from(byte));
            if character.is_ascii_alphanumeric() {
                if let [one] = key(&character.to_string())[..] {
                    pieces.alphanumeric[at] = one;
                }
            } else if character.is_ascii_graphic() || character == ' ' {
                let inside = key(&format!("a{character}a"));
                let last = key(&format!("a{character}"));
                pieces.inside[at] = inside[1..inside.len() - 1].to_vec();
                pieces.last[at] = last[1..].to_vec();
            }
        }
        pieces
    })
}

/// Appends the primary key of `text`, without its end; false (with rubbish appended) when the
/// pieces do not cover it.
fn write_ascii_key(text: &[u8], out: &mut Vec<u8>) -> bool {
    let pieces = ascii_pieces();
    out.reserve(text.len() + text.len() / 8 + 8);
    let mut after_other = false;
    for (place, &byte) in text.iter().enumerate() {
        let at = usize::from(byte);
        let Some(&one) = pieces.alphanumeric.get(at) else {
            return false;
        };
        if one != 0 {
            out.push(one);
            after_other = false;
            continue;
        }
        let ends = place + 1 == text.len();
        let piece = if ends {
            &pieces.last[at]
        } else {
            &pieces.inside[at]
        };
        if after_other || piece.is_empty() {
            return false;
        }
        out.extend_from_slice(piece);
        after_other = true;
    }
    true
}

fn write_uca_key(collator: &CollatorBorrowed<'static>, text: &str, out: &mut Vec<u8>) {
    let mut key = Vec::with_capacity(text.len() + 8);
    write_uca(collator, text, &mut key);
    write_escaped(&key, out);
}

/// Bytes with `00` as `00 FF`, ended by `00 00`: prefix-free and order-preserving.
pub fn write_escaped(bytes: &[u8], out: &mut Vec<u8>) {
    out.reserve(bytes.len() + 2);
    for &byte in bytes {
        out.push(byte);
        if byte == 0 {
            out.push(0xff);
        }
    }
    out.extend_from_slice(&[0, 0]);
}

fn write_padded(text: &str, weight: impl Fn(char) -> u32, out: &mut Vec<u8>) {
    let mut characters = text.trim_end_matches(' ').chars();
    while let Some(character) = characters.next() {
        let unit = weight(character);
        write_unit(unit, out);
        if unit == 0x20 {
            out.push(
                match characters.clone().map(&weight).find(|unit| *unit != 0x20) {
                    Some(unit) if unit < 0x20 => 0,
                    Some(_) => 2,
                    None => 1,
                },
            );
            if out.last() == Some(&1) {
                return;
            }
        }
    }
    out.extend_from_slice(&[0x20, 1]);
}

/// UTF-8's scheme for any number below 2^21: byte order is numeric order.
fn write_unit(unit: u32, out: &mut Vec<u8>) {
    let tail = |shift: u32| 0x80 | (unit >> shift & 0x3f) as u8;
    match unit {
        0..=0x7f => out.push(unit as u8),
        0x80..=0x7ff => out.extend_from_slice(&[0xc0 | (unit >> 6) as u8, tail(0)]),
        0x800..=0xffff => {
            out.extend_from_slice(&[0xe0 | (unit >> 12) as u8, tail(6), tail(0)]);
        }
        _ => out.extend_from_slice(&[0xf0 | (unit >> 18 & 7) as u8, tail(12), tail(6), tail(0)]),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn collations_differ_where_mysql_says() {
        use Collation::{
            Bin, Bin0900, EsperantoCi, GeneralCi, Uca0900AiCi, Uca0900AsCs, UnicodeCi,
        };
        let table = [
            (GeneralCi, "abc", "ABC", Ordering::Equal),
            (GeneralCi, "é", "E", Ordering::Equal),
            (GeneralCi, "a", "a  ", Ordering::Equal),
            (GeneralCi, "ß", "s", Ordering::Equal),
            (GeneralCi, "a", "a\t", Ordering::Greater),
            (GeneralCi, "😀", "😁", Ordering::Equal),
            (UnicodeCi, "ß", "ss", Ordering::Equal),
            (UnicodeCi, "a", "A ", Ordering::Equal),
            (EsperantoCi, "ĉa", "cz", Ordering::Greater),
            (EsperantoCi, "ĉ", "D", Ordering::Less),
            (EsperantoCi, "Ĉ", "ĉ ", Ordering::Equal),
            (EsperantoCi, "é", "E", Ordering::Equal),
            (UnicodeCi, "ĉa", "cz", Ordering::Less),
            (Uca0900AiCi, "a", "a ", Ordering::Less),
            (Uca0900AiCi, "É", "e", Ordering::Equal),
            (Uca0900AiCi, "a_b", "a1", Ordering::Less),
            (Uca0900AsCs, "a", "A", Ordering::Less),
            (Uca0900AsCs, "e", "é", Ordering::Less),
            (Bin, "a", "A", Ordering::Greater),
            (Bin, "a", "a ", Ordering::Equal),
            (Bin0900, "a", "a ", Ordering::Less),
        ];
        for (collation, a, b, expected) in table {
            assert_eq!(
                compare_text(collation, a, b),
                expected,
                "{collation:?} {a:?} {b:?}"
            );
        }
    }

    #[test]
    fn pieced_ascii_keys_are_the_collators() {
        let exact = |text: &str| {
            let (mut pieced, mut whole) = (Vec::new(), Vec::new());
            write_primary_key(text, &mut pieced);
            write_uca_key(primary(), text, &mut whole);
            assert_eq!(pieced, whole, "{text:?}");
        };
        let ascii: Vec<char> = (0..128u8).map(char::from).collect();
        let kinds: Vec<char> = ascii
            .iter()
            .copied()
            .filter(|c| !c.is_alphanumeric() || "azAZ09".contains(*c))
            .filter(|c| !c.is_control() || "\0\t".contains(*c))
            .collect();
        for a in &ascii {
            exact(&a.to_string());
            for b in &ascii {
                exact(&format!("{a}{b}"));
            }
        }
        for a in &kinds {
            for b in &kinds {
                for c in &kinds {
                    exact(&format!("{a}{b}{c}"));
                }
                exact(&format!("x{a}1{b}y"));
            }
        }
        let mut covered = Vec::new();
        assert!(write_ascii_key(
            b"someone-else_42@example.com",
            &mut covered
        ));
    }

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            "[a-cA-C _\t\\-]{0,6}",
            "[aAéÉßœcĉĈ \u{0}\u{1}]{0,5}",
            "\\PC{0,6}"
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn sort_keys_order_as_comparison_does(a in texts(), b in texts()) {
            for collation in Collation::ALL {
                let (mut left, mut right) = (Vec::new(), Vec::new());
                sort_key(collation, &a, &mut left);
                sort_key(collation, &b, &mut right);
                prop_assert_eq!(left.cmp(&right), compare_text(collation, &a, &b), "{:?} {:?} {:?}", collation, a, b);
                if let Some((left, right)) = sort_head(collation, &a).zip(sort_head(collation, &b))
                    && left != right
                {
                    prop_assert_eq!(left.cmp(&right), compare_text(collation, &a, &b), "{:?} {:?} {:?}", collation, a, b);
                }
                // Prefix-free: what follows a key can never decide between two different texts.
                if left != right {
                    prop_assert!(!left.starts_with(&right) && !right.starts_with(&left));
                }
            }
        }
    }
}
