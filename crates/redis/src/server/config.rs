//! Settings, and what CONFIG calls them.

use std::collections::BTreeMap;

use super::events::Events;

/// What a server is set to.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Bytes that keys and values may take in memory; 0: any number.
    pub memory_bytes: usize,
    /// The password of the user `default`; `None`: no password is asked for.
    pub password: Option<String>,
    /// Whether a reply means that the disk has it, and not only the operating system.
    pub is_synced: bool,
    /// How long a script runs before other connections may end it, in milliseconds.
    pub script_limit_millis: u64,
    /// Commands that take longer are kept by SLOWLOG, in microseconds; negative: none is.
    pub slower_than_micros: i64,
    /// Commands that SLOWLOG keeps.
    pub slow_commands_max: usize,
    /// What takes longer is kept by LATENCY, in milliseconds; 0: nothing is.
    pub latency_threshold_millis: u64,
    /// What of keys is told to those who listen.
    pub events: Events,
    /// Keys that are remembered for clients that track them; 0: any number.
    pub tracked_keys_max: usize,
    /// The port, for INFO.
    pub port: u16,
    /// Identity of this process, for INFO: 40 hexadecimal digits.
    pub run_id: String,
    /// The version of ManxDB.
    pub version: &'static str,
    /// Settings of Redis's that change nothing here, by name, as they were set.
    pub layouts: BTreeMap<&'static str, String>,
}

/// Settings that say how Redis lays values out and when it tidies up, and what they are at first: they
/// are taken and shown, and change nothing here.
pub(super) const LAYOUTS: &[(&str, &str)] = &[
    ("activerehashing", "yes"),
    ("hash-max-listpack-entries", "128"),
    ("hash-max-listpack-value", "64"),
    ("hash-max-ziplist-entries", "128"),
    ("hash-max-ziplist-value", "64"),
    ("hll-sparse-max-bytes", "3000"),
    ("hz", "10"),
    ("lazyfree-lazy-eviction", "yes"),
    ("lazyfree-lazy-expire", "yes"),
    ("lazyfree-lazy-server-del", "yes"),
    ("lazyfree-lazy-user-del", "yes"),
    ("lazyfree-lazy-user-flush", "yes"),
    ("list-compress-depth", "0"),
    ("list-max-listpack-size", "128"),
    ("list-max-ziplist-size", "128"),
    ("set-max-intset-entries", "512"),
    ("set-max-listpack-entries", "128"),
    ("set-max-listpack-value", "64"),
    ("stream-node-max-bytes", "4096"),
    ("stream-node-max-entries", "100"),
    ("zset-max-listpack-entries", "128"),
    ("zset-max-listpack-value", "64"),
    ("zset-max-ziplist-entries", "128"),
    ("zset-max-ziplist-value", "64"),
];

/// Whether `value` may take the place of `first`: a word for a word, a number for a number.
fn is_alike(first: &str, value: &str) -> bool {
    match first {
        "yes" | "no" => matches!(value, "yes" | "no"),
        _ => value.parse::<i64>().is_ok(),
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            memory_bytes: 0,
            password: None,
            is_synced: true,
            script_limit_millis: 5000,
            slower_than_micros: 10_000,
            slow_commands_max: 128,
            latency_threshold_millis: 0,
            events: Events::default(),
            tracked_keys_max: 1_000_000,
            port: 6379,
            run_id: "0".repeat(40),
            version: env!("CARGO_PKG_VERSION"),
            layouts: BTreeMap::new(),
        }
    }
}

impl Settings {
    /// Takes a setting of [`LAYOUTS`]; `None` when it is none, else whether its value may be taken.
    pub(super) fn set_layout(&mut self, name: &str, value: &[u8]) -> Option<bool> {
        let (name, first) = LAYOUTS.iter().find(|(known, _)| *known == name)?;
        let value = std::str::from_utf8(value).unwrap_or_default();
        let is_taken = is_alike(first, value);
        if is_taken {
            self.layouts.insert(name, value.to_owned());
        }
        Some(is_taken)
    }

    /// What CONFIG GET shows.
    pub(super) fn shown(&self) -> Vec<(&'static str, String)> {
        let fixed = [
            ("save", ""),
            ("appendonly", "yes"),
            ("databases", "16"),
            ("maxmemory-policy", "noeviction"),
            ("proto-max-bulk-len", "536870912"),
            ("timeout", "0"),
            ("tcp-keepalive", "300"),
            ("maxclients", "10000"),
            ("latency-tracking", "yes"),
            ("latency-tracking-info-percentiles", "50 99 99.9"),
        ];
        let mut shown: Vec<_> = fixed.map(|(name, value)| (name, value.to_owned())).into();
        shown.extend(LAYOUTS.iter().map(|(name, first)| {
            let value = self.layouts.get(name).map_or(*first, String::as_str);
            (*name, value.to_owned())
        }));
        let fsync = if self.is_synced { "always" } else { "everysec" };
        shown.push(("appendfsync", fsync.to_owned()));
        shown.push(("notify-keyspace-events", self.events.letters()));
        shown.push(("maxmemory", self.memory_bytes.to_string()));
        let limit = self.script_limit_millis.to_string();
        shown.push(("lua-time-limit", limit.clone()));
        shown.push(("busy-reply-threshold", limit));
        for (name, value) in [
            (
                "slowlog-log-slower-than",
                self.slower_than_micros.to_string(),
            ),
            ("tracking-table-max-keys", self.tracked_keys_max.to_string()),
            ("slowlog-max-len", self.slow_commands_max.to_string()),
            (
                "latency-monitor-threshold",
                self.latency_threshold_millis.to_string(),
            ),
        ] {
            shown.push((name, value));
        }
        shown.push(("port", self.port.to_string()));
        shown.sort_unstable();
        shown
    }
}
