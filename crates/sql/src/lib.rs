//! MySQL's SQL over ManxDB transactions: parse → bind → plan → run.
//!
//! | module | does | knows |
//! |---|---|---|
//! | [`types`] | values, types, coercions, collations | nothing |
//! | [`encoding`] | order-preserving keys and row records | `types`, `catalog` records |
//! | [`plan`] | bound expressions and the operators of plans: pure data | `types`, `catalog` records |
//! | [`expr`] | builds and evaluates expressions; the built-in functions | `plan` |
//! | [`parser`] | text to `sqlparser`'s tree, ownership annotations beside it | nothing |
//! | [`catalog`] | what exists; its records, snapshot and sequences | `encoding`, transactions |
//! | [`planner`] | access paths, join order: a bound SELECT becomes operators | `plan`, `expr`, `catalog` |
//! | [`binder`] | names and types resolved against a catalog snapshot; the [`plan::Plan`] | `catalog`, `expr`, `planner` |
//! | [`executor`] | runs a plan in a transaction | `planner`, `encoding` |
//! | [`explain`] | EXPLAIN of a plan, with what its operators did | `planner`, `executor` |
//! | [`views`] | materialized views, kept up to date in the commit | `planner`, transactions |
//! | [`statement`] | INSERT, UPDATE, DELETE, DDL | all above |
//! | [`session`] | variables, transactions, prepared statements, SHOW, accounts | all above |
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
