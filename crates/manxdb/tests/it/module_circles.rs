//! Which top-level modules of a crate use each other in a circle: no more than are listed, and less each
//! time one is cut. A circle means that none of its modules can be read, or moved, without the others.
//!
//! Edges are paths in the text, `crate::module` and `super::module` of a file on the first level, comments
//! and what stands behind `#[cfg(test)]` apart; names that lib.rs exports again count as their module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::layering::repository;
use crate::sources::{modules_of, source_files, test_modules, tests_of};

/// The circles there are, by crate.
const CIRCLES: &[(&str, &str)] = &[(
    "protocols/curp",
    "backup client coordinator disk garbage master message node replies server witness",
)];

type Edges = BTreeMap<String, BTreeSet<String>>;

/// The code of a file, without comments and without its tests.
fn code_of(path: &Path) -> String {
    let text = std::fs::read_to_string(path).unwrap();
    let code = &text[..tests_of(&text).1];
    let lines = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Names that follow `prefix` in the code, those in braces behind it too.
fn names_behind(code: &str, prefix: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (at, _) in code.match_indices(prefix) {
        if at > 0 && (is_word(code.as_bytes()[at - 1]) || code[..at].ends_with("::")) {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let first = |text: &str| -> String {
            let text = text.trim_start();
            text.chars()
                .take_while(|c| c.is_ascii() && is_word(*c as u8))
                .collect()
        };
        if let Some(list) = rest.strip_prefix('{') {
            let (mut depth, mut start) = (0, 0);
            for (place, byte) in list.bytes().enumerate() {
                match byte {
                    b'{' => depth += 1,
                    b'}' if depth == 0 => {
                        names.insert(first(&list[start..place]));
                        break;
                    }
                    b'}' => depth -= 1,
                    b',' if depth == 0 => {
                        names.insert(first(&list[start..place]));
                        start = place + 1;
                    }
                    _ => {}
                }
            }
        } else {
            names.insert(first(rest));
        }
    }
    names
}

/// Who uses whom among the top-level modules of a crate.
fn edges_of(source: &Path) -> Edges {
    let files = source_files(source);
    let files = files.iter().map(|file| (modules_of(file, source), file));
    let files: Vec<_> = files.collect();
    let tests = test_modules(&files);
    let is_module = |parts: &[String]| {
        let is_test = (1..=parts.len()).any(|length| tests.contains(&parts[..length]));
        !is_test && !["lib", "main", "bin"].contains(&parts[0].as_str())
    };
    let modules: BTreeSet<String> = files
        .iter()
        .filter(|(parts, _)| is_module(parts))
        .map(|(parts, _)| parts[0].clone())
        .collect();
    let root = code_of(&source.join("lib.rs"));
    let mut exported: BTreeMap<String, String> = BTreeMap::new();
    for module in &modules {
        for path in [format!("use {module}::"), format!("use self::{module}::")] {
            for name in names_behind(&root, &path) {
                exported.insert(name, module.clone());
            }
        }
    }
    let mut edges = Edges::new();
    for (parts, path) in files.iter().filter(|(parts, _)| is_module(parts)) {
        let code = code_of(path);
        let mut used = names_behind(&code, "crate::");
        // `super` of a file of the first level is the crate.
        if parts.len() == 1 || (parts.len() == 2 && parts[1] == "mod") {
            used.extend(names_behind(&code, "super::"));
        }
        let used = used.into_iter().filter_map(|name| {
            let module = exported.get(&name).cloned();
            modules.get(&name).cloned().or(module)
        });
        let of_module = edges.entry(parts[0].clone()).or_default();
        of_module.extend(used.filter(|module| *module != parts[0]));
    }
    edges
}

fn reached(edges: &Edges, from: &str) -> BTreeSet<String> {
    let (mut found, mut open) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(module) = open.pop() {
        for next in edges.get(&module).into_iter().flatten() {
            if found.insert(next.clone()) {
                open.push(next.clone());
            }
        }
    }
    found
}

/// Sets of modules each of which uses, in the end, all others of its set.
fn circles(edges: &Edges) -> BTreeSet<BTreeSet<String>> {
    let all: BTreeMap<&String, BTreeSet<String>> = edges
        .keys()
        .map(|module| (module, reached(edges, module)))
        .collect();
    let circle = |module: &String| -> BTreeSet<String> {
        let of = |other: &&String| all[module].contains(*other) && all[*other].contains(module);
        all.keys()
            .filter(|other| of(other))
            .map(|other| (*other).clone())
            .collect()
    };
    all.keys()
        .map(|module| circle(module))
        .filter(|circle| circle.len() > 1)
        .collect()
}

#[test]
fn modules_use_each_other_in_no_circles_but_those_listed() {
    let crates = repository().join("crates");
    let mut files = Vec::new();
    for folder in [
        crates.clone(),
        crates.join("protocols"),
        crates.join("testing"),
    ] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let root = entry.unwrap().path();
            if root.join("src/lib.rs").exists() {
                files.push(root);
            }
        }
    }
    assert!(files.len() > 25, "only {} crates were found", files.len());
    let mut found = BTreeSet::new();
    for root in files {
        let name = root.strip_prefix(&crates).unwrap().display().to_string();
        for circle in circles(&edges_of(&root.join("src"))) {
            let modules: Vec<String> = circle.into_iter().collect();
            found.insert((name.clone(), modules.join(" ")));
        }
    }
    let listed: BTreeSet<(String, String)> = CIRCLES
        .iter()
        .map(|(name, modules)| ((*name).to_owned(), (*modules).to_owned()))
        .collect();
    let new: Vec<_> = found.difference(&listed).collect();
    let cut: Vec<_> = listed.difference(&found).collect();
    assert!(new.is_empty(), "new circles, or larger ones: {new:#?}");
    assert!(
        cut.is_empty(),
        "these are no more: take them off the list: {cut:#?}"
    );
}

#[test]
fn a_circle_is_found_and_a_chain_is_none() {
    let edges = |pairs: &[(&str, &str)]| {
        let mut edges = Edges::new();
        for (from, to) in pairs {
            edges
                .entry((*from).to_owned())
                .or_default()
                .insert((*to).to_owned());
            edges.entry((*to).to_owned()).or_default();
        }
        edges
    };
    assert!(circles(&edges(&[("a", "b"), ("b", "c"), ("a", "c")])).is_empty());
    let found = circles(&edges(&[("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")]));
    let circle: BTreeSet<String> = ["a", "b", "c"].map(str::to_owned).into();
    assert_eq!(found, BTreeSet::from([circle]));
    let code = "use crate::{one::A, two::{B, C}, three}; xcrate::four; a::crate::five";
    let names: BTreeSet<String> = ["one", "three", "two"].map(str::to_owned).into();
    assert_eq!(names_behind(code, "crate::"), names);
}
