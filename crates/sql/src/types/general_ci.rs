//! Weights of `utf8mb4_general_ci`: the base letter in upper case, one number a character.

#![allow(
    clippy::match_same_arms,
    reason = "one arm a letter reads better than merged ones"
)]

use std::sync::OnceLock;

use unicode_normalization::char::decompose_canonical;

/// Weight of a character. Supplementary characters share U+FFFD's, as in MySQL.
#[must_use]
pub fn weight(character: char) -> u32 {
    let code = u32::from(character);
    match code {
        0..=0x7f => u32::from(character.to_ascii_uppercase()),
        0x80..=0x24f => u32::from(latin_weights()[(code - 0x80) as usize]),
        0x250..=0xffff => slow_weight(character),
        _ => 0xfffd,
    }
}

fn latin_weights() -> &'static [u16; 0x1d0] {
    static WEIGHTS: OnceLock<[u16; 0x1d0]> = OnceLock::new();
    WEIGHTS.get_or_init(|| {
        let mut weights = [0u16; 0x1d0];
        for (code, slot) in (0x80u32..).zip(weights.iter_mut()) {
            let weight = char::from_u32(code).map_or(code, slow_weight);
            *slot = u16::try_from(weight).unwrap_or(0xfffd);
        }
        weights
    })
}

fn slow_weight(character: char) -> u32 {
    match character {
        'ß' => return u32::from('S'),
        // MySQL's table predates these upper-case partners and keeps the letters apart.
        'ı' => return u32::from('I'),
        'ſ' => return u32::from('S'),
        'µ' => return 0x39c,
        _ => {}
    }
    let code = u32::from(character);
    // Hangul syllables decompose into letters that are no accents: each is its own weight.
    if (0xac00..=0xd7a3).contains(&code) {
        return code;
    }
    let mut base = None;
    decompose_canonical(character, |part| {
        base.get_or_insert(part);
    });
    let base = base.unwrap_or(character);
    let mut upper = base.to_uppercase();
    let weight = match (upper.next(), upper.next()) {
        (Some(single), None) => single,
        _ => base,
    };
    let weight = u32::from(weight);
    if weight > 0xffff { 0xfffd } else { weight }
}
