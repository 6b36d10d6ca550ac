//! Pages that show something.

use super::page::{Facts, Step, by_ids, in_list, with_ids};
use super::{short_id, username};
use crate::{Answer, Statement, Value};

/// The front page's stories: hotness falls with time and votes, so the lowest are the hottest.
pub(super) fn hottest() -> Statement {
    Statement::prepared(
        "stories hottest",
        "SELECT stories.* FROM stories WHERE stories.merged_story_id IS NULL \
         AND stories.is_expired = 0 AND stories.upvotes - stories.downvotes >= 0 \
         ORDER BY hotness ASC LIMIT 51",
        Vec::new(),
    )
    .ordered(&["hotness"])
}

/// The stories of the page of recent ones.
pub(super) fn newest() -> Statement {
    Statement::prepared(
        "stories newest",
        "SELECT stories.* FROM stories WHERE stories.merged_story_id IS NULL \
         AND stories.is_expired = 0 AND stories.upvotes - stories.downvotes <= 5 \
         ORDER BY stories.id DESC LIMIT 51",
        Vec::new(),
    )
    .ordered(&["id"])
}

/// `SELECT table.* FROM table WHERE column IN (…)`, prepared.
fn among(name: &'static str, table: &str, column: &str, ids: &[i64]) -> Step {
    if ids.is_empty() {
        return Step::Skip;
    }
    let (marks, values) = in_list(ids, &[]);
    let text = format!("SELECT {table}.* FROM {table} WHERE {table}.{column} IN ({marks})");
    Step::Send(Statement::prepared(name, text, values))
}

/// The same, of one user's rows only, with a condition after.
fn own_among(
    name: &'static str,
    table: &str,
    (user, column, ids): (i64, &str, &[i64]),
    rest: &str,
) -> Step {
    if ids.is_empty() {
        return Step::Skip;
    }
    let (marks, values) = in_list(ids, &[user]);
    let text = format!(
        "SELECT {table}.* FROM {table} WHERE {table}.user_id = ? AND {table}.{column} IN ({marks}){rest}"
    );
    Step::Send(Statement::prepared(name, text, values))
}

/// Frontpage and Recent, which differ in their first statement.
pub(super) fn list(
    first: Statement,
    facts: &mut Facts,
    user: i64,
    step: usize,
    answer: &Answer,
) -> Step {
    match step {
        0 => Step::Send(first),
        1 => {
            facts.stories = answer.distinct("id");
            facts.users = answer.distinct("user_id");
            with_ids(
                "hidden stories of user",
                "SELECT hidden_stories.story_id FROM hidden_stories WHERE hidden_stories.user_id = ?",
                &[user],
            )
        }
        2 => with_ids(
            "tag filters of user",
            "SELECT tag_filters.* FROM tag_filters WHERE tag_filters.user_id = ?",
            &[user],
        ),
        3 => filtered(facts, &answer.distinct("tag_id")),
        4 => by_ids("users by ids", "users", &facts.users),
        5 => among(
            "suggested titles of stories",
            "suggested_titles",
            "story_id",
            &facts.stories,
        ),
        6 => among(
            "suggested taggings of stories",
            "suggested_taggings",
            "story_id",
            &facts.stories,
        ),
        7 => among(
            "taggings of stories",
            "taggings",
            "story_id",
            &facts.stories,
        ),
        8 if facts.stories.is_empty() => Step::End,
        8 => by_ids("tags by ids", "tags", &answer.distinct("tag_id")),
        9 => own_among(
            "votes of user on stories",
            "votes",
            (user, "story_id", &facts.stories),
            " AND votes.comment_id IS NULL",
        ),
        10 => own_among(
            "hidden stories among",
            "hidden_stories",
            (user, "story_id", &facts.stories),
            "",
        ),
        11 => own_among(
            "saved stories among",
            "saved_stories",
            (user, "story_id", &facts.stories),
            "",
        ),
        _ => Step::End,
    }
}

/// Which of the stories the user's tag filters hide; nobody has filters in the seeded data.
fn filtered(facts: &Facts, tags: &[i64]) -> Step {
    if tags.is_empty() || facts.stories.is_empty() {
        return Step::Skip;
    }
    let (story_marks, _) = in_list(&facts.stories, &[]);
    let (tag_marks, values) = in_list(tags, &facts.stories);
    let text = format!(
        "SELECT taggings.story_id, taggings.tag_id FROM taggings \
         WHERE taggings.story_id IN ({story_marks}) AND taggings.tag_id IN ({tag_marks})"
    );
    Step::Send(Statement::prepared("taggings filtered", text, values))
}

/// The newest comments of all stories.
pub(super) fn comments(facts: &mut Facts, user: i64, step: usize, answer: &Answer) -> Step {
    match step {
        0 => Step::Send(
            Statement::prepared(
                "comments newest",
                "SELECT comments.* FROM comments WHERE comments.is_deleted = 0 \
                 AND comments.is_moderated = 0 ORDER BY id DESC LIMIT 40",
                Vec::new(),
            )
            .ordered(&["id"]),
        ),
        1 => {
            facts.comments = answer.distinct("id");
            facts.users = answer.distinct("user_id");
            facts.stories = answer.distinct("story_id");
            if facts.comments.is_empty() {
                return Step::End;
            }
            let (marks, values) = in_list(&facts.stories, &[user]);
            let text = format!(
                "SELECT 1, user_id, story_id FROM hidden_stories \
                 WHERE hidden_stories.user_id = ? AND hidden_stories.story_id IN ({marks})"
            );
            Step::Send(Statement::prepared(
                "hidden stories of comments",
                text,
                values,
            ))
        }
        2 => by_ids("users by ids", "users", &facts.users),
        3 => among("stories of comments", "stories", "id", &facts.stories),
        4 => {
            facts.users = answer.distinct("user_id");
            own_among(
                "votes of user on comments",
                "votes",
                (user, "comment_id", &facts.comments),
                "",
            )
        }
        5 => by_ids("users by ids", "users", &facts.users),
        _ => Step::End,
    }
}

/// Who looks at which story; `ribbon` is the id of the mark this leaves, if it is the first.
pub(super) struct Visit<'a> {
    pub user: i64,
    pub story: i64,
    pub ribbon: i64,
    pub now: &'a str,
}

/// A story with its comments.
pub(super) fn story(visit: &Visit<'_>, facts: &mut Facts, step: usize, answer: &Answer) -> Step {
    match step {
        0 => Step::Send(story_by_short_id(visit.story)),
        1 => {
            let Some(story) = answer.integer("id") else {
                return Step::End;
            };
            facts.story = story;
            user_by_id(answer.integer("user_id").unwrap_or(0))
        }
        2 => with_ids(
            "read ribbon",
            "SELECT read_ribbons.* FROM read_ribbons WHERE read_ribbons.user_id = ? \
             AND read_ribbons.story_id = ?",
            &[visit.user, facts.story],
        ),
        3 => Step::Send(mark_read(visit, facts.story, answer.integer("id"))),
        4 => merged_into(facts.story),
        5 => Step::Send(comments_of(facts.story)),
        6 => {
            facts.comments = answer.distinct("id");
            by_ids("users by ids", "users", &answer.distinct("user_id"))
        }
        7 => among("votes on comments", "votes", "comment_id", &facts.comments),
        8 => vote_on_story(visit.user, facts.story),
        9 => with_ids(
            "hidden story",
            "SELECT hidden_stories.* FROM hidden_stories WHERE hidden_stories.user_id = ? \
             AND hidden_stories.story_id = ?",
            &[visit.user, facts.story],
        ),
        10 => with_ids(
            "saved story",
            "SELECT saved_stories.* FROM saved_stories WHERE saved_stories.user_id = ? \
             AND saved_stories.story_id = ?",
            &[visit.user, facts.story],
        ),
        11 => with_ids(
            "taggings of story",
            "SELECT taggings.* FROM taggings WHERE taggings.story_id = ?",
            &[facts.story],
        ),
        12 => by_ids("tags by ids", "tags", &answer.distinct("tag_id")),
        _ => Step::End,
    }
}

fn mark_read(visit: &Visit<'_>, story: i64, ribbon: Option<i64>) -> Statement {
    match ribbon {
        Some(ribbon) => Statement::prepared(
            "UPDATE read_ribbons",
            "UPDATE read_ribbons SET read_ribbons.updated_at = ? WHERE read_ribbons.id = ?",
            vec![visit.now.into(), ribbon.into()],
        ),
        None => Statement::prepared(
            "INSERT read_ribbons",
            "INSERT INTO read_ribbons (id, created_at, updated_at, user_id, story_id, is_following) \
             VALUES (?, ?, ?, ?, ?, 1)",
            vec![
                visit.ribbon.into(),
                visit.now.into(),
                visit.now.into(),
                visit.user.into(),
                story.into(),
            ],
        ),
    }
}

/// The tag that stands most often at the stories of an author.
pub(super) const MOST_USED_TAG: &str = "SELECT tags.id, stories.user_id, count(*) AS `count` FROM tags \
    INNER JOIN taggings ON tags.id = taggings.tag_id \
    INNER JOIN stories ON taggings.story_id = stories.id \
    WHERE tags.inactive = 0 AND stories.user_id = ? \
    GROUP BY tags.id, stories.user_id ORDER BY `count` DESC LIMIT 1";

/// Someone's profile.
pub(super) fn user(facts: &mut Facts, user: i64, step: usize, answer: &Answer) -> Step {
    match step {
        0 => Step::Send(Statement::prepared(
            "user by name",
            "SELECT users.* FROM users WHERE users.username = ?",
            vec![username(user).into()],
        )),
        1 => {
            let Some(author) = answer.integer("id") else {
                return Step::End;
            };
            facts.author = author;
            Step::Send(
                Statement::prepared("most used tag", MOST_USED_TAG, vec![author.into()])
                    .ordered(&["count"]),
            )
        }
        2 => key_value(format!("user:{}:stories_submitted", facts.author)),
        3 => key_value(format!("user:{}:comments_posted", facts.author)),
        4 => with_ids(
            "hat of user",
            "SELECT 1 AS `one`, hats.user_id FROM hats WHERE hats.user_id = ? LIMIT 1",
            &[facts.author],
        ),
        _ => Step::End,
    }
}

pub(super) fn key_value(key: String) -> Step {
    Step::Send(Statement::prepared(
        "key store",
        "SELECT keystores.* FROM keystores WHERE keystores.keyX = ?",
        vec![key.into()],
    ))
}

pub(super) fn story_by_short_id(story: i64) -> Statement {
    Statement::prepared(
        "story by short id",
        "SELECT stories.* FROM stories WHERE stories.short_id = ?",
        vec![short_id(story).into()],
    )
}

pub(super) fn user_by_id(user: i64) -> Step {
    with_ids(
        "user by id",
        "SELECT users.* FROM users WHERE users.id = ?",
        &[user],
    )
}

pub(super) fn merged_into(story: i64) -> Step {
    with_ids(
        "stories merged",
        "SELECT stories.id, stories.merged_story_id FROM stories WHERE stories.merged_story_id = ?",
        &[story],
    )
}

pub(super) fn comments_of(story: i64) -> Statement {
    Statement::prepared(
        "comments of story",
        "SELECT comments.*, comments.upvotes - comments.downvotes AS saldo FROM comments \
         WHERE comments.story_id = ? ORDER BY saldo ASC, confidence DESC",
        vec![Value::Integer(story)],
    )
    .ordered(&["saldo", "confidence"])
}

pub(super) fn vote_on_story(user: i64, story: i64) -> Step {
    with_ids(
        "vote of user on story",
        "SELECT votes.* FROM votes WHERE votes.user_id = ? AND votes.story_id = ? \
         AND votes.comment_id IS NULL",
        &[user, story],
    )
}
