//! What a process is told when it starts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

/// The variable that carries them, one `key=value` a line.
pub const VARIABLE: &str = "MANXDB_FAULTS_ROLE";

#[derive(Debug, Clone, Default)]
pub struct Settings(BTreeMap<String, String>);

impl Settings {
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.0.insert(key.to_owned(), value.to_string());
        self
    }

    /// With other values; empty ones are taken away.
    pub fn changed(mut self, more: &[(&str, &str)]) -> Self {
        for (key, value) in more {
            match *value {
                "" => self.0.remove(*key),
                _ => self.0.insert((*key).to_owned(), (*value).to_owned()),
            };
        }
        self
    }

    /// What the environment says, if this process is to be something.
    pub fn given() -> Option<Self> {
        let text = std::env::var(VARIABLE).ok()?;
        let pairs = text.lines().filter_map(|line| line.split_once('='));
        let pairs = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Some(Self(pairs.collect()))
    }

    pub fn text(&self) -> String {
        let lines = self.0.iter().map(|(key, value)| format!("{key}={value}"));
        lines.collect::<Vec<_>>().join("\n")
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub fn string(&self, key: &str) -> String {
        self.get(key)
            .unwrap_or_else(|| panic!("no {key} was given"))
            .to_owned()
    }

    pub fn path(&self, key: &str) -> PathBuf {
        self.string(key).into()
    }

    pub fn number<T: FromStr>(&self, key: &str) -> Option<T> {
        let text = self.get(key)?;
        let number = text.parse().ok();
        Some(number.unwrap_or_else(|| panic!("{key} is '{text}', no number")))
    }
}
