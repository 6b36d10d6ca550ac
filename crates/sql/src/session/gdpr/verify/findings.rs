//! What GDPR VERIFY has found, and its verdict.

use crate::types::{Row, Value};

pub(super) const COLUMNS: [&str; 3] = ["Place", "What", "Found"];

/// What is to become of what was found in files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum GoneBy {
    /// All files are rewritten by this day.
    Day(String),
    /// They should have been.
    Overdue(String),
    /// A request was seen to be gone from them.
    SeenGone,
    /// No request has to do with it.
    Nobody,
}

impl std::fmt::Display for GoneBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            GoneBy::Day(day) => write!(f, "gone by {day}"),
            GoneBy::Overdue(day) => write!(f, "should have gone by {day}"),
            GoneBy::SeenGone => f.write_str("though they were seen to be gone"),
            GoneBy::Nobody => f.write_str("no request has them rewritten"),
        }
    }
}

/// What is known of files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum InFiles {
    /// They have nothing.
    #[default]
    Clean,
    NotLookedAt,
    Left(GoneBy),
}

/// What was looked at, and how much of the person was there.
#[derive(Debug, Default)]
pub(super) struct Findings {
    rows: Vec<(&'static str, String, u64)>,
    elsewhere: u64,
    in_files: u64,
    files: InFiles,
}

impl Findings {
    pub(super) fn add(&mut self, place: &'static str, what: String, found: u64) {
        self.elsewhere += found;
        self.rows.push((place, what, found));
    }

    /// One kind of file was looked at: so many of them, so many of which have something, so many keys.
    pub(super) fn add_files(
        &mut self,
        kind: &str,
        (all, holding): (u64, u64),
        found: u64,
        gone_by: &GoneBy,
    ) {
        assert_eq!(
            found > 0,
            holding > 0,
            "what was found is in a file, and a file was noted for what it has"
        );
        let what = if found == 0 {
            format!("{kind}: clean, {all} looked at")
        } else {
            self.files = InFiles::Left(gone_by.clone());
            format!("{kind}: {holding} of {all} not rewritten yet, {gone_by}")
        };
        self.in_files += found;
        self.rows.push(("files", what, found));
    }

    /// Files cannot be looked at.
    pub(super) fn no_files(&mut self, why: &str) {
        self.files = InFiles::NotLookedAt;
        self.rows.push(("files", why.to_string(), 0));
    }

    /// What is in files only, and goes from there in time, is told apart from what is not clean.
    fn verdict(&self) -> String {
        match &self.files {
            _ if self.elsewhere > 0 => "not clean".to_string(),
            InFiles::Clean => "clean".to_string(),
            InFiles::NotLookedAt => "clean but for files, which were not looked at".to_string(),
            InFiles::Left(GoneBy::Day(day)) => format!("clean but for files, gone by {day}"),
            InFiles::Left(_) => "not clean".to_string(),
        }
    }

    pub(super) fn into_rows(self) -> Vec<Row> {
        let all = self.elsewhere + self.in_files;
        let verdict = ("all", self.verdict(), all);
        let rows = self.rows.into_iter().chain([verdict]);
        rows.map(|(place, what, found)| {
            vec![
                Value::Text(place.to_string()),
                Value::Text(what),
                Value::UInt(found),
            ]
        })
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(elsewhere: u64, found: u64, gone_by: &GoneBy) -> String {
        let mut findings = Findings::default();
        findings.add("rows", String::new(), elsewhere);
        findings.add_files("sorted files", (7, found.min(2)), found, gone_by);
        let rows = findings.into_rows();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows[2][2], Value::UInt(elsewhere + found));
        rows[2][1].to_text().unwrap_or_default()
    }

    #[test]
    fn only_what_goes_in_time_is_clean_but_for_files() {
        let in_time = GoneBy::Day("2026-12-27".to_string());
        let late = GoneBy::Overdue("2026-12-27".to_string());
        assert_eq!(verdict(0, 0, &GoneBy::Nobody), "clean");
        assert_eq!(
            verdict(0, 3, &in_time),
            "clean but for files, gone by 2026-12-27"
        );
        assert_eq!(verdict(1, 3, &in_time), "not clean");
        assert_eq!(verdict(1, 0, &in_time), "not clean");
        for gone_by in [late, GoneBy::SeenGone, GoneBy::Nobody] {
            assert_eq!(verdict(0, 1, &gone_by), "not clean", "{gone_by}");
        }
        let mut findings = Findings::default();
        findings.no_files("others have them");
        assert!(findings.verdict().contains("not looked at"));
        findings.add("rows", String::new(), 1);
        assert_eq!(findings.verdict(), "not clean");
    }
}
