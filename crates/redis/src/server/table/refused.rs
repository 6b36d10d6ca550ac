//! Commands of Redis that are known and not served, each with its reason.

const REFUSED: &[(&str, &str)] = &[
    ("cluster", "this server is one node"),
    ("readonly", "this server is one node"),
    ("readwrite", "this server is one node"),
    ("asking", "this server is one node"),
    ("replicaof", "replication is not Redis's"),
    ("slaveof", "replication is not Redis's"),
    ("psync", "replication is not Redis's"),
    ("sync", "replication is not Redis's"),
    ("replconf", "replication is not Redis's"),
    ("failover", "replication is not Redis's"),
    ("module", "modules are Redis's own code"),
    ("migrate", "there is no other Redis to migrate to"),
    ("swapdb", "rows carry the number of their database"),
    ("monitor", "use SLOWLOG and the admin page"),
    ("pfselftest", "it tests Redis's own code"),
];

/// Why a command is not served.
pub fn why(name: &str) -> Option<&'static str> {
    let found = REFUSED
        .iter()
        .find(|(refused, _)| refused.eq_ignore_ascii_case(name));
    found.map(|(_, why)| *why)
}
