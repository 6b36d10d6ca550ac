"""Runs sqllogictest files over the wire, each in a database of its own.

Understood: `statement ok`, `statement count N`, `statement error REGEX`, `query TYPES [rowsort]`,
`skipif SERVER`, `onlyif SERVER` (manxdb, mariadb), `connection NAME`, `halt`. An error is matched
as `ERROR number (sqlstate): text`. Values are MySQL's text form; NULL is `NULL`, an empty string
`(empty)`, bytes that are not UTF-8 `0x…`. Line breaks in values print as `\\n`.

    run.py [NAME…]          only files whose name holds a word
    run.py --fill [NAME…]   writes the server's results into empty `----` blocks
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pymysql

from harness.checks import HOST, IS_MARIADB, PASSWORD, PORT, USER

FOLDER = Path(__file__).parent
SERVER = "mariadb" if IS_MARIADB else "manxdb"
SHOWN_FAILURES = 40


@dataclass
class Record:
    """One statement or query of a file."""

    line: int
    kind: str
    argument: str
    sql: str
    connection: str
    wanted: list = field(default_factory=list)
    # Where results go in the file's lines; None when the record has no `----`.
    result_at: int | None = None


def parse(path):
    """Records of a file for this server."""
    lines = path.read_text().splitlines()
    records, index, skip, connection = [], 0, False, "default"
    while index < len(lines):
        words = lines[index].split()
        start = index
        index += 1
        if not words or words[0].startswith("#"):
            continue
        if words[0] == "halt":
            break
        if words[0] == "connection":
            connection = words[1]
        elif words[0] in ("skipif", "onlyif"):
            skip = skip or (words[1] == SERVER) == (words[0] == "skipif")
        elif words[0] in ("statement", "query"):
            sql, wanted, result_at = [], [], None
            while index < len(lines) and lines[index].strip() and lines[index] != "----":
                sql.append(lines[index])
                index += 1
            if index < len(lines) and lines[index] == "----":
                index += 1
                result_at = index
                while index < len(lines) and lines[index].strip():
                    wanted.append(lines[index])
                    index += 1
            if not skip:
                records.append(Record(start + 1, words[0], lines[start].split(None, 1)[1],
                                      "\n".join(sql), connection, wanted, result_at))
            skip, connection = False, "default"
        else:
            raise SystemExit(f"{path}:{start + 1}: cannot read '{lines[start]}'")
    return records, lines


def text(value):
    """A value as the files show it."""
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        try:
            value = value.decode()
        except UnicodeDecodeError:
            return "0x" + value.hex().upper()
    if any(character < " " and character != "\n" for character in value):
        return "0x" + value.encode().hex().upper()
    return value.replace("\n", "\\n") or "(empty)"


class Run:
    """Connections of one file."""

    def __init__(self, database):
        self.database = database
        self.links = {}

    def link(self, name):
        """The named connection, opened when first used."""
        if name not in self.links:
            self.links[name] = pymysql.connect(
                host=HOST, port=PORT, user=USER, password=PASSWORD, database=self.database,
                autocommit=True, charset="utf8mb4", conv={})
        return self.links[name]

    def execute(self, record):
        """Affected rows and rows as lines; rows is None for statements without a result."""
        with self.link(record.connection).cursor() as cursor:
            count = cursor.execute(record.sql)
            if not cursor.description:
                return count, None
            return count, [" ".join(text(value) for value in row) for row in cursor.fetchall()]

    def close(self):
        """Ends all connections."""
        for link in self.links.values():
            link.close()


def squeeze(line):
    """Runs of blanks count as one."""
    return " ".join(line.split())


def shown_error(error):
    """As files expect it. pymysql takes the number for a signed one: 51004 comes as -14532."""
    number = error.args[0] & 0xFFFF if error.args and isinstance(error.args[0], int) else 0
    return f"ERROR {number}: {error.args[1] if len(error.args) > 1 else error}"


def run_record(run, record):
    """None, or what is wrong."""
    mode, _, argument = record.argument.partition(" ")
    try:
        count, rows = run.execute(record)
    except pymysql.err.MySQLError as error:
        shown = shown_error(error)
        if record.kind == "statement" and mode == "error":
            return None if re.search(argument or ".", shown) else f"{shown}; wanted {argument}"
        return shown
    if record.kind == "statement":
        if mode == "error":
            return f"succeeded, wanted error {argument}"
        if mode == "count" and count != int(argument):
            return f"{count} rows affected, wanted {argument}"
        return None
    got, wanted = [squeeze(row) for row in rows or []], [squeeze(row) for row in record.wanted]
    if "rowsort" in argument.split():
        got, wanted = sorted(got), sorted(wanted)
    if got != wanted:
        return f"got {got[:12]}{'…' if len(got) > 12 else ''}, wanted {wanted[:12]}"
    return None


def in_database(name):
    """An empty database of that name and a run on it."""
    admin = pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, autocommit=True)
    with admin.cursor() as cursor:
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")
        cursor.execute(f"CREATE DATABASE {name}")
        if not IS_MARIADB:
            # Files show plans before and after ANALYZE TABLE: the server must not analyze by itself in between.
            cursor.execute("SET GLOBAL innodb_stats_auto_recalc = OFF")
    admin.close()
    return Run(name)


def run_file(path):
    """Prints the file's results; True when all is right."""
    name = path.stem
    try:
        records, _ = parse(path)
        run = in_database(f"slt_{name}")
        problems = []
        for record in records:
            if problem := run_record(run, record):
                problems.append((record, problem))
        run.close()
    except (OSError, pymysql.err.MySQLError) as error:
        print(f"FAIL {name}: {error}", flush=True)
        return False
    for record, problem in problems[:SHOWN_FAILURES]:
        sql = " ".join(record.sql.split()).replace(": ", ":")[:90]
        print(f"FAIL {name} [{sql}]: line {record.line}: {problem}", flush=True)
    if not problems:
        print(f"PASS {name} ({len(records)} records)", flush=True)
    return not problems


def fill_file(path):
    """Writes results into records whose `----` block is empty."""
    records, lines = parse(path)
    run = in_database(f"slt_{path.stem}")
    added = 0
    for record in records:
        try:
            _, rows = run.execute(record)
        except pymysql.err.MySQLError as error:
            if record.kind == "query" or not record.argument.startswith("error"):
                print(f"{path.name}:{record.line}: {record.sql}: {error}")
            elif not re.search(record.argument[6:] or ".", shown_error(error)):
                print(f"{path.name}:{record.line}: {record.sql}: {error}, wanted {record.argument}")
            continue
        if record.argument.startswith("error"):
            print(f"{path.name}:{record.line}: {record.sql} succeeded")
        if record.result_at is not None and not record.wanted and rows:
            at = record.result_at + added
            lines[at:at] = rows
            added += len(rows)
    run.close()
    path.write_text("\n".join(lines) + "\n")


def main():
    """All files, or those named."""
    words = [word for word in sys.argv[1:] if word != "--fill"]
    paths = [path for path in sorted(FOLDER.glob("*.slt"))
             if not words or any(word in path.stem for word in words)]
    if "--fill" in sys.argv:
        for path in paths:
            fill_file(path)
        return
    sys.exit(0 if all([run_file(path) for path in paths]) else 1)


if __name__ == "__main__":
    main()
