//! The source files that rules of the repository look at.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// All Rust files below a folder, in order.
pub(crate) fn source_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(source_files(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// The names of the modules that lead to a source file below `source`.
pub(crate) fn modules_of(file: &Path, source: &Path) -> Vec<String> {
    let inner = file.strip_prefix(source).unwrap().with_extension("");
    let names = inner.iter().map(|name| name.to_str().unwrap().to_owned());
    names.collect()
}

/// What follows `#[cfg(test)]` in a file: the modules that are files of their own, and where the first one
/// with its code in place begins, which stands last.
pub(crate) fn tests_of(text: &str) -> (Vec<String>, usize) {
    let (mut files, mut end) = (Vec::new(), text.len());
    for (at, mark) in text.match_indices("#[cfg(test)]\n") {
        let item = text[at + mark.len()..]
            .lines()
            .find(|line| !line.starts_with("#["));
        let item = item.unwrap_or_default().trim_start_matches("pub ");
        let item = item.trim_start_matches("pub(crate) ").strip_prefix("mod ");
        if let Some(name) = item.and_then(|item| item.strip_suffix(';')) {
            files.push(name.to_owned());
        } else if item.is_some_and(|item| item.ends_with('{')) {
            end = end.min(at);
        }
    }
    (files, end)
}

/// The paths of modules that are compiled for tests only.
pub(crate) fn test_modules(files: &[(Vec<String>, &PathBuf)]) -> BTreeSet<Vec<String>> {
    let mut found = BTreeSet::new();
    for (parts, path) in files {
        let (names, _) = tests_of(&std::fs::read_to_string(path).unwrap());
        // Modules of `a/mod.rs` and of `a.rs` are both below `a`.
        let is_root = ["mod", "lib", "main"].contains(&parts[parts.len() - 1].as_str());
        let below = &parts[..parts.len() - usize::from(is_root)];
        found.extend(names.into_iter().map(|name| [below, &[name]].concat()));
    }
    found
}

#[test]
fn modules_of_tests_are_told_from_others() {
    let before = "mod disk;\n#[cfg(test)]\nmod tests;\nuse crate::one;\n";
    let text = format!("{before}#[cfg(test)]\n#[allow(a)]\nmod inner {{\n}}\n");
    let (files, end) = tests_of(&text);
    assert_eq!(
        files,
        ["tests"],
        "a file of tests hides nothing behind its name"
    );
    assert_eq!(&text[..end], before, "tests in place stand last");
}
