"""Clients that keep a ledger of what they were told, and the judge of it.

Every INCR and RPUSH that was acknowledged is there once, and the counter's history is linearizable.
"""

import threading
import time

from harness.checks import check, expect
from processes import PATIENCE
from redis_cluster import near


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
    """Nothing acknowledged is lost or done twice, and the counter is linearizable.

    What nobody was told of may happen at any time after it was asked for: a record of it can outlive its proxy."""
    for worker in workers:
        kept = lists[worker.number]
        expect(len(kept), len(set(kept)), "each once")
        known = set(worker.appended)
        for place, value in enumerate(kept):
            behind = [one for one in kept[place:] if one in known and one < value]
            assert not behind, f"{value} is before {behind[0]}, which was acknowledged before it was asked for"
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
    expect(judge({0: [1, 2, 4, 3]}, 4, [Seen()]), (3, 1))
    swapped = Seen()
    swapped.increments[0], swapped.increments[2] = (0, 1, 3), (3, 5, 1)
    twice = Seen()
    twice.increments[1] = (2, 4, 1)
    for lists, final, seen in [([1, 3, 4], 4, Seen()), ([1, 2, 2, 4], 4, Seen()), ([2, 1, 4], 4, Seen()), ([1, 3, 2, 4], 4, Seen()),
                               ([1, 2, 4, 9], 4, Seen()), ([1, 2, 4], 2, Seen()), ([1, 2, 4], 5, Seen()),
                               ([1, 2, 4], 3, swapped), ([1, 2, 4], 3, twice)]:
        try:
            judge({0: lists}, final, [seen])
        except AssertionError:
            continue
        raise AssertionError(f"{lists} and {final} pass")


def wait_for_more(workers):
    """Until 30 more of their commands were acknowledged."""
    before = sum(len(worker.appended) for worker in workers)
    deadline = time.monotonic() + PATIENCE
    while sum(len(worker.appended) for worker in workers) < before + 30:
        assert time.monotonic() < deadline, "nothing is acknowledged any more"
        time.sleep(0.02)


def under_load(harm, cluster=None):
    """Clients of the proxy, while something happens to the cluster."""
    cluster = cluster or near()
    cluster.wait_whole()
    cluster.proxy().call("FLUSHALL")
    stop = threading.Event()
    workers = [Worker(cluster, number, stop) for number in range(3)]
    for worker in workers:
        worker.start()
    wait_for_more(workers)
    harm(cluster)
    cluster.wait_whole()
    wait_for_more(workers)
    stop.set()
    for worker in workers:
        worker.join(timeout=PATIENCE)
        assert not worker.is_alive(), "a command is never answered"
    return judge_cluster(cluster, workers)
