//! Materialized views for the statements of pages that join or group, on servers that have them.
//!
//! A statement that reads a few rows by an index is as cheap as a look-up in a view, and gets none.

use super::{notifications, reading};

/// A view is kept up to date from changed rows of each of its tables: an index leads from an answered
/// comment to its answers, which the tables of the site lack.
const INDEXES: [&str; 1] =
    ["CREATE INDEX comments_parent_comment_id ON comments (parent_comment_id)"];

/// The indexes that [`statements`] need, for tables without rows.
#[must_use]
pub fn indexes() -> &'static [&'static str] {
    &INDEXES
}

/// The statements that make the views, in order, in the database of the site.
#[must_use]
pub fn statements() -> Vec<String> {
    let views = [
        ("notifications_of_user", notifications::COUNTED),
        ("most_used_tag_of_user", reading::MOST_USED_TAG),
    ];
    let create =
        |(name, query): (&str, &str)| format!("CREATE MATERIALIZED VIEW {name} AS {query}");
    views.map(create).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_view_is_keyed_by_one_parameter() {
        let all = statements();
        assert_eq!(all.len(), 2);
        for view in all {
            assert_eq!(view.matches('?').count(), 1, "{view}");
            assert!(view.starts_with("CREATE MATERIALIZED VIEW "), "{view}");
        }
    }
}
