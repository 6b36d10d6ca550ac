//! `cargo +nightly fuzz run packets --features libfuzzer`.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| manxdb_fuzz::packets(data));
