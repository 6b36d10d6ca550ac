"""The console in headless Chromium: a server under statements, its page rendered, light and dark.

    MANXDB_CONSOLE_PICTURES=DIRECTORY run.py     leaves the screenshots there
"""

import base64
import http.server
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import pymysql

from harness.checks import Skip, check, expect, main
from harness.devtools import Page
from harness.servers import PASSWORD, Manxdb

for suite in ("curp", "cluster"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / suite))

from processes import SqlCluster  # noqa: E402
from regions import RegionCluster, fetch, wait_until_same  # noqa: E402

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


TREE = (
    *OWNERS[:-1],
    "INSERT INTO people.users VALUES (18, 'canary-bob'), (19, 'canary-eve')",
    "BEGIN", "INSERT INTO people.files VALUES (2, 'canary-two')", "INSERT INTO people.shares VALUES (17, 2), (18, 2)", "COMMIT",
    "CREATE TABLE people.lines (id INT PRIMARY KEY, file_id INT NOT NULL OWNED_BY people.files (id), body TEXT)",
    "INSERT INTO people.lines VALUES (100, 1, 'canary-line'), (101, 2, 'canary-line'), (102, 2, 'canary-line')",
    "GDPR FORGET people.users 19 REASON 'canary-reason'",
    "GDPR FORGET people.users 18 GRACE 3 DAY",
    f"CREATE USER dpo IDENTIFIED BY '{PASSWORD}'", "GRANT GDPR, SELECT ON people.* TO dpo",
    f"CREATE USER clerk IDENTIFIED BY '{PASSWORD}'", "GRANT GDPR ON people.* TO clerk", "GRANT SELECT ON people.users TO clerk",
    f"CREATE USER reader IDENTIFIED BY '{PASSWORD}'", "GRANT SELECT, PROCESS ON *.* TO reader",
)


def login(user):
    """The header of an account's login."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()}


def of_people(server, path, user=None, form=None, accept="text/html"):
    """Status, headers and text of a page about people, asked for on the machine itself."""
    headers = {"Accept": accept, **(login(user) if user else {})}
    body = urllib.parse.urlencode(form).encode() if form else None
    request = urllib.request.Request(f"http://127.0.0.1:{server.admin_port}/ownership/{path}", body, headers)
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers, refused.read().decode()


class AsAccount(http.server.ThreadingHTTPServer):
    """Asks as an account, and as if a form had been sent: a browser without hands cannot do either."""

    def __init__(self, server, user, form):
        outer = f"http://127.0.0.1:{server.admin_port}"

        class Handler(http.server.BaseHTTPRequestHandler):
            """Passes a request on."""

            def do_GET(self):  # the library's name for it
                """Sends the form with the page about a person, and the login with all."""
                body = urllib.parse.urlencode(form).encode() if self.path == "/ownership/person" else None
                request = urllib.request.Request(outer + self.path, body, login(user))
                with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                    content = answer.read()
                    self.send_response(answer.status)
                    for name in ("Content-Type", "Content-Security-Policy"):
                        self.send_header(name, answer.headers[name])
                    self.end_headers()
                    self.wfile.write(content)

            def log_message(self, *_):
                """Says nothing."""

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def address(self, path):
        """Where a page is."""
        return f"http://127.0.0.1:{self.server_address[1]}{path}"


@check
def a_persons_data_is_a_tree_for_accounts_with_gdpr_alone():
    """Rows stand below those they belong to, as the browser draws them; values are nowhere, keys where they may be read."""
    with Manxdb(os.environ["MANXDB_TEST_BINARY"]) as server, tempfile.TemporaryDirectory() as scratch:
        link = pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=PASSWORD, autocommit=True)
        with link.cursor() as cursor:
            for statement in TREE:
                cursor.execute(statement)
        ann = {"kind": "people.users", "id": "17"}
        for user, status in ((None, 401), ("nobody", 401), ("reader", 403), ("clerk", 200), ("dpo", 200), ("root", 200)):
            for path, form in (("person", None), ("person", ann), ("certificates", None)):
                found, _, text = of_people(server, path, user, form)
                expect((found, "canary" in text), (status, False), f"{path} of {user}: {text}")
        status, _, text = of_people(server, "person", "dpo", ann, "application/json")
        tree = json.loads(text)
        expect({table["name"]: table["owned"] for table in tree["tables"]},
               {"people.users": 1, "people.shares": 2, "people.files": 2, "people.lines": 3})
        expect(tree["person"]["key"], "id = 17")
        status, _, text = of_people(server, "person", "clerk", ann, "application/json")
        expect([table["name"] for table in json.loads(text)["tables"] if table["is_readable"]], ["people.users"])
        expect("id = 101" in text, False, "a key of a table that the account may not read")
        for form, part in (({"kind": "people.files", "id": "1"}, "is no table of people"),
                           ({"kind": "people.users", "id": "70"}, "has no row with the key 70"),
                           ({"kind": "people.users", "id": "x&y"}, "can have the key x&amp;y"),
                           ({"kind": "people.users", "id": "19"}, "it was forgotten by request 1"),
                           ({"kind": "people.users"}, "enter the primary key")):
            status, _, text = of_people(server, "person", "dpo", form)
            expect((status, part in text), (404, True), f"{form}: {text}")
        proxy = AsAccount(server, "dpo", ann)
        page = browser("--dump-dom", proxy.address("/ownership/person"))
        drawn = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page[page.index('class="tree"'):]))
        below = [drawn.index(part) for part in ("id = 17", "people.shares", "people.files", "id = 1 ", "people.lines", "id = 100")]
        expect(below, sorted(below), drawn)
        expect("canary" in page, False, "a value is on the page")
        light_and_dark(proxy.address("/ownership/person"), scratch, "person", 15_000)
        page = browser("--dump-dom", proxy.address("/ownership/certificates"))
        expect((len(re.findall(">yes</span>", page)), "canary" in page), (2, False), page)
        light_and_dark(proxy.address("/ownership/certificates"), scratch, "certificates", 8_000)
        status, headers, text = of_people(server, "certificate?request=1", "dpo")
        expect((status, headers["Content-Disposition"], headers["Cache-Control"]),
               (200, 'attachment; filename="certificate-1.json"', "no-store"))
        done = subprocess.run([str(server.binary), "compliance", "verify", "-"], input=text, capture_output=True, text=True,
                              timeout=PATIENCE, check=False)
        expect(done.returncode, 0, done.stdout + done.stderr)
        expect(of_people(server, "certificate?request=7", "dpo")[0], 404)
        proxy.shutdown()
        page = browser("--dump-dom", f"http://127.0.0.1:{server.admin_port}/ownership")
        expect(bool(re.search(r">people\.users</td><td><span[^>]*>grace</span>", page)), True, page)
        light_and_dark(f"http://127.0.0.1:{server.admin_port}/ownership", scratch, "ownership", 8_000)


VIEWS = (
    "CREATE DATABASE seen",
    "CREATE TABLE seen.votes (id INT AUTO_INCREMENT PRIMARY KEY, story INT NOT NULL, voter VARCHAR(30), KEY (story))",
    "INSERT INTO seen.votes (story, voter) VALUES (1, 'canary-ann'), (1, 'canary-bob'), (2, 'canary-ann')",
    "CREATE MATERIALIZED VIEW seen.by_story AS SELECT id, story, voter FROM seen.votes WHERE story = ?",
    *["SELECT id, story, voter FROM seen.votes WHERE story = 1"] * 4,
)


@check
def the_page_of_views_shows_what_each_holds_and_no_value():
    """The counts are those of SHOW MATERIALIZED VIEWS; rows that the view holds are nowhere; light differs from dark."""
    with Manxdb(os.environ["MANXDB_TEST_BINARY"]) as server, tempfile.TemporaryDirectory() as scratch:
        link = pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=PASSWORD, autocommit=True)
        with link.cursor() as cursor:
            for statement in VIEWS:
                cursor.execute(statement)
            cursor.execute("SHOW MATERIALIZED VIEWS")
            told = cursor.fetchone()
        expect((told[3], told[5]), (1, 3), f"{told}")
        address = f"http://127.0.0.1:{server.admin_port}"
        expect('href="/views"' in browser("--dump-dom", f"{address}/"), True)
        page = browser("--dump-dom", f"{address}/views")
        row = re.search(r"<td>seen\.by_story</td><td><span[^>]*>usable</span></td>((?:<td class=\"number\">[^<]*</td>)+)", page)
        expect(bool(row), True, page)
        expect(re.findall(r">([^<]+)</td>", row.group(1)), [*map(str, told[3:]), "75 %"])
        expect("canary" in page, False, "a value of a row is on the page")
        light_and_dark(f"{address}/views", scratch, "views", 8_000)


def light_and_dark(address, scratch, page, bytes_min):
    """Two screenshots that differ, both of a page that is not empty."""
    directory = Path(os.environ.get("MANXDB_CONSOLE_PICTURES") or scratch)
    pictures = []
    for name, scheme in (("light", 1), ("dark", 0)):
        picture = directory / f"{page}-{name}.png"
        browser(f"--screenshot={picture}", f"--blink-settings=preferredColorScheme={scheme}", address)
        pictures.append(picture.read_bytes())
    expect(pictures[0] != pictures[1], True)
    expect(min(map(len, pictures)) > bytes_min, True, f"{[len(picture) for picture in pictures]} bytes")


@check
def the_console_is_readable_light_and_dark():
    """The page under statements, as the browser draws it."""
    with Manxdb(os.environ["MANXDB_TEST_BINARY"]) as server, Load(server), tempfile.TemporaryDirectory() as scratch:
        light_and_dark(f"http://127.0.0.1:{server.admin_port}/", scratch, "console", 20_000)


def asked(server, path, user=None, host="db.example", tls=None):
    """Status of a request under a name that is not this machine's."""
    return answered(server, path, user, host, tls)[0]


def answered(server, path, user=None, host="db.example", tls=None):
    """Status and text; over TLS with `tls`, which says whom to trust."""
    scheme = "https" if tls else "http"
    request = urllib.request.Request(f"{scheme}://127.0.0.1:{server.admin_port}{path}", headers={"Host": host})
    if user:
        encoded = base64.b64encode(f"{user}:{PASSWORD}".encode()).decode()
        request.add_header("Authorization", f"Basic {encoded}")
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE, context=tls) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


@check
def from_elsewhere_statements_are_read_with_the_privilege_process_alone():
    """Who comes under another name logs in as at MySQL's port; numbers are for all."""
    with Manxdb(os.environ["MANXDB_TEST_BINARY"]) as server:
        link = pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=PASSWORD, autocommit=True)
        with link.cursor() as cursor:
            for name in ("reader", "operator"):
                cursor.execute(f"CREATE USER {name} IDENTIFIED BY '{PASSWORD}'")
            cursor.execute("GRANT PROCESS ON *.* TO operator")
        for path in ("/", "/slow"):
            expect([asked(server, path, user) for user in (None, "nobody", "reader", "operator", "root")],
                   [401, 401, 401, 200, 200], path)
            expect(asked(server, path, host="localhost:8088"), 200)
        expect(asked(server, "/metrics"), 200)


@check
def over_tls_the_listener_shows_the_certificate_of_mysql_and_takes_no_plain_request():
    """Who trusts that certificate reads after a login; plain HTTP is told where to go; backups find the way."""
    with Manxdb(os.environ["MANXDB_TEST_BINARY"], ["--admin-tls"]) as server:
        link = pymysql.connect(host="127.0.0.1", port=server.port, user="root", password=PASSWORD, autocommit=True)
        with link.cursor() as cursor:
            cursor.execute(f"CREATE USER reader IDENTIFIED BY '{PASSWORD}'")
        trusted = ssl.create_default_context(cafile=server.data / "server-cert.pem")
        expect(answered(server, "/readyz", tls=trusted), (200, "ready\n"))
        expect([asked(server, "/slow", user, tls=trusted) for user in (None, "reader", "root")], [401, 401, 200])
        expect(asked(server, "/slow", host=f"127.0.0.1:{server.admin_port}", tls=trusted), 200)
        status, told = answered(server, "/slow", "root")
        expect((status, "https://db.example/slow" in told), (400, True), told)
        try:
            answered(server, "/readyz", tls=ssl.create_default_context())
            raise AssertionError("a certificate that nobody trusts was taken")
        except urllib.error.URLError as refused:
            expect("CERTIFICATE_VERIFY_FAILED" in str(refused), True, str(refused))
        into = server.directory / "backups"
        backup = [str(server.binary), "backup", "create", str(into), "--label", "one", "--data", str(server.data),
                  "--admin", f"127.0.0.1:{server.admin_port}"]
        done = subprocess.run(backup, capture_output=True, text=True, timeout=PATIENCE, check=False)
        expect((done.returncode, "backup 'one' is in" in done.stdout), (0, True), done.stdout + done.stderr)


def admin_of(cluster, number):
    """Where the admin listener of a node is: at a port of the system's choice, as its log says."""
    return "http://" + re.findall(r"admin=(127\.0\.0\.1:\d+)", (cluster.data_of(number) / "log").read_text())[-1]


def number_of(metrics, name):
    """A metric's value; None when it is not there."""
    found = re.search(rf"^manxdb_curp_{re.escape(name)} (\d+)$", metrics, re.MULTILINE)
    return int(found.group(1)) if found else None


@check
def the_page_of_replication_shows_roles_and_the_numbers_of_metrics():
    """At the master the numbers are those of /metrics once all backups have all; a backup shows the same cluster."""
    cluster = SqlCluster(suspect_ms=4000)  # no other master while the machine is busy
    try:
        cluster.wait_whole()
        master, _ = cluster.master()
        link = pymysql.connect(host="127.0.0.1", port=cluster.mysql_port(master), user="root", password="", autocommit=True)
        with link.cursor() as cursor:
            cursor.execute("CREATE DATABASE console")
            cursor.execute("CREATE TABLE console.t (id INT PRIMARY KEY, x VARCHAR(20))")
            for number in range(20):
                cursor.execute(f"INSERT INTO console.t VALUES ({number}, 'canary')")
        address = admin_of(cluster, master)
        deadline = time.monotonic() + PATIENCE
        while True:
            page = json.loads(fetch(f"{address}/replication", "application/json"))
            metrics = fetch(f"{address}/metrics")
            backlogs = [(node["number"], node["backlog"]) for node in page["nodes"] if node["backlog"] is not None]
            told = [page["not_synced"], *page["commands"].values(), page["updates_before_sync"], page["epoch"], *backlogs[0][1:]]
            same = [number_of(metrics, name) for name in (
                "not_synced_commands", *(f'commands_total{{way="{way}"}}' for way in page["commands"]),
                'updates_total{when="before sync"}', "epoch", f'backlog_commands{{node="{backlogs[0][0]}"}}')]
            if told == same and page["not_synced"] == 0 and sum(page["commands"].values()) >= 20:
                break
            expect(time.monotonic() < deadline, True, f"{page} is not what metrics say:\n{metrics}")
            time.sleep(0.1)
        states = sorted(node["state"] for node in page["nodes"])
        expect(states, ["backup", "coordinates", "master", "spare", "spare", "witness"])
        expect((page["durability"], page["faults"], page["lacking"]), ("memory", 1, []))
        backup, = [node["number"] for node in page["nodes"] if node["state"] == "backup"]
        shown = fetch(f"{admin_of(cluster, backup)}/replication")
        own = rf'<td>{backup} <small>\(this one\)</small></td><td>server</td><td><span class="state serving">backup</span>'
        expect(bool(re.search(own, shown)) and ">master</span>" in shown and "canary" not in shown, True, shown)
        expect(fetch(f"{admin_of(cluster, backup)}/readyz"), "ready\n")
        with tempfile.TemporaryDirectory() as scratch:
            light_and_dark(f"{address}/replication", scratch, "replication", 8_000)
    finally:
        cluster.close()


@check
def the_page_of_a_cluster_over_regions_stays_true_while_nodes_die_and_stand_still():
    """Open all the while: its numbers are those of metrics; who does not answer is named, be it the page's own node."""
    cluster = RegionCluster("--crossing", "ahead")
    try:
        cluster.load(3)
        own, replica, manager = 0, 4, 7
        shown = wait_until_same(cluster.nodes, own)
        expect((shown["lacking"], len(shown["pairs"]), len(shown["slowest"]) > 2), ([], 2, True))
        address = cluster.nodes[own]["admin"]
        with Page(f"{address}/", height=3000) as page, tempfile.TemporaryDirectory() as scratch:
            text = page.wait("that all is well", lambda text: "The cluster lacks nothing." in text)
            for words in ("Latencies of the last minute", "ordering gate", "elsewhere", "Ordered ahead, region by region",
                          "replica of shard 1", "append"):
                expect(words in text, True, f"{words} in: {text}")
            expect(page.value("document.querySelectorAll('.trend polyline').length"), 4)
            pictures(page, scratch, "geo")
            cluster.signal(replica, signal.SIGKILL)
            page.wait("that a replica is gone", lambda text: f"degraded: node {replica}, replica of shard 1, does not answer" in text)
            cluster.signal(manager, signal.SIGSTOP)
            page.wait("that a manager stands still", lambda text: f"node {manager}, manager of region 0, does not answer" in text)
            pictures(page, scratch, "geo-nodes-gone")
            cluster.signal(own, signal.SIGSTOP)
            page.wait("that its own node stands still",
                      lambda text: "This node has not answered for" in text and "takes the question and does not answer" in text)
            pictures(page, scratch, "geo-own-node-gone")
            cluster.signal(own, signal.SIGCONT)
            page.wait("that it is back", lambda text: "This node has not answered for" not in text)
            cluster.signal(own, signal.SIGKILL)
            page.wait("that its own node is gone", lambda text: "This node has not answered for" in text)
        other = fetch(f"{cluster.nodes[1]['admin']}/geo")
        expect(f"node {own}, replica of shard 0, does not answer" in other, True, other)
    finally:
        cluster.close()


def pictures(page, scratch, name):
    """Screenshots of an open page that differ, light and dark."""
    directory = Path(os.environ.get("MANXDB_CONSOLE_PICTURES") or scratch)
    light, dark = [page.picture(directory / f"{name}-{scheme}.png", scheme) for scheme in ("light", "dark")]
    expect((light != dark, min(len(light), len(dark)) > 20_000), (True, True), f"{len(light)} and {len(dark)} bytes")


if __name__ == "__main__":
    main()
