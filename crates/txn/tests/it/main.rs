//! Tests of transactions and of the commit path of one node.

mod confirmed;
mod early_release;
mod isolation;
mod large;
mod local_path;
mod locking;
mod overlay;
mod procedure;
mod second_opinion;
mod threads;
mod used_parts;
