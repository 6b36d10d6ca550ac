//! Metrics in Prometheus' text format, and the HTTP endpoint that serves them ([`scrape`]).

use std::fmt::Write as _;

pub mod scrape;

/// Lines of one family of numbers.
pub(crate) fn family(
    text: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    lines: &[(String, u64)],
) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (labels, value) in lines {
        let _ = writeln!(text, "{name}{labels} {value}");
    }
}

/// The only line of a family without labels.
pub(crate) fn alone(value: u64) -> [(String, u64); 1] {
    [(String::new(), value)]
}

/// Numbers by name and labels as Prometheus reads them; those of one name stand together.
#[must_use]
pub fn text_of(numbers: &[(String, u64)]) -> String {
    let (mut text, mut last) = (String::new(), "");
    for (name, value) in numbers {
        let family = name.split('{').next().unwrap_or(name);
        if family != last {
            let kind = if family.ends_with("_total") {
                "counter"
            } else {
                "gauge"
            };
            let _ = writeln!(text, "# TYPE {family} {kind}"); // writing to a string cannot fail
            last = family;
        }
        let _ = writeln!(text, "{name} {value}");
    }
    text
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Every sample of an exposition has a type.
    pub(crate) fn every_number_has_its_type(text: &str) {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let name = line.split([' ', '{']).next().unwrap();
            assert!(text.contains(&format!("# TYPE {name} ")), "{line}");
        }
    }

    #[test]
    fn each_name_has_its_kind_once() {
        let numbers = [
            ("a_total{reason=\"x\"}", 1),
            ("a_total{reason=\"y\"}", 2),
            ("b", 3),
        ];
        let numbers = numbers.map(|(name, value)| (name.to_owned(), value));
        let expected = "# TYPE a_total counter\na_total{reason=\"x\"} 1\n\
                        a_total{reason=\"y\"} 2\n# TYPE b gauge\nb 3\n";
        assert_eq!(text_of(&numbers), expected);
    }
}
