"""Rows on disk: all processes are killed, and everything that was acknowledged is there."""

import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pymysql

from common import check_books, connect, contains, go_on, insist, open_bank, run, start_tellers
from harness.checks import Skip, check, expect, rounds
from harness.memory import Memory, OnMemory, Rack
from harness.pool import PATIENCE, wait_for
from harness.servers import PASSWORD

# Checkpoints come often.
SIZES = {"--log-kb": 128, "--checkpoint-mb": 1}
REPLICATED = {"--replicas": 3, "--size-mb": 384, **SIZES}


class OnDisk(Rack):
    """Memory servers that write to a directory."""

    def __init__(self, servers=2, flags=(), disk=None):
        super().__init__(servers, {**SIZES, **dict(flags)})
        self.disk = disk or f"{self.directory}/disk"
        for memory in self.memory:
            memory.command += ["--disk", self.disk]

    def archivers(self):
        """Process numbers of all archivers."""
        found = []
        for memory in self.memory:
            if memory.process.poll() is None:
                pid = memory.process.pid
                for task in Path(f"/proc/{pid}/task").iterdir():
                    found += [int(child) for child in (task / "children").read_text().split()]
        return found

    def kill_all(self):
        """Every process at once, as when power fails; but what the system has of files is left."""
        archivers = self.archivers()
        servers = [server.process for server in self.databases if server.alive()]
        for server in self.databases:
            server.is_struck = True
        for process in servers:
            process.kill()
        for archiver in archivers:
            kill(archiver)
        for memory in self.memory:
            memory.process.kill()
        for process in [*servers, *(memory.process for memory in self.memory)]:
            process.wait(PATIENCE)

    def start_again(self):
        """All of them."""
        for process in [*self.memory, *self.databases]:
            process.start()

    def logs(self):
        """What memory servers and their archivers have said."""
        return "".join(memory.log_path.read_text() for memory in self.memory)

    def files(self, kind):
        """Files of a kind, in their order."""
        return sorted(path for path in Path(self.disk).glob(f"{kind}-*") if path.suffix != ".new")


def kill(pid):
    """Kills a process that may be gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def make_more(link):
    """What is not in the bank: numbers, an account, a long row."""
    run(link, "CREATE TABLE bank.visit (id INT AUTO_INCREMENT PRIMARY KEY, note TEXT, KEY (note(8)))")
    run(link, "INSERT INTO bank.visit (note) VALUES (REPEAT('long ', 2000))")
    run(link, "CREATE TABLE bank.bulk (id INT AUTO_INCREMENT PRIMARY KEY, note TEXT)")
    run(link, "CREATE USER eve IDENTIFIED BY 'pw'")
    run(link, "GRANT SELECT ON bank.* TO eve")


def write_much(link):
    """So much that there are checkpoints."""
    for _ in range(60):
        insist(link, "INSERT INTO bank.bulk (note) VALUES " + ",".join(["(REPEAT('x', 4000))"] * 8))


def check_more(server, visits):
    """All of it is there, and goes on."""
    eve = pymysql.connect(host="127.0.0.1", port=server.port, user="eve", password="pw")
    found = run(eve, "SELECT COUNT(*), MAX(LENGTH(note)), COUNT(DISTINCT id), MAX(id) FROM bank.visit")
    expect(found[0][:3], (visits, 10000, visits))
    expect(run(eve, "SELECT COUNT(*), SUM(LENGTH(note)) FROM bank.bulk"), ((480 * visits, 4000 * 480 * visits),))
    link = connect(server, "bank")
    insist(link, "INSERT INTO visit (note) VALUES ('one more')")
    added = run(link, "SELECT id FROM visit WHERE note = 'one more' ORDER BY id DESC LIMIT 1")
    if not added[0][0] > found[0][3]:
        raise AssertionError(f"{added} after {found}")
    run(link, f"CREATE TABLE round_{visits} (id INT PRIMARY KEY)")
    expect(len(run(link, "SHOW TABLES LIKE 'round%'")), visits)


def all_is_killed_again_and_again(rack, times):
    """Under load, at moments that nobody has chosen."""
    servers = [rack.database(), rack.database()]
    open_bank(servers[0])
    make_more(connect(servers[0]))
    all_tellers = []
    for visit in range(1, times + 1):
        tellers = start_tellers(servers, len(all_tellers))
        all_tellers += tellers
        write_much(connect(servers[0]))
        go_on(tellers, 20)
        time.sleep(random.uniform(0, 0.5))
        rack.kill_all()
        for teller in tellers:
            teller.join(PATIENCE)
        began = time.monotonic()
        rack.start_again()
        print(f"    {sum(len(teller.acknowledged) for teller in all_tellers)} transactions are acknowledged; "
              f"all serve again after {time.monotonic() - began:.2f} s", flush=True)
        check_books(connect(servers[1], "bank"), all_tellers)
        check_more(servers[visit % 2], visit)
    for server in servers:
        expect(server.stop(), 0, server.log_tail())


def check_keeper(rack):
    """One archiver is at work, and says what it does; what is published is on disk by and by."""
    wait_for("all is on disk", lambda: rack.memory[0].numbers()["manxdb_memory_behind_disk_transactions"] == 0)
    numbers = [memory.numbers() for memory in rack.memory]
    at_work = [one for one in numbers if one["manxdb_memory_archiver_at_work"] == 1]
    expect(len(at_work), 1, "archivers at work")
    for name in ("written_bytes_total", "syncs_total"):
        if not at_work[0][f"manxdb_memory_archiver_{name}"] > 0:
            raise AssertionError(at_work)
    expect([one["manxdb_memory_archiver_gaps_total"] for one in numbers], [0, 0])


@check
def all_processes_are_killed_and_what_was_acknowledged_is_there():
    with OnDisk() as rack:
        all_is_killed_again_and_again(rack, rounds(2, 8))
        contains(rack.logs(), "all rows are in a checkpoint")
        numbers = rack.memory[0].numbers()
        for name in ("checkpoint_bytes", "checkpoint_age_seconds", "segments", "batches_bytes"):
            if not numbers[f"manxdb_memory_disk_{name}"] > 0:
                raise AssertionError(numbers)
        check_keeper(rack)


@check
def all_processes_are_killed_that_had_replicas():
    with OnDisk(servers=4, flags=REPLICATED) as rack:
        all_is_killed_again_and_again(rack, rounds(1, 4))


@check
def a_memory_server_is_lost_before_all_processes_are_killed():
    with OnDisk(servers=4, flags=REPLICATED) as rack:
        servers = [rack.database(), rack.database()]
        open_bank(servers[0])
        tellers = start_tellers(servers, 0)
        go_on(tellers, 10)
        rack.memory[0].end()
        go_on(tellers, 10)
        rack.kill_all()
        for teller in tellers:
            teller.join(PATIENCE)
        rack.start_again()
        check_books(connect(servers[0], "bank"), tellers)


@check
def what_ends_in_order_loses_nothing_though_nobody_waited_for_the_disk():
    with OnDisk() as rack:
        server = OnMemory(rack.directory)
        server.extra += ["--durability", "async"]
        rack.databases.append(server)
        server.start()
        link = connect(server)
        run(link, "CREATE DATABASE shop")
        run(link, "CREATE TABLE shop.item (id INT PRIMARY KEY)")
        for life in range(1, 3):
            for row in range(150):
                insist(link, f"INSERT INTO shop.item VALUES ({life * 1000 + row})")
            expect(server.stop(), 0, server.log_tail())
            for memory in random.sample(rack.memory, 2):
                expect(memory.end(signal.SIGTERM), 0)
            rack.start_again()
            link = connect(server)
            expect(run(link, "SELECT COUNT(*) FROM shop.item"), ((150 * life,),))


@check
def a_keeper_is_killed_and_the_next_one_goes_on():
    with OnDisk() as rack:
        servers = [rack.database(), rack.database()]
        open_bank(servers[0])
        tellers = start_tellers(servers, 0)
        for turn in range(rounds(4, 12)):
            go_on(tellers, 10)
            for archiver in rack.archivers()[:1 + turn % 2]:
                kill(archiver)
        go_on(tellers, 10)
        rack.kill_all()
        for teller in tellers:
            teller.join(PATIENCE)
        rack.start_again()
        check_books(connect(servers[0], "bank"), tellers)


def lose_what_was_written(rack, before):
    """All archivers die, and before others begin the disk is as it was."""
    for archiver in rack.archivers():
        kill(archiver)
    for path in Path(rack.disk).iterdir():
        path.unlink()
    shutil.copytree(before, rack.disk, dirs_exist_ok=True)


@check
def a_disk_loses_what_a_keeper_has_written_that_dies_and_it_is_copied_from_memory():
    with OnDisk(flags={"--checkpoint-mb": 64}) as rack:
        servers = [rack.database(), rack.database()]
        open_bank(servers[0])
        tellers = start_tellers(servers, 0)
        for turn in range(2):
            go_on(tellers, 5)
            before = f"{rack.directory}/before-{turn}"
            shutil.copytree(rack.disk, before)
            go_on(tellers, 30)
            checkpoints = len(rack.logs().split("all rows are in a checkpoint"))
            lose_what_was_written(rack, before)
            go_on(tellers, 5)
            contains(rack.logs(), "all rows are copied in its place")
            expect(len(rack.logs().split("all rows are in a checkpoint")), checkpoints + 1)
        rack.kill_all()
        for teller in tellers:
            teller.join(PATIENCE)
        rack.start_again()
        check_books(connect(servers[0], "bank"), tellers)


def await_words(rack, words, times):
    """At once when they are said so often."""
    deadline = time.monotonic() + PATIENCE
    while rack.logs().count(words) < times:
        if time.monotonic() > deadline:
            raise AssertionError(f"this is not said {times} times: {words}")


@check
def who_brings_rows_back_is_killed_over_it_and_the_next_one_begins_anew():
    with OnDisk(flags={"--checkpoint-mb": 64}) as rack:
        server = rack.database()
        open_bank(server)
        make_more(connect(server))
        for _ in range(4):
            write_much(connect(server))
        rack.kill_all()
        begun = 0
        for memory in rack.memory:
            memory.start()
        for turn in range(rounds(3, 12)):
            begun += 1
            await_words(rack, "rows are being restored", begun)
            if turn % 3 == 2:
                # The memory that is written to goes as well.
                rack.memory[turn % 2].end()
                rack.memory[turn % 2].start()
            else:
                for archiver in rack.archivers():
                    kill(archiver)
            begun = max(begun, rack.logs().count("rows are being restored"))
            expect(rack.logs().count("rows are restored from"), 0, "it was killed too late")
        server.start()
        expect(rack.logs().count("rows are restored from"), 1)
        link = connect(server, "bank")
        expect(run(link, "SELECT COUNT(*), SUM(LENGTH(note)) FROM bulk"), ((4 * 480, 4 * 480 * 4000),))
        check_books(link, [])


@check
def the_disk_is_full_for_a_while():
    disk = tempfile.mkdtemp(prefix="manxdb-test-full-")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", disk],
                             capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        os.rmdir(disk)
        raise Skip(f"no small file system: {mounted.stderr.strip()}")
    try:
        with OnDisk(disk=disk) as rack:
            fill_a_disk(rack)
    finally:
        subprocess.run(["umount", "-l", disk], check=False)
        shutil.rmtree(disk, ignore_errors=True)


def fill_a_disk(rack):
    """Commits wait, then say why; reads go on; with room again everything does."""
    server = rack.database()
    link, reader = connect(server), connect(server)
    run(link, "CREATE DATABASE shop")
    run(link, "CREATE TABLE shop.item (id INT PRIMARY KEY, note VARCHAR(200))")
    run(link, "INSERT INTO shop.item VALUES (0, 'first')")
    ballast = Path(rack.disk) / "ballast"
    with open(ballast, "wb", buffering=0) as file:
        try:
            while True:
                file.write(b"x" * 4096)
        except OSError:
            pass
    acknowledged, codes = {0}, []
    for row in range(1, 2000):
        try:
            run(link, f"INSERT INTO shop.item VALUES ({row}, REPEAT('x', 200))")
            acknowledged.add(row)
        except pymysql.err.OperationalError as error:
            codes.append(error.args[0])
            contains(str(error), "the log archiver of the memory servers has not written")
            break
    if not codes or codes[0] not in (1021, 1180):
        raise AssertionError(codes)
    # The next ones are refused before they begin, when logs have no room; who reads is not kept.
    expect(run(reader, "SELECT note FROM shop.item WHERE id = 0"), (("first",),))
    contains(rack.logs(), "No space left on device")
    ballast.unlink()
    for row in range(5000, 5050):
        insist(link, f"INSERT INTO shop.item VALUES ({row}, 'later')")
        acknowledged.add(row)
    rack.kill_all()
    rack.start_again()
    found = {row for row, in run(connect(server), "SELECT id FROM shop.item")}
    if not acknowledged <= found or len(found - acknowledged) > 1:
        raise AssertionError(f"{acknowledged - found} are lost, {found - acknowledged} are more")


@check
def a_flipped_bit_is_refused_by_file_and_offset():
    with OnDisk(flags={"--checkpoint-mb": 64}) as rack:
        server = rack.database()
        open_bank(server)
        tellers = start_tellers([server], 0)
        go_on(tellers, 20)
        rack.kill_all()
        for teller in tellers:
            teller.join(PATIENCE)
        path = rack.files("batches")[0]
        whole = path.read_bytes()
        damaged = bytearray(whole)
        damaged[len(whole) // 2] ^= 8
        path.write_bytes(damaged)
        for memory in rack.memory:
            memory.start()
        wait_for("it is refused", lambda: f"{path} is damaged at offset" in rack.logs())
        # Each memory server says that nobody is served; the one whose archiver tries, why.
        wait_for("the page says it", lambda: any(
            f"{path} is damaged at offset" in memory.ready()[1] for memory in rack.memory))
        expect([memory.ready()[0] for memory in rack.memory], [503, 503])
        tries = lambda: sum(memory.numbers().get("manxdb_memory_archiver_failures_total", 0) for memory in rack.memory)
        before = tries()
        wait_for("it is tried again", lambda: tries() > before + 1)
        for words in ("rows are being restored", "is damaged at offset"):
            expect(rack.logs().count(words), 1, f"lines with '{words}', which hide others")
        # The file is restored: so are all rows.
        path.write_bytes(whole)
        server.start()
        check_books(connect(server, "bank"), tellers)


@check
def files_of_other_settings_are_refused_by_name():
    with OnDisk() as rack:
        server = rack.database()
        run(connect(server), "CREATE DATABASE shop")
        expect(server.stop(), 0, server.log_tail())
        for memory in rack.memory:
            expect(memory.end(signal.SIGTERM), 0)
        for flags, words in [({"--versions": 5}, "the number of versions is 5 here and 4 in"),
                             ({"--name": "bank"}, "the name of the database is 'bank' here and 'manxdb' in"),
                             ({"--size-mb": 256}, "the size of memory in bytes is 268435456 here and")]:
            other = Memory(rack.directory, 0, 2, {**SIZES, "--disk": rack.disk, **flags})
            said = other.refused()
            contains(said, words)
            contains(said, f"{rack.disk}/batches-")
        other = Memory(rack.directory, 0, 2, {"--log-slots": 8})
        contains(other.refused(), "log_slots is 8, but disk is not set")
        # One of two writes nowhere.
        rack.memory[0].start()
        alone = Memory(rack.directory, 1, 2, {"--log-kb": 128}).start()
        contains(OnMemory(rack.directory).refused(), "the directory that rows are written to is")
        alone.end()
        rack.memory[1].start()
        server.start()
        expect(run(connect(server), "SHOW DATABASES LIKE 'shop'"), (("shop",),))
