//! Spellings of dates and times, and what is read of them.

use super::*;

fn read(text: &str) -> Option<String> {
    let (parsed, offset) = parse_datetime(text)?;
    let mut out = Vec::new();
    write_datetime(parsed.value, parsed.fsp, &mut out);
    let mut shown = String::from_utf8(out).unwrap();
    if let Some(minutes) = offset {
        shown.push_str(&format!(" offset {minutes}"));
    }
    if parsed.truncated {
        shown.push_str(" truncated");
    }
    Some(shown)
}

#[test]
fn datetimes_are_read_in_every_spelling() {
    let table = [
        ("2024-01-05", Some("2024-01-05 00:00:00")),
        ("2024-1-5 3:4:5", Some("2024-01-05 03:04:05")),
        ("2024-01-05T03:04:05.25", Some("2024-01-05 03:04:05.25")),
        (
            "2024/01/05 03.04.05",
            Some("2024-01-05 03:00:00.04 truncated"),
        ),
        ("20240105030405", Some("2024-01-05 03:04:05")),
        ("20240105", Some("2024-01-05 00:00:00")),
        ("240105", Some("2024-01-05 00:00:00")),
        ("70-01-05", Some("1970-01-05 00:00:00")),
        ("0000-00-00 00:00:00", Some("0000-00-00 00:00:00")),
        (
            "2024-01-05 10:00:00+05:30",
            Some("2024-01-05 10:00:00 offset 330"),
        ),
        (
            "2024-01-05 10:00:00 x",
            Some("2024-01-05 10:00:00 truncated"),
        ),
        ("00-00-00", Some("0000-00-00 00:00:00")),
        ("00-01-01", Some("2000-01-01 00:00:00")),
        ("2024-02-30", None),
        ("2024-13-01", None),
        ("abc", None),
        ("", None),
        (
            "2023-12-31 23:59:59.9999999",
            Some("2024-01-01 00:00:00.000000"),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(read(text).as_deref(), expected, "{text}");
    }
}

#[test]
fn times_are_read_in_every_spelling() {
    let table = [
        ("10:11:12", Some("10:11:12.000000")),
        ("10:11", Some("10:11:00.000000")),
        ("101112", Some("10:11:12.000000")),
        ("12", Some("00:00:12.000000")),
        ("1 10:00:00", Some("34:00:00.000000")),
        ("-838:59:59", Some("-838:59:59.000000")),
        ("10:11:12.5", Some("10:11:12.500000")),
        ("2024-01-05 10:11:12", Some("10:11:12.000000")),
        ("10:", Some("00:00:10.000000")),
        ("2024-01-05", Some("00:20:24.000000")),
        ("10:61:00", None),
        ("x", None),
    ];
    for (text, expected) in table {
        let shown = parse_time(text).map(|parsed| {
            let mut out = Vec::new();
            write_time(parsed.value, 6, &mut out);
            String::from_utf8(out).unwrap()
        });
        assert_eq!(shown.as_deref(), expected, "{text}");
    }
}
