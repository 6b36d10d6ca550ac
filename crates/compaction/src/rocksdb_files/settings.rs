//! A database's file of options, which RocksDB writes whenever one changes.

use std::fs;
use std::path::Path;

/// Reads the file of options with this number.
///
/// # Errors
/// It cannot be read.
pub(crate) fn read(database: &Path, number: u64) -> Result<String, String> {
    let path = database.join(format!("OPTIONS-{number:06}"));
    fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Options by their names, in sections.
#[derive(Debug, Clone)]
pub(crate) struct Settings<'a> {
    sections: Vec<Section<'a>>,
}

/// One section.
#[derive(Debug, Clone)]
pub(crate) struct Section<'a> {
    name: &'a str,
    lines: Vec<(&'a str, &'a str)>,
}

impl<'a> Settings<'a> {
    /// Parses the text of a file. Lines that are neither a section nor an option are skipped.
    #[must_use]
    pub(crate) fn of(text: &'a str) -> Self {
        let mut sections: Vec<Section<'a>> = Vec::new();
        for line in text.lines().map(str::trim) {
            let name = line
                .strip_prefix('[')
                .and_then(|rest| rest.strip_suffix(']'));
            if let Some(name) = name {
                let lines = Vec::new();
                sections.push(Section { name, lines });
            } else if let (Some(section), Some(pair)) = (sections.last_mut(), line.split_once('='))
            {
                section.lines.push(pair);
            }
        }
        Self { sections }
    }

    /// A section by its name, such as `DBOptions` or `CFOptions "default"`.
    ///
    /// # Errors
    /// There is none of this name, or more than one.
    pub(crate) fn section(&self, name: &str) -> Result<&Section<'a>, String> {
        let mut found = self.sections.iter().filter(|section| section.name == name);
        match (found.next(), found.next()) {
            (Some(section), None) => Ok(section),
            _ => Err(format!("its file of options has not one section [{name}]")),
        }
    }
}

impl<'a> Section<'a> {
    /// An option as it is written.
    pub(crate) fn get(&self, option: &str) -> Option<&'a str> {
        let found = self.lines.iter().find(|(name, _)| *name == option);
        found.map(|(_, value)| *value)
    }

    /// An option that must be written down.
    ///
    /// # Errors
    /// It is not.
    pub(crate) fn need(&self, option: &str) -> Result<&'a str, String> {
        let name = self.name;
        self.get(option)
            .ok_or_else(|| format!("its options [{name}] do not say {option}"))
    }

    /// All options.
    pub(crate) fn all(&self) -> &[(&'a str, &'a str)] {
        &self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# comment\nstray=1\n[Version]\n  rocksdb_version=11.8.1\n\n\
        [CFOptions \"a\"]\n  one={x=1;y=2;}\n  \n[CFOptions \"b\"]\n[Twice]\n[Twice]\n";

    #[test]
    fn options_are_found_in_their_section_and_nowhere_else() {
        let settings = Settings::of(TEXT);
        let a = settings.section("CFOptions \"a\"").unwrap();
        assert_eq!(a.need("one"), Ok("{x=1;y=2;}"));
        assert_eq!(a.all().len(), 1);
        let b = settings.section("CFOptions \"b\"").unwrap();
        assert!(b.need("one").unwrap_err().contains("do not say one"));
        assert!(settings.section("stray").is_err());
        assert!(settings.section("Twice").is_err(), "which one counts?");
    }
}
