//! Which requests arrive.

use super::{Sampler, Scale};
use crate::Random;

/// Kinds of pages, as statistics name them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // they are what they are called
pub enum Kind {
    Story,
    Frontpage,
    User,
    Comments,
    Recent,
    CommentVote,
    StoryVote,
    Comment,
    Login,
    Submit,
    Logout,
}

impl Kind {
    /// All of them, the most frequent first.
    pub const ALL: [Self; 11] = [
        Self::Story,
        Self::Frontpage,
        Self::User,
        Self::Comments,
        Self::Recent,
        Self::CommentVote,
        Self::StoryVote,
        Self::Comment,
        Self::Login,
        Self::Submit,
        Self::Logout,
    ];

    /// Its name in tables and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Story => "Story",
            Self::Frontpage => "Frontpage",
            Self::User => "User",
            Self::Comments => "Comments",
            Self::Recent => "Recent",
            Self::CommentVote => "CommentVote",
            Self::StoryVote => "StoryVote",
            Self::Comment => "Comment",
            Self::Login => "Login",
            Self::Submit => "Submit",
            Self::Logout => "Logout",
        }
    }

    /// How many of 100,000 requests are of this kind.
    pub fn weight(self) -> u64 {
        match self {
            Self::Story => 55_842,
            Self::Frontpage => 30_105,
            Self::User => 6_702,
            Self::Comments => 4_674,
            Self::Recent => 967,
            Self::CommentVote => UPVOTED_COMMENTS + DOWNVOTED_COMMENTS,
            Self::StoryVote => UPVOTED_STORIES + DOWNVOTED_STORIES,
            Self::Comment => TOP_COMMENTS + REPLIES,
            Self::Login => 87,
            Self::Submit => 53,
            Self::Logout => 3,
        }
    }
}

const UPVOTED_COMMENTS: u64 = 630;
const DOWNVOTED_COMMENTS: u64 = 54;
const UPVOTED_STORIES: u64 = 475;
const DOWNVOTED_STORIES: u64 = 21;
const TOP_COMMENTS: u64 = 316;
const REPLIES: u64 = 71;
/// What all weights add up to.
const ALL_WEIGHTS: u64 = 100_000;

/// What a request is about; ids of new rows are chosen here, not by the server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)] // ids of the table or new row they are named after
pub enum Action {
    Story {
        story: i64,
        ribbon: i64,
    },
    Frontpage,
    User {
        user: i64,
    },
    Comments,
    Recent,
    CommentVote {
        comment: i64,
        up: bool,
        vote: i64,
    },
    StoryVote {
        story: i64,
        up: bool,
        vote: i64,
    },
    Comment {
        story: i64,
        parent: Option<i64>,
        comment: i64,
        vote: i64,
    },
    Login,
    Submit {
        story: i64,
        tagging: i64,
        vote: i64,
    },
    Logout,
}

/// A request and who makes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The user who is logged in.
    pub user: i64,
    /// What for.
    pub action: Action,
}

impl Request {
    /// The kind of page.
    pub fn kind(&self) -> Kind {
        match self.action {
            Action::Story { .. } => Kind::Story,
            Action::Frontpage => Kind::Frontpage,
            Action::User { .. } => Kind::User,
            Action::Comments => Kind::Comments,
            Action::Recent => Kind::Recent,
            Action::CommentVote { .. } => Kind::CommentVote,
            Action::StoryVote { .. } => Kind::StoryVote,
            Action::Comment { .. } => Kind::Comment,
            Action::Login => Kind::Login,
            Action::Submit { .. } => Kind::Submit,
            Action::Logout => Kind::Logout,
        }
    }
}

/// The greatest ids in use: new rows come after them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // the table of each
pub struct Counters {
    pub stories: i64,
    pub comments: i64,
    pub votes: i64,
    pub taggings: i64,
    pub read_ribbons: i64,
}

impl Counters {
    /// After [`super::seed`] has filled the tables.
    pub fn seeded(scale: Scale) -> Self {
        let sampler = Sampler::new(scale);
        Self {
            stories: sampler.stories(),
            comments: sampler.comments(),
            votes: sampler.stories() + sampler.comments(),
            taggings: sampler.stories(),
            read_ribbons: 0,
        }
    }

    fn next(counter: &mut i64) -> i64 {
        *counter += 1;
        *counter
    }
}

/// The stream of requests: equal for equal seeds, scales and counters.
#[derive(Debug, Clone)]
pub struct Mix {
    sampler: Sampler,
    random: Random,
    counters: Counters,
    only: Option<Kind>,
}

impl Mix {
    /// Requests to a site of this scale, whose greatest ids are `counters`.
    pub fn new(scale: Scale, seed: u64, counters: Counters) -> Self {
        Self {
            sampler: Sampler::new(scale),
            random: Random::new(seed),
            counters,
            only: None,
        }
    }

    /// Requests of one kind, to measure it alone.
    #[must_use]
    pub fn only(mut self, kind: Kind) -> Self {
        self.only = Some(kind);
        self
    }

    /// The next request.
    pub fn request(&mut self) -> Request {
        let kind = self.only.unwrap_or_else(|| self.draw_kind());
        let user = self.sampler.user(&mut self.random);
        Request {
            user,
            action: self.action(kind),
        }
    }

    fn draw_kind(&mut self) -> Kind {
        let mut at = self.random.below(ALL_WEIGHTS);
        for kind in Kind::ALL {
            if at < kind.weight() {
                return kind;
            }
            at -= kind.weight();
        }
        Kind::Logout
    }

    fn action(&mut self, kind: Kind) -> Action {
        let random = &mut self.random;
        let counters = &mut self.counters;
        match kind {
            Kind::Story => Action::Story {
                story: self.sampler.story_for_vote(random),
                ribbon: Counters::next(&mut counters.read_ribbons),
            },
            Kind::Frontpage => Action::Frontpage,
            Kind::User => Action::User {
                user: self.sampler.user(random),
            },
            Kind::Comments => Action::Comments,
            Kind::Recent => Action::Recent,
            Kind::CommentVote => Action::CommentVote {
                comment: self.sampler.comment_for_vote(random),
                up: random.below(UPVOTED_COMMENTS + DOWNVOTED_COMMENTS) < UPVOTED_COMMENTS,
                vote: Counters::next(&mut counters.votes),
            },
            Kind::StoryVote => Action::StoryVote {
                story: self.sampler.story_for_vote(random),
                up: random.below(UPVOTED_STORIES + DOWNVOTED_STORIES) < UPVOTED_STORIES,
                vote: Counters::next(&mut counters.votes),
            },
            Kind::Comment => self.comment(),
            Kind::Login => Action::Login,
            Kind::Submit => Action::Submit {
                story: Counters::next(&mut counters.stories),
                tagging: Counters::next(&mut counters.taggings),
                vote: Counters::next(&mut counters.votes),
            },
            Kind::Logout => Action::Logout,
        }
    }

    /// A comment on a story, or a reply to one that was there from the start.
    fn comment(&mut self) -> Action {
        let story = self.sampler.story_for_comment(&mut self.random);
        let stories = self.sampler.stories();
        let rounds = u64::try_from(self.sampler.comments() / stories).unwrap_or(0);
        let reply = self.random.below(TOP_COMMENTS + REPLIES) < REPLIES && rounds > 0;
        let round = i64::try_from(self.random.below(rounds)).unwrap_or(0);
        Action::Comment {
            story,
            parent: reply.then_some(story + stories * round),
            comment: Counters::next(&mut self.counters.comments),
            vote: Counters::next(&mut self.counters.votes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(seed: u64) -> Mix {
        let scale = Scale(0.01);
        Mix::new(scale, seed, Counters::seeded(scale))
    }

    #[test]
    fn weights_add_up() {
        assert_eq!(
            Kind::ALL.iter().map(|kind| kind.weight()).sum::<u64>(),
            ALL_WEIGHTS
        );
    }

    #[test]
    fn equal_seeds_give_equal_requests_and_others_do_not() {
        let take = |seed| {
            let mut mix = mix(seed);
            (0..500).map(|_| mix.request()).collect::<Vec<_>>()
        };
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }

    #[test]
    fn kinds_arrive_as_often_as_they_weigh() {
        let mut mix = mix(3);
        let stories = (0..10_000)
            .filter(|_| mix.request().kind() == Kind::Story)
            .count();
        assert!((5_400..5_770).contains(&stories), "{stories}");
    }

    #[test]
    fn a_reply_answers_a_comment_of_its_story_and_new_ids_never_repeat() {
        let mut mix = mix(4).only(Kind::Comment);
        let (mut last, mut replies) = (Counters::seeded(Scale(0.01)).comments, 0);
        for _ in 0..1_000 {
            let Action::Comment {
                story,
                parent,
                comment,
                ..
            } = mix.request().action
            else {
                panic!("another kind");
            };
            assert_eq!(comment, last + 1);
            last = comment;
            if let Some(parent) = parent {
                replies += 1;
                assert_eq!(mix.sampler.story_of(parent), story);
            }
        }
        assert!((100..300).contains(&replies), "{replies}");
    }
}
