"""A cluster that replicates Redis's keys, and how its proxies and servers say that commands were completed."""

from processes import AWAY, Processes
from resp import Link


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
    pairs = [line.split(":", 1) for line in text.split("\r\n") if ":" in line]
    found = {name.removeprefix("curp_"): int(value) for name, value in pairs if name != "curp_coordinators"}
    for name in ("clients", "followed"):  # connections at the moment; commands of other clusters
        found.pop(name, None)
    return found


def counted(link, what):
    """How the commands of `what` were completed, without those that took none. How often the proxy asked again
    while it waited is left out: on a busy machine a reply takes longer than its patience."""
    before = counts(link)
    what()
    after = counts(link)
    ways = [name for name in after if name != "retries"]
    return {name: after[name] - before[name] for name in ways if after[name] != before[name]}
