"""Scripts in Lua on a replicated cluster."""

import threading

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from harness.checks import check, expect
from processes import PATIENCE
from redis_cluster import counted, near
from resp import Link

# Counts, and notes each number that it gave, so that one that is executed twice shows.
COUNT = """
local number = redis.call('INCR', KEYS[1])
redis.call('ZADD', KEYS[2], redis.call('TIME')[1], number)
return number
"""
# Touches a key that it does not declare.
UNDECLARED = "return redis.call('INCR', ARGV[1])"


def unmodified(port):
    """An unmodified redis-py, which asks for nothing twice."""
    return redis.Redis(port=port, socket_timeout=2 * PATIENCE, retry=Retry(NoBackoff(), 0))


@check
def a_script_takes_one_round_trip_once_its_text_is_known_if_it_touches_what_it_declares():
    cluster = near()
    cluster.wait_whole()
    link = cluster.proxy(timeout=2 * PATIENCE)
    link.call("FLUSHALL")
    names = [link.call("SCRIPT", "LOAD", text).decode() for text in (COUNT, UNDECLARED)]
    took = counted(link, lambda: [link.call("EVALSHA", names[0], 2, f"s:{n}", f"z:{n}") for n in range(20)])
    assert took.get("fast", 0) > 0, took
    took = counted(link, lambda: [link.call("EVALSHA", names[1], 1, f"s:{n}", f"other:{n}") for n in range(20)])
    expect(took.get("fast", 0), 0, f"{took}: keys that are not declared")
    expect(link.call("GET", "other:19"), b"1")
    # At the master's own port, and where another one has to be asked.
    for server in (1, 2, 3):
        at_server = Link(cluster.port_of(server), timeout=2 * PATIENCE)
        expect(at_server.call("EVALSHA", names[0], 2, "s:0", "z:0"), 1 + server)
        expect(at_server.call("SCRIPT", "EXISTS", *names), [1, 1])
        assert at_server.call("FCALL", "f", 0).startswith("ERR FCALL is not supported")
    expect(link.call("EVAL_RO", "return redis.call('GET', KEYS[1])", 1, "s:0"), b"4")
    expect(link.call("SCRIPT", "FLUSH"), "OK")
    assert link.call("EVALSHA", names[0], 2, "s:0", "z:0").startswith("NOSCRIPT ")


@check
def scripts_are_executed_once_each_through_the_death_of_a_master():
    cluster = near()
    cluster.wait_whole()
    client = unmodified(cluster.redis)
    client.flushall()
    count = client.register_script(COUNT)
    undeclared = client.register_script(UNDECLARED)
    counts, stop, failed = [0, 0], threading.Event(), []

    def run():
        try:
            while not stop.is_set():
                expect(count(keys=["{c}ount", "{c}ounted"]), counts[0] + 1)
                counts[0] += 1
                expect(undeclared(keys=["{c}"], args=["{c}other"]), counts[1] + 1)
                counts[1] += 1
        except BaseException as error:  # told by the check's own thread
            failed.append(error)

    def wait_for_more():
        enough = counts[1] + 20
        cluster.wait_until(lambda _: "" if failed or counts[1] >= enough else "scripts that are executed")

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    wait_for_more()
    expect(cluster.run("kill", "master").returncode, 0)
    wait_for_more()
    stop.set()
    thread.join(timeout=2 * PATIENCE)
    assert not thread.is_alive() and not failed, repr(failed)
    expect(int(client.get("{c}ount")), counts[0])
    expect(client.zcard("{c}ounted"), counts[0], "each number was given once")
    expect(int(client.get("{c}other")), counts[1])
    # The next master knows the scripts.
    expect(client.script_exists(count.sha, undeclared.sha), [True, True])
