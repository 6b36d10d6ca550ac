"""Rows of people are sealed under keys in a vault: no file of the data directory holds a personal value, and
what was forgotten cannot be read from an old copy of the directory. Also with kill -9 in the middle of
FORGET, without the master key, and with another one.
"""

import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from harness.servers import PASSWORD, Manxdb

CANARY = b"canary-"
SCHEMA = """
CREATE DATABASE sealed; USE sealed;
CREATE DATA_SUBJECT TABLE members (id INT PRIMARY KEY, bio TEXT, mail VARBINARY(60) UNIQUE,
  born BIGINT UNSIGNED PERSONAL, KEY (bio(20)), KEY (born, mail));
CREATE TABLE posts (id INT AUTO_INCREMENT PRIMARY KEY, member_id INT NOT NULL OWNED_BY members (id), body TEXT,
  slug VARCHAR(40) COLLATE utf8mb4_0900_bin GENERATED ALWAYS AS (LEFT(body, 40)) STORED, KEY (slug, member_id));
CREATE TABLE mails (id INT AUTO_INCREMENT PRIMARY KEY, sender INT OWNED_BY members (id),
  receiver INT OWNED_BY members (id), body TEXT COLLATE utf8mb4_0900_bin, KEY (body(30)),
  ON DEL sender ANON (sender, body));
CREATE TABLE settings (id INT PRIMARY KEY, note TEXT);
INSERT INTO settings VALUES (1, 'plain-note');
"""
POSTS = 400
# A number that lies in a plain key as the canary's bytes.
BORN = int.from_bytes(b"canary-9", "big")


def content(path):
    """The bytes of a file; none of a folder, or of a file that a compaction removes meanwhile."""
    try:
        return path.read_bytes() if path.is_file() else b""
    except FileNotFoundError:
        return b""


def key(digit):
    """A master key."""
    return digit * 64


class World:
    """A server with a vault, and what is checked of it."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder
        self.master = folder / "master"
        self.master.write_text(key("a"))
        self.server = Manxdb(binary, extra=self.flags(folder))
        self.data = self.server.data
        self.good = True

    def check(self, name, good, why=""):
        """Prints a result as the runner reads it."""
        print(f"PASS sealed {name}" if good else f"FAIL sealed {name}: {why[-1200:]}", flush=True)
        self.good = self.good and good

    def sql(self, statements, server=None):
        """(rows, errors) of statements, columns parted by a space."""
        port = (server or self.server).port
        command = ["mariadb", "-h127.0.0.1", f"-P{port}", "-uroot", "-N", "-e", statements]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, "MYSQL_PWD": PASSWORD})
        return [line.replace("\t", " ") for line in done.stdout.splitlines()], done.stderr

    def found(self, wanted):
        """Files of the data directory that hold these bytes."""
        return [str(path.name) for path in self.data.rglob("*") if wanted in content(path)]

    def fill(self, member):
        """A person with rows, shared ones too."""
        bodies = ", ".join(f"({member}, 'canary-{member}-post-{n}')" for n in range(POSTS))
        mails = ", ".join(f"({member}, 1, 'canary-{member}-mail-{n}')" for n in range(20))
        _, errors = self.sql(
            f"USE sealed; INSERT INTO members VALUES ({member}, 'canary-{member}-bio', 'canary-{member}-mail', {BORN});"
            f"INSERT INTO posts (member_id, body) VALUES {bodies};"
            f"INSERT INTO mails (sender, receiver, body) VALUES {mails};"
            f"UPDATE posts SET body = CONCAT(body, '!') WHERE member_id = {member}")
        self.check(f"person {member} is there", not errors, errors)

    def no_canary(self, when):
        """No file holds a personal value, and the search finds what is plain."""
        self.check(f"no file holds a personal value {when}", not self.found(CANARY), str(self.found(CANARY)))
        self.check(f"the search sees plain values {when}", self.found(b"plain-note"))

    def finds_by_blinded_keys(self):
        """Equality, uniqueness and joins work by blinded keys; a range stays right without them."""
        for sql, wanted in (
                ("SELECT id FROM members WHERE mail = 'canary-2-mail'", ["2"]),
                (f"SELECT COUNT(*) FROM members WHERE born = {BORN}", ["2"]),
                ("SELECT m.id FROM posts p JOIN members m ON m.id = p.member_id WHERE slug = 'canary-2-post-7!'", ["2"]),
                ("SELECT mail FROM members WHERE mail LIKE 'canary-%' ORDER BY mail DESC", ["canary-2-mail", "canary-1-mail"])):
            rows, errors = self.sql(f"USE sealed; {sql}")
            self.check(f"finds by {sql}", rows == wanted, f"{rows} {errors}")
        _, errors = self.sql("INSERT INTO sealed.members VALUES (9, '', 'canary-1-mail', 1)")
        self.check("refuses a second mail", "ERROR 1062 " in errors, errors)
        rows, _ = self.sql("EXPLAIN SELECT * FROM sealed.members WHERE mail > 'a'")
        self.check("explains what a blinded key cannot", "Blinded, no range or order: mail" in rows[0], str(rows))

    def copy_of_data(self):
        """The data directory as it is while the server runs."""
        copy = self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        self.server.stop()
        shutil.copytree(self.data, copy)
        self.server.start()
        return copy

    def reads(self, copy, member):
        """What another server says over an old copy with the vault as it is now."""
        # A vault is one server's: the other has a copy of it.
        vaults = self.folder / "copied"
        shutil.rmtree(vaults, ignore_errors=True)
        for place in ("vault", "mirror"):
            shutil.copytree(self.folder / place, vaults / place)
        other = Manxdb(self.binary, extra=self.flags(vaults))
        shutil.copytree(copy, other.data)
        with other:
            return self.sql(f"SELECT body FROM sealed.posts WHERE member_id = {member} LIMIT 1;", other)

    def flags(self, folder):
        """What names a vault."""
        return ["--vault", str(folder / "vault"), "--vault-mirror", str(folder / "mirror"),
                "--master-key-file", str(self.master)]

    def forgets(self):
        """An old copy shows nothing of the forgotten, and the others."""
        copy = self.copy_of_data()
        _, errors = self.sql("GDPR FORGET sealed.members 2 REASON 'by letter'")
        self.check("forgets", not errors, errors)
        self.no_canary("after FORGET")
        rows, errors = self.reads(copy, 2)
        self.check("an old copy shows nothing of the forgotten", not rows and not errors, f"{rows} {errors}")
        rows, errors = self.reads(copy, 1)
        self.check("an old copy shows the others", rows == ["canary-1-post-0!"], errors)

    def dies_in_forget(self):
        """kill -9 in the middle: the request comes to its end, and its keys are gone."""
        for member in range(3, 7):
            self.fill(member)
            copy = self.copy_of_data()
            running = subprocess.Popen(
                ["mariadb", "-h127.0.0.1", f"-P{self.server.port}", "-uroot", "-e",
                 f"SET gdpr_batch_rows = 15; GDPR FORGET sealed.members {member}"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "MYSQL_PWD": PASSWORD})
            time.sleep(0.06 + 0.04 * (member - 2))
            self.server.kill()
            running.wait()
            self.server.start()
            self.sql(f"GDPR FORGET sealed.members {member}")  # if it had not begun
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline and self.sql("SHOW GDPR REQUESTS")[0][0].split()[3] != "done":
                time.sleep(0.2)
            left, errors = self.sql(f"SELECT COUNT(*) FROM sealed.posts WHERE member_id = {member};"
                                    f"SELECT COUNT(*) FROM sealed.members WHERE id = {member}")
            self.check(f"killed, and person {member} is forgotten", left == ["0", "0"], errors)
            rows, errors = self.reads(copy, member)
            self.check(f"killed, and an old copy shows nothing of {member}", not rows and not errors, f"{rows} {errors}")
        self.no_canary("after kills")

    def runs(self, *arguments, stdin=None):
        """(exit code, output) of the binary."""
        done = subprocess.run([str(self.binary), *arguments], input=stdin, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def newest_certificate(self):
        """The certificate of the newest request that is done."""
        request = self.sql("SHOW GDPR REQUESTS")[0][0].split()[0]
        command = ["mariadb", "-h127.0.0.1", f"-P{self.server.port}", "-uroot", "-N", "--raw", "-e",
                   f"GDPR CERTIFICATE {request}"]
        return subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, "MYSQL_PWD": PASSWORD}).stdout

    def purges(self):
        """A number lies plain in a key: after FORGET it is in files still, and in none once its certificate says so."""
        ident = b"kanari-7"
        number = int.from_bytes(ident, "big")
        _, errors = self.sql(f"USE sealed; CREATE DATA_SUBJECT TABLE patients (id BIGINT UNSIGNED PRIMARY KEY);"
                             f"INSERT INTO patients VALUES ({number}); GDPR FORGET patients {number}")
        self.check("forgets a number", not errors, errors)
        self.check("the number is in files after FORGET", self.found(ident))
        verify = f"GDPR VERIFY sealed.patients {number}; GDPR VERIFY sealed.members 7"
        rows, errors = self.sql(verify)
        seen = [row for row in rows if row.startswith("files commit log: ") and "not rewritten yet, gone by" in row]
        self.check("VERIFY sees both who were forgotten in the commit log", len(seen) == 2, f"{rows} {errors}")
        not_seen = '"gone_from_files": null'
        self.check("and its certificate says nothing else", not_seen in self.newest_certificate())
        self.sql("SET GLOBAL gdpr_purge_days = 0")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not_seen in self.newest_certificate():
            time.sleep(0.2)
        self.sql("SET GLOBAL gdpr_purge_days = 30")
        text = self.newest_certificate()
        self.check("the certificate says when it was gone from files", '"gone_from_files": "2' in text, text)
        self.check("no file has the number then", not self.found(ident), str(self.found(ident)))
        rows, errors = self.sql(verify)
        self.check("VERIFY sees nothing then", rows.count("all clean 0") == 2, f"{rows} {errors}")
        self.check("the search sees plain values then", self.found(b"plain-note"))
        code, output = self.runs("compliance", "verify", "-", stdin=text)
        self.check("the certificate verifies", code == 0 and "gone from files: 2" in output, output)
        rows, errors = self.sql("SELECT COUNT(*) FROM sealed.posts WHERE member_id = 1")
        self.check("others are as before", rows == [str(POSTS)], errors)

    def proves_and_restores(self):
        """A certificate verifies without the server, and not with a byte changed; a backup from before FORGET
        does not bring the person back."""
        self.fill(7)
        backups = self.folder / "backups"
        self.server.stop()
        code, output = self.runs("backup", "create", str(backups), "--data", str(self.data))
        self.check("is backed up", code == 0, output)
        self.server.start()
        rows, errors = self.sql("GDPR FORGET sealed.members 7 REASON 'ticket 12'; GDPR VERIFY sealed.members 7")
        left = [row for row in rows[:-1] if not row.startswith("files ") and not row.endswith(" 0")]
        clean = not errors and not left and rows[-1].startswith("all clean but for files, gone by 20")
        self.check("VERIFY finds the forgotten in files alone", clean, f"{rows} {errors}")
        text = self.newest_certificate()
        code, output = self.runs("compliance", "verify", "-", stdin=text)
        self.check("a certificate verifies", code == 0 and "unreadable here: 2" in output, output)
        code, output = self.runs("compliance", "verify", "-", stdin=text.replace("ticket 12", "ticket 13", 1))
        self.check("a changed certificate does not", code == 1 and "'reason' was changed" in output, output)
        self.check("a certificate has no personal value", "canary" not in text and len(text) > 1000, text)
        restored = self.folder / "restored"
        code, output = self.runs("backup", "restore", str(backups), "--data", str(restored))
        self.check("is restored", code == 0, output)
        rows, errors = self.reads(restored, 7)
        self.check("a restored backup does not show the forgotten", not rows and not errors, f"{rows} {errors}")
        rows, errors = self.reads(restored, 1)
        self.check("a restored backup shows the others", rows == ["canary-1-post-0!"], errors)

    def restarts_with(self, text):
        """The server, with this in the file of the master key."""
        self.master.write_text(text)
        self.server.stop()
        self.server.start()

    def lacks_its_key(self):
        """It starts, and only sealed rows are refused."""
        for text in ("", key("b")):
            self.restarts_with(text)
            self.check("starts without its key", self.sql("SELECT note FROM sealed.settings")[0] == ["plain-note"])
            for refused in ("SELECT * FROM sealed.posts", "INSERT INTO sealed.members VALUES (99, '', '', 1)"):
                _, errors = self.sql(refused)
                self.check(f"refuses {refused}", "ERROR 51005 " in errors, errors)
        self.restarts_with(key("a"))

    def rotates(self):
        """Another master key, online; the old one opens nothing then."""
        _, errors = self.sql("GDPR ROTATE MASTER KEY")
        self.check("refuses to rotate to the same key", "ERROR 51005 " in errors, errors)
        self.master.write_text(f"{key('a')}\n{key('b')}\n")
        _, errors = self.sql("GDPR ROTATE MASTER KEY")
        self.check("rotates", not errors, errors)
        for text, code in ((key("b"), None), (key("a"), "ERROR 51005 ")):
            self.restarts_with(text)
            rows, errors = self.sql("SELECT body FROM sealed.posts WHERE member_id = 1 LIMIT 1")
            good = code in errors if code else rows == ["canary-1-post-0!"]
            self.check("is read by the new key alone", good, errors)
        log = self.server.log_path.read_bytes()
        self.check("logs no personal value and no key", CANARY not in log and b"aaaaaaaa" not in log)


def sealed(binary):
    """All of it."""
    with tempfile.TemporaryDirectory(prefix="manxdb-test-vault-") as folder:
        world = World(binary, Path(folder))
        with world.server:
            world.sql(SCHEMA)
            world.fill(1)
            world.fill(2)
            world.no_canary("before FORGET")
            world.finds_by_blinded_keys()
            world.forgets()
            world.dies_in_forget()
            world.proves_and_restores()
            world.purges()
            world.lacks_its_key()
            world.rotates()
        return world.good
