"""Redis's keys replicated in one round trip, by processes that die and stand still.

`manxdb cluster up curp` starts a cluster; an unmodified redis-cli and clients of few lines talk to its
proxy and to its servers. Round trips are counted: in what the proxy says of itself, and against the
emulated distance, which no answer can be faster than. Each role is killed with `kill -9` and stopped
with SIGSTOP under load; every INCR and RPUSH that was acknowledged is there once, and the counter's
history is linearizable. A master that stood still while another took over answers nothing old.

    run.py [word of a check's name …]
"""

import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "redis")]

from harness.checks import Skip, check, expect, main  # noqa: E402
from harness.signals import stand_still  # noqa: E402
from resp import Link, ReplyError  # noqa: E402
from coordinators import Coordinated  # noqa: E402
from processes import AWAY, BINARY, PATIENCE, Processes, free_ports, seconds  # noqa: E402

class Cluster(Processes):
    """One that replicates Redis's keys."""

    def __init__(self, *more, suspect_ms=600):
        super().__init__("--redis-port", *more, suspect_ms=suspect_ms)
        self.redis = self.first

    def port_of(self, server):
        """Where Redis clients reach a server."""
        return self.redis + server  # one proxy before server 1

    def proxy(self, **more):
        """A connection to the proxy."""
        return Link(self.redis, **more)


_clusters = {}


def far():
    """A cluster whose processes are 20 ms apart."""
    if "far" not in _clusters:
        _clusters["far"] = Cluster("--lan-us", str(int(AWAY * 1e6)))
    return _clusters["far"]


def near():
    """A cluster whose processes come back when they die."""
    if "near" not in _clusters:
        _clusters["near"] = Cluster("--supervise", "--room", "1")
    return _clusters["near"]


def counts(link):
    """How a front's commands were completed."""
    text = link.call("INFO", "curp").decode()
    pairs = [line.split(":") for line in text.split("\r\n") if ":" in line]
    found = {name.removeprefix("curp_"): int(value) for name, value in pairs}
    found.pop("clients", None)  # connections at the moment, not commands
    return found


def counted(link, what):
    """How the commands of `what` were completed, without those that took none."""
    before = counts(link)
    what()
    after = counts(link)
    return {name: after[name] - before[name] for name in after if after[name] != before[name]}


@check
def an_unmodified_redis_cli_commits_in_one_round_trip():
    if not shutil.which("redis-cli"):
        raise Skip("there is no redis-cli")
    cluster = far()
    link = cluster.proxy()
    link.call("PING")

    def commands():
        script = "".join(f"SET key:{number} {number}\n" for number in range(20))
        ran = subprocess.run(["redis-cli", "-p", str(cluster.redis)], input=script, text=True, check=True,
                             capture_output=True, timeout=PATIENCE)
        expect(ran.stdout.split(), ["OK"] * 20)

    took = counted(link, commands)
    assert took["fast"] >= 18, took
    # On a busy machine a witness may be slow: that is no conflict.
    expect(took["fast"] + took.get("synced", 0), sum(took.values()), str(took))
    expect(sum(took.values()), 20)
    took = min(seconds(lambda number=number: link.call("SET", f"more:{number}", 1)) for number in range(10))
    assert 2 * AWAY <= took < 4 * AWAY, f"{took * 1e3:.1f} ms is not one round trip of {2e3 * AWAY:.0f} ms"
    expect(link.call("MGET", "key:0", "key:19"), [b"0", b"19"])


@check
def a_conflicting_write_takes_two_round_trips():
    link, other = far().proxy(), far().proxy()
    slow, rounds = [], []
    for number in range(5):
        def both(key=f"conflict:{number}"):
            # The second one reaches the master while the first is not synced.
            link.send("INCR", key)
            time.sleep(0.002)
            slow.append(seconds(lambda: expect(other.call("INCR", key), 2)))
            expect(link.read(), 1)

        rounds.append(counted(far().proxy(), both))
    # Where the witness's refusal is slower than the master's answer it is a sync, as long.
    allowed = [{"fast": 1, "conflicts": 1}, {"fast": 1, "synced": 1}, {"conflicts": 1, "synced": 1}]
    assert allowed[0] in rounds and all(one in allowed for one in rounds), rounds
    assert min(slow) >= 4 * AWAY - 0.003, f"{min(slow) * 1e3:.1f} ms is less than two round trips"


@check
def a_servers_own_port_serves_the_same_in_two_round_trips():
    cluster = far()
    number, _ = cluster.master()
    link = Link(cluster.port_of(number))
    took = counted(link, lambda: [link.call("SET", f"own:{key}", key) for key in range(3)])
    expect(took, {"conflicts": 3})
    took = min(seconds(lambda: link.call("SET", "own:more", 1)) for _ in range(3))
    assert took >= 4 * AWAY - 0.003, f"{took * 1e3:.1f} ms is less than two round trips"
    expect(cluster.proxy().call("GET", "own:2"), b"2")
    other = Link(cluster.port_of(1 + number % 3))
    expect(other.call("GET", "own:1"), b"1", "at a server that is not the master")


@check
def connections_transactions_and_commands_that_wait_work_as_in_redis():
    link, other = near().proxy(), near().proxy()
    expect(link.call("SELECT", "2"), "OK")
    expect(link.call("MULTI"), "OK")
    expect(link.call("RPUSH", "l", "a", "b"), "QUEUED")
    expect(link.call("INCR", "n"), "QUEUED")
    expect(link.call("EXEC"), [2, 1])
    expect(other.call("EXISTS", "n"), 0, "another database")
    expect(link.call("WAIT", "1", "0"), 1, "every backup, or every witness, has it")
    assert isinstance(link.call("WATCH", "n"), ReplyError)
    expect(link.call("BLPOP", "empty", "0.1"), None)
    link.send("BLPOP", "queue", "0")
    expect(other.call("SELECT", "2"), "OK")
    expect(other.call("RPUSH", "queue", "job"), 1)
    expect(link.read(), [b"queue", b"job"])
    # Replies keep the order of commands, whatever each of them takes.
    for number in range(50):
        link.send("INCR", "n" if number % 2 else f"own:{number}")
        link.send("PING")
    replies = [link.read() for _ in range(100)]
    expect(replies[1::2], ["PONG"] * 50)
    expect(replies[2::4], list(range(2, 27)), "one key's commands in order")
    # What does not fit into a record is synced.
    large = "x" * 100_000
    took = counted(link, lambda: expect(link.call("SET", "large", large), "OK"))
    expect(took, {"conflicts": 1})
    expect(len(link.call("GET", "large")), len(large))
    many = [word for number in range(9) for word in (f"many:{number}", number)]
    expect(counted(link, lambda: expect(link.call("MSET", *many), "OK")), {"conflicts": 1})
    expect(link.call("FLUSHDB"), "OK")
    expect(link.call("DBSIZE"), 0)


class Worker(threading.Thread):
    """Counts one counter of all and appends to a list of its own, and notes what it was told."""

    def __init__(self, cluster, number, stop):
        super().__init__(daemon=True)
        self.cluster, self.number, self.stop = cluster, number, stop
        self.increments = []  # (begin, end, answer); end and answer None: unknown
        self.appended, self.unknown = [], set()
        self.link = None

    def call(self, *words):
        """A reply, or None when the connection ended first."""
        for _ in range(200):
            try:
                self.link = self.link or self.cluster.proxy(timeout=PATIENCE)
                break
            except OSError:
                time.sleep(0.05)
        try:
            return self.link.call(*words)
        except (OSError, EOFError):
            self.link = None
            return None

    def run(self):
        value = 0
        while not self.stop.is_set():
            begin = time.monotonic()
            answer = self.call("INCR", "counter")
            end = time.monotonic()
            self.increments.append((begin, end, answer) if isinstance(answer, int) else (begin, None, None))
            value += 1
            answer = self.call("RPUSH", f"list:{self.number}", value)
            if isinstance(answer, int):
                self.appended.append(value)
            else:
                self.unknown.add(value)
            time.sleep(0.002)


def judge(lists, final, workers):
    """Nothing acknowledged is lost or done twice, and the counter is linearizable."""
    for worker in workers:
        kept = lists[worker.number]
        expect(kept, sorted(set(kept)), "each once, in order")
        missing = set(worker.appended) - set(kept)
        assert not missing, f"acknowledged and lost: {sorted(missing)[:5]}"
        strange = set(kept) - set(worker.appended) - worker.unknown
        assert not strange, f"never asked for: {sorted(strange)[:5]}"
    every = [one for worker in workers for one in worker.increments]
    known = sorted((one for one in every if one[1] is not None), key=lambda one: one[2])
    answers = [one[2] for one in known]
    expect(answers, sorted(set(answers)), "each increment has an answer of its own")
    unknown = len(every) - len(known)
    assert answers[-1] <= final, f"{final} after the answer {answers[-1]}: an increment was lost"
    assert final - len(known) <= unknown, f"{final} after {len(known)}: an increment was done twice"
    # With answers that are all different, linearizable means: none that ended before another began has
    # the larger answer.
    latest_begin = float("-inf")
    for begin, end, answer in known:
        assert end >= latest_begin, f"the answer {answer} came before one that was smaller was asked for"
        latest_begin = max(latest_begin, begin)
    return len(known), unknown


def judge_cluster(cluster, workers):
    """The same, of what a cluster has."""
    link = cluster.proxy()
    lists = {worker.number: [int(value) for value in link.call("LRANGE", f"list:{worker.number}", "0", "-1")]
             for worker in workers}
    return judge(lists, int(link.call("GET", "counter")), workers)


@check
def the_judge_finds_what_is_wrong():
    class Seen:
        """What a client was told."""

        number = 0

        def __init__(self):
            self.increments = [(0, 1, 1), (2, 4, 2), (3, 5, 3), (6, None, None)]
            self.appended, self.unknown = [1, 2, 4], {3}

    expect(judge({0: [1, 2, 3, 4]}, 4, [Seen()]), (3, 1))
    expect(judge({0: [1, 2, 4]}, 3, [Seen()]), (3, 1))
    swapped = Seen()
    swapped.increments[0], swapped.increments[2] = (0, 1, 3), (3, 5, 1)
    twice = Seen()
    twice.increments[1] = (2, 4, 1)
    for lists, final, seen in [([1, 3, 4], 4, Seen()), ([1, 2, 2, 4], 4, Seen()), ([2, 1, 4], 4, Seen()),
                               ([1, 2, 4, 9], 4, Seen()), ([1, 2, 4], 2, Seen()), ([1, 2, 4], 5, Seen()),
                               ([1, 2, 4], 3, swapped), ([1, 2, 4], 3, twice)]:
        try:
            judge({0: lists}, final, [seen])
        except AssertionError:
            continue
        raise AssertionError(f"{lists} and {final} pass")


def under_load(harm, cluster=None):
    """Clients of the proxy, while something happens to the cluster."""
    cluster = cluster or near()
    cluster.wait_whole()
    cluster.proxy().call("FLUSHALL")
    stop = threading.Event()
    workers = [Worker(cluster, number, stop) for number in range(3)]
    for worker in workers:
        worker.start()
    time.sleep(0.3)
    harm(cluster)
    cluster.wait_whole()
    before = sum(len(worker.appended) for worker in workers)
    deadline = time.monotonic() + PATIENCE
    while sum(len(worker.appended) for worker in workers) < before + 30:
        assert time.monotonic() < deadline, "nothing is acknowledged any more"
        time.sleep(0.02)
    stop.set()
    for worker in workers:
        worker.join(timeout=PATIENCE)
        assert not worker.is_alive(), "a command is never answered"
    return judge_cluster(cluster, workers)


def killed(role):
    """kill -9 of a role, which comes back as another life."""
    def harm(cluster):
        ran = cluster.run("kill", role)
        expect(ran.returncode, 0, ran.stdout)
        time.sleep(1.2)  # longer than anybody may be silent

    return under_load(harm)


def paused(role):
    """SIGSTOP of a role for longer than it may be silent."""
    def harm(cluster):
        ran = cluster.run("pause", role, "--for-ms", "1500")
        expect(ran.returncode, 0, ran.stdout)

    return under_load(harm)


@check
def nothing_is_lost_when_the_master_is_killed():
    _, unknown = killed("master")
    expect(unknown, 0, "the proxy asked again until it knew")


@check
def nothing_is_lost_when_a_backup_is_killed():
    expect(killed("backup")[1], 0)


@check
def nothing_is_lost_when_a_witness_is_killed():
    expect(killed("witness")[1], 0)


@check
def nothing_is_lost_when_the_coordinator_is_killed():
    expect(killed("coordinator")[1], 0)
    log = (near().data / "node-0" / "log").read_text(encoding="utf-8")
    assert "single point of failure" in log, log


@check
def of_two_coordinators_over_etcd_the_second_takes_over():
    cluster = Coordinated()
    try:
        cluster.wait_whole()
        first = cluster.leader()

        def harm(_):
            cluster.kill_leader()
            cluster.wait_whole()
            cluster.freeze_leader()

        under_load(harm, cluster)
        # Told to end, it gives its lease back.
        expect(cluster.end_leader(signal.SIGTERM), first, "after two changes")
        cluster.wait_for("the other leads", lambda: cluster.leader() == 1 - first)
        cluster.wait_whole()
        # A coordinator with a file would decide beside the others.
        ran = subprocess.run([BINARY, "coordinator", "--cluster", str(cluster.data)], text=True, check=False,
                             capture_output=True, timeout=PATIENCE)
        assert ran.returncode == 1 and "curp.other_coordinators" in ran.stderr, ran.stderr
    finally:
        cluster.close()


@check
def nothing_is_lost_when_the_proxy_is_killed():
    known, unknown = killed("proxy")
    assert known > 0 and unknown <= 3, f"{unknown} unknown: one command of each client"


@check
def nothing_is_lost_while_any_role_stands_still():
    for role in ["master", "backup", "witness", "coordinator", "proxy"]:
        expect(paused(role)[1], 0, role)


@check
def a_master_that_stood_still_answers_nothing_old():
    cluster = near()
    cluster.wait_whole()
    link = cluster.proxy()
    for number in range(2):
        link.call("SET", "zombie", f"old {number}")
        master, process = cluster.master()
        reader = Link(cluster.port_of(master), timeout=PATIENCE)
        expect(reader.call("GET", "zombie"), f"old {number}".encode())
        stand_still(process)
        try:
            # They wait in its socket, and are the first that it sees when it goes on.
            for _ in range(5):
                reader.send("GET", "zombie")
            expect(link.call("SET", "zombie", f"new {number}"), "OK")
            now = cluster.master()
            assert now and now[0] != master, f"{now} after {master}"
        finally:
            os.kill(process, signal.SIGCONT)
        expect([reader.read() for _ in range(5)], [f"new {number}".encode()] * 5)
        cluster.wait_whole()


@check
def bytes_that_make_no_sense_are_counted_and_dropped():
    cluster = near()
    cluster.wait_whole()
    # Places in which add-witness may start one answer nothing.
    nodes = [node for node in cluster.status()["nodes"] if "counters" in node["answer"]]
    refused = {node["number"]: node["answer"]["counters"]["datagrams refused"] for node in nodes}
    attacker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    record = bytearray(b"CRPW\x01\x01\x00\x01" + bytes(80))
    told = [node for node in nodes if node["role"] in ("witness", "server", "proxy")]
    expect({node["role"] for node in told}, {"witness", "server", "proxy"})
    for node in told:
        host, port = node["address"].split(":")
        for length in [0, 1, 47, 51, 52, 200, 1472, 1473, 9000]:
            attacker.sendto(os.urandom(length), (host, int(port)))
        for _ in range(200):  # a flood, right but for its checksum
            attacker.sendto(bytes(record), (host, int(port)))
    link = cluster.proxy()
    for number in range(20):
        expect(link.call("SET", f"hostile:{number}", number), "OK")
    for node in cluster.status()["nodes"]:
        if node["number"] in [one["number"] for one in told]:
            grown = node["answer"]["counters"]["datagrams refused"] - refused[node["number"]]
            assert grown >= 9, f"node {node['number']} counted {grown}"
    cluster.wait_whole()


@check
def each_process_starts_alone_and_says_what_it_is_for():
    for role in ["coordinator", "replica", "master", "witness", "proxy"]:
        ran = subprocess.run([BINARY, role, "--help"], text=True, check=True, capture_output=True,
                             timeout=PATIENCE)
        assert "--cluster" in ran.stdout and "Durability: " in ran.stdout, ran.stdout
    cluster = near()
    ran = subprocess.run([BINARY, "witness", "--cluster", str(cluster.data), "--node", "1"], text=True,
                         check=False, capture_output=True, timeout=PATIENCE)
    assert ran.returncode == 1 and "node 1 is a server" in ran.stderr, ran.stderr
    port = free_ports(2)
    proxy = subprocess.Popen([BINARY, "proxy", "--cluster", str(cluster.data), "--listen",
                              f"127.0.0.1:{port}", "--admin-listen", f"127.0.0.1:{port + 1}"],
                             stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                link = Link(port)
                break
            except OSError:
                assert time.monotonic() < deadline and proxy.poll() is None, "the proxy does not serve"
                time.sleep(0.05)
        took = counted(link, lambda: expect(link.call("SET", "alone", 1), "OK"))
        assert sum(took.values()) == 1 and "unknown" not in took, took
        expect(cluster.proxy().call("GET", "alone"), b"1")
        with urllib.request.urlopen(f"http://127.0.0.1:{port + 1}/metrics", timeout=PATIENCE) as page:
            text = page.read().decode()
        way, = took
        assert f'manxdb_curp_commands_total{{way="{way}"}} 1' in text, text
    finally:
        proxy.terminate()
        proxy.wait(timeout=PATIENCE)


def within_a_namespace(name):
    """Whether this process has a network and a BPF file system of its own; else it runs one that has.

    No program is ever given to the machine's own `lo`."""
    if os.environ.get("MANXDB_CURP_NAMESPACE"):
        return True
    enter = ["unshare", "--net", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*enter, "true"], check=False, capture_output=True).returncode:
        raise Skip("it needs unshare, CAP_SYS_ADMIN and CAP_NET_ADMIN")
    script = 'ip link set lo up && mount -t bpf bpf /sys/fs/bpf && exec "$@"'
    ran = subprocess.run([*enter, "sh", "-c", script, "sh", sys.executable, __file__, name], text=True, check=False,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=4 * PATIENCE,
                         env={**os.environ, "MANXDB_CURP_NAMESPACE": "1"})
    if ran.stdout.startswith("SKIP"):
        raise Skip(ran.stdout.partition(": ")[2].strip())
    assert ran.returncode == 0 and "PASS" in ran.stdout, ran.stdout
    return False


def data_plane(*more, **how):
    """A cluster whose witnesses are XDP programs, or a skipped check where the machine has none."""
    try:
        return Cluster("--carrier", "xdp-generic", *more, **how)
    except AssertionError as error:
        if "this kernel" in str(error) or "this process lacks" in str(error):
            raise Skip(f"no XDP here: {error}") from error
        raise


def stopped_whole(cluster, how):
    """All processes end under load and start again; what clients of the proxy were told is there."""
    def harm(cluster):
        how(cluster)
        cluster.start()

    return under_load(harm, cluster)


@check
def nothing_acknowledged_is_lost_when_all_processes_are_killed_at_once():
    cluster = Cluster("--durability", "fsync")
    try:
        took = counted(cluster.proxy(), lambda: cluster.proxy().call("SET", "mode", "fsync"))
        assert "fast" not in took, f"{took}: witnesses hold nothing on disk"
        acknowledged, _ = stopped_whole(cluster, Cluster.kill_all)
        assert acknowledged > 0

        def without_the_masters_disk(cluster):
            number, _ = cluster.master()
            cluster.kill_all()
            shutil.rmtree(cluster.data_of(number))

        stopped_whole(cluster, without_the_masters_disk)
        stopped_whole(cluster, Cluster.stop_in_order)
    finally:
        cluster.close()


@check
def a_cluster_in_memory_that_is_stopped_in_order_goes_on_where_it_was():
    cluster = Cluster()
    try:
        stopped_whole(cluster, Cluster.stop_in_order)
        link = cluster.proxy()
        for number in range(100):
            link.call("SET", f"kept:{number}", number)
        cluster.wait_on_disk()
        cluster.kill_all()
        cluster.start()
        expect(cluster.proxy().call("GET", "kept:99"), b"99")
        master, _ = cluster.master()
        cluster.stop_in_order()
        two = [*cluster.command]
        two[two.index("--f") + 1] = "2"
        assert "with --f 1, not 2" in refused(two), refused(two)
        assert "with --durability memory, not fsync" in refused([*cluster.command, "--durability", "fsync"])
        journal = cluster.data_of(master) / "journal"
        whole = journal.read_bytes()
        journal.write_bytes(whole[:40] + bytes([whole[40] ^ 1]) + whole[41:])
        said = refused([BINARY, "replica", "--cluster", str(cluster.data), "--node", str(master)])
        assert f"{journal}: damaged at byte 8" in said, said
        cluster.command.append("--new")
        cluster.start()
        expect(cluster.proxy().call("DBSIZE"), 0)
    finally:
        cluster.close()


def refused(command):
    """What a start says that is refused."""
    ran = subprocess.run(command, text=True, check=False, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    expect(ran.returncode, 1, ran.stdout)
    return ran.stdout


def witnesses(cluster):
    """The nodes that are witnesses at the moment, with what they say of themselves."""
    nodes = cluster.status()["nodes"]
    used = nodes[0]["answer"]["notes"]["witnesses"].split()
    return [nodes[int(number)] for number in used]


@check
def witnesses_in_the_data_plane_commit_in_one_round_trip_without_their_processes():
    if not within_a_namespace("witnesses in the data plane commit"):
        return
    # Nobody is replaced while this check runs.
    cluster = data_plane("--lan-us", str(int(AWAY * 1e6)), suspect_ms=60_000)
    pins = pathlib.Path("/sys/fs/bpf/manxdb")
    try:
        used, = witnesses(cluster)
        expect(used["answer"]["notes"]["carrier"], "xdp-generic")
        expect(len([one for one in pins.glob("lo-*/*") if one.is_dir()]), 2, "a witness and a spare")
        link = cluster.proxy()
        link.call("PING")
        took = counted(link, lambda: [link.call("SET", f"key:{number}", number) for number in range(20)])
        assert took["fast"] >= 18 and took["fast"] + took.get("synced", 0) == 20, took
        took = min(seconds(lambda number=number: link.call("SET", f"more:{number}", 1)) for number in range(10))
        assert 2 * AWAY <= took < 4 * AWAY, f"{took * 1e3:.1f} ms is not one round trip of {2e3 * AWAY:.0f} ms"
        # Its process dies, and its records and answers do not.
        os.kill(used["answer"]["process"], signal.SIGKILL)
        took = counted(link, lambda: [link.call("SET", f"after:{number}", number) for number in range(20)])
        assert took["fast"] >= 18, took
        # Starts again, as the same witness: the view stays.
        view = cluster.notes(0)["view"]
        alone = subprocess.Popen([BINARY, "witness", "--cluster", str(cluster.data), "--node", str(used["number"])],
                                 stderr=subprocess.DEVNULL)
        try:
            cluster.wait_whole()
            took = counted(link, lambda: [link.call("SET", f"again:{number}", number) for number in range(20)])
            assert took["fast"] >= 18, took
            expect(cluster.notes(0)["view"], view)
            refused = cluster.notes(used["number"])["datagrams refused for their content"]
            attacker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            host, port = used["address"].split(":")
            for _ in range(50):
                attacker.sendto(os.urandom(200), (host, int(port)))
            grown = int(cluster.notes(used["number"])["datagrams refused for their content"]) - int(refused)
            expect(grown, 50, "hostile datagrams that the program has counted")
        finally:
            alone.terminate()
            alone.wait(timeout=PATIENCE)
    finally:
        cluster.close()
    left = subprocess.run([BINARY, "witness", "--remove", "--carrier", "xdp-generic", "--interface", "lo",
                           "--listen", used["address"]], text=True, check=False, capture_output=True, timeout=PATIENCE)
    expect(left.returncode, 0, left.stderr)
    expect([str(one) for one in pins.glob("*")], [], "left in the kernel")


@check
def a_new_master_recovers_from_a_witness_in_the_data_plane():
    if not within_a_namespace("recovers from a witness in the data plane"):
        return
    cluster = data_plane("--supervise")
    try:
        link = cluster.proxy()
        for round_ in range(3):
            for number in range(200):
                link.send("INCR", f"count:{number % 40}")
            expect([link.read() for _ in range(200)], [5 * round_ + number // 40 + 1 for number in range(200)])
            expect(cluster.run("kill", "master").returncode, 0)
            cluster.wait_whole()
            expect(link.call("MGET", *[f"count:{number}" for number in range(40)]), [b"%d" % (5 * round_ + 5)] * 40)
    finally:
        cluster.close()


@check
def a_carrier_that_cannot_be_had_is_named_with_the_way_to_get_it():
    def started(*flags):
        ran = subprocess.run([BINARY, "witness", *flags], text=True, check=False, capture_output=True,
                             timeout=PATIENCE, stdin=subprocess.DEVNULL)
        return ran.returncode, ran.stderr

    code, said = started("--carrier", "xdp")
    assert code == 1 and "--carrier xdp needs --interface" in said, said
    # No file system for pins, or no right, or no kernel: one of them is named, whatever the machine.
    code, said = started("--carrier", "xdp", "--interface", "lo", "--bpffs", "/proc")
    assert code == 1 and "no witness in carrier xdp: " in said, said
    ways = ["mount -t bpf bpf /proc", "start it as root", "run a newer kernel", "take --carrier user"]
    assert any(way in said for way in ways), said
    port = free_ports(1)
    command = [BINARY, "witness", "--carrier", "xdp", "--interface", "lo", "--bpffs", "/proc", "--fallback",
               "--listen", f"127.0.0.1:{port}"]
    witness = subprocess.Popen(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    first = witness.stdout.readline()
    witness.terminate()
    _, said = witness.communicate(timeout=PATIENCE)
    assert f"witness at 127.0.0.1:{port}, carrier user, durability: memory" in first, first + said
    assert said.count("taking the next best") == 2, said
    expect(witness.returncode, 0, said)


@check
def a_witness_is_added_and_replaces_another_while_clients_write():
    cluster = near()
    cluster.wait_whole()
    link = cluster.proxy()
    link.call("SET", "added", "0")
    old, = cluster.notes(0)["witnesses"].split()
    stop, done = threading.Event(), []

    def write():
        other = cluster.proxy()
        while not stop.is_set():
            done.append(other.call("INCR", "added"))

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    ran = cluster.run("add-witness", "--replaces", old)
    expect(ran.returncode, 0, ran.stdout)
    assert "is a witness: a spare" in ran.stdout and f"node {old} has ended" in ran.stdout, ran.stdout
    assert old not in cluster.notes(0)["witnesses"].split(), ran.stdout
    before, deadline = len(done), time.monotonic() + PATIENCE
    while len(done) < before + 5:
        assert time.monotonic() < deadline, "nobody writes any more"
        time.sleep(0.01)
    stop.set()
    writer.join(timeout=PATIENCE)
    expect(int(link.call("GET", "added")), len(done), "each INCR once")
    # What was ended is started again by `cluster up`: now every place is taken.
    cluster.wait_whole()
    ran = cluster.run("add-witness")
    assert ran.returncode == 1 and "--room" in ran.stdout, ran.stdout
    ran = cluster.run("add-witness", "--replaces", "1")
    assert ran.returncode == 1 and "node 1 is no witness" in ran.stdout, ran.stdout


if __name__ == "__main__":
    main()
