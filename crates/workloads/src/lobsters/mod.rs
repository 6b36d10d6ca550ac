//! Lobsters: a link-sharing site (<https://lobste.rs>), page by page.
//!
//! The statements are those that the site's code sends, as used in the evaluation of K9db
//! (OSDI'23), with a logged-in user on every page. The numbers below are of the
//! site in March 2018 at [`Scale`] 1.
//!
//! | page | per 100,000 | statements | writes |
//! |---|---|---|---|
//! | Story | 55,842 | 13 | a read ribbon |
//! | Frontpage | 30,105 | 11 | |
//! | User | 6,702 | 5 | |
//! | Comments | 4,674 | 6 | |
//! | Recent | 967 | 11 | |
//! | CommentVote | 684 | 10 | vote, karma, comment, story |
//! | StoryVote | 496 | 8 | vote, karma, story |
//! | Comment | 387 | 14, a reply 15 | comment, vote, story twice, key store |
//! | Login | 87 | 1 or 2 | the user, when new |
//! | Submit | 53 | 10 | story, tagging, key store, vote |
//! | Logout | 3 | 0 | |
//!
//! On the first five the site can show its reader's notifications, two statements more
//! ([`Page::with_notifications`]).
//!
//! Where to look: [`schema`] for the tables, [`seed`] for their rows, [`views`] for
//! views over them, [`Sampler`] for who votes how much, [`Mix`] for the requests, [`Page`] for
//! their statements.

mod mix;
mod notifications;
mod page;
mod reading;
mod sampler;
pub mod schema;
pub mod seed;
pub mod views;
mod writing;

pub use mix::{Action, Counters, Kind, Mix, Request};
pub use page::Page;
pub use sampler::{Sampler, Scale};
pub use schema::Schema;

/// The id of a story or comment as its address shows it: six letters and digits.
pub fn short_id(id: i64) -> String {
    const DIGITS: &[u8; 36] = b"0123456789abcdefghijklmnopqrstuvwxyz";
    let mut rest = id.unsigned_abs();
    let mut digits = [b'0'; 6];
    for place in digits.iter_mut().rev() {
        // Below 36, so it fits.
        *place = DIGITS[usize::try_from(rest % 36).unwrap_or(0)];
        rest /= 36;
    }
    String::from_utf8_lossy(&digits).into_owned()
}

/// The name of a user.
pub fn username(id: i64) -> String {
    format!("user{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ids_differ_and_fit_their_column() {
        let ids: std::collections::BTreeSet<String> = (1..5_000).map(short_id).collect();
        assert_eq!(ids.len(), 4_999);
        assert!(ids.iter().all(|id| id.len() == 6));
        assert_eq!(short_id(36), "000010");
    }
}
