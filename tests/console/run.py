"""The console in headless Chromium: a server under statements, its page rendered, light and dark.

    MANXDB_CONSOLE_PICTURES=DIRECTORY run.py     leaves the screenshots there
"""

import os
import re
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pymysql

from harness.checks import Skip, check, expect, main
from harness.servers import PASSWORD, Manxdb

# Milliseconds that the page believes to have passed: some of its periods.
BUDGET_MS = 9000
# A browser that shows nothing within this hangs.
PATIENCE = 120


def browser(*arguments):
    """What headless Chromium prints for a page."""
    program = shutil.which("chromium")
    if not program:
        raise Skip("chromium is missing (apt-get install chromium)")
    with tempfile.TemporaryDirectory(prefix="manxdb-chromium-") as profile:
        done = subprocess.run(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1280,1800",
             f"--user-data-dir={profile}", f"--virtual-time-budget={BUDGET_MS}", *arguments],
            capture_output=True, text=True, timeout=PATIENCE, check=False)
    expect(done.returncode, 0)
    return done.stdout


class Load:
    """Statements of one client for as long as this is entered."""

    def __init__(self, server):
        self.server, self.ended = server, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        """Inserts and reads, one of them slow."""
        link = pymysql.connect(host="127.0.0.1", port=self.server.port, user="root", password=PASSWORD, autocommit=True)
        with link.cursor() as cursor:
            cursor.execute("CREATE DATABASE console")
            cursor.execute("CREATE TABLE console.t (id INT AUTO_INCREMENT PRIMARY KEY, x INT)")
            cursor.execute("SET long_query_time = 0.05")
            cursor.execute("SELECT SLEEP(0.1), '<img src=x onerror=alert(1)>'")
            while not self.ended.wait(0.005):
                cursor.execute("INSERT INTO console.t (x) VALUES (1)")
                cursor.execute("SELECT COUNT(*) FROM console.t")

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def section(page, name):
    """The text of the part of the page with this id, tags apart."""
    found = re.search(rf'<div id="{name}"[^>]*>(.*?)</div>(?:</section>|<div class="pair"|</body>|\s*<h2>)', page, re.DOTALL)
    expect(bool(found), True, f"the page has no {name}")
    return re.sub(r"<[^>]+>", " ", found.group(1))


@check
def the_console_shows_what_the_server_does():
    """Rates, quantiles and shares are there, and a statement's text stays text."""
    with Manxdb(os.environ["MANXDB_TEST_BINARY"]) as server, Load(server):
        address = f"http://127.0.0.1:{server.admin_port}/"
        page = browser("--dump-dom", address)
        for kind in ("insert", "select"):
            row = re.search(rf"<td[^>]*>{kind}</td><td[^>]*>([0-9.]+)</td><td[^>]*>≤ [^<]+</td><td[^>]*>≤ [^<]+</td>", page)
            expect(bool(row) and float(row.group(1)) > 0, True, f"{kind} in: {section(page, 'kinds')}")
        parts = section(page, "parts")
        expect([part for part in ("parse", "plan", "lock wait", "execute", "commit", "send") if part not in parts], [])
        expect(all(title in page for title in ("Statements", "MySQL connections", "Syncs of the log")), True)
        expect("manxdb_storage_files_bytes" in page, True)
        expect("<img src=x" in page, False, "a client's text became markup")
        expect("No answer from the server" in page, False)


OWNERS = (
    "CREATE DATABASE people",
    "CREATE DATA_SUBJECT TABLE people.users (id INT PRIMARY KEY, name VARCHAR(30))",
    "CREATE TABLE people.files (id INT PRIMARY KEY, name VARCHAR(30))",
    "CREATE TABLE people.shares (user_id INT NOT NULL OWNED_BY people.users (id), file_id INT NOT NULL OWNS people.files (id))",
    "BEGIN", "INSERT INTO people.users VALUES (17, 'canary-ann')", "INSERT INTO people.files VALUES (1, 'canary-file')",
    "INSERT INTO people.shares VALUES (17, 1)", "COMMIT", "GDPR FORGET people.users 17 REASON 'canary-reason'",
)


@check
def the_page_of_owners_shows_the_graph_and_requests_and_no_person():
    """Tables stand where their owners put them, as the browser draws them; values and reasons are nowhere."""
    with Manxdb(os.environ["MANXDB_TEST_BINARY"]) as server:
        link = pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=PASSWORD, autocommit=True)
        with link.cursor() as cursor:
            for statement in OWNERS:
                cursor.execute(statement)
        address = f"http://127.0.0.1:{server.admin_port}"
        expect('href="/ownership"' in browser("--dump-dom", f"{address}/"), True)
        page = browser("--dump-dom", f"{address}/ownership")
        tops = {name: int(top) for top, name in
                re.findall(r'<rect x="\d+" y="(\d+)"[^>]*>(?:</rect>)?<text[^>]*>people\.(\w+)</text>', page)}
        expect(sorted(tops, key=tops.get), ["users", "shares", "files"])
        expect(len(re.findall(r"<line ", page)), 2)
        expect(bool(re.search(r">people\.users</td><td><span[^>]*>done</span></td><td class=\"number\">3</td>", page)), True, page)
        expect("canary" in page, False, "a person's value, or a reason, is on the page")


@check
def the_console_is_readable_light_and_dark():
    """Two screenshots that differ, both of a page that is not empty."""
    keep = os.environ.get("MANXDB_CONSOLE_PICTURES")
    with Manxdb(os.environ["MANXDB_TEST_BINARY"]) as server, Load(server), tempfile.TemporaryDirectory() as scratch:
        pictures = []
        for name, scheme in (("light", 1), ("dark", 0)):
            picture = Path(keep or scratch) / f"console-{name}.png"
            browser(f"--screenshot={picture}", f"--blink-settings=preferredColorScheme={scheme}",
                    f"http://127.0.0.1:{server.admin_port}/")
            pictures.append(picture.read_bytes())
        expect(pictures[0] != pictures[1], True)
        expect(min(map(len, pictures)) > 20_000, True, f"{[len(picture) for picture in pictures]} bytes")


if __name__ == "__main__":
    main()
