"""Each role dies by `kill -9` or stands still under load; a master that stood still answers nothing old."""

import os
import signal
import subprocess
import time

from coordinators import Coordinated
from harness.checks import check, expect
from harness.signals import stand_still
from ledger import under_load
from processes import BINARY, PATIENCE
from redis_cluster import near
from resp import Link


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
    cluster = near()
    cluster.wait_followed()
    _, unknown = killed("master")
    expect(unknown, 0, "the proxy asked again until it knew")
    expect(cluster.copied(), 0, "the spare had the log, and what was master goes on from its disk")


@check
def nothing_is_lost_when_a_backup_is_killed():
    cluster = near()
    cluster.wait_followed()
    before = cluster.copied()
    expect(killed("backup")[1], 0)
    expect(cluster.copied(), before, "the spare had the log")


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
        first = cluster.wait_for_leader()

        def harm(_):
            cluster.kill_leader()
            cluster.wait_whole()
            cluster.freeze_leader()

        under_load(harm, cluster)
        # Told to end, it gives its lease back.
        expect(cluster.end_leader(signal.SIGTERM), first, "after two changes")
        cluster.wait_for_leader([1 - first])
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
