//! Tests of the storage engines. `crash` is a program of its own: it starts itself and kills that.

mod backup;
mod collection;
mod conformance;
mod remote_compaction;
