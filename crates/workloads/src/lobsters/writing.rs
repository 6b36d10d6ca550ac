//! Pages that change something. The application runs each statement on its own, as the
//! original harness does; a transaction around them would be kinder to both sides.

use super::page::{Facts, Step, with_ids};
use super::reading::{
    comments_of, key_value, merged_into, story_by_short_id, user_by_id, vote_on_story,
};
use super::{seed, short_id, username};
use crate::{Answer, Statement, Value};

/// A vote: by whom, on which story or comment, and the id of its row.
pub(super) struct Cast {
    pub user: i64,
    pub on: i64,
    pub up: bool,
    pub vote: i64,
}

/// A vote on a story.
pub(super) fn story_vote(cast: &Cast, facts: &mut Facts, step: usize, answer: &Answer) -> Step {
    match step {
        0 => Step::Send(story_by_short_id(cast.on)),
        1 => {
            if !learn_story(facts, answer) {
                return Step::End;
            }
            vote_on_story(cast.user, facts.story)
        }
        2 => Step::Send(insert_vote(
            cast.vote,
            cast.user,
            (facts.story, None),
            cast.up,
        )),
        3 => Step::Send(change_karma(cast.up, facts.author)),
        4 => tags_of(facts.story),
        5 => others_comments(facts.story),
        6 => merged_into(facts.story),
        7 => Step::Send(score_story(cast.up, facts)),
        _ => Step::End,
    }
}

/// A vote on a comment.
pub(super) fn comment_vote(cast: &Cast, facts: &mut Facts, step: usize, answer: &Answer) -> Step {
    match step {
        0 => Step::Send(Statement::prepared(
            "comment by short id",
            "SELECT comments.* FROM comments WHERE comments.short_id = ?",
            vec![short_id(cast.on).into()],
        )),
        1 => {
            let Some(comment) = answer.integer("id") else {
                return Step::End;
            };
            facts.comment = comment;
            facts.author = answer.integer("user_id").unwrap_or(0);
            facts.story = answer.integer("story_id").unwrap_or(0);
            let (up, down) = (answer.integer("upvotes"), answer.integer("downvotes"));
            facts.confidence = confidence(up.unwrap_or(0), down.unwrap_or(0));
            vote_on_comment(cast.user, facts)
        }
        2 => Step::Send(insert_vote(
            cast.vote,
            cast.user,
            (facts.story, Some(facts.comment)),
            cast.up,
        )),
        3 => Step::Send(change_karma(cast.up, facts.author)),
        4 => Step::Send(score_comment(cast.up, facts)),
        5 => with_ids(
            "story by id",
            "SELECT stories.* FROM stories WHERE stories.id = ?",
            &[facts.story],
        ),
        6 => {
            facts.hotness = answer.integer("hotness").unwrap_or(0);
            tags_of(facts.story)
        }
        7 => others_comments(facts.story),
        8 => merged_into(facts.story),
        9 => Step::Send(score_story(cast.up, facts)),
        _ => Step::End,
    }
}

/// A comment: by whom, on which story, perhaps to another; and the ids of its rows.
pub(super) struct Post<'a> {
    pub user: i64,
    pub story: i64,
    pub parent: Option<i64>,
    pub comment: i64,
    pub vote: i64,
    pub now: &'a str,
}

/// A new comment.
pub(super) fn comment(post: &Post<'_>, facts: &mut Facts, step: usize, answer: &Answer) -> Step {
    match step {
        0 => Step::Send(story_by_short_id(post.story)),
        1 => {
            if !learn_story(facts, answer) {
                return Step::End;
            }
            user_by_id(facts.author)
        }
        2 => match post.parent {
            Some(parent) => Step::Send(Statement::prepared(
                "comment replied to",
                "SELECT comments.* FROM comments WHERE comments.story_id = ? \
                 AND comments.short_id = ?",
                vec![facts.story.into(), short_id(parent).into()],
            )),
            None => Step::Skip,
        },
        3 => {
            if post.parent.is_some() {
                facts.comment = answer.integer("id").unwrap_or(0);
                facts.thread = answer.integer("thread_id");
            }
            Step::Send(Statement::prepared(
                "comment short id free",
                "SELECT 1 AS `one`, comments.short_id FROM comments WHERE comments.short_id = ?",
                vec![short_id(post.comment).into()],
            ))
        }
        4 => Step::Send(insert_comment(post, facts)),
        5 => {
            facts.comment = post.comment;
            vote_on_comment(post.user, facts)
        }
        6 => Step::Send(insert_vote(
            post.vote,
            post.user,
            (facts.story, Some(post.comment)),
            true,
        )),
        7 => merged_into(facts.story),
        8 => Step::Send(comments_of(facts.story)),
        9 => Step::Send(Statement::prepared(
            "UPDATE stories comments_count",
            "UPDATE stories SET comments_count = ? WHERE stories.id = ?",
            vec![
                Value::Integer(i64::try_from(answer.rows.len()).unwrap_or(0)),
                facts.story.into(),
            ],
        )),
        10 => tags_of(facts.story),
        11 => others_comments(facts.story),
        12 => merged_into(facts.story),
        13 => Step::Send(Statement::prepared(
            "UPDATE stories hotness",
            "UPDATE stories SET hotness = ? WHERE stories.id = ?",
            vec![(facts.hotness - 1).into(), facts.story.into()],
        )),
        14 => Step::Send(replace_key(format!("user:{}:comments_posted", post.user))),
        _ => Step::End,
    }
}

fn insert_comment(post: &Post<'_>, facts: &Facts) -> Statement {
    let mut values: Vec<Value> = vec![
        post.comment.into(),
        post.now.into(),
        post.now.into(),
        short_id(post.comment).into(),
        facts.story.into(),
        post.user.into(),
    ];
    let text = [
        seed::COMMENT_TEXT.into(),
        1.into(),
        1.into(),
        seed::COMMENT_HTML.into(),
    ];
    if post.parent.is_none() || facts.comment == 0 {
        values.extend(text);
        return Statement::prepared(
            "INSERT comments",
            "INSERT INTO comments (id, created_at, updated_at, short_id, story_id, user_id, \
             comment, upvotes, confidence, markeddown_comment, downvotes, is_deleted, \
             is_moderated, is_from_email, hat_id, parent_comment_id, thread_id) \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, NULL, NULL, NULL)",
            values,
        );
    }
    values.push(facts.comment.into());
    values.push(facts.thread.map_or(Value::Null, Value::Integer));
    values.extend(text);
    Statement::prepared(
        "INSERT comments",
        "INSERT INTO comments (id, created_at, updated_at, short_id, story_id, user_id, \
         parent_comment_id, thread_id, comment, upvotes, confidence, markeddown_comment, \
         downvotes, is_deleted, is_moderated, is_from_email, hat_id) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, NULL)",
        values,
    )
}

/// A new story: by whom, and the ids of its rows.
pub(super) struct Submission<'a> {
    pub user: i64,
    pub story: i64,
    pub tagging: i64,
    pub vote: i64,
    pub now: &'a str,
}

/// A new story.
pub(super) fn submit(
    submission: &Submission<'_>,
    facts: &mut Facts,
    step: usize,
    answer: &Answer,
) -> Step {
    let Submission { user, story, .. } = *submission;
    match step {
        0 => Step::Send(Statement::text(
            "tag by name",
            "SELECT tags.* FROM tags WHERE tags.inactive = 0 AND tags.tag IN ('test')",
        )),
        1 => {
            facts.users = answer.distinct("id");
            Step::Send(Statement::prepared(
                "story short id free",
                "SELECT 1 AS `one`, stories.short_id FROM stories WHERE stories.short_id = ?",
                vec![short_id(story).into()],
            ))
        }
        2 => Step::Send(insert_story(submission)),
        3 => Step::Send(Statement::prepared(
            "INSERT taggings",
            "INSERT INTO taggings (id, story_id, tag_id) VALUES (?, ?, ?)",
            vec![
                submission.tagging.into(),
                story.into(),
                facts.users.first().copied().unwrap_or(seed::TAG).into(),
            ],
        )),
        4 => Step::Send(replace_key(format!("user:{user}:stories_submitted"))),
        5 => key_value(format!("user:{user}:stories_submitted")),
        6 => vote_on_story(user, story),
        7 => Step::Send(insert_vote(submission.vote, user, (story, None), true)),
        8 => others_comments(story),
        9 => Step::Send(Statement::prepared(
            "UPDATE stories hotness",
            "UPDATE stories SET hotness = ? WHERE stories.id = ?",
            vec![seed::hotness(story).into(), story.into()],
        )),
        _ => Step::End,
    }
}

fn insert_story(submission: &Submission<'_>) -> Statement {
    Statement::prepared(
        "INSERT stories",
        "INSERT INTO stories (id, created_at, user_id, title, description, short_id, upvotes, \
         hotness, markeddown_description, url, is_expired, downvotes, is_moderated, \
         comments_count, story_cache, merged_story_id, unavailable_at, twitter_id, \
         user_is_author) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, '', 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL)",
        vec![
            submission.story.into(),
            submission.now.into(),
            submission.user.into(),
            format!("story {}", submission.story).into(),
            seed::STORY_TEXT.into(),
            short_id(submission.story).into(),
            1.into(),
            seed::hotness(submission.story).into(),
            seed::STORY_HTML.into(),
        ],
    )
}

/// Logging in; a user who is not there yet is made.
pub(super) fn login(user: i64, now: &str, step: usize, answer: &Answer) -> Step {
    match step {
        0 => Step::Send(Statement::prepared(
            "user name taken",
            "SELECT 1 AS `one` FROM users WHERE users.username = ?",
            vec![username(user).into()],
        )),
        1 if answer.rows.is_empty() => Step::Send(Statement::prepared(
            "INSERT users",
            "INSERT INTO users (id, username, email, password_digest, created_at, is_admin, \
             password_reset_token, session_token, about, invited_by_user_id, is_moderator, \
             pushover_mentions, rss_token, mailing_list_token, mailing_list_mode, karma, \
             banned_at, banned_by_user_id, banned_reason, deleted_at, disabled_invite_at, \
             disabled_invite_by_user_id, disabled_invite_reason, settings) \
             VALUES (?, ?, 'mail@example.org', 'digest', ?, 0, NULL, ?, NULL, NULL, NULL, NULL, \
             NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)",
            vec![
                user.into(),
                username(user).into(),
                now.into(),
                format!("session_token_{user}").into(),
            ],
        )),
        _ => Step::End,
    }
}

/// Remembers the story that was looked up; false when there was none.
fn learn_story(facts: &mut Facts, answer: &Answer) -> bool {
    facts.story = answer.integer("id").unwrap_or(0);
    facts.author = answer.integer("user_id").unwrap_or(0);
    facts.hotness = answer.integer("hotness").unwrap_or(0);
    facts.story != 0
}

fn insert_vote(vote: i64, user: i64, (story, comment): (i64, Option<i64>), up: bool) -> Statement {
    let (name, text) = match comment {
        None => (
            "INSERT votes on story",
            "INSERT INTO votes (id, user_id, story_id, vote, comment_id, reason) \
             VALUES (?, ?, ?, ?, NULL, NULL)",
        ),
        Some(_) => (
            "INSERT votes on comment",
            "INSERT INTO votes (id, user_id, story_id, comment_id, vote, reason) \
             VALUES (?, ?, ?, ?, ?, NULL)",
        ),
    };
    let ids = [
        Some(vote),
        Some(user),
        Some(story),
        comment,
        Some(i64::from(up)),
    ];
    let values = ids.into_iter().flatten().map(Value::Integer).collect();
    Statement::prepared(name, text, values)
}

fn change_karma(up: bool, author: i64) -> Statement {
    let text = if up {
        "UPDATE users SET users.karma = users.karma + 1 WHERE users.id = ?"
    } else {
        "UPDATE users SET users.karma = users.karma - 1 WHERE users.id = ?"
    };
    Statement::prepared("UPDATE users karma", text, vec![author.into()])
}

fn score_story(up: bool, facts: &Facts) -> Statement {
    let (text, hotness) = if up {
        (
            "UPDATE stories SET stories.upvotes = stories.upvotes + 1, \
             stories.downvotes = stories.downvotes + 0, stories.hotness = ? WHERE stories.id = ?",
            facts.hotness - 1,
        )
    } else {
        (
            "UPDATE stories SET stories.upvotes = stories.upvotes + 0, \
             stories.downvotes = stories.downvotes + 1, stories.hotness = ? WHERE stories.id = ?",
            facts.hotness + 1,
        )
    };
    Statement::prepared(
        "UPDATE stories score",
        text,
        vec![hotness.into(), facts.story.into()],
    )
}

fn score_comment(up: bool, facts: &Facts) -> Statement {
    let text = if up {
        "UPDATE comments SET comments.upvotes = comments.upvotes + 1, \
         comments.downvotes = comments.downvotes + 0, comments.confidence = ? \
         WHERE comments.id = ?"
    } else {
        "UPDATE comments SET comments.upvotes = comments.upvotes + 0, \
         comments.downvotes = comments.downvotes + 1, comments.confidence = ? \
         WHERE comments.id = ?"
    };
    // A DOUBLE for an INT column, as the application sends it.
    #[allow(clippy::cast_precision_loss)] // 0 or 1
    let confidence = Value::Double(facts.confidence as f64);
    Statement::prepared(
        "UPDATE comments score",
        text,
        vec![confidence, facts.comment.into()],
    )
}

/// The share of upvotes, rounded up.
fn confidence(up: i64, down: i64) -> i64 {
    i64::from(up > 0 && up + down > 0)
}

fn vote_on_comment(user: i64, facts: &Facts) -> Step {
    with_ids(
        "vote of user on comment",
        "SELECT votes.* FROM votes WHERE votes.user_id = ? AND votes.story_id = ? \
         AND votes.comment_id = ?",
        &[user, facts.story, facts.comment],
    )
}

fn tags_of(story: i64) -> Step {
    with_ids(
        "tags of story",
        "SELECT tags.*, taggings.story_id FROM tags \
         INNER JOIN taggings ON tags.id = taggings.tag_id WHERE taggings.story_id = ?",
        &[story],
    )
}

fn others_comments(story: i64) -> Step {
    with_ids(
        "comments of others",
        "SELECT comments.upvotes, comments.downvotes, comments.story_id FROM comments \
         JOIN stories ON comments.story_id = stories.id \
         WHERE comments.story_id = ? AND comments.user_id != stories.user_id",
        &[story],
    )
}

fn replace_key(key: String) -> Statement {
    Statement::prepared(
        "REPLACE keystores",
        "REPLACE INTO keystores (keyX, valueX) VALUES (?, ?)",
        vec![key.into(), 1.into()],
    )
}
