//! A page as a conversation with the server.

use super::{Action, Request, notifications, reading, writing};
use crate::{Answer, Statement, Value};

/// What a step of a page comes to.
pub(super) enum Step {
    /// Send this.
    Send(Statement),
    /// This step needs nothing (an empty list of ids): go on with the next.
    Skip,
    /// The page is whole.
    End,
}

/// What a page has learned from the answers so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Facts {
    /// The story the page is about.
    pub story: i64,
    /// Who wrote the story or comment the page is about.
    pub author: i64,
    /// The comment the page is about, or that is replied to.
    pub comment: i64,
    /// Thread of the comment that is replied to.
    pub thread: Option<i64>,
    /// Hotness of the story.
    pub hotness: i64,
    /// Confidence that the comment gets: 0 or 1.
    pub confidence: i64,
    /// Ids for the lists of later statements.
    pub stories: Vec<i64>,
    /// Likewise.
    pub comments: Vec<i64>,
    /// Likewise.
    pub users: Vec<i64>,
}

/// One request being served: ask [`Page::next`] for statements until there is none.
#[derive(Debug, Clone)]
pub struct Page {
    request: Request,
    /// The moment of the request, as the application writes it: local time, nanoseconds.
    now: String,
    step: usize,
    facts: Facts,
    notifications: Notifications,
}

/// How far a page is with the statements behind its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Notifications {
    NotAsked,
    /// The page's own statements come first.
    Waiting,
    /// The next of their statements.
    Step(usize),
}

impl Page {
    /// The page of a request that arrives at `now`, `2026-01-31 12:00:00.123456789`.
    pub fn new(request: Request, now: impl Into<String>) -> Self {
        Self {
            request,
            now: now.into(),
            step: 0,
            facts: Facts::default(),
            notifications: Notifications::NotAsked,
        }
    }

    /// The same with the reader's notifications, where the site shows them.
    #[must_use]
    pub fn with_notifications(mut self) -> Self {
        if notifications::are_shown(self.request.kind()) {
            self.notifications = Notifications::Waiting;
        }
        self
    }

    /// The next statement, given the answer to the one before (an empty answer at first).
    pub fn next(&mut self, answer: &Answer) -> Option<Statement> {
        if let Notifications::Step(step) = self.notifications {
            return self.notification(step);
        }
        loop {
            let step = self.step;
            self.step += 1;
            match self.take(step, answer) {
                Step::Send(statement) => return Some(statement),
                Step::Skip => {}
                Step::End => {
                    self.step = step;
                    if self.notifications == Notifications::NotAsked {
                        return None;
                    }
                    return self.notification(0);
                }
            }
        }
    }

    fn notification(&mut self, step: usize) -> Option<Statement> {
        self.notifications = Notifications::Step(step + 1);
        match notifications::statement(self.request.user, step) {
            Step::Send(statement) => Some(statement),
            Step::Skip | Step::End => None,
        }
    }

    fn take(&mut self, step: usize, answer: &Answer) -> Step {
        let Self {
            request,
            now,
            facts,
            ..
        } = self;
        let user = request.user;
        match &request.action {
            Action::Frontpage => reading::list(reading::hottest(), facts, user, step, answer),
            Action::Recent => reading::list(reading::newest(), facts, user, step, answer),
            Action::Comments => reading::comments(facts, user, step, answer),
            Action::User { user } => reading::user(facts, *user, step, answer),
            Action::Story { story, ribbon } => {
                let visit = reading::Visit {
                    user,
                    story: *story,
                    ribbon: *ribbon,
                    now,
                };
                reading::story(&visit, facts, step, answer)
            }
            Action::StoryVote { story, up, vote } => {
                let cast = writing::Cast {
                    user,
                    on: *story,
                    up: *up,
                    vote: *vote,
                };
                writing::story_vote(&cast, facts, step, answer)
            }
            Action::CommentVote { comment, up, vote } => {
                let cast = writing::Cast {
                    user,
                    on: *comment,
                    up: *up,
                    vote: *vote,
                };
                writing::comment_vote(&cast, facts, step, answer)
            }
            Action::Comment {
                story,
                parent,
                comment,
                vote,
            } => {
                let post = writing::Post {
                    user,
                    story: *story,
                    parent: *parent,
                    comment: *comment,
                    vote: *vote,
                    now,
                };
                writing::comment(&post, facts, step, answer)
            }
            Action::Submit {
                story,
                tagging,
                vote,
            } => {
                let submission = writing::Submission {
                    user,
                    story: *story,
                    tagging: *tagging,
                    vote: *vote,
                    now,
                };
                writing::submit(&submission, facts, step, answer)
            }
            Action::Login => writing::login(user, now, step, answer),
            Action::Logout => Step::End,
        }
    }
}

/// `?,?,?` and the values, after those that come before them.
pub(super) fn in_list(ids: &[i64], before: &[i64]) -> (String, Vec<Value>) {
    let marks = vec!["?"; ids.len()].join(",");
    let values = before.iter().chain(ids).map(|id| Value::Integer(*id));
    (marks, values.collect())
}

/// `SELECT table.* FROM table WHERE table.id IN (1,2)` as text: the application inlines these.
pub(super) fn by_ids(name: &'static str, table: &str, ids: &[i64]) -> Step {
    if ids.is_empty() {
        return Step::Skip;
    }
    let list: Vec<String> = ids.iter().map(ToString::to_string).collect();
    Step::Send(Statement::text(
        name,
        format!(
            "SELECT {table}.* FROM {table} WHERE {table}.id IN ({})",
            list.join(",")
        ),
    ))
}

/// A prepared statement whose parameters are ids.
pub(super) fn with_ids(name: &'static str, text: &'static str, ids: &[i64]) -> Step {
    let values = ids.iter().map(|id| Value::Integer(*id)).collect();
    Step::Send(Statement::prepared(name, text, values))
}

#[cfg(test)]
mod tests {
    use super::super::{Counters, Kind, Mix, Scale, short_id};
    use super::*;

    /// Answers as a server with one row for everything would.
    fn answer_to(statement: &Statement) -> Answer {
        let columns = [
            "id",
            "user_id",
            "story_id",
            "tag_id",
            "hotness",
            "upvotes",
            "downvotes",
        ];
        if !statement.text.starts_with("SELECT") {
            return Answer {
                affected: 1,
                ..Answer::default()
            };
        }
        Answer {
            columns: columns.map(str::to_owned).to_vec(),
            rows: vec![vec![Value::Integer(1); columns.len()]],
            affected: 0,
        }
    }

    fn run(kind: Kind, seed: u64) -> Vec<Statement> {
        statements_of(kind, seed, |page| page)
    }

    fn statements_of(kind: Kind, seed: u64, with: impl Fn(Page) -> Page) -> Vec<Statement> {
        let scale = Scale(0.01);
        let request = Mix::new(scale, seed, Counters::seeded(scale))
            .only(kind)
            .request();
        let mut page = with(Page::new(request, "2026-01-31 12:00:00.123456789"));
        let (mut sent, mut answer) = (Vec::new(), Answer::default());
        while let Some(statement) = page.next(&answer) {
            answer = answer_to(&statement);
            sent.push(statement);
            assert!(sent.len() < 20, "endless");
        }
        sent
    }

    #[test]
    fn pages_send_as_many_statements_as_the_site_does() {
        let counts = [
            (Kind::Story, 13),
            (Kind::Frontpage, 12),
            (Kind::User, 5),
            (Kind::Comments, 6),
            (Kind::Recent, 12),
            (Kind::CommentVote, 10),
            (Kind::StoryVote, 8),
            (Kind::Login, 1),
            (Kind::Submit, 10),
            (Kind::Logout, 0),
        ];
        for (kind, count) in counts {
            // The one row of the test is a tag filter too, which the lists then look at.
            assert_eq!(run(kind, 1).len(), count, "{kind:?}");
        }
        let comments: Vec<usize> = (0..40).map(|seed| run(Kind::Comment, seed).len()).collect();
        assert!(
            comments.contains(&14) && comments.contains(&15),
            "{comments:?}"
        );
    }

    #[test]
    fn notifications_are_two_statements_behind_five_kinds_of_pages() {
        for kind in Kind::ALL {
            let statements = run(kind, 1);
            let more = statements_of(kind, 1, Page::with_notifications);
            let names: Vec<&str> = more[statements.len()..].iter().map(|s| s.name).collect();
            assert_eq!(more[..statements.len()], statements, "{kind:?}");
            let expected: &[&str] = match kind {
                Kind::Story | Kind::Frontpage | Kind::User | Kind::Comments | Kind::Recent => {
                    &["notifications", "key store"]
                }
                _ => &[],
            };
            assert_eq!(names, expected, "{kind:?}");
        }
    }

    #[test]
    fn every_parameter_has_its_mark() {
        for kind in Kind::ALL {
            for statement in statements_of(kind, 2, Page::with_notifications) {
                let marks = statement.text.matches('?').count();
                assert_eq!(marks, statement.parameters.len(), "{}", statement.text);
                assert_eq!(
                    statement.prepared,
                    !statement.text.contains(" IN (1)") && !statement.text.contains("('test')"),
                    "{}",
                    statement.text
                );
            }
        }
    }

    #[test]
    fn an_empty_site_ends_pages_early_instead_of_sending_empty_lists() {
        let mut page = Page::new(
            Request {
                user: 1,
                action: Action::Frontpage,
            },
            "",
        );
        let mut sent = Vec::new();
        while let Some(statement) = page.next(&Answer::default()) {
            assert!(!statement.text.contains("()"), "{}", statement.text);
            sent.push(statement.name);
        }
        assert_eq!(
            sent,
            [
                "stories hottest",
                "hidden stories of user",
                "tag filters of user"
            ]
        );
        assert_eq!(short_id(1), "000001");
    }
}
