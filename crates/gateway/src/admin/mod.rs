//! The admin door.
