"""All processes of a cluster end, and it goes on from its disks."""

import shutil
import subprocess

from harness.checks import check, expect
from ledger import under_load
from processes import BINARY, PATIENCE
from redis_cluster import Cluster, counted


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
