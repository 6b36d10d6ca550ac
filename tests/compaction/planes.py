"""Two control planes over etcd: the one that leads ends, is killed or stands still, and etcd is gone."""

import signal

from harness.checks import check, expect
from harness.etcd import Etcd
from harness.pool import Role, wait_for
from harness.servers import free_port
from fixture import Fixture

PAIR = None


class Pair(Fixture):
    """A fixture whose pool has two control planes."""

    def __init__(self):
        self.etcd = Etcd()
        self.ports = [free_port(), free_port()]
        self.planes = []
        super().__init__()

    def start_control(self):
        """Both of them."""
        self.planes = [self.start_plane(place) for place in range(2)]
        wait_for("one leads", self.leader)
        return self.planes[0]

    def start_plane(self, place):
        """One of them, again after it ended."""
        return Role(self.path, f"control-{place}", "control",
                    "--listen", f"127.0.0.1:{self.ports[place]}",
                    "--etcd", self.etcd.address, *self.secret())

    def address(self):
        """Of both."""
        return ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def leader(self):
        """The one that leads, or none. One that is dead or stands still is not asked."""
        alive = [plane for plane in self.planes if plane.process.poll() is None]
        leading = (plane for plane in alive if plane.numbers()["manxdb_compactor_leads"] == 1)
        return next(leading, None)

    def running(self):
        """Jobs that workers have."""
        leader = self.leader()
        return leader and leader.numbers()['manxdb_compactor_jobs{phase="running"}']

    def close(self):
        """Whatever is left of it."""
        for plane in self.planes:
            plane.end()
        super().close()
        self.etcd.kill()


def pair():
    """The one fixture of these checks, with a server and a worker."""
    global PAIR
    if PAIR is None:
        PAIR = Pair()
        PAIR.start_worker()
        PAIR.start_server()
        PAIR.create()
    return PAIR


@check
def when_the_leader_dies_or_is_told_to_end_the_other_goes_on():
    here = pair()
    here.goes_on()
    for how in (signal.SIGKILL, signal.SIGTERM):
        ended = here.leader()
        place = here.planes.index(ended)
        here.write_until("a job runs", here.running, lambda: ended.end(how))
        wait_for("the other leads", here.leader)
        here.goes_on()
        here.planes[place] = here.start_plane(place)
    expect(here.local("refused"), 0)


@check
def a_leader_that_stood_still_past_its_lease_leads_no_more():
    here = pair()
    frozen = here.leader()
    other = here.planes[1 - here.planes.index(frozen)]
    term = other.numbers()["manxdb_compactor_term"]
    here.write_until("a job runs", here.running, lambda: frozen.process.send_signal(signal.SIGSTOP))
    wait_for("the other leads", lambda: other.numbers()["manxdb_compactor_leads"] == 1)
    frozen.process.send_signal(signal.SIGCONT)
    wait_for("the thawed one knows", lambda: frozen.numbers()["manxdb_compactor_leads"] == 0)
    expect(other.numbers()["manxdb_compactor_leads"], 1)
    if not other.numbers()["manxdb_compactor_term"] > term:
        raise AssertionError("it leads without an election")
    here.goes_on()
    expect(here.local("refused"), 0)


@check
def without_etcd_nobody_leads_and_compactions_are_done_here():
    here = pair()
    away = here.local("away")
    here.write_until("a job runs", here.running, here.etcd.kill)
    here.write_until("compactions at home", lambda: here.local("away") >= away + 2)
    # What it cannot write down it does not say; it leads until its lease is nearly over.
    wait_for("nobody leads", lambda: here.leader() is None)
    here.compare()
    here.etcd.start()
    wait_for("one leads", here.leader)
    here.goes_on()
    expect(here.local("refused"), 0)
    here.ends_well()
