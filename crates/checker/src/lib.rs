//! Judges what a protocol did, from the outside.
//!
//! A checker gets what clients saw and what replicas logged, and says whether a promise was
//! broken, with the shortest proof it finds. It knows no protocol: there is no message, clock
//! or topology in here, and it never asks the system under test.
//!
//! | question | answered in |
//! |---|---|
//! | is there a serial order that explains what clients read, and does it agree with sessions or with real time | [`append`] |
//! | does a store that shows its versions keep snapshot isolation, or a serial order | [`versions`] |
//! | does every key behave like one object that all clients share, in real time | [`linear`] |
//! | did all replicas of a shard execute the same transactions in the same order | [`replicas`] |
//! | did every call end, and is everything that was acknowledged really there | [`replies`] |
//!
//! Each finds planted defects in its tests; a checker that cannot fail proves nothing. Cost is
//! linear in the size of a history without anomalies, and nothing recurses on input.
//!
//! Start reading at [`append`].
#![forbid(unsafe_code)]

pub mod append;
mod graph;
pub mod linear;
mod proofs;
pub mod replicas;
pub mod replies;
pub mod versions;
