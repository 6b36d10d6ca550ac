"""Lobsters' pages on ManxDB, without views, with them and with sealed rows, and on MariaDB, filled alike: every
answer must be the same.

    run.py [--pages 400] [--seeds 2] [--scale 0.02]
"""

import argparse
import json
import os
import subprocess
import sys

from harness.servers import PASSWORD, Manxdb, Mariadb

DATABASE = "lobsters"


def address(server, database):
    """What `manxdb bench` takes."""
    return f"mysql://root@127.0.0.1:{server.port}/{database}"


def bench(binary, *arguments):
    """(exit code, output) of `manxdb bench lobsters`."""
    command = [binary, "bench", "lobsters", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={**os.environ, "MANXDB_PASSWORD": PASSWORD})
    return done.returncode, " | ".join((done.stdout + done.stderr).split("\n")).strip(" |")


def check(name, code, output):
    """Prints the result as the runner reads it."""
    print(f"PASS {name}" if code == 0 else f"FAIL {name}: {output[-1500:]}", flush=True)
    return code == 0


def with_vault(binary):
    """A server that seals rows of people."""
    server = Manxdb(binary)
    key = server.directory / "master-key"
    key.write_text("5e" * 32 + "\n")
    key.chmod(0o600)
    server.extra = ["--vault", str(server.directory / "vault"), "--vault-mirror", str(server.directory / "mirror"),
                    "--master-key-file", str(key)]
    return server


def same_answers(binary, servers, options, seed, sealing):
    """One seed: its own database on both servers, one with views on ManxDB, and one with owners and views on the
    server that seals rows, if there is one; the same pages on all."""
    database = f"{DATABASE}_{seed}"
    site = ["--scale", options.scale, "--seed", seed]
    for server in servers:
        code, output = bench(binary, "fill", "--url", address(server, database), *site)
        if code != 0:
            return check(f"{server.name} is filled with seed {seed}", code, output)
    manxdb, viewed = servers[0], f"{database}_viewed"
    code, output = bench(binary, "fill", "--views", "--url", address(manxdb, viewed), *site)
    if not check(f"{manxdb.name} is filled with views and seed {seed}", code, output):
        return False
    ours, *others = [*(address(server, database) for server in servers), address(manxdb, viewed)]
    if sealing:
        others.append(address(sealing, viewed))
        code, output = bench(binary, "fill", "--annotated", "--views", "--url", others[-1], *site)
        if not check(f"a server that seals rows is filled with views and seed {seed}", code, output):
            return False
    against = [argument for url in others for argument in ("--against", url)]
    good = check(f"pages of seed {seed} answer alike, with views{' and sealed' if sealing else ''} too",
                 *bench(binary, "compare", "--url", ours, *against, "--pages", options.pages, "--notifications", *site))
    for server in [manxdb, *([sealing] if sealing else [])]:
        _, shown, errors = client("mariadb", server, "-N", "-e", f"SHOW MATERIALIZED VIEWS FROM {viewed}")
        hits = {row.split("\t")[1]: int(row.split("\t")[5]) for row in shown.splitlines()}
        good = check(f"views answered pages of seed {seed}{' over sealed rows' if server is sealing else ''}",
                     int(len(hits) < 2 or not all(hits.values())), f"{shown} {errors}") and good
    return good


def annotated(binary, manxdb, options):
    """Owners named: the same site runs, open loop, without a failed page."""
    url = address(manxdb, "owned")
    site = ["--url", url, "--scale", options.scale]
    code, output = bench(binary, "fill", "--annotated", *site)
    if not check("the annotated schema is filled", code, output):
        return False
    code, output = bench(binary, "run", "--rate", "50", "--seconds", "2", *site)
    return check("the annotated site serves pages as they arrive", code or int("FAILED" in output), output)


def client(program, server, *arguments, stdin=None):
    """(exit code, output, errors) of one of MariaDB's programs on a server."""
    command = [program, "-h127.0.0.1", f"-P{server.port}", "-uroot", *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False,
                          env={**os.environ, "MYSQL_PWD": PASSWORD})
    return done.returncode, done.stdout, done.stderr


def dumped(binary, manxdb, mariadb):
    """The annotated schema goes out and in: its owners are the same, MariaDB takes it, the linter too."""
    code, dump, errors = client("mariadb-dump", manxdb, "--no-data", "owned")
    if not check("the annotated schema is dumped", code, errors):
        return False
    owners = {}
    for server, database in ((manxdb, "again"), (mariadb, "owned")):
        client("mariadb", server, "-e", f"CREATE DATABASE {database}")
        code, _, errors = client("mariadb", server, database, stdin=dump)
        if not check(f"its dump loads in {server.name}", code, errors):
            return False
    for database in ("owned", "again"):
        _, text, errors = client("mariadb", manxdb, database, "-e", "EXPLAIN COMPLIANCE")
        # A dump says of inferred owners what they are, so that they do not change with what is inferred.
        lines = [line for line in text.splitlines(keepends=True) if "\tnote\t" not in line]
        owners[database] = "".join(lines).replace("\tinferred\t", "\texplicit\t")
    same = owners["owned"] == owners["again"] and "taggings.story_id -> stories.user_id -> users" in owners["owned"]
    good = check("the loaded dump has the same owners", int(not same), f"{owners} {errors}")
    done = subprocess.run([binary, "compliance", "check", "-"], input=dump, capture_output=True, text=True, check=False)
    clean = done.returncode == 0 and "19 tables, 0 errors" in done.stdout
    return check("the linter finds no error in it", int(not clean), done.stdout + done.stderr) and good


def forgotten(manxdb):
    """A person of the annotated site goes: what was said before is what is done, and nothing is left."""
    def ask(text):
        code, rows, errors = client("mariadb", manxdb, "-N", "owned", "-e", text)
        return [line.split("\t") for line in rows.splitlines()] if code == 0 else errors
    user = ask("SELECT user_id FROM stories GROUP BY user_id ORDER BY COUNT(*) DESC LIMIT 1")[0][0]
    plan = ask(f"EXPLAIN GDPR FORGET users {user}")
    told = sum(int(row[2]) for row in plan if row[1] != "keep")
    done = ask(f"GDPR FORGET users {user}")
    rows = ask("SHOW GDPR REQUESTS")
    good = check("EXPLAIN GDPR FORGET says what FORGET does",
                 int(done != [] or int(rows[0][4]) != told), f"{plan} {done} {rows}")
    counts = "SELECT (SELECT COUNT(*) FROM users WHERE id = {0}) + (SELECT COUNT(*) FROM votes WHERE user_id = {0})" \
             " + (SELECT COUNT(*) FROM stories WHERE user_id = {0}) + (SELECT COUNT(*) FROM comments WHERE user_id = {0})"
    left = ask(counts.format(user))
    return check("nothing is left of who was forgotten", int(left != [["0"]]), str(left)) and good


def forgotten_under_load(binary, manxdb, options):
    """People are shown what is theirs, and go, while pages are asked: only their own pages fail, and nothing is left."""
    def ask(text):
        code, rows, errors = client("mariadb", manxdb, "-N", "owned", "-e", text)
        return code, [line.split("\t") for line in rows.splitlines()], errors
    arguments = ["run", "--json", "--rate", 40, "--seconds", 4, "--connections", 16, "--notifications",
                 "--url", address(manxdb, "owned"), "--scale", options.scale, "--seed", 7]
    load = subprocess.Popen([binary, "bench", "lobsters", *map(str, arguments)], stdout=subprocess.PIPE, text=True,
                            stderr=subprocess.PIPE, env={**os.environ, "MANXDB_PASSWORD": PASSWORD})
    try:
        ribbons = "SELECT user_id FROM read_ribbons GROUP BY user_id ORDER BY COUNT(*) DESC LIMIT 3"
        people = [row[0] for row in ask(ribbons)[1]]
        good = check("people have read stories", int(len(people) != 3), str(people))
        for user in people:
            shown = ask(f"GDPR GET users {user}")
            gone = ask(f"GDPR FORGET users {user}")
            good = check(f"user {user} is shown, and forgotten, while pages are asked",
                         int(shown[0] != 0 or not shown[1] or gone[0] != 0), f"{shown[2]} {gone[2]}") and good
        output, errors = load.communicate(timeout=120)
    finally:
        load.kill()
    served = json.loads(output) if load.returncode == 0 else {"pages": 0, "failures": {errors[-600:]: 1}}
    strange = [message for message in served["failures"] if "ERROR 51002" not in message]
    good = check("no page fails but those of people who were forgotten",
                 int(strange != [] or served["pages"] == 0), f"{served['pages']} pages, {strange}") and good
    tables = ["users WHERE id", "votes WHERE user_id", "stories WHERE user_id", "comments WHERE user_id",
              "read_ribbons WHERE user_id"]
    counts = " + ".join(f"(SELECT COUNT(*) FROM {table} IN ({', '.join(people)}))" for table in tables)
    left = ask(f"SELECT {counts}")
    return check("nothing is left of them, nor was written after", int(left[1] != [["0"]]), str(left)) and good


def main():
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--scale", type=float, default=0.02)
    options = parser.parse_args()
    binary = os.environ["MANXDB_TEST_BINARY"]
    with Manxdb(binary) as manxdb, Mariadb() as mariadb:
        with with_vault(binary) as sealing:
            good = [same_answers(binary, (manxdb, mariadb), options, 1, sealing)]
        good += [same_answers(binary, (manxdb, mariadb), options, seed, None) for seed in range(2, options.seeds + 1)]
        good.append(annotated(binary, manxdb, options))
        good.append(dumped(binary, manxdb, mariadb))
        good.append(forgotten(manxdb))
        good.append(forgotten_under_load(binary, manxdb, options))
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
