#!/usr/bin/env python3
"""Replays a corpus of statements on one server and prints every answer as JSON.

The corpus: the statements of tests/sql/*.slt that are meant for both servers, scripts of
tests/differential's generator, and expressions of random operators without brackets. It is the
same on every server, so that compat.py can compare what two of them answered.

    compat_corpus.py PORT PASSWORD

Run by compat.py with the environment of the client tests.
"""

import hashlib
import json
import os
import random
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROWS_KEPT = 20
SEEDS = range(1, 21)
SCRIPT_LENGTH = 120
EXPRESSIONS = 400
OPERANDS = ["0", "1", "2", "3", "NULL", "'a'", "'B'", "'1'", "2.5", "0x41", "!0", "-1", "~0", "NOT 1"]
OPERATORS = ["+", "-", "*", "DIV", "%", "^", "&", "|", "<<", ">>", "=", "<>", "<", ">=", "<=>", "AND", "OR", "XOR",
             "&&", "LIKE", "NOT LIKE", "IS NULL", "IS NOT TRUE", "IN (1, 2)", "BETWEEN 0 AND"]
# MariaDB's own numbers for what MySQL numbers otherwise.
SAME_ERROR = {4025: 3819, 1969: 3024, 1005: 1824, 167: 1062, 4009: 3579, 4010: 3591, 4011: 3581, 4012: 3583, 4013: 3582}
# What a statement is about, where both servers answer and mean different things by it.
ABOUT = [
    (r"^(EXPLAIN|DESC\b|DESCRIBE)", "EXPLAIN and DESCRIBE in words of their own"),
    (r"^SHOW CREATE", "SHOW CREATE writes definitions as MySQL 8.0 does"),
    (r"^SHOW ", "SHOW lists what the server has"),
    (r"information_schema|performance_schema", "information_schema has MySQL 8.0's columns"),
    (r"@@|VERSION\(\)|VARIABLES", "variables and the version"),
    (r"JSON_|->", "JSON text and functions as in MySQL 8.0"),
    (r"REGEXP|RLIKE", "regular expressions as in MySQL 8.0"),
    (r"COLLATE|_ci\b|_bin\b|CHARSET|COLLATION", "collations"),
    (r"\bUUID|\bRAND\(|\bNOW\(|CURRENT_TIMESTAMP|CONNECTION_ID|SLEEP\(", "answers that differ from run to run"),
]


def expressions():
    """SELECTs of operators without brackets: what binds how tightly."""
    source = random.Random(1)
    for _ in range(EXPRESSIONS):
        parts = [source.choice(OPERANDS)]
        for _ in range(source.randint(2, 4)):
            operator = source.choice(OPERATORS)
            # MariaDB and MySQL take a prefix NOT only where a condition may begin.
            operand = source.choice(OPERANDS if operator in ("AND", "OR", "XOR", "&&") else OPERANDS[:-1])
            parts.append(operator if operator.startswith(("IS", "IN")) else f"{operator} {operand}")
        yield "SELECT " + " ".join(parts)


def corpus():
    """(group, key, connection, sql, ordered) of every statement; a group has a database of its own."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "differential")]
    from sql import run as slt  # pylint: disable=import-outside-toplevel
    from generator import Generator  # pylint: disable=import-outside-toplevel
    for path in sorted((ROOT / "tests" / "sql").glob("*.slt")):
        both = []
        for server in ("mariadb", "manxdb"):
            slt.SERVER = server
            both.append({record.line: record for record in slt.parse(path)[0]})
        for line, record in both[1].items():
            if line in both[0]:
                ordered = record.kind != "query" or "rowsort" not in record.argument
                yield f"slt_{path.stem}", f"{path.name}:{line}", record.connection, record.sql, ordered
    for seed in SEEDS:
        for at, (sql, ordered) in enumerate(Generator(random.Random(seed)).script(SCRIPT_LENGTH)):
            yield f"seed_{seed}", f"seed {seed}:{at}", "default", sql, ordered
    for at, sql in enumerate(expressions()):
        yield "expressions", f"expression {at}", "default", sql, True


def answer(link, sql, ordered):
    """[kind, what, text]: rows as a digest with the first of them, affected rows, or an error's number."""
    import pymysql  # pylint: disable=import-outside-toplevel
    try:
        with link.cursor() as cursor:
            count = cursor.execute(sql)
            if not cursor.description:
                return ["done", count, ""]
            rows = [repr(row) for row in cursor.fetchall()]
    except pymysql.err.MySQLError as error:
        number = error.args[0] if error.args else 0
        return ["error", SAME_ERROR.get(number, number), str(error.args[1:])[:200]]
    rows = rows if ordered else sorted(rows)
    return ["rows", hashlib.sha256("\n".join(rows).encode()).hexdigest(), "; ".join(rows[:ROWS_KEPT])[:400]]


def replay(port, password):
    """{key: [sql, answer]} of the whole corpus."""
    import pymysql  # pylint: disable=import-outside-toplevel

    def connect():
        return pymysql.connect(host="127.0.0.1", port=port, user="root", password=password, autocommit=True,
                               charset="utf8mb4", conv={}, read_timeout=60)

    admin, answers, links, group = connect(), {}, {}, None
    for name, key, connection, sql, ordered in corpus():
        if name != group:
            group = name
            for link in links.values():
                link.close()
            links = {}
            with admin.cursor() as cursor:
                cursor.execute(f"DROP DATABASE IF EXISTS {name}")
                cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
        if connection not in links:
            links[connection] = connect()
            links[connection].select_db(name)
            with links[connection].cursor() as cursor:
                cursor.execute("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci")
        answers[key] = [sql, answer(links[connection], sql, ordered)]
    return answers


def cause(sql, ours, theirs):
    """Why two answers differ, as far as the statement and the answers tell."""
    if ours[0] == "error" and ours[1] == 1235:
        return "ManxDB does not support it (1235)"
    if theirs[0] == "error" and theirs[1] in (1064, 1305, 1193, 1273, 1235, 4161):
        return f"MariaDB does not know it ({theirs[1]})"
    if ours[0] == "error" and theirs[0] == "error":
        return f"another error: {ours[1]}, on MariaDB {theirs[1]}"
    for pattern, about in ABOUT:
        if re.search(pattern, sql, re.IGNORECASE):
            return about
    if ours[0] == "error":
        return f"error {ours[1]} where MariaDB answers"
    if theirs[0] == "error":
        return f"an answer where MariaDB has error {theirs[1]}"
    return "other rows" if ours[0] == "rows" else "other affected rows"


def differences(ours, theirs):
    """How many statements were compared, and {cause: [(key, sql, ours, theirs)]}."""
    groups, compared = {}, 0
    for key, (sql, mine) in ours.items():
        if key not in theirs:
            continue
        other = theirs[key][1]
        compared += 1
        if mine[:2] != other[:2]:
            groups.setdefault(cause(sql, mine, other), []).append((key, sql, mine, other))
    return compared, groups


if __name__ == "__main__":
    os.environ.setdefault("MANXDB_TEST_HOST", "127.0.0.1")
    print(json.dumps(replay(int(sys.argv[1]), sys.argv[2])))
