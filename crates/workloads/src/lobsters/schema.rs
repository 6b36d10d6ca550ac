//! The tables, with or without their ownership annotations.

use std::fmt::Write as _;

/// Which of the two schemas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schema {
    /// As any MySQL-compatible server takes it: no annotation, no foreign key.
    Plain,
    /// With the owners of rows named.
    Annotated,
}

/// One table.
struct Table {
    /// Its name.
    name: &'static str,
    /// Whether its rows are people.
    subject: bool,
    /// Columns: name and type.
    columns: &'static [(&'static str, &'static str)],
    /// Which column names whom, in the words of the annotated schema.
    links: &'static [(&'static str, &'static str)],
    /// What happens to a person's trace in a row that others keep; annotated schema only.
    rules: &'static [&'static str],
    /// Indexes: name and columns, UNIQUE ones with a star before the name.
    indexes: &'static [(&'static str, &'static str)],
}

#[rustfmt::skip] // a column a line would hide the shape
const USERS: Table = Table {
    name: "users",
    subject: true,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("username", "varchar(50)"), ("email", "varchar(100)"),
        ("password_digest", "varchar(75)"), ("created_at", "datetime"), ("is_admin", "int"),
        ("password_reset_token", "varchar(75)"), ("session_token", "varchar(75) NOT NULL"),
        ("about", "text"), ("invited_by_user_id", "int"), ("is_moderator", "int"),
        ("pushover_mentions", "int"), ("rss_token", "varchar(75)"),
        ("mailing_list_token", "varchar(75)"), ("mailing_list_mode", "int"),
        ("karma", "int NOT NULL"), ("banned_at", "datetime"), ("banned_by_user_id", "int"),
        ("banned_reason", "varchar(200)"), ("deleted_at", "datetime"),
        ("disabled_invite_at", "datetime"), ("disabled_invite_by_user_id", "int"),
        ("disabled_invite_reason", "varchar(200)"), ("settings", "text"),
    ],
    links: &[],
    rules: &[],
    indexes: &[
        ("users_email", "email"), ("users_username", "username"),
        ("users_banned_by", "banned_by_user_id"), ("users_invited_by", "invited_by_user_id"),
        ("users_disabled_invite_by", "disabled_invite_by_user_id"),
    ],
};

#[rustfmt::skip] // a column a line would hide the shape
const TAGS: Table = Table {
    name: "tags",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("tag", "varchar(25) NOT NULL"),
        ("description", "varchar(100)"), ("privileged", "int"), ("is_media", "int"),
        ("inactive", "int"), ("hotness_mod", "int"),
    ],
    links: &[],
    rules: &[],
    indexes: &[("*tags_tag", "tag")],
};

#[rustfmt::skip] // a column a line would hide the shape
const STORIES: Table = Table {
    name: "stories",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("created_at", "datetime"), ("user_id", "int"),
        ("url", "varchar(250)"), ("title", "varchar(150) NOT NULL"), ("description", "text"),
        ("short_id", "varchar(6) NOT NULL"), ("is_expired", "int NOT NULL"),
        ("upvotes", "int NOT NULL"), ("downvotes", "int NOT NULL"),
        ("is_moderated", "int NOT NULL"), ("hotness", "int NOT NULL"),
        ("markeddown_description", "text"), ("story_cache", "text"),
        ("comments_count", "int NOT NULL"), ("merged_story_id", "int"),
        ("unavailable_at", "datetime"), ("twitter_id", "varchar(20)"), ("user_is_author", "int"),
    ],
    links: &[("user_id", "OWNED_BY users(id)")],
    rules: &[],
    indexes: &[
        ("*stories_short_id", "short_id"), ("stories_user_id", "user_id"),
        ("stories_created_at", "created_at"), ("stories_hotness", "hotness"),
        ("stories_merged_story", "merged_story_id"), ("stories_title", "title"),
    ],
};

#[rustfmt::skip] // a column a line would hide the shape
const COMMENTS: Table = Table {
    name: "comments",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("created_at", "datetime NOT NULL"),
        ("updated_at", "datetime"), ("short_id", "varchar(10) NOT NULL"),
        ("story_id", "int NOT NULL"), ("user_id", "int NOT NULL"), ("parent_comment_id", "int"),
        ("thread_id", "int"), ("comment", "text NOT NULL"), ("upvotes", "int NOT NULL"),
        ("downvotes", "int NOT NULL"), ("confidence", "int NOT NULL"),
        ("markeddown_comment", "text"), ("is_deleted", "int"), ("is_moderated", "int"),
        ("is_from_email", "int"), ("hat_id", "int"),
    ],
    links: &[("user_id", "OWNED_BY users(id)")],
    rules: &[],
    indexes: &[
        ("*comments_short_id", "short_id"), ("comments_confidence", "confidence"),
        ("comments_story_id_short_id", "story_id, short_id"), ("comments_thread_id", "thread_id"),
        ("comments_user_id", "user_id"),
    ],
};

#[rustfmt::skip] // a column a line would hide the shape
const VOTES: Table = Table {
    name: "votes",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("user_id", "int NOT NULL"),
        ("story_id", "int NOT NULL"), ("comment_id", "int"), ("vote", "int NOT NULL"),
        ("reason", "varchar(1)"),
    ],
    links: &[("user_id", "OWNED_BY users(id)")],
    rules: &[],
    indexes: &[
        ("votes_user_id", "user_id"), ("votes_user_comment", "user_id, comment_id"),
        ("votes_user_story", "user_id, story_id"), ("votes_story_id", "story_id"),
        ("votes_comment_id", "comment_id"),
    ],
};

#[rustfmt::skip] // a column a line would hide the shape
const TAGGINGS: Table = Table {
    name: "taggings",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("story_id", "int NOT NULL"), ("tag_id", "int NOT NULL"),
    ],
    links: &[("story_id", "OWNED_BY stories(id)")],
    rules: &[],
    indexes: &[
        ("taggings_story_tag", "story_id, tag_id"), ("taggings_story_id", "story_id"),
        ("taggings_tag_id", "tag_id"),
    ],
};

#[rustfmt::skip] // a column a line would hide the shape
const HATS: Table = Table {
    name: "hats",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("created_at", "datetime"), ("updated_at", "datetime"),
        ("user_id", "int"), ("granted_by_user_id", "int"), ("hat", "varchar(255) NOT NULL"),
        ("link", "varchar(255)"), ("modlog_use", "int"), ("doffed_at", "datetime"),
    ],
    links: &[("user_id", "OWNED_BY users(id)"), ("granted_by_user_id", "REFERENCES ONLY users(id)")],
    rules: &[],
    indexes: &[("hats_user_id", "user_id"), ("hats_granted_by_user_id", "granted_by_user_id")],
};

#[rustfmt::skip] // a column a line would hide the shape
const HAT_REQUESTS: Table = Table {
    name: "hat_requests",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("created_at", "datetime"), ("updated_at", "datetime"),
        ("user_id", "int"), ("hat", "varchar(255)"), ("link", "varchar(255)"), ("comment", "text"),
    ],
    links: &[("user_id", "OWNED_BY users(id)")],
    rules: &[],
    indexes: &[("hat_requests_user_id", "user_id")],
};

#[rustfmt::skip] // a column a line would hide the shape
const HIDDEN_STORIES: Table = Table {
    name: "hidden_stories",
    subject: false,
    columns: &[("id", "int NOT NULL PRIMARY KEY"), ("user_id", "int"), ("story_id", "int")],
    links: &[("user_id", "OWNED_BY users(id)")],
    rules: &[],
    indexes: &[
        ("hidden_stories_user_story", "user_id, story_id"), ("hidden_stories_user_id", "user_id"),
        ("hidden_stories_story_id", "story_id"),
    ],
};

#[rustfmt::skip] // a column a line would hide the shape
const SAVED_STORIES: Table = Table {
    name: "saved_stories",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("created_at", "datetime NOT NULL"),
        ("updated_at", "datetime NOT NULL"), ("user_id", "int"), ("story_id", "int"),
    ],
    links: &[("user_id", "OWNED_BY users(id)")],
    rules: &[],
    indexes: &[
        ("saved_stories_user_story", "user_id, story_id"), ("saved_stories_user_id", "user_id"),
        ("saved_stories_story_id", "story_id"),
    ],
};

#[rustfmt::skip] // a column a line would hide the shape
const READ_RIBBONS: Table = Table {
    name: "read_ribbons",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("is_following", "int"),
        ("created_at", "datetime NOT NULL"), ("updated_at", "datetime NOT NULL"),
        ("user_id", "int"), ("story_id", "int"),
    ],
    links: &[("user_id", "OWNED_BY users(id)")],
    rules: &[],
    indexes: &[("read_ribbons_user_id", "user_id"), ("read_ribbons_story_id", "story_id")],
};

#[rustfmt::skip] // a column a line would hide the shape
const SUGGESTED_TAGGINGS: Table = Table {
    name: "suggested_taggings",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("story_id", "int"), ("tag_id", "int"),
        ("user_id", "int"),
    ],
    links: &[("user_id", "OWNED_BY users(id)")],
    rules: &[],
    indexes: &[
        ("suggested_taggings_user_id", "user_id"), ("suggested_taggings_story_id", "story_id"),
    ],
};

#[rustfmt::skip] // a column a line would hide the shape
const SUGGESTED_TITLES: Table = Table {
    name: "suggested_titles",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("story_id", "int"), ("user_id", "int"),
        ("title", "varchar(150) NOT NULL"),
    ],
    links: &[("user_id", "OWNED_BY users(id)")],
    rules: &[],
    indexes: &[
        ("suggested_titles_user_id", "user_id"), ("suggested_titles_story_id", "story_id"),
    ],
};

#[rustfmt::skip] // a column a line would hide the shape
const TAG_FILTERS: Table = Table {
    name: "tag_filters",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("created_at", "datetime NOT NULL"),
        ("updated_at", "datetime NOT NULL"), ("user_id", "int"), ("tag_id", "int"),
    ],
    links: &[("user_id", "OWNED_BY users(id)")],
    rules: &[],
    indexes: &[("tag_filters_user_id", "user_id"), ("tag_filters_user_tag", "user_id, tag_id")],
};

#[rustfmt::skip] // a column a line would hide the shape
const MESSAGES: Table = Table {
    name: "messages",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("created_at", "datetime"), ("author_user_id", "int"),
        ("recipient_user_id", "int"), ("has_been_read", "int"), ("subject", "varchar(100)"),
        ("body", "text"), ("short_id", "varchar(30)"), ("deleted_by_author", "int"),
        ("deleted_by_recipient", "int"),
    ],
    links: &[
        ("author_user_id", "OWNED_BY users(id)"), ("recipient_user_id", "OWNED_BY users(id)"),
    ],
    rules: &[
        "ON DEL author_user_id ANON (author_user_id)",
        "ON DEL recipient_user_id ANON (recipient_user_id)",
    ],
    indexes: &[
        ("messages_short_id", "short_id"), ("messages_author", "author_user_id"),
        ("messages_recipient", "recipient_user_id"),
    ],
};

#[rustfmt::skip] // a column a line would hide the shape
const MODERATIONS: Table = Table {
    name: "moderations",
    subject: false,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("created_at", "datetime NOT NULL"),
        ("updated_at", "datetime NOT NULL"), ("moderator_user_id", "int"), ("story_id", "int"),
        ("comment_id", "int"), ("user_id", "int"), ("action", "text"), ("reason", "text"),
        ("is_from_suggestions", "int"),
    ],
    links: &[
        ("moderator_user_id", "OWNED_BY users(id)"), ("user_id", "OWNED_BY users(id)"),
    ],
    rules: &[
        "ON DEL moderator_user_id ANON (moderator_user_id)",
        "ON DEL user_id ANON (user_id)",
    ],
    indexes: &[
        ("moderations_created_at", "created_at"), ("moderations_user_id", "user_id"),
        ("moderations_moderator", "moderator_user_id"),
    ],
};

#[rustfmt::skip] // a column a line would hide the shape
const INVITATIONS: Table = Table {
    name: "invitations",
    subject: true,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("user_id", "int"), ("email", "varchar(255)"),
        ("code", "varchar(255)"), ("created_at", "datetime NOT NULL"),
        ("updated_at", "datetime NOT NULL"), ("memo", "text"),
    ],
    links: &[("user_id", "REFERENCES ONLY users(id)")],
    rules: &[],
    indexes: &[("invitations_user_id", "user_id")],
};

#[rustfmt::skip] // a column a line would hide the shape
const INVITATION_REQUESTS: Table = Table {
    name: "invitation_requests",
    subject: true,
    columns: &[
        ("id", "int NOT NULL PRIMARY KEY"), ("code", "varchar(255)"), ("is_verified", "int"),
        ("email", "varchar(255)"), ("name", "varchar(255)"), ("memo", "text"),
        ("ip_address", "varchar(255)"), ("created_at", "datetime NOT NULL"),
        ("updated_at", "datetime NOT NULL"),
    ],
    links: &[],
    rules: &[],
    indexes: &[],
};

#[rustfmt::skip] // a column a line would hide the shape
const KEYSTORES: Table = Table {
    name: "keystores",
    subject: false,
    columns: &[("keyX", "varchar(50) NOT NULL PRIMARY KEY"), ("valueX", "int")],
    links: &[],
    rules: &[],
    indexes: &[],
};

/// Every table, those that others point at first.
#[rustfmt::skip] // a column a line would hide the shape
const TABLES: &[&Table] = &[
    &USERS, &TAGS, &STORIES, &COMMENTS, &VOTES, &TAGGINGS, &HATS, &HAT_REQUESTS, &HIDDEN_STORIES,
    &SAVED_STORIES, &READ_RIBBONS, &SUGGESTED_TAGGINGS, &SUGGESTED_TITLES, &TAG_FILTERS, &MESSAGES,
    &MODERATIONS, &INVITATIONS, &INVITATION_REQUESTS, &KEYSTORES,
];

impl Schema {
    /// The statements that make the tables, in order, in an empty current database.
    pub fn statements(self) -> Vec<String> {
        TABLES.iter().map(|table| self.create(table)).collect()
    }

    fn create(self, table: &Table) -> String {
        let annotated = self == Self::Annotated;
        let subject = if annotated && table.subject {
            "DATA_SUBJECT "
        } else {
            ""
        };
        let mut parts = Vec::new();
        for (column, ty) in table.columns {
            let mut part = format!("`{column}` {ty}");
            let link = table.links.iter().find(|(linked, _)| linked == column);
            if let Some((_, link)) = link.filter(|_| annotated) {
                let _ = write!(part, " {link}");
            }
            parts.push(part);
        }
        for (name, columns) in table.indexes {
            parts.push(match name.strip_prefix('*') {
                Some(name) => format!("UNIQUE KEY {name} ({columns})"),
                None => format!("KEY {name} ({columns})"),
            });
        }
        if annotated {
            parts.extend(table.rules.iter().map(|rule| (*rule).to_owned()));
        }
        format!(
            "CREATE {subject}TABLE {} ({})",
            table.name,
            parts.join(", ")
        )
    }
}

/// Names of the tables, in the order they are made.
pub fn table_names() -> impl Iterator<Item = &'static str> {
    TABLES.iter().map(|table| table.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_link_and_index_names_columns_of_its_table() {
        for table in TABLES {
            let has = |name: &str| table.columns.iter().any(|(column, _)| *column == name);
            assert!(
                table.links.iter().all(|(column, _)| has(column)),
                "{}",
                table.name
            );
            for (name, columns) in table.indexes {
                assert!(columns.split(", ").all(has), "{name}");
            }
        }
        assert_eq!(table_names().count(), 19);
    }

    #[test]
    fn the_plain_schema_knows_nothing_of_owners() {
        let plain = Schema::Plain.statements().join(";");
        assert!(!plain.contains("OWNED_BY") && !plain.contains("DATA_SUBJECT"));
        let annotated = Schema::Annotated.statements().join(";");
        assert_eq!(annotated.matches("DATA_SUBJECT").count(), 3);
        assert_eq!(annotated.matches("ON DEL").count(), 4);
    }
}
