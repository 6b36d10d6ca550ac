#!/usr/bin/env bash
# Licences, bans and sources of every dependency; advisories too where the database can be fetched.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo deny --log-level error check licenses bans sources
if cargo deny --log-level error fetch db 2>/dev/null; then
    cargo deny --log-level error check --disable-fetch advisories
else
    echo "deny: the advisory database cannot be reached from here; advisories were not checked" >&2
fi
