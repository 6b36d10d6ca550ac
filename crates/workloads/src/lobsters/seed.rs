//! The rows a site starts with.

use std::fmt::Write as _;

use super::{Sampler, Scale, short_id, username};
use crate::Random;

/// The one tag there is.
pub const TAG: i64 = 1;
pub(super) const STORY_TEXT: &str = "to infinity";
pub(super) const STORY_HTML: &str = "<p>to infinity</p>";
pub(super) const COMMENT_TEXT: &str = "more measuring";
pub(super) const COMMENT_HTML: &str = "<p>more measuring</p>\n";
/// Rows of one INSERT.
const ROWS_PER_STATEMENT: usize = 500;
const SEEDED_AT: &str = "2021-05-07 18:00:00";

/// Hotness of a story when it is new: newer ones are hotter (lower), and votes, which move it
/// by one, seldom make two equal.
pub fn hotness(story: i64) -> i64 {
    1_000_000_000 - 100 * story
}

/// INSERT statements that fill the tables of [`super::Schema`]: users, one tag, stories with a
/// vote of their author each, about three comments a story with a vote each, and the
/// key-value counters.
pub fn statements(scale: Scale, seed: u64) -> impl Iterator<Item = String> {
    let sampler = Sampler::new(scale);
    let mut random = Random::new(seed);
    let authors: Vec<i64> = (0..sampler.stories())
        .map(|_| sampler.user(&mut random))
        .collect();
    let commenters: Vec<i64> = (0..sampler.comments())
        .map(|_| sampler.user(&mut random))
        .collect();
    let tag = std::iter::once(format!(
        "INSERT INTO tags (id, tag, description, privileged, is_media, inactive, hotness_mod) \
         VALUES ({TAG}, 'test', NULL, 0, 0, 0, 0)"
    ));
    let comments = comments(&sampler, &commenters, &mut random);
    tag.chain(batches(USERS, (1..=sampler.users()).map(user)))
        .chain(batches(STORIES, numbered(&authors).map(story)))
        .chain(batches(
            TAGGINGS,
            (1..=sampler.stories()).map(|id| format!("({id},{id},{TAG})")),
        ))
        .chain(batches(COMMENTS, comments))
        .chain(batches(VOTES, votes(&sampler, &authors, &commenters)))
        .chain(batches(KEYSTORES, counters(&authors, &commenters)))
}

const USERS: &str = "INSERT INTO users (id, username, email, password_digest, created_at, \
                     is_admin, session_token, karma) VALUES ";
const STORIES: &str = "INSERT INTO stories (id, created_at, user_id, title, description, \
                       short_id, upvotes, hotness, markeddown_description, url, is_expired, \
                       downvotes, is_moderated, comments_count) VALUES ";
const TAGGINGS: &str = "INSERT INTO taggings (id, story_id, tag_id) VALUES ";
const COMMENTS: &str = "INSERT INTO comments (id, created_at, updated_at, short_id, story_id, \
                        user_id, comment, upvotes, confidence, markeddown_comment, downvotes, \
                        is_deleted, is_moderated, is_from_email, parent_comment_id) VALUES ";
const VOTES: &str = "INSERT INTO votes (id, user_id, story_id, comment_id, vote) VALUES ";
const KEYSTORES: &str = "INSERT INTO keystores (keyX, valueX) VALUES ";

fn user(id: i64) -> String {
    let name = username(id);
    format!("({id},'{name}','mail@example.org','digest','{SEEDED_AT}',0,'session_token_{id}',0)")
}

fn story((id, author): (i64, i64)) -> String {
    format!(
        "({id},'{SEEDED_AT}',{author},'Base article {id}','{STORY_TEXT}','{}',1,{},'{STORY_HTML}',\
         '',0,0,0,0)",
        short_id(id),
        hotness(id)
    )
}

/// Half of them are replies to an earlier comment of their story.
fn comments(sampler: &Sampler, commenters: &[i64], random: &mut Random) -> Vec<String> {
    let stories = sampler.stories();
    let mut rows = Vec::with_capacity(commenters.len());
    for (id, user) in numbered(commenters) {
        let story = sampler.story_of(id);
        let earlier = u64::try_from((id - story) / stories).unwrap_or(0);
        let parent = if earlier > 0 && random.below(2) == 0 {
            let round = i64::try_from(random.below(earlier)).unwrap_or(0);
            (story + stories * round).to_string()
        } else {
            "NULL".to_owned()
        };
        rows.push(format!(
            "({id},'{SEEDED_AT}','{SEEDED_AT}','{}',{story},{user},'{COMMENT_TEXT}',1,1,\
             '{COMMENT_HTML}',0,0,0,0,{parent})",
            short_id(id)
        ));
    }
    rows
}

/// Everyone votes for what they wrote.
fn votes(sampler: &Sampler, authors: &[i64], commenters: &[i64]) -> Vec<String> {
    let stories = sampler.stories();
    let on_stories = numbered(authors).map(|(id, user)| format!("({id},{user},{id},NULL,1)"));
    let on_comments = numbered(commenters).map(|(id, user)| {
        let story = sampler.story_of(id);
        format!("({},{user},{story},{id},1)", stories + id)
    });
    on_stories.chain(on_comments).collect()
}

/// As the application writes them: whoever did it at all has a 1.
fn counters(authors: &[i64], commenters: &[i64]) -> Vec<String> {
    let mut rows = Vec::new();
    for (people, what) in [
        (authors, "stories_submitted"),
        (commenters, "comments_posted"),
    ] {
        let mut people = people.to_vec();
        people.sort_unstable();
        people.dedup();
        rows.extend(
            people
                .iter()
                .map(|user| format!("('user:{user}:{what}',1)")),
        );
    }
    rows
}

fn numbered(users: &[i64]) -> impl Iterator<Item = (i64, i64)> {
    (1..).zip(users.iter().copied())
}

/// Rows in INSERTs of [`ROWS_PER_STATEMENT`].
fn batches(
    insert: &'static str,
    rows: impl IntoIterator<Item = String>,
) -> std::vec::IntoIter<String> {
    let mut made: Vec<String> = Vec::new();
    for (index, row) in rows.into_iter().enumerate() {
        match made.last_mut() {
            Some(text) if index % ROWS_PER_STATEMENT != 0 => {
                let _ = write!(text, ",{row}");
            }
            _ => made.push(format!("{insert}{row}")),
        }
    }
    made.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_rows() {
        let take = |seed| statements(Scale(0.01), seed).collect::<Vec<_>>();
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }

    #[test]
    fn there_are_as_many_rows_as_the_scale_says() {
        let scale = Scale(0.01);
        let sampler = Sampler::new(scale);
        let rows = |table: &str| {
            statements(scale, 1)
                .filter(|text| text.starts_with(&format!("INSERT INTO {table} ")))
                .map(|text| text.split("VALUES ").nth(1).unwrap().matches("),(").count() + 1)
                .sum::<usize>()
        };
        assert_eq!(i64::try_from(rows("users")).unwrap(), sampler.users());
        assert_eq!(i64::try_from(rows("comments")).unwrap(), sampler.comments());
        assert_eq!(
            i64::try_from(rows("votes")).unwrap(),
            sampler.stories() + sampler.comments()
        );
    }
}
