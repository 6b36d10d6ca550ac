//! Properties of a database's tables and prefixes that another process can reproduce.
//!
//! A worker reads the database's options file except for the parts that are code. Two of these
//! parts are RocksDB's own code with parameters: the layout of sorted files and the prefix
//! extractor. A [`Shape`] holds these parameters, by the names and values that RocksDB writes into
//! the options file. It accepts only the options in the tables below and refuses all others, so
//! that a worker never writes a file differently from the database.

use std::collections::BTreeMap;

/// How files are laid out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Shape {
    prefix: Option<String>,
    tables: BTreeMap<String, String>,
}

/// The values that an option may have.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Only readers look at it: it is left out.
    Reading,
    /// `true` or `false`.
    Flag,
    /// Digits, with a sign or a point where RocksDB writes one.
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
    /// RocksDB's own Bloom filter, with its numbers, or none.
    Filter,
}

use Kind::{Filter, Flag, Number, Reading, Word};

/// All options of block-based tables that release 11.8 writes down.
const OPTIONS: [(&str, Kind); 41] = [
    ("block_align", Flag),
    ("block_restart_interval", Number),
    ("block_size", Number),
    ("block_size_deviation", Number),
    ("cache_index_and_filter_blocks", Reading),
    ("cache_index_and_filter_blocks_with_high_priority", Reading),
    (
        "checksum",
        Word(&["kNoChecksum", "kCRC32c", "kxxHash", "kxxHash64", "kXXH3"]),
    ),
    ("data_block_hash_table_util_ratio", Number),
    (
        "data_block_index_type",
        Word(&["kDataBlockBinarySearch", "kDataBlockBinaryAndHash"]),
    ),
    ("decouple_partitioned_filters", Flag),
    ("detect_filter_construct_corruption", Flag),
    ("enable_index_compression", Flag),
    ("fail_if_no_udi_on_open", Reading),
    ("filter_policy", Filter),
    (
        "flush_block_policy_factory",
        Word(&["FlushBlockBySizePolicyFactory"]),
    ),
    ("format_version", Number),
    ("index_block_restart_interval", Number),
    (
        "index_block_search_type",
        Word(&["kBinary", "kInterpolation", "kAuto"]),
    ),
    (
        "index_shortening",
        Word(&[
            "kNoShortening",
            "kShortenSeparators",
            "kShortenSeparatorsAndSuccessor",
        ]),
    ),
    (
        "index_type",
        Word(&[
            "kBinarySearch",
            "kHashSearch",
            "kTwoLevelIndexSearch",
            "kBinarySearchWithFirstKey",
        ]),
    ),
    ("initial_auto_readahead_size", Reading),
    ("max_auto_readahead_size", Reading),
    ("metadata_block_size", Number),
    ("metadata_cache_options", Reading),
    ("no_block_cache", Reading),
    ("num_file_reads_for_auto_readahead", Reading),
    ("optimize_filters_for_memory", Flag),
    ("partition_filters", Flag),
    ("pin_l0_filter_and_index_blocks_in_cache", Reading),
    ("pin_top_level_index_and_filter", Reading),
    ("prepopulate_block_cache", Reading),
    ("read_amp_bytes_per_bit", Reading),
    ("separate_key_value_in_data_block", Flag),
    ("super_block_alignment_size", Number),
    ("super_block_alignment_space_overhead_ratio", Number),
    ("uniform_cv_threshold", Number),
    ("use_delta_encoding", Flag),
    ("use_udi_as_primary_index", Word(&["false"])),
    ("user_defined_index_factory", Word(&["nullptr"])),
    ("verify_compression", Flag),
    ("whole_key_filtering", Flag),
];

/// Names of RocksDB's own prefix extractors, before their number.
const PREFIXES: [&str; 2] = ["rocksdb.FixedPrefix.", "rocksdb.CappedPrefix."];
/// RocksDB's word for an absent part.
const NONE: &str = "nullptr";

impl Shape {
    /// The shape of a column family, by its `prefix_extractor` and the options of its block-based
    /// tables.
    ///
    /// # Errors
    /// The option that is not known, or that no other process can do the same.
    pub fn of<'a>(
        prefix: &str,
        tables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, String> {
        let mut shape = Self::default();
        if prefix != NONE {
            check_prefix(prefix)?;
            shape.prefix = Some(prefix.to_owned());
        }
        for (name, value) in tables {
            shape.add(name, value)?;
        }
        for (name, kind) in OPTIONS {
            if !matches!(kind, Reading) && !shape.tables.contains_key(name) {
                return Err(format!("its tables' options do not say {name}"));
            }
        }
        Ok(shape)
    }

    fn add(&mut self, name: &str, value: &str) -> Result<(), String> {
        let Some((_, kind)) = OPTIONS.iter().find(|(known, _)| *known == name) else {
            return Err(format!("the option {name} of its tables is not known"));
        };
        let is_known = match kind {
            Reading => return Ok(()),
            Flag => ["true", "false"].contains(&value),
            Number => is_number(value),
            Word(words) => words.contains(&value),
            Filter => is_filter(value),
        };
        if !is_known {
            return Err(format!(
                "its tables have {name}={value}, which no other process can do the same"
            ));
        }
        self.tables.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    /// As RocksDB reads options.
    pub fn text(&self) -> String {
        let tables = self.tables.iter();
        let tables: Vec<String> = tables
            .map(|(name, value)| format!("{name}={value};"))
            .collect();
        let tables = tables.concat();
        let prefix = self.prefix.as_ref();
        let prefix = prefix.map(|prefix| format!("prefix_extractor={prefix};"));
        let prefix = prefix.unwrap_or_default();
        format!("{prefix}block_based_table_factory={{{tables}}};")
    }

    /// For a job's parameters.
    pub fn encode(&self) -> Vec<u8> {
        let prefix = self.prefix.as_deref().unwrap_or(NONE);
        let lines = self.tables.iter();
        let lines: Vec<String> = lines
            .map(|(name, value)| format!("\n{name}={value}"))
            .collect();
        let lines = lines.concat();
        format!("{prefix}{lines}").into_bytes()
    }

    /// Reads what [`Shape::encode`] wrote.
    ///
    /// # Errors
    /// It is not that.
    pub fn decode(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "a shape is no text".to_owned())?;
        let mut lines = text.lines();
        let prefix = lines.next().unwrap_or_default();
        let pairs: Option<Vec<_>> = lines.map(|line| line.split_once('=')).collect();
        let pairs = pairs.ok_or("a line of a shape is no option")?;
        Self::of(prefix, pairs)
    }
}

fn check_prefix(prefix: &str) -> Result<(), String> {
    let number = PREFIXES.iter().find_map(|name| prefix.strip_prefix(name));
    match number {
        Some(number) if is_digits(number) => Ok(()),
        _ => Err(format!(
            "it has an extractor of prefixes of its own, {prefix}"
        )),
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    is_digits(whole) && is_digits(part)
}

/// `bloomfilter:10:false`, or none.
fn is_filter(text: &str) -> bool {
    let numbers = text.strip_prefix("bloomfilter:");
    let numbers = numbers.and_then(|numbers| numbers.split_once(':'));
    let is_bloom =
        |(bits, last): (&str, &str)| is_number(bits) && ["true", "false"].contains(&last);
    text == NONE || numbers.is_some_and(is_bloom)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> Vec<(&'static str, &'static str)> {
        let value = |kind: &Kind| match kind {
            Reading => "anything",
            Flag => "true",
            Number => "-1.5",
            Word(words) => words[0],
            Filter => "bloomfilter:9.9:false",
        };
        OPTIONS
            .iter()
            .map(|(name, kind)| (*name, value(kind)))
            .collect()
    }

    fn with(name: &str, value: &str) -> Result<Shape, String> {
        let changed = defaults().into_iter();
        let changed = changed.map(|(one, old)| (one, if one == name { value } else { old }));
        Shape::of(NONE, changed.collect::<Vec<_>>())
    }

    #[test]
    fn a_shape_comes_back_as_it_was_sent() {
        for prefix in [NONE, "rocksdb.FixedPrefix.4", "rocksdb.CappedPrefix.12"] {
            let shape = Shape::of(prefix, defaults()).unwrap();
            assert_eq!(Shape::decode(&shape.encode()), Ok(shape.clone()));
            assert_eq!(shape.text().contains("prefix_extractor"), prefix != NONE);
            assert!(!shape.text().contains("anything"), "what only readers need");
        }
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        for (name, value) in [
            ("filter_policy", "my.filter"),
            ("filter_policy", "bloomfilter"),
            (
                "filter_policy",
                "{id=ribbonfilter:9:0;bloom_before_level=0;}",
            ),
            ("filter_policy", "bloomfilter:10:false;block_size=1"),
            ("flush_block_policy_factory", "mine"),
            ("user_defined_index_factory", "trie"),
            ("checksum", "kMine"),
            ("block_size", "4096}"),
            ("block_size", ""),
            ("whole_key_filtering", "1"),
        ] {
            let error = with(name, value).unwrap_err();
            assert!(error.contains(&format!("{name}={value}")), "{error}");
        }
        assert!(with("block_size", "4096").is_ok());
        let more = [defaults(), vec![("later", "1")]].concat();
        assert!(Shape::of(NONE, more).unwrap_err().contains("later"));
        let less = defaults().into_iter().skip(1);
        assert!(Shape::of(NONE, less).unwrap_err().contains("block_align"));
        for prefix in ["mine", "rocksdb.FixedPrefix.", "rocksdb.FixedPrefix.4;x=1"] {
            assert!(Shape::of(prefix, defaults()).unwrap_err().contains(prefix));
        }
    }

    #[test]
    fn no_bytes_bring_it_down() {
        for bytes in [&b""[..], b"\xff", b"nullptr", b"nullptr\nx", b"nullptr\n=;"] {
            assert!(Shape::decode(bytes).is_err(), "{bytes:?}");
        }
    }

    /// RocksDB reads the text, and writes the same options down.
    #[cfg(feature = "rocksdb")]
    #[test]
    fn rocksdb_writes_down_what_it_read() {
        let directory = std::env::temp_dir().join(format!("manxdb-shape-{}", std::process::id()));
        let options = rocksdb::Options::default().get_options_from_string(
            "create_if_missing=true;prefix_extractor=rocksdb.CappedPrefix.3;\
             block_based_table_factory={filter_policy=bloomfilter:9.5:false;block_size=12288;\
             format_version=5;index_type=kTwoLevelIndexSearch;partition_filters=true}",
        );
        let mut options = options.unwrap();
        let first = written(&options, &directory.join("first"));
        let mut again = options.get_options_from_string(first.text()).unwrap();
        again.create_if_missing(true);
        let second = written(&again, &directory.join("second"));
        std::fs::remove_dir_all(&directory).unwrap();
        assert_eq!(first, second);
        assert!(
            first
                .text()
                .contains("filter_policy=bloomfilter:9.5:false;"),
            "{first:?}"
        );
    }

    #[cfg(feature = "rocksdb")]
    fn written(options: &rocksdb::Options, directory: &std::path::Path) -> Shape {
        drop(rocksdb::DB::open(options, directory).unwrap());
        let files = std::fs::read_dir(directory).unwrap().flatten();
        let file = files.map(|file| file.path());
        let mut file = file.filter(|path| path.to_string_lossy().contains("OPTIONS-"));
        let text = std::fs::read_to_string(file.next().unwrap()).unwrap();
        let lines = text.lines().map(str::trim);
        let value = lines
            .clone()
            .find_map(|line| line.strip_prefix("prefix_extractor="));
        let tables = lines.skip_while(|line| !line.starts_with("[TableOptions"));
        Shape::of(
            value.unwrap(),
            tables.filter_map(|line| line.split_once('=')),
        )
        .unwrap()
    }
}
