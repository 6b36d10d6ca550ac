"""A region whose processes all stand still is fenced by the others, which go on, and taken in again
(`--crossing ahead --survive region`)."""

import json
import signal
import subprocess
import time

from harness.checks import check, expect
from harness.signals import stand_still
from regions import BINARY, PATIENCE, RegionCluster, samples

# The region that stands still.
GONE = 0
FENCED = f"degraded: region {GONE} is fenced: "


class Regions(RegionCluster):
    """Three regions of one shard: replicas 0 to 8, three a region, and managers 9 to 17."""

    def __init__(self, *flags):
        super().__init__("--crossing", "ahead", "--survive", "region", *flags, regions=3)
        self.gone = [node["number"] for node in self.nodes if node["region"] == GONE]
        self.others = [node for node in self.nodes if node["region"] != GONE]

    def stand_still(self):
        """All processes of the region."""
        for number in self.gone:
            self.stopped.add(number)
            stand_still(self.nodes[number]["answer"]["process"])

    def go_on(self):
        """And let them go on."""
        for number in self.gone:
            self.signal(number, signal.SIGCONT)

    def wait_for(self, what, holds):
        """Until something holds."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}: never; {self.run('cluster', 'status').stdout}")
            time.sleep(0.1)

    def is_fenced(self):
        """Whether a leader of another region says so."""
        fenced = f'manxdb_dast_fenced{{other="{GONE}"}}'
        return any(samples(node["admin"]).get(fenced) == 1.0 for node in self.others if "manager" in node["role"])

    def lists(self, seconds):
        """Lists are appended to and read, and the history of that is to be checked."""
        report = self.data / "lists.json"
        command = [BINARY, "bench", "append", "--check", "--clients", "6", "--seconds", str(seconds), "--crt-percent", "40",
                   "--patience", str(PATIENCE), "--cluster", str(self.data), "--json", str(report)]
        return subprocess.Popen(command, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT), report

    def increments(self, *flags):
        """Increments of rows of several regions: calls by class as clients saw them."""
        report = self.data / "increments.json"
        report.unlink(missing_ok=True)
        done = self.run("bench", "tpca", "--clients", "6", "--crt-percent", "100", "--warm-up", "0", "--json", str(report), *flags)
        print(done.stdout, flush=True)
        return done.returncode, json.loads(report.read_text())


@check
def the_others_go_on_while_a_region_stands_still_and_it_is_taken_in_again():
    up = Regions()
    replicas = [node["admin"] for node in up.others if "replica" in node["role"]]
    crossing = 'manxdb_dast_transaction_seconds_count{class="cross-region"}'
    load, report = up.lists(8)
    try:
        up.wait_for("calls cross regions", lambda: all(samples(admin).get(crossing, 0) > 0 for admin in replicas))
        up.stand_still()
        up.wait_for("the others fence it", up.is_fenced)
        status = up.run("cluster", "status")
        expect(status.returncode, 1, status.stdout)
        expect([line[:len(FENCED)] for line in status.stdout.splitlines() if "fenced" in line], [FENCED], status.stdout)
        # Clients of the region that stands still have no answer; calls that touch it are refused.
        code, seen = up.increments("--seconds", "2", "--patience", "1")
        crossed = seen["classes"]["cross-region"]
        expect((code, seen["open"] >= 2, crossed["calls"] > 0, crossed["refused"] > 0), (1, True, True, True), f"{seen}")
        up.go_on()
        up.wait_for("it is taken in", lambda: up.run("cluster", "status").returncode == 0)
        out, _ = load.communicate(timeout=2 * PATIENCE)
    finally:
        load.kill()
    print(out, flush=True)
    expect(load.returncode, 0, out)
    seen = json.loads(report.read_text())
    # That some crossed regions was seen above; on a busy machine they may all be of the warm-up.
    expect((seen["open"], seen["findings"]), (0, []))
    # What the region had set aside has run, as a whole: all tables had the same increments before this run.
    code, seen = up.increments("--check", "--seconds", "1")
    expect((code, seen["findings"], seen["classes"]["cross-region"]["refused"]), (0, [], 0), f"{seen}")
    up.close()
