"""A cluster whose processes start alone, with two coordinators over etcd."""

import os
import shutil
import signal
import subprocess
import time

from harness.etcd import Etcd
from harness.signals import stand_still
from processes import BINARY, PATIENCE, Processes
from resp import Link


class Coordinated(Processes):
    """The processes of a cluster for one fault, each started by its own command; node 0 is one of two."""

    # After nodes 1 to 3, the servers, and before the proxy.
    ROLES = ["replica", "replica", "replica", "witness", "witness", "proxy"]

    def __init__(self):
        self.etcd = Etcd()
        self.nodes, self.coordinators, self.logs, self.addresses = {}, {}, {}, []
        super().__init__("--redis-port", suspect_ms=600)
        self.redis = self.first

    def start(self):
        """What `cluster up` writes down, without what its processes did; then each process alone."""
        super().start()
        self.stop_in_order()
        for number in range(1 + len(self.ROLES)):
            shutil.rmtree(self.data_of(number))
        file = self.data / "cluster.toml"
        self.addresses = [f"127.0.0.1:{self.first + 4}", f"127.0.0.1:{self.first + 4 + self.NODES - 1}"]
        listed = f'[curp]\nother_coordinators = ["{self.addresses[1]}"]\n'
        file.write_text(file.read_text().replace("[curp]\n", listed))
        for place in range(2):
            self.start_coordinator(place)
        for number in range(1, 1 + len(self.ROLES)):
            self.start_node(number)

    def spawn(self, name, *command):
        """A process of the program, whose log has its name."""
        self.logs[name] = self.data / f"{name}.log"
        with open(self.logs[name], "ab") as log:
            return subprocess.Popen([BINARY, *command, "--cluster", str(self.data)], stderr=log,
                                    stdin=subprocess.DEVNULL, stdout=log)

    def start_coordinator(self, place):
        """One of the two, again after it ended."""
        self.coordinators[place] = self.spawn(f"coordinator-{place}", "coordinator", "--etcd", self.etcd.address,
                                              "--etcd-lease", "2", "--listen", self.addresses[place])

    def start_node(self, number):
        """A node, again after it ended."""
        role = self.ROLES[number - 1]
        self.nodes[number] = self.spawn(f"node-{number}", role, "--node", str(number))

    def leader(self):
        """Which of the two leads; None while nobody does."""
        process = self.status()["nodes"][0]["answer"].get("process")
        return next((place for place, one in self.coordinators.items() if one.pid == process), None)

    def wait_for_leader(self, wanted=(0, 1)):
        """Until one of these leads; which."""
        def leads():
            place = self.leader()
            return (place,) if place in wanted else None
        (place,) = self.wait_for("a coordinator leads", leads)
        return place

    def wait_for(self, what, holds):
        """What `holds` gives, once that is something. Asked again at once, a busy process may not answer in time."""
        deadline = time.monotonic() + PATIENCE
        while not (found := holds()):
            assert time.monotonic() < deadline, f"this does not come: {what}"
            time.sleep(0.05)
        return found

    def said(self, place):
        """What a coordinator has said so far."""
        return self.logs[f"coordinator-{place}"].read_text()

    def kill_master(self):
        """kill -9 of the master; which node that was."""
        number, _ = self.wait_for("a master", self.master)
        self.nodes[number].kill()
        self.nodes[number].wait(timeout=PATIENCE)
        return number

    def wait_for_master_after(self, number):
        """Until another node is master."""
        self.wait_for(f"a master after {number}", lambda: (self.master() or (number,))[0] != number)

    def end_leader(self, how):
        """Ends the one that leads, and returns which one that was."""
        place = self.wait_for_leader()
        self.coordinators[place].send_signal(how)
        self.coordinators[place].wait(timeout=PATIENCE)
        return place

    def kill_leader(self):
        """kill -9 of the one that leads, then of the master: the other one decides who is master next."""
        place = self.end_leader(signal.SIGKILL)
        dead = self.kill_master()
        self.wait_for_master_after(dead)
        self.wait_for_leader([1 - place])
        self.start_coordinator(place)
        self.start_node(dead)
        self.wait_for("it stands by", lambda: self.said(place).rstrip().endswith("stands by"))

    def freeze_leader(self):
        """The one that leads stands still past its lease, and goes on when the other one has decided."""
        place = self.wait_for_leader()
        frozen = self.coordinators[place]
        stand_still(frozen.pid)
        try:
            dead = self.kill_master()
            self.wait_for_master_after(dead)
            self.wait_for_leader([1 - place])
        finally:
            os.kill(frozen.pid, signal.SIGCONT)
        self.wait_for("it steps down", lambda: "does not lead any more" in self.said(place))
        self.start_node(dead)

    def proxy(self, **more):
        """A connection to the proxy."""
        return Link(self.redis, **more)

    def close(self):
        """Ends all processes."""
        for one in [*self.coordinators.values(), *self.nodes.values()]:
            if one.poll() is None:
                one.kill()
                one.wait(timeout=PATIENCE)
        if self.etcd.process.poll() is None:
            self.etcd.kill()
        super().close()
