//! Whether a worker's outputs for a column family of an external database equal the program's own,
//! decided from its options file.
//!
//! A worker has RocksDB's own code and nothing else. A comparator, merge operator, filter,
//! partitioner, property collector or checksum of the program's own changes what its compactions
//! write. So a database with any of these is compacted by its own program alone, and an option that
//! is missing from the options file counts as set.

use manxdb_compaction_edge::Shape;

use crate::order::ROCKSDB;
use crate::rocksdb_files::settings::{Section, Settings};

/// Parts that a program can bring along, of a column family, as RocksDB writes down that there is
/// none.
const PARTS: [(&str, &str); 5] = [
    ("merge_operator", "a merge operator"),
    ("compaction_filter", "a compaction filter"),
    (
        "compaction_filter_factory",
        "a factory of compaction filters",
    ),
    ("sst_partitioner_factory", "a partitioner of files"),
    ("compression_manager", "a manager of compressions"),
];

/// Options under which a compaction needs more than a job describes, with the values at which it
/// does not.
const FAMILY_NEEDS: [(&str, &str); 3] = [
    ("preclude_last_level_data_seconds", "0"),
    ("preserve_internal_time_seconds", "0"),
    ("cf_allow_ingest_behind", "false"),
];
const DATABASE_NEEDS: [(&str, &str); 2] = [
    ("file_checksum_gen_factory", "nullptr"),
    ("allow_ingest_behind", "false"),
];

const NONE: &str = "nullptr";
const BYTES: &str = "leveldb.BytewiseComparator";

/// The layout of a column family's files, if a worker may write them.
///
/// `has_one_path`: the program declares that it sets neither `db_paths` nor `cf_paths`.
///
/// # Errors
/// Why a worker may not.
pub(super) fn shape(
    settings: &Settings<'_>,
    family: &str,
    has_one_path: bool,
) -> Result<Shape, String> {
    check_release(settings)?;
    check_database(settings.section("DBOptions")?)?;
    let section = settings.section(&format!("CFOptions \"{family}\""))?;
    check_opening(section)?;
    // A worker opens the default family too, whichever it compacts.
    check_opening(settings.section("CFOptions \"default\"")?)?;
    check_parts(section)?;
    check_paths(section, has_one_path)?;
    let tables = settings.section(&format!("TableOptions/BlockBasedTable \"{family}\""))?;
    Shape::of(
        section.need("prefix_extractor")?,
        tables.all().iter().copied(),
    )
}

/// Files on level 0 at which a column family's writes are slowed down or stopped.
pub(super) fn files_stall(settings: &Settings<'_>, family: &str) -> Option<u32> {
    let section = settings.section(&format!("CFOptions \"{family}\"")).ok()?;
    let number = |option| section.get(option)?.parse::<i64>().ok();
    let stop = number("level0_stop_writes_trigger")?;
    let slow = number("level0_slowdown_writes_trigger").filter(|files| *files > 0);
    u32::try_from(slow.map_or(stop, |slow| slow.min(stop))).ok()
}

fn check_release(settings: &Settings<'_>) -> Result<(), String> {
    let release = settings.section("Version")?.need("rocksdb_version")?;
    let (major, minor) = ROCKSDB;
    if release.starts_with(&format!("{major}.{minor}.")) {
        return Ok(());
    }
    Err(format!(
        "the program has RocksDB {release}, workers have {major}.{minor}"
    ))
}

fn check_database(section: &Section<'_>) -> Result<(), String> {
    for (option, wanted) in DATABASE_NEEDS {
        check(section, option, wanted)?;
    }
    if section.need("allow_2pc")? != "false" {
        return Err(
            "it has transactions of two phases (allow_2pc): only the program knows which of its \
             versions were never committed"
                .to_owned(),
        );
    }
    Ok(())
}

/// Requirements for a worker to open a family.
fn check_opening(section: &Section<'_>) -> Result<(), String> {
    let comparator = section.need("comparator")?;
    if comparator != BYTES {
        return Err(format!(
            "its keys are in an order of their own, {comparator}, not in that of their bytes"
        ));
    }
    check(section, "table_factory", "BlockBasedTable")
}

fn check_parts(section: &Section<'_>) -> Result<(), String> {
    for (option, what) in PARTS {
        let part = section.need(option)?;
        if part != NONE {
            return Err(format!("it has {what} of its own, {part} ({option})"));
        }
    }
    // Written down only when there are any.
    if let Some(collectors) = section.get("table_properties_collectors") {
        return Err(format!(
            "it has collectors of properties of its own, {collectors}"
        ));
    }
    for (option, wanted) in FAMILY_NEEDS {
        check(section, option, wanted)?;
    }
    let style = section.need("compaction_style")?;
    if !["kCompactionStyleLevel", "kCompactionStyleUniversal"].contains(&style) {
        return Err(format!("it is compacted in the style {style}"));
    }
    Ok(())
}

fn check(section: &Section<'_>, option: &str, wanted: &str) -> Result<(), String> {
    let value = section.need(option)?;
    if value == wanted {
        return Ok(());
    }
    Err(format!(
        "it has {option}={value}, workers can {wanted} only"
    ))
}

/// Outputs are renamed to where the program wants them, which must be beside its other files.
/// RocksDB does not write paths down, but it takes levels of dynamic size back when there are a few.
fn check_paths(section: &Section<'_>, has_one_path: bool) -> Result<(), String> {
    let is_dynamic = section.need("level_compaction_dynamic_level_bytes")? == "true";
    if has_one_path || is_dynamic {
        return Ok(());
    }
    Err(
        "nothing says that all its files are in one directory: set compaction_one_path = true if \
         the program sets neither db_paths nor cf_paths"
            .to_owned(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rocksdb::{DB, MergeOperands, Options, SliceTransform};

    fn written(change: impl FnOnce(&mut Options)) -> String {
        let directory = tempfile::tempdir().unwrap();
        let mut options = Options::default();
        options.create_if_missing(true);
        change(&mut options);
        drop(DB::open(&options, directory.path()).unwrap());
        let files = std::fs::read_dir(directory.path()).unwrap().flatten();
        let names = files.map(|file| file.path());
        let mut names = names.filter(|path| path.to_string_lossy().contains("OPTIONS-"));
        std::fs::read_to_string(names.next().unwrap()).unwrap()
    }

    fn refused(text: &str) -> String {
        shape(&Settings::of(text), "default", false).unwrap_err()
    }

    #[test]
    fn rocksdb_with_nothing_of_ones_own_fits() {
        let text = written(|_| {});
        let shape = shape(&Settings::of(&text), "default", false).unwrap();
        assert!(shape.text().contains("block_size=4096;"), "{shape:?}");
        assert_eq!(files_stall(&Settings::of(&text), "default"), Some(20));
    }

    #[test]
    fn tables_and_prefixes_of_rocksdbs_own_fit() {
        let text = written(|options| {
            let read = options.get_options_from_string(
                "create_if_missing=true;prefix_extractor=rocksdb.FixedPrefix.4;\
                 block_based_table_factory={filter_policy=bloomfilter:9:false}",
            );
            *options = read.unwrap();
        });
        let text = shape(&Settings::of(&text), "default", false)
            .unwrap()
            .text();
        for part in ["bloomfilter:9:false", "rocksdb.FixedPrefix.4"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn what_a_program_brings_along_does_not_fit_and_is_named() {
        fn last(_: &[u8], _: Option<&[u8]>, operands: &MergeOperands) -> Option<Vec<u8>> {
            operands.iter().last().map(<[u8]>::to_vec)
        }
        let keep = |_: u32, _: &[u8], _: &[u8]| rocksdb::CompactionDecision::Keep;
        for (text, words) in [
            (
                written(|options| options.set_merge_operator_associative("my.merge", last)),
                "merge operator of its own, my.merge",
            ),
            (
                written(|options| options.set_compaction_filter("my.filter", keep)),
                "compaction filter of its own, my.filter",
            ),
            (
                written(|options| {
                    let order = Box::new(|a: &[u8], b: &[u8]| b.cmp(a));
                    options.set_comparator("my.order", order);
                }),
                "an order of their own, my.order",
            ),
            (
                written(|options| {
                    options.set_prefix_extractor(SliceTransform::create(
                        "my.prefix",
                        |key| key,
                        None,
                    ));
                }),
                "my.prefix",
            ),
            (
                // Made through the C interface, which does not write the number down.
                written(|options| {
                    let mut tables = rocksdb::BlockBasedOptions::default();
                    tables.set_bloom_filter(10.0, false);
                    options.set_block_based_table_factory(&tables);
                }),
                "filter_policy=bloomfilter",
            ),
            (
                written(|options| options.add_compact_on_deletion_collector_factory(10, 5, 0.5)),
                "collectors of properties of its own",
            ),
            (
                written(|options| {
                    let cuckoo = rocksdb::PlainTableFactoryOptions {
                        user_key_length: 0,
                        bloom_bits_per_key: 10,
                        hash_table_ratio: 0.75,
                        index_sparseness: 16,
                        huge_page_tlb_size: 0,
                        encoding_type: rocksdb::KeyEncodingType::Plain,
                        full_scan_mode: false,
                        store_index_in_file: false,
                    };
                    options.set_plain_table_factory(&cuckoo);
                    options.set_allow_mmap_reads(true);
                    options.set_prefix_extractor(SliceTransform::create_fixed_prefix(4));
                }),
                "table_factory=PlainTable",
            ),
            (
                written(|options| options.set_level_compaction_dynamic_level_bytes(false)),
                "compaction_one_path",
            ),
            (
                written(|options| options.set_compaction_style(rocksdb::DBCompactionStyle::Fifo)),
                "the style kCompactionStyleFIFO",
            ),
        ] {
            let why = refused(&text);
            assert!(why.contains(words), "{why}");
        }
    }

    #[test]
    fn another_release_and_what_is_not_written_down_do_not_fit() {
        let text = written(|_| {});
        let older = text.replace("rocksdb_version=11.8.", "rocksdb_version=11.7.");
        assert!(refused(&older).contains("has RocksDB 11.7."));
        let committed = text.replace("allow_2pc=false", "allow_2pc=true");
        assert!(refused(&committed).contains("two phases"));
        for option in ["merge_operator", "allow_2pc", "comparator", "block_align"] {
            let lines = text
                .lines()
                .filter(|line| !line.contains(&format!(" {option}=")));
            let less: Vec<&str> = lines.collect();
            assert!(refused(&less.join("\n")).contains(option));
        }
        let unknown = text.replace("  block_align=", "  block_spin=1\n  block_align=");
        assert!(refused(&unknown).contains("block_spin"));
        assert!(
            shape(&Settings::of(&text), "other", false)
                .unwrap_err()
                .contains("\"other\"")
        );
    }

    #[test]
    fn one_path_may_be_said() {
        let text = written(|options| options.set_level_compaction_dynamic_level_bytes(false));
        assert!(shape(&Settings::of(&text), "default", true).is_ok());
    }
}
