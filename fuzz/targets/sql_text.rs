//! `cargo +nightly fuzz run sql_text --features libfuzzer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manxdb_fuzz::sql_text(data));
