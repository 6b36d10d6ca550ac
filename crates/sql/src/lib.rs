//! MySQL's SQL over ManxDB transactions: parse → bind → plan → run.
//!
//! | module | does | knows |
//! |---|---|---|
//! | [`types`] | values, types, coercions, collations | nothing |
//! | [`catalog`] | what exists; its records, snapshot and sequences | `types`, transactions |
//! | [`parser`] | text to `sqlparser`'s tree, ownership annotations beside it | `types`, `catalog` records |
//! | [`encoding`] | order-preserving keys and row records | `types`, `catalog` records |
//! | [`plan`] | bound expressions and the operators of plans: pure data | `types`, `catalog` records |
//! | [`expr`] | builds and evaluates expressions; the built-in functions | `plan` |
//! | [`planner`] | access paths, join order: a bound SELECT becomes operators | `plan`, `expr` |
//! | [`binder`] | names and types resolved against a catalog snapshot; a statement's [`plan::Plan`] | `parser`, `planner` |
//! | [`executor`] | runs a plan in a transaction | `plan`, `expr`, `encoding` |
//! | [`explain`] | EXPLAIN of a plan, with what its operators did | `binder`, `executor` |
//! | [`views`] | materialized views, kept up to date in the commit | `binder`, `executor` |
//! | [`statement`] | INSERT, UPDATE, DELETE, DDL | all above |
//! | [`session`] | variables, transactions, prepared statements, SHOW, accounts | all above |
//!
//! A module uses modules above it in this table, never one below.
//!
//! Not inside: sockets, threads, clocks (time is an input), packet formats. A frontend gives a
//! [`session`] text or parameters and a sink for rows.
#![forbid(unsafe_code)]

pub mod binder;
pub mod catalog;
pub mod encoding;
pub mod error;
pub mod executor;
pub mod explain;
pub mod expr;
pub mod parser;
pub mod plan;
pub mod planner;
pub mod session;
mod stack;
pub mod statement;
pub mod types;
pub mod views;
