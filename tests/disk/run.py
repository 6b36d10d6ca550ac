"""Faults of the disk under a serving ManxDB, as its clients and its operator meet them.

Each check has a small disk of its own (an ext4 file system in a file, mounted through a loop
device), so that it needs root; without that it is skipped and says so. On every disk a table
holds rows whose content follows from their number, and the check keeps which of them the server
acknowledged: those must be there, whole, whatever happened.
"""

import os
import random
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import pymysql

from harness.checks import Skip, check, expect, expect_error, main
from harness.servers import PASSWORD, Manxdb, ServerError, free_port

import redis_keys

BINARY = os.environ["MANXDB_TEST_BINARY"]
DISK_BYTES = 256 << 20
# How long the server may take to notice that the disk is well again.
NOTICE_SECONDS = 60


def run(*command):
    """Runs a command; its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


class Disk:
    """A file system in a file."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="manxdb-test-disk-"))
        self.image = self.folder / "image"
        self.place = self.folder / "mounted"
        self.place.mkdir()
        self.ballast = []
        with open(self.image, "wb") as image:
            image.truncate(DISK_BYTES)
        try:
            run("mkfs.ext4", "-q", "-m", "0", self.image)
            self.mount()
        except OSError as error:
            self.close()
            raise Skip(f"no disk to spoil: {error}") from error

    def mount(self):
        """Mounts it as a server's administrator would: an error makes it read-only."""
        run("mount", "-o", "loop,errors=remount-ro", self.image, self.place)

    def fill(self, left_bytes=0):
        """Takes all space but a little."""
        free = os.statvfs(self.place)
        size = free.f_bavail * free.f_bsize - left_bytes
        while size >= 4096:
            self.ballast.append(self.place / f"ballast{len(self.ballast)}")
            try:
                return run("fallocate", "-l", str(size), self.ballast[-1])
            except OSError:
                # The file system needs some of it to keep its books.
                size //= 2

    def free(self):
        """Gives back what `fill` took."""
        while self.ballast:
            self.ballast.pop().unlink(missing_ok=True)

    def fail(self):
        """Makes the kernel believe that the file system is broken: it turns read-only."""
        device = run("losetup", "-j", self.image).split(":")[0].rpartition("/")[2]
        trigger = Path(f"/sys/fs/ext4/{device}/trigger_fs_error")
        if not trigger.exists():
            raise Skip("this kernel cannot be told that a file system is broken")
        trigger.write_text("1")

    def repair(self):
        """What an administrator does next: a checked copy on another device. Mounting the same image again could
        bring back the broken file system, since the kernel keeps it while any mount namespace on the machine has it."""
        run("umount", self.place)
        copy = self.image.with_suffix(".copy")
        run("cp", "--sparse=always", self.image, copy)
        copy.replace(self.image)
        # It ends with 1 where it mended something.
        subprocess.run(["e2fsck", "-fy", str(self.image)], capture_output=True, check=False)
        self.mount()

    def close(self):
        """Unmounts and removes it."""
        subprocess.run(["umount", str(self.place)], capture_output=True, check=False)
        subprocess.run(["rm", "-rf", str(self.folder)], check=False)


class DiskServer(Manxdb):
    """A server whose data is on such a disk."""

    def __init__(self, place):
        self.redis_port = free_port()
        redis = ["--redis-listen", f"127.0.0.1:{self.redis_port}", "--redis-password", redis_keys.PASSWORD,
                 "--redis-memory-mb", "16"]
        super().__init__(BINARY, ["--block-cache-mb", "8", *redis])
        self.data = Path(place) / "data"

    def command(self):
        command = super().command()
        command[command.index("--data") + 1] = str(self.data)
        return command

    def connect(self):
        """A connection with autocommit on."""
        return pymysql.connect(host="127.0.0.1", port=self.port, user="root", password=PASSWORD,
                               autocommit=True, read_timeout=60, write_timeout=60)

    def page(self, path):
        """What the admin listener says."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}{path}", timeout=10) as answer:
            return answer.read().decode()

    def wait_page(self, path, holds, what):
        """Waits until a page of the admin listener says it; the page."""
        deadline = time.monotonic() + NOTICE_SECONDS
        while time.monotonic() < deadline:
            if holds(page := self.page(path)):
                return page
            threading_pause()
        raise AssertionError(f"{path} does not say {what}: {page!r}")

    def tables(self):
        """Sorted files of the store, newest first."""
        return sorted((self.data / "rocksdb").glob("*.sst"), reverse=True)

    def log_file(self):
        """The file of the commit log that was written last."""
        return max((self.data / "log").glob("*.log"))

    def refuses_to_start(self, *said):
        """Starts, expecting it to end with a message that holds all these."""
        try:
            self.start()
        except ServerError:
            tail = self.log_tail()
            for text in said:
                assert text in tail, f"{text!r} is not in: {tail}"
        else:
            raise AssertionError(f"it started, and should have said {said}")


def threading_pause():
    """A moment for the server: it notices by itself, and there is nothing to wait on."""
    time.sleep(0.05)


def content(number, length):
    """What row `number` holds: bytes that do not compress and follow from it."""
    return random.Random(number).randbytes(length)


class Books:
    """Rows written through one connection, and what was acknowledged."""

    def __init__(self, server, length):
        self.server = server
        self.length = length
        self.cursor = server.connect().cursor()
        self.acknowledged = set()

    def create(self):
        """The table."""
        self.cursor.execute("CREATE DATABASE books")
        self.cursor.execute("CREATE TABLE books.line (id INT PRIMARY KEY, half INT NOT NULL,"
                            " content LONGBLOB NOT NULL, KEY by_half (half))")

    def write(self, number):
        """One row in one transaction; remembered when the server said so."""
        self.cursor.execute("INSERT INTO books.line VALUES (%s, %s, %s)",
                            (number, number // 2, content(number, self.length)))
        self.acknowledged.add(number)

    def write_all(self, numbers):
        """Many rows."""
        for number in numbers:
            self.write(number)

    def restart(self):
        """Stops the server in order, unless it is stopped, and starts it again."""
        if self.server.alive():
            expect(self.server.stop(), 0, "orderly stop")
        self.server.start()
        self.cursor = self.server.connect().cursor()

    def check(self, unsure=()):
        """Every acknowledged row is there and whole, by key and by index, and no other."""
        cursor = self.server.connect().cursor()
        cursor.execute("SELECT id, half, content FROM books.line")
        found = cursor.fetchall()
        numbers = {row[0] for row in found}
        lost = self.acknowledged - numbers
        assert not lost, f"{len(lost)} acknowledged rows are gone, for example {sorted(lost)[:3]}"
        extra = numbers - self.acknowledged - set(unsure)
        assert not extra, f"rows that were refused are there: {sorted(extra)[:3]}"
        for number, half, stored in found:
            assert half == number // 2 and stored == content(number, self.length), f"row {number} is not whole"
        cursor.execute("SELECT id FROM books.line FORCE INDEX (by_half) WHERE half >= 0")
        expect({row[0] for row in cursor.fetchall()}, numbers, "rows by index")


def on_a_disk(work):
    """Runs `work(disk, server)` on a fresh server on a fresh disk."""
    disk = Disk()
    server = DiskServer(disk.place)
    try:
        server.start()
        work(disk, server)
    finally:
        server.close()
        disk.close()


def fill_up(disk, books):
    """Writes until the disk is so full that nothing is written any more; the next number, and
    what was answered.

    A refused write makes the store tidy up, which may free some space again.
    """
    disk.fill(2 << 20)
    number, refused = 1_000, 0
    while refused < 5:
        try:
            books.write(number)
            refused = 0
            number += 1
        except pymysql.err.Error as error:
            expect(error.args[0], 1021, f"row {number}: {error}")
            refused += 1
            disk.fill()
            answer = error
        assert number < 20_000, "the disk never got full"
    return number, answer


def until_refused(disk, cursor, statements):
    """Runs statements until the last of them is refused for want of space, and only for that."""
    for _ in range(2_000):
        disk.fill()
        try:
            for statement in statements:
                cursor.execute(statement)
        except pymysql.err.Error as error:
            expect(error.args[0], 1021, f"{statement}: {error}")
            expect(statement, statements[-1], "refused at")
            return
    raise AssertionError(f"{statements} went on and on")


@check
def a_full_disk_refuses_writes_and_serves_reads_until_there_is_space():
    def work(disk, server):
        books = Books(server, 50_000)
        books.create()
        books.write_all(range(20))
        cursor = server.connect().cursor()
        cursor.execute("CREATE TABLE books.scratch (id INT AUTO_INCREMENT PRIMARY KEY, a INT)")
        cursor.execute("INSERT INTO books.scratch (a) VALUES (1), (2), (3)")
        expect(server.page("/healthz"), "ok\n")
        number, error = fill_up(disk, books)
        assert "free space" in str(error), f"the way out: {error}"
        # Whatever writes is refused the same way, and nothing of it stays.
        for statements in (["UPDATE books.scratch SET a = a + 1"],
                           ["DELETE FROM books.scratch LIMIT 1"],
                           ["BEGIN", "INSERT INTO books.scratch (a) VALUES (1)", "COMMIT"],
                           ["CREATE OR REPLACE VIEW books.seen AS SELECT id FROM books.line"]):
            until_refused(disk, cursor, statements)
        books.check()

        def says_so(page):
            until_refused(disk, cursor, ["UPDATE books.scratch SET a = a + 1"])
            return "only to read" in page

        said = server.wait_page("/healthz", says_so, "that writes are refused")
        assert "No space left" in said, said
        assert "only to read" in server.page("/"), server.page("/")
        assert "manxdb_writes_refused 1" in server.page("/metrics")

        disk.free()
        server.wait_page("/healthz", lambda page: page == "ok\n", "that writes are possible again")
        books.write(number)
        cursor.execute("CREATE TABLE books.more (id INT PRIMARY KEY)")
        expect(cursor.execute("UPDATE books.scratch SET a = a + 1") > 0, True, "rows changed")
        books.check()
        assert "writes are possible again" in server.log_path.read_text(), server.log_tail()
        server.kill()
        server.start()
        books.check()

    on_a_disk(work)


@check
def a_server_killed_on_a_full_disk_has_lost_nothing():
    def work(disk, server):
        books = Books(server, 50_000)
        books.create()
        fill_up(disk, books)
        server.kill()
        # Starting needs a little space: it says so, or serves.
        try:
            server.start()
            books.check()
            server.kill()
        except ServerError:
            assert "o space left" in server.log_tail(), server.log_tail()
        disk.free()
        server.start()
        books.check()
        books = Books(server, 50_000)
        books.write(1_000_000)

    on_a_disk(work)


@check
def a_disk_that_turns_read_only_refuses_writes_and_serves_reads():
    def work(disk, server):
        books = Books(server, 2_000)
        books.create()
        books.write_all(range(50))
        disk.fail()
        # Nobody knows about the commit that met it; those after it are refused.
        expect_error((1180, 1290), books.write, 50)
        error = expect_error(1290, books.write, 51)
        assert "restart" in str(error), f"the way out: {error}"
        books.check()
        said = server.wait_page("/healthz", lambda page: "only to read" in page, "that writes are refused")
        assert "Read-only file system" in said, said
        expect(server.stop(), 0, "orderly stop")
        server.refuses_to_start("make the disk writable")
        disk.repair()
        server.start()
        expect(server.page("/healthz"), "ok\n")
        books.check(unsure=[50])
        books = Books(server, 2_000)
        books.write(60)

    on_a_disk(work)


def damage(path, place):
    """Flips a bit."""
    with open(path, "r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 0x10]))


def with_sorted_files(server):
    """A stopped server whose rows are in two sorted files: stopping writes everything out."""
    books = Books(server, 50_000)
    books.create()
    books.write_all(range(40))
    books.restart()
    books.write_all(range(40, 100))
    expect(server.stop(), 0, "orderly stop")
    assert len(server.tables()) > 1, server.tables()
    return books


def largest(paths):
    """The largest of some files."""
    return max(paths, key=lambda path: path.stat().st_size)


@check
def a_damaged_block_fails_the_rows_in_it_and_the_rest_is_served():
    def work(_, server):
        books = with_sorted_files(server)
        table = largest(server.tables())
        damage(table, table.stat().st_size // 2)
        server.start()
        cursor = server.connect().cursor()
        served, failed = 0, []
        for number in sorted(books.acknowledged):
            try:
                cursor.execute("SELECT content FROM books.line WHERE id = %s", (number,))
                expect(cursor.fetchall(), ((content(number, books.length),),), f"row {number}")
                served += 1
            except pymysql.err.Error as error:
                expect(error.args[0], 1712, str(error))
                assert table.name in str(error) and "restore a backup" in str(error), str(error)
                failed.append(number)
        assert 1 <= len(failed) <= 20, f"{len(failed)} rows failed"
        expect(served + len(failed), len(books.acknowledged))
        # What reads over the damage says so; a short answer would be a lie.
        expect_error(1712, cursor.execute, "SELECT SUM(LENGTH(content)) FROM books.line")
        cursor.execute("INSERT INTO books.line VALUES (100000, 0, 'new')")
        cursor.execute("SELECT content FROM books.line WHERE id = 100000")
        expect(cursor.fetchall(), ((b"new",),))

    on_a_disk(work)


@check
def a_damaged_log_is_named_and_not_passed_over():
    def work(_, server):
        books = Books(server, 2_000)
        books.create()
        books.write_all(range(200))
        server.kill()
        log = server.log_file()
        intact = log.read_bytes()
        damage(log, len(intact.rstrip(b"\0")) // 2)
        # Trying again changes nothing, though all before the damage was replayed by now.
        for _ in range(2):
            server.refuses_to_start(log.name, "damaged", "manxdb backup restore")
        log.write_bytes(intact)
        server.start()
        books.check()

    on_a_disk(work)


@check
def after_an_orderly_stop_a_damaged_log_takes_nothing():
    def work(_, server):
        books = Books(server, 200)
        books.create()
        books.write_all(range(50))
        expect(server.stop(), 0, "orderly stop")
        log = server.log_file()
        end = len(log.read_bytes().rstrip(b"\0"))
        for place in (end // 3, end // 2, end - 100):
            damage(log, place)
        server.start()
        books.check()

    on_a_disk(work)


@check
def a_store_put_back_to_an_older_state_by_hand_is_noticed():
    def work(_, server):
        books = Books(server, 200)
        books.create()
        books.write(1)
        expect(server.stop(), 0, "orderly stop")
        older = server.directory / "older"
        shutil.copytree(server.data, older)
        books.restart()
        books.write(2)
        expect(server.stop(), 0, "orderly stop")
        for folder in ("rocksdb", "log"):
            shutil.rmtree(server.data / folder)
            shutil.copytree(older / folder, server.data / folder)
        server.refuses_to_start("was closed at version", "remove")
        (server.data / "CLOSED").unlink()
        server.start()
        books.acknowledged = {1}
        books.check()

    on_a_disk(work)


@check
def what_a_store_with_a_destroyed_file_still_holds_can_be_salvaged():
    def work(_, server):
        books = with_sorted_files(server)
        # Of the second session: the one before holds the catalog, which a salvaged store needs.
        table = next(table for table in server.tables() if table.stat().st_size > 1 << 20)
        # What is in the log alone is salvaged too. It keeps the last session's rows a while, so it
        # takes one more for those of the table to be there only.
        in_the_log = range(210, 220)
        books.restart()
        books.write_all(range(200, 210))
        books.restart()
        books.write_all(in_the_log)
        server.kill()
        before = table.read_bytes()
        table.write_bytes(before[:-60])
        server.refuses_to_start(table.name, "manxdb backup salvage")
        into = server.directory / "salvaged"
        said = run(BINARY, "backup", "salvage", "--data", server.data, "--into", into)
        assert f"lost: {table.name}" in said, said
        expect(table.read_bytes(), before[:-60], "the damaged store is left as it is")
        server.data = into
        server.start()
        cursor = server.connect().cursor()
        found = set()
        for number in sorted(books.acknowledged):
            cursor.execute("SELECT content FROM books.line WHERE id = %s", (number,))
            rows = cursor.fetchall()
            assert rows in ((), ((content(number, books.length),),)), f"row {number} is not whole"
            found |= {number} if rows else set()
        assert found.issuperset(in_the_log), f"of the log: {sorted(found)}"
        assert found.issuperset(range(40)), f"of the other file: {sorted(found)}"
        assert found != books.acknowledged, "nothing was lost"
        cursor.execute("INSERT INTO books.line VALUES (100000, 0, 'new')")

    on_a_disk(work)


@check
def redis_writes_are_refused_on_a_full_disk_and_reads_are_served():
    on_a_disk(lambda disk, server: redis_keys.full(disk, server, content))


@check
def redis_reads_are_served_when_the_disk_turns_read_only():
    on_a_disk(lambda disk, server: redis_keys.read_only(disk, server, content))


@check
def redis_keys_in_a_damaged_block_fail_and_the_rest_is_served():
    on_a_disk(lambda _, server: redis_keys.damaged(server, content, damage, largest))


if __name__ == "__main__":
    main()
