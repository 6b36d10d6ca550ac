#!/usr/bin/env python3
"""Runs other projects' own suites on ManxDB and on MariaDB and writes COMPAT.md.

Suites: SQLAlchemy's dialect compliance suite, and Django's test labels basic, queries,
transactions, introspection, schema and backends.mysql. Both come from their source
distributions, unmodified, of the versions pinned for the client tests. Beside them a corpus of
our own statements is replayed on both servers (compat_corpus.py), and every difference is listed
by its cause.

    compat.py [--only sqlalchemy|django|corpus] [--server manxdb|mariadb] [--no-write]
"""

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import compat_corpus
from harness.report import load_known_gaps
from harness.servers import PASSWORD, Manxdb, Mariadb
from harness.suites import PYTHON, target_directory

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "manxdb" / "compat"
DJANGO_LABELS = ["basic", "queries", "transactions", "introspection", "schema", "backends.mysql"]
PYTEST = "pytest==8.4.2"
SUITE_SECONDS = 3600
DJANGO_LINE = re.compile(r"^(\w+) \(([\w.]+)\)")
DJANGO_RESULT = re.compile(r"\.\.\. (ok|FAIL|ERROR|skipped.*|expected failure)\s*$")


def pinned(package):
    """The version the client tests pin."""
    for line in (ROOT / "tests/clients/python/requirements.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        if name.lower() == package.lower():
            return version
    raise SystemExit(f"{package} is not pinned")


def source_tree(package):
    """The unpacked source distribution."""
    version = pinned(package)
    folder = CACHE / f"{package.lower()}-{version}"
    if not folder.exists():
        print(f"compat: fetching the source of {package} {version}", flush=True)
        CACHE.mkdir(parents=True, exist_ok=True)
        subprocess.run([PYTHON, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", package,
                        "--dest", str(CACHE), f"{package}=={version}"], check=True)
        with tarfile.open(CACHE / f"{package.lower()}-{version}.tar.gz") as archive:
            archive.extractall(CACHE, filter="data")
    return folder


def query(server, *statements):
    """Runs statements with the environment's PyMySQL."""
    script = ("import pymysql,sys\nl=pymysql.connect(host='127.0.0.1',port=int(sys.argv[1]),user='root',"
              "password=sys.argv[2],autocommit=True)\nc=l.cursor()\n[c.execute(s) for s in sys.argv[3:]]")
    subprocess.run([PYTHON, "-c", script, str(server.port), PASSWORD, *statements], check=True)


def run_sqlalchemy(server):
    """{test: (outcome, message)} of the dialect suite."""
    tree = source_tree("SQLAlchemy")
    if subprocess.run([PYTHON, "-c", "import pytest"], capture_output=True, check=False).returncode:
        subprocess.run([PYTHON, "-m", "pip", "install", "--quiet", PYTEST], check=True)
    for name in ("test", "test_schema"):
        query(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name} CHARACTER SET utf8mb4")
    report = server.directory / "sqlalchemy.xml"
    url = f"mysql+pymysql://root:{PASSWORD}@127.0.0.1:{server.port}/test?charset=utf8mb4"
    with open(server.directory / "sqlalchemy.log", "w", encoding="utf-8") as log:
        subprocess.run([PYTHON, "-m", "pytest", "test/dialect/test_suite.py", "--dburi", url, "-q", "--tb=short",
                        "-p", "no:cacheprovider", "-p", "no:warnings", "--maxfail=100000",
                        f"--junitxml={report}"], cwd=tree, stdout=log, stderr=log,
                       stdin=subprocess.DEVNULL, timeout=SUITE_SECONDS, check=False)
    results = {}
    if not report.exists():
        raise SystemExit(f"SQLAlchemy's suite did not run:\n{(server.directory / 'sqlalchemy.log').read_text()[-3000:]}")
    for case in ElementTree.parse(report).iter("testcase"):
        # pytest puts the server into the class's name: JSONTest_mysql+pymysql_8_0_36.
        group = re.sub(r"_(mysql|mariadb)\+pymysql[\d_]*$", "", case.get("classname").rpartition(".")[2])
        name = f"{group}.{case.get('name')}"
        outcome, message = "pass", ""
        for child in case:
            if child.tag in ("failure", "error"):
                outcome, message = "fail", child.get("message") or child.text or ""
            elif child.tag == "skipped":
                outcome, message = "skip", child.get("message") or ""
        results[name] = (outcome, message)
    return results


DJANGO_SETTINGS = """import pymysql
pymysql.version_info = (2, 2, 8, "final", 0)
pymysql.install_as_MySQLdb()
ONE = {"ENGINE": "django.db.backends.mysql", "HOST": "127.0.0.1", "PORT": %(port)d, "USER": "root",
       "PASSWORD": "%(password)s", "OPTIONS": {"charset": "utf8mb4"}}
DATABASES = {"default": {**ONE, "NAME": "django"}, "other": {**ONE, "NAME": "django_other"}}
SECRET_KEY = "compat"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
"""


def run_django(server):
    """{test: (outcome, message)} of the six labels."""
    tree = source_tree("Django") / "tests"
    settings = server.directory / "compat_settings.py"
    settings.write_text(DJANGO_SETTINGS % {"port": server.port, "password": PASSWORD})
    log = server.directory / "django.log"
    environment = {**os.environ, "PYTHONPATH": f"{server.directory}:{tree.parent}"}
    with open(log, "w", encoding="utf-8") as out:
        subprocess.run([PYTHON, "runtests.py", "--settings=compat_settings", "--parallel=1", "--noinput", "-v2",
                        *DJANGO_LABELS], cwd=tree, env=environment, stdout=out, stderr=out,
                       stdin=subprocess.DEVNULL, timeout=SUITE_SECONDS, check=False)
    text = log.read_text(errors="replace")
    results, name = {}, None
    for line in text.splitlines():
        if match := DJANGO_LINE.match(line):
            name = f"{match[2]}" if match[2].endswith(match[1]) else f"{match[2]}.{match[1]}"
        if name and (match := DJANGO_RESULT.search(line)):
            word = match[1]
            outcome = "pass" if word in ("ok", "expected failure") else "skip" if word.startswith("skipped") else "fail"
            results[name] = (outcome, word if outcome == "skip" else "")
            name = None
    for block in text.split("=" * 70)[1:]:
        head = block.strip().splitlines()[:1]
        if head and (match := re.match(r"(ERROR|FAIL): (\w+) \(([\w.]+)\)", head[0])):
            name = match[3] if match[3].endswith(match[2]) else f"{match[3]}.{match[2]}"
            lines = [line for line in block.strip().splitlines() if re.match(r"^[\w.]+(Error|Exception|Warning)\b", line)]
            results[name] = ("fail", lines[-1] if lines else head[0])
    if not results:
        raise SystemExit(f"Django's tests did not run:\n{text[-3000:]}")
    return results


def run_corpus(server):
    """{key: [statement, answer]} of the corpus."""
    run = subprocess.run([PYTHON, str(ROOT / "scripts" / "compat_corpus.py"), str(server.port), PASSWORD],
                         stdout=subprocess.PIPE, check=True, timeout=SUITE_SECONDS)
    return json.loads(run.stdout)


def write_corpus(lines, scores):
    """What the two servers answer differently to the corpus, by cause."""
    ours, theirs = (scores.get("corpus", {}).get(name) for name in ("manxdb", "mariadb"))
    lines += ["", "## Replay of our own statements beside MariaDB", ""]
    if not ours or not theirs:
        lines.append("Not run to its end yet.")
        return
    compared, groups = compat_corpus.differences(ours, theirs)
    differing = sum(len(found) for found in groups.values())
    lines += ["The statements of `tests/sql/*.slt` that are meant for both servers, scripts of `tests/differential`'s "
              "generator, and expressions of random operators without brackets; rows, numbers of affected rows and "
              "numbers of errors are compared. A difference is no verdict: where MySQL 8.0 and MariaDB differ, ManxDB "
              "answers as MySQL does.", "",
              f"Of {compared} statements {compared - differing} are answered alike and {differing} are not:", ""]
    for reason, found in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
        shown = "; ".join(f"{key} `{' '.join(sql.split())[:90].replace('`', chr(39)).replace('|', chr(92) + '|')}`"
                          for key, sql, _, _ in found[:3])
        lines.append(f"- **{len(found)}** × {reason}: {shown}{'; …' if len(found) > 3 else ''}")


SUITES = {"sqlalchemy": ("SQLAlchemy dialect suite", run_sqlalchemy), "django": ("Django: " + ", ".join(DJANGO_LABELS), run_django)}


def cause(message):
    """What failures with the same reason have in common."""
    text = " ".join(message.split())
    if match := re.search(r"\((\d{4}), [\"'](.*?)[\"']\)", text):
        detail = re.sub(r"near .*", "near …", match[2]) if match[1] == "1064" else match[2]
        return f"error {match[1]}: {re.sub(r'[0-9]+', 'N', detail)[:110]}"
    return re.sub(r"0x[0-9a-f]+|[0-9]+", "N", text)[:110] or "no message"


def counts(results):
    """Passed, failed, skipped."""
    tally = collections.Counter(outcome for outcome, _ in results.values())
    return tally["pass"], tally["fail"], tally["skip"]


def not_for_mysql(theirs, ours):
    """{test: reason} of what MariaDB passes and the suite itself leaves out for a MySQL 8.0: RETURNING, sequences, …"""
    left_out = {}
    for name, (outcome, _) in theirs.items():
        if outcome == "pass" and ours.get(name, ("skip", ""))[0] == "skip":
            left_out[name] = ours[name][1] if name in ours else "not collected for this server"
    return left_out


def skip_reason(message):
    """What skips with the same reason have in common."""
    text = " ".join(message.replace("skipped", "", 1).strip(" '\"").split())
    return re.sub(r"^'?[^']*' : |config=<[^>]*>", "", text)[:110] or "no reason given"


def write_left_out(lines, scores):
    """What is not asked of ManxDB, by reason."""
    for key, (title, _) in SUITES.items():
        results, theirs = (scores.get(key, {}).get(name) for name in ("manxdb", "mariadb"))
        if not results or not theirs:
            continue
        groups = collections.Counter()
        for name, reason in not_for_mysql(theirs, results).items():
            groups[name.partition(".")[0] if reason.startswith("not collected") else skip_reason(reason)] += 1
        listed = ", ".join(f"{reason} ({count})" for reason, count in groups.most_common())
        if listed:
            lines += ["", f"**{title}**: {listed}."]


def write_page(scores):
    """COMPAT.md."""
    lines = ["# What works, what does not", "",
             "Made by `make compat`: the suites that other projects test databases with, unmodified, on ManxDB and on "
             "MariaDB in the same run. What is not listed as failing here or as a gap below works in these suites.", "",
             "## Score", "", "| suite | server | passed | failed | skipped | of MariaDB's passes, ManxDB passes | of those the suite asks of a MySQL 8.0 |",
             "|---|---|---|---|---|---|---|"]
    for key, (title, _) in SUITES.items():
        for server in ("manxdb", "mariadb"):
            if not scores.get(key, {}).get(server):
                lines.append(f"| {title} | {'ManxDB' if server == 'manxdb' else 'MariaDB'} | not run to its end yet | | | | |")
            if results := scores.get(key, {}).get(server):
                passed, failed, skipped = counts(results)
                share = asked = ""
                if server == "manxdb" and (theirs := scores[key].get("mariadb")):
                    base = [name for name, (outcome, _) in theirs.items() if outcome == "pass"]
                    both = sum(1 for name in base if results.get(name, ("", ""))[0] == "pass")
                    share = f"{both} of {len(base)}: {100 * both / max(1, len(base)):.1f} %"
                    count = len(base) - len(not_for_mysql(theirs, results))
                    asked = f"{both} of {count}: {100 * both / max(1, count):.1f} %"
                lines.append(f"| {title} | {'ManxDB' if server == 'manxdb' else 'MariaDB'} | {passed} | {failed} | {skipped} | {share} | {asked} |")
    lines += ["", "The version string says MySQL 8.0, so the suites leave out what only MariaDB has. Of the tests that "
              "MariaDB passes, these are not asked of ManxDB, by the reason the suite gives:"]
    write_left_out(lines, scores)
    for key, (title, _) in SUITES.items():
        results = scores.get(key, {}).get("manxdb")
        if not results:
            continue
        groups = collections.defaultdict(list)
        for name, (outcome, message) in sorted(results.items()):
            if outcome == "fail":
                groups[cause(message)].append(name)
        lines += ["", f"## Failures of {title}, by cause", ""]
        theirs = scores[key].get("mariadb", {})
        for reason, names in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
            also = sum(1 for name in names if theirs.get(name, ("", ""))[0] == "fail")
            note = f", {also} of them on MariaDB too" if also else ""
            lines += [f"- **{len(names)}** × `{reason.replace('`', chr(39))}`{note}: {', '.join(names[:6])}{', …' if len(names) > 6 else ''}"]
        if not groups:
            lines.append("None.")
    write_corpus(lines, scores)
    lines += ["", "## Known gaps of our own suites", "",
              "From `tests/known_gaps.txt`; these checks run in every `make test` and are expected to fail.", ""]
    gaps = load_known_gaps()
    lines += [f"- {suite} / {check}: {reason}" for (suite, check), reason in gaps.items()] or ["None."]
    (ROOT / "COMPAT.md").write_text("\n".join(lines) + "\n")
    print("compat: wrote COMPAT.md")


def main():
    """Runs, keeps raw results in the cache, writes the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=(*SUITES, "corpus"))
    parser.add_argument("--server", choices=("manxdb", "mariadb"))
    parser.add_argument("--binary", default=str(target_directory() / "debug" / "manxdb"))
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    store = CACHE / "scores.json"
    scores = json.loads(store.read_text()) if store.exists() else {}
    parts = {**SUITES, "corpus": ("our own statements", run_corpus)}
    for key, (title, run) in parts.items():
        if options.only not in (None, key):
            continue
        for name in ("manxdb", "mariadb"):
            if options.server not in (None, name):
                continue
            print(f"compat: {title} on {name}", flush=True)
            with (Manxdb(options.binary) if name == "manxdb" else Mariadb()) as server:
                results = run(server)
            if key != "corpus":
                passed, failed, skipped = counts(results)
                print(f"compat: {passed} passed, {failed} failed, {skipped} skipped", flush=True)
            scores.setdefault(key, {})[name] = results
            CACHE.mkdir(parents=True, exist_ok=True)
            store.write_text(json.dumps(scores))
    if not options.no_write:
        write_page(scores)


if __name__ == "__main__":
    main()
