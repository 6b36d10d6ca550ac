//! The table of contents of the docs, which is also that of the book that `make book` makes.

use std::collections::BTreeMap;

use crate::layering::{answer_of, repository};

/// What the links of a table of contents lead to, each with how often.
fn listed(text: &str) -> BTreeMap<&str, usize> {
    let mut listed = BTreeMap::new();
    for rest in text.split("](").skip(1) {
        let target = rest.split(')').next().unwrap_or_default();
        *listed.entry(target).or_default() += 1;
    }
    listed
}

/// The lines that a table of contents lacks, and the pages that it lists twice or that are not there.
fn wrong(text: &str, pages: &[&str]) -> Vec<String> {
    let listed = listed(text);
    let lacking = pages.iter().filter(|page| !listed.contains_key(**page));
    let mut wrong: Vec<String> = lacking
        .map(|page| format!("it lacks - [title]({page})"))
        .collect();
    for (page, times) in &listed {
        if *times > 1 || !pages.contains(page) {
            wrong.push(format!(
                "it lists {page}, which is there {}",
                if *times > 1 { "once" } else { "nowhere" }
            ));
        }
    }
    wrong
}

#[test]
fn the_table_of_contents_lists_every_page_once() {
    let files = String::from_utf8(answer_of("git", &["ls-files", "-z", "docs/*.md"])).unwrap();
    let pages = files
        .split_terminator('\0')
        .filter_map(|file| file.strip_prefix("docs/"));
    let pages =
        pages.filter(|page| *page != "SUMMARY.md" && repository().join("docs").join(page).exists());
    let pages: Vec<&str> = pages.collect();
    assert!(pages.len() > 50, "only {} pages were found", pages.len());
    let text = std::fs::read_to_string(repository().join("docs/SUMMARY.md")).unwrap();
    let wrong = wrong(&text, &pages);
    assert!(wrong.is_empty(), "docs/SUMMARY.md: {wrong:#?}");
}

#[test]
fn pages_that_are_lacking_listed_twice_or_not_there_are_found() {
    let text = "- [a](a.md)\n- [b](b.md)\n  - [b](b.md)\n- [c](c.md)\n";
    let found = wrong(text, &["a.md", "b.md", "d.md"]);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(
        found[0].contains("(d.md)")
            && found[1].contains("b.md")
            && found[2].contains("c.md, which is there nowhere")
    );
}
