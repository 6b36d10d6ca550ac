//! Redis's patterns: `*`, `?`, `[a-z]`, `[^a]`, `\x`.

/// Whether `text` matches `pattern`. Takes time in proportion to the product of their lengths at
/// worst: a `*` is retried from the last one only.
#[must_use]
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        if pattern.get(at) == Some(&b'*') {
            star = Some((at + 1, from));
            at += 1;
            continue;
        }
        if at < pattern.len() {
            let (is_match, next) = one(pattern, at, text[from]);
            if is_match {
                at = next;
                from += 1;
                continue;
            }
        }
        let Some((after, tried)) = star else {
            return false;
        };
        star = Some((after, tried + 1));
        at = after;
        from = tried + 1;
    }
    pattern[at..].iter().all(|&byte| byte == b'*')
}

/// Whether the element of the pattern at `at` matches `byte`, and where the next one starts.
fn one(pattern: &[u8], at: usize, byte: u8) -> (bool, usize) {
    match pattern[at] {
        b'?' => (true, at + 1),
        b'\\' if at + 1 < pattern.len() => (pattern[at + 1] == byte, at + 2),
        b'[' => class(pattern, at + 1, byte),
        literal => (literal == byte, at + 1),
    }
}

fn class(pattern: &[u8], mut at: usize, byte: u8) -> (bool, usize) {
    let is_negated = pattern.get(at) == Some(&b'^');
    at += usize::from(is_negated);
    let mut found = false;
    loop {
        match pattern.get(at) {
            None => return (found != is_negated, at),
            Some(b']') => return (found != is_negated, at + 1),
            Some(b'\\') if at + 1 < pattern.len() => {
                found |= pattern[at + 1] == byte;
                at += 2;
            }
            Some(&first) if pattern.get(at + 1) == Some(&b'-') && at + 2 < pattern.len() => {
                let last = pattern[at + 2];
                found |= (first.min(last)..=first.max(last)).contains(&byte);
                at += 3;
            }
            Some(&literal) => {
                found |= literal == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_as_in_redis() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("h?llo", "hello", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("\\*", "*", true),
            ("\\*", "x", false),
            ("[\\]]", "]", true),
            ("[abc", "b", true),
            ("news.*", "news.art", true),
            ("", "", true),
            ("", "a", false),
        ] {
            let found = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let pattern = b"a*".repeat(200);
        assert!(!matches(&[&pattern[..], b"b"].concat(), &b"a".repeat(2000)));
    }
}
