//! Scripts by their SHA-1. They are not kept in the store: a client loads them again when NOSCRIPT tells it to.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use sha1::{Digest as _, Sha1};

use crate::error::CommandError;

/// Scripts of EVAL that are remembered; those of SCRIPT LOAD are all.
pub const EVALUATED_MAX: usize = 500;

/// The SHA-1 of `bytes`, in small hexadecimal digits.
pub fn sha1_hex(bytes: &[u8]) -> String {
    hex::encode(Sha1::digest(bytes))
}

/// What the first line of a script asks for: `#!lua flags=no-writes,allow-oom`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScriptFlags {
    /// Its commands may not write.
    pub no_writes: bool,
    /// Its commands may write when memory is used up.
    pub allow_oom: bool,
}

/// A script.
#[derive(Debug, Clone)]
pub struct Script {
    /// Its SHA-1 in hexadecimal digits.
    pub name: Arc<str>,
    /// What errors call it.
    pub title: Arc<str>,
    /// Whether it is the code of a library of functions.
    pub is_library: bool,
    /// Its text, without the words of a first line that begins with `#!`.
    pub source: Arc<[u8]>,
    /// What that line asked for.
    pub flags: ScriptFlags,
}

impl Script {
    /// The script of a text.
    ///
    /// # Errors
    /// A first line that names another language or unknown flags.
    pub fn of(text: &[u8]) -> Result<Self, CommandError> {
        let (flags, source) = match text.strip_prefix(b"#!") {
            None => (ScriptFlags::default(), text),
            Some(_) => {
                let end = text.iter().position(|byte| *byte == b'\n');
                let end = end.ok_or(CommandError::text("ERR Invalid script shebang"))?;
                let line = String::from_utf8_lossy(&text[2..end]).into_owned();
                (flags_of(&line)?, &text[end..])
            }
        };
        let name: Arc<str> = sha1_hex(text).into();
        Ok(Self {
            title: Arc::clone(&name),
            is_library: false,
            name,
            source: source.into(),
            flags,
        })
    }
}

fn flags_of(line: &str) -> Result<ScriptFlags, CommandError> {
    let mut words = line.split_whitespace();
    let engine = words.next().unwrap_or_default();
    if engine != "lua" {
        return Err(CommandError::new(format!(
            "ERR Unexpected engine in script shebang: {engine}"
        )));
    }
    let mut flags = ScriptFlags::default();
    for word in words {
        let Some(named) = word.strip_prefix("flags=") else {
            return Err(CommandError::new(format!(
                "ERR Unknown lua shebang option: {word}"
            )));
        };
        for flag in named.split(',').filter(|flag| !flag.is_empty()) {
            match flag {
                "no-writes" => flags.no_writes = true,
                "allow-oom" => flags.allow_oom = true,
                // About clusters and replicas, which are not here.
                "allow-stale" | "no-cluster" | "allow-cross-slot-keys" => {}
                _ => {
                    return Err(CommandError::new(format!(
                        "ERR Unexpected flag in script shebang: {flag}"
                    )));
                }
            }
        }
    }
    Ok(flags)
}

/// All scripts that are known.
#[derive(Debug, Default)]
pub struct ScriptCache {
    scripts: HashMap<Arc<str>, Script>,
    /// Those that EVAL brought, the oldest first.
    evaluated: VecDeque<Arc<str>>,
    /// Bytes of all texts.
    bytes: usize,
}

impl ScriptCache {
    /// The script of this name, which may be in capitals.
    pub fn find(&self, name: &[u8]) -> Option<Script> {
        let name = std::str::from_utf8(name).ok()?;
        if let Some(script) = self.scripts.get(name) {
            return Some(script.clone());
        }
        self.scripts
            .get(name.to_ascii_lowercase().as_str())
            .cloned()
    }

    /// Remembers a script of SCRIPT LOAD.
    pub fn keep(&mut self, script: &Script) {
        self.evaluated.retain(|name| *name != script.name);
        self.insert(script);
    }

    fn insert(&mut self, script: &Script) {
        self.bytes += script.source.len();
        if let Some(before) = self.scripts.insert(script.name.clone(), script.clone()) {
            self.bytes -= before.source.len();
        }
    }

    /// Remembers a script of EVAL; the one that is forgotten for it, if any.
    pub fn remember(&mut self, script: &Script) -> Option<Arc<str>> {
        if self.scripts.contains_key(&script.name) {
            return None;
        }
        self.insert(script);
        self.evaluated.push_back(script.name.clone());
        if self.evaluated.len() <= EVALUATED_MAX {
            return None;
        }
        let oldest = self.evaluated.pop_front()?;
        if let Some(forgotten) = self.scripts.remove(&oldest) {
            assert!(
                self.bytes >= forgotten.source.len(),
                "texts are counted twice"
            );
            self.bytes -= forgotten.source.len();
        }
        Some(oldest)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Number of scripts.
    pub fn len(&self) -> usize {
        self.scripts.len()
    }

    /// Bytes of their texts.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_of_eval_are_forgotten_and_those_of_load_are_not() {
        let mut cache = ScriptCache::default();
        let kept = Script::of(b"return 'kept'").unwrap();
        cache.keep(&kept);
        let mut forgotten = 0;
        for number in 0..EVALUATED_MAX + 7 {
            let script = Script::of(format!("return {number}").as_bytes()).unwrap();
            forgotten += usize::from(cache.remember(&script).is_some());
        }
        assert_eq!(forgotten, 7);
        assert_eq!(cache.len(), EVALUATED_MAX + 1);
        let texts = cache.scripts.values().map(|script| script.source.len());
        assert_eq!(cache.bytes(), texts.sum::<usize>());
        assert!(cache.find(kept.name.to_uppercase().as_bytes()).is_some());
        assert!(cache.find(sha1_hex(b"return 0").as_bytes()).is_none());
    }

    #[test]
    fn the_first_line_may_ask_for_flags() {
        let script = Script::of(b"#!lua flags=no-writes,allow-oom\nreturn 1").unwrap();
        assert!(script.flags.no_writes && script.flags.allow_oom);
        assert_eq!(&*script.source, b"\nreturn 1");
        for (text, why) in [
            ("#!lua", "ERR Invalid script shebang"),
            ("#!js\n", "ERR Unexpected engine in script shebang: js"),
            (
                "#!lua flags=x\n",
                "ERR Unexpected flag in script shebang: x",
            ),
        ] {
            assert_eq!(Script::of(text.as_bytes()).unwrap_err().to_string(), why);
        }
    }
}
