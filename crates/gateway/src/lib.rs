//! The doors of ManxDB: MySQL clients and the admin page.
#![warn(clippy::pedantic)]
#![forbid(unsafe_code)]
