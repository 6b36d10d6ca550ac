//! What a page that shows its reader's notifications asks besides: two statements, behind its own.
//!
//! The site counts comments by others, newer than the reader's last visit of their story, which
//! answer a comment of the reader's, or stand at the top of a story of the reader's. It is the
//! dearest statement of the site: it joins four tables for each page.

use super::Kind;
use super::page::{Step, with_ids};
use super::reading::key_value;

/// Whether the site shows notifications on pages of this kind.
pub(super) fn are_shown(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Story | Kind::Frontpage | Kind::User | Kind::Comments | Kind::Recent
    )
}

/// Counts the notifications of a reader.
pub(super) const COUNTED: &str = "SELECT read_ribbons.user_id, COUNT(*) AS notifications FROM read_ribbons \
    INNER JOIN stories ON stories.id = read_ribbons.story_id \
    INNER JOIN comments ON comments.story_id = read_ribbons.story_id \
    LEFT JOIN comments AS parent_comments \
    ON parent_comments.id = comments.parent_comment_id \
    WHERE read_ribbons.is_following = 1 \
    AND comments.user_id <> read_ribbons.user_id \
    AND comments.is_deleted = 0 AND comments.is_moderated = 0 \
    AND comments.upvotes - comments.downvotes >= 0 \
    AND read_ribbons.updated_at < comments.created_at \
    AND ((parent_comments.user_id = read_ribbons.user_id \
    AND parent_comments.upvotes - parent_comments.downvotes >= 0) \
    OR (parent_comments.id IS NULL AND stories.user_id = read_ribbons.user_id)) \
    GROUP BY read_ribbons.user_id HAVING read_ribbons.user_id = ?";

/// The statements, in order.
pub(super) fn statement(user: i64, step: usize) -> Step {
    match step {
        0 => with_ids("notifications", COUNTED, &[user]),
        1 => key_value(format!("user:{user}:unread_messages")),
        _ => Step::End,
    }
}
