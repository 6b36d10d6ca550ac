//! Every link of a page to another file leads somewhere.

use std::path::Path;

use crate::layering::{answer_of, repository};

/// What stands between the brackets of `](target)`, without the part behind `#`.
fn targets(text: &str) -> Vec<&str> {
    let behind = text.split("](").skip(1);
    let whole = behind.filter_map(|rest| rest.split([')', '\n']).next());
    whole
        .map(|target| target.split('#').next().unwrap_or_default())
        .filter(|target| !target.is_empty() && !target.contains("://"))
        .collect()
}

/// Links of `page` that lead nowhere.
fn broken(page: &Path, text: &str) -> Vec<String> {
    let folder = page.parent().unwrap();
    let lost = targets(text)
        .into_iter()
        .filter(|target| !folder.join(target).exists());
    lost.map(|target| format!("{} links to {target}", page.display()))
        .collect()
}

#[test]
fn every_link_of_a_page_leads_to_a_file() {
    let listed = String::from_utf8(answer_of("git", &["ls-files", "-z", "*.md"])).unwrap();
    let (mut found, mut links) = (Vec::new(), 0);
    for name in listed.split_terminator('\0') {
        let page = repository().join(name);
        let Ok(text) = std::fs::read_to_string(&page) else {
            continue; // deleted, not yet committed
        };
        links += targets(&text).len();
        found.extend(broken(&page, &text));
    }
    assert!(links > 100, "only {links} links were found");
    assert!(found.is_empty(), "{found:#?}");
}

/// Rows of ARCHITECTURE.md of the form "`function` in [file](path)": the function and the path.
fn named_functions(text: &str) -> Vec<(&str, &str)> {
    let rows = text.lines().filter_map(|line| line.split_once("` in ["));
    rows.filter_map(|(before, after)| {
        let function = before.rsplit('`').next()?;
        let path = after.split_once("](")?.1.split(')').next()?;
        Some((function, path))
    })
    .collect()
}

#[test]
fn every_answer_of_the_architecture_is_a_function_of_its_file() {
    let text = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
    let named = named_functions(&text);
    assert!(named.len() >= 30, "only {} answers were found", named.len());
    for (function, path) in named {
        let source = std::fs::read_to_string(repository().join(path)).unwrap_or_default();
        let is_there = ["(", "<"]
            .iter()
            .any(|next| source.contains(&format!("fn {function}{next}")));
        assert!(is_there, "{path} has no function {function}");
    }
}

#[test]
fn a_link_to_nothing_is_found_and_others_are_not() {
    let page = repository().join("README.md");
    let text =
        "[a](Cargo.toml) [b](docs/sql.md#joins) [c](#here) [d](https://x.y/z) [e](nothing.md)";
    let found = broken(&page, text);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].ends_with("links to nothing.md"), "{found:?}");
}
