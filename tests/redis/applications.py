"""Clients and applications made for Redis, unmodified, each with a day's work in small.

    applications.py            all of them
    applications.py NAME...    some
"""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from run import Ours, report

CLIENTS = Path(__file__).resolve().parent.parent / "clients"


def expect(found, wanted, what):
    """An error that says what was found."""
    if found != wanted:
        raise AssertionError(f"{what}: {found!r}, not {wanted!r}")


def redis_cli(port):
    """The command line: a command, a pipe, a script with its keys, a scan."""
    def cli(*words, **more):
        done = subprocess.run(["redis-cli", "-p", str(port), *words], capture_output=True, text=True, timeout=30, check=True, **more)
        return done.stdout.strip()

    expect(cli("set", "greeting", "hello"), "OK", "SET")
    expect(cli("-n", "3", "dbsize"), "0", "DBSIZE")
    pipe = "".join(f"*3\r\n$3\r\nSET\r\n$6\r\npipe{number:02}\r\n$1\r\nx\r\n" for number in range(50))
    expect("errors: 0, replies: 50" in cli("--pipe", input=pipe), True, "--pipe")
    expect(cli("eval", "return redis.call('get', KEYS[1])", "1", "greeting"), "hello", "EVAL")
    expect(len(cli("--scan", "--pattern", "pipe*").split()), 50, "--scan")
    expect("redis_version:7.2" in cli("info", "server"), True, "INFO")


def redis_benchmark(port):
    """The benchmark's own commands, at -P 1 and 16."""
    for pipeline in ("1", "16"):
        done = subprocess.run(
            ["redis-benchmark", "-p", str(port), "-n", "1000", "-c", "20", "-P", pipeline, "-q", "-t",
             "ping,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd,zpopmin,lrange_100,mset"],
            capture_output=True, text=True, timeout=60, check=False)
        expect(done.returncode, 0, done.stdout + done.stderr)
        expect("rror" in done.stdout + done.stderr, False, done.stdout + done.stderr)


def redis_py(port):
    """RESP 2 and 3: pipelines, locks, scripts, streams, pub/sub, blocking with a time-out."""
    import redis

    for protocol in (2, 3):
        link = redis.Redis(port=port, protocol=protocol, decode_responses=True, db=1)
        link.flushdb()
        with link.pipeline() as pipe:
            pipe.set("a", 1).incr("a").hset("h", mapping={"x": "1", "y": "2"}).zadd("z", {"m": 1.5, "n": 2})
            expect(pipe.execute(), [True, 2, 2, 2], "a pipeline")
        expect(link.hgetall("h"), {"x": "1", "y": "2"}, "HGETALL")
        expect([tuple(pair) for pair in link.zrange("z", 0, -1, withscores=True)], [("m", 1.5), ("n", 2.0)], "ZRANGE")
        with link.lock("lock", timeout=5) as lock:
            expect(link.lock("lock", timeout=5).acquire(blocking=False), False, "a lock that is held")
            lock.extend(5)
        expect(link.exists("lock"), 0, "a released lock")
        script = link.register_script("return {KEYS[1], ARGV[1] + 1}")
        expect(script(keys=["k"], args=[41]), ["k", 42], "a script")

        def transfer(pipe):
            value = int(pipe.get("a"))
            pipe.multi()
            pipe.set("a", value + 1)
        expect(link.transaction(transfer, "a"), [True], "WATCH and MULTI")
        listener = link.pubsub()
        listener.subscribe("news")
        listener.get_message(timeout=5)
        link.publish("news", "hello")
        expect(listener.get_message(timeout=5)["data"], "hello", "a message")
        listener.close()
        expect(link.blpop("empty", timeout=0.05), None, "BLPOP in vain")
        link.xadd("s", {"f": "v"}, id="1-1", maxlen=100, approximate=True)
        link.xgroup_create("s", "g", id="0")
        read = link.xreadgroup("g", "c", {"s": ">"}, count=1)
        entries = read["s"][0] if protocol == 3 else read[0][1]
        expect(entries, [("1-1", {"f": "v"})], "XREADGROUP")
        expect(link.xack("s", "g", "1-1"), 1, "XACK")
        link.set("gone", "x", px=1)
        time.sleep(0.01)
        expect(link.get("gone"), None, "an expired key")
        link.close()


def job_that_works(number):
    """RQ runs it."""
    return number * 2


def job_that_fails():
    """RQ runs it, twice."""
    raise ValueError("as planned")


def rq(port):
    """Enqueue, run, fail and retry, delay, results."""
    import redis
    from rq import Queue, Retry, SimpleWorker
    from rq.registry import FailedJobRegistry, ScheduledJobRegistry
    from rq.timeouts import TimerDeathPenalty

    class Worker(SimpleWorker):
        """In this process, without signals."""
        death_penalty_class = TimerDeathPenalty

        def _install_signal_handlers(self):
            pass

    link = redis.Redis(port=port, db=2)
    queue = Queue("work", connection=link, death_penalty_class=TimerDeathPenalty)
    name = "applications"
    done = [queue.enqueue(f"{name}.job_that_works", number) for number in range(10)]
    failing = queue.enqueue(f"{name}.job_that_fails", retry=Retry(max=1))
    from datetime import timedelta
    later = queue.enqueue_in(timedelta(hours=1), f"{name}.job_that_works", 1)
    Worker([queue], connection=link).work(burst=True, logging_level="CRITICAL")
    expect([job.return_value() for job in done], [number * 2 for number in range(10)], "results")
    expect(failing.get_status(refresh=True).value, "failed", "a job that fails twice")
    expect(len(FailedJobRegistry(queue=queue)), 1, "the registry of failed jobs")
    expect(later.id in ScheduledJobRegistry(queue=queue), True, "a job for later")


def celery(port):
    """A worker with Redis as broker and results: tasks, a retry, a countdown, a chord."""
    from celery import Celery, chord
    from celery.contrib.testing.worker import start_worker

    app = Celery("day", broker=f"redis://127.0.0.1:{port}/3", backend=f"redis://127.0.0.1:{port}/4")
    app.conf.update(broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)
    tries = []

    @app.task(name="add")
    def add(one, other):
        return one + other

    @app.task(name="total")
    def total(numbers):
        return sum(numbers)

    @app.task(name="flaky", bind=True, max_retries=2, default_retry_delay=0)
    def flaky(self):
        tries.append(1)
        if len(tries) < 2:
            raise self.retry()
        return "at last"

    with start_worker(app, pool="solo", perform_ping_check=False, loglevel="CRITICAL"):
        results = [add.delay(number, 1) for number in range(10)]
        expect([result.get(timeout=20) for result in results], list(range(1, 11)), "results")
        expect(add.apply_async((2, 3), countdown=0.2).get(timeout=20), 5, "a countdown")
        expect(flaky.delay().get(timeout=20), "at last", "a retry")
        expect(chord([add.s(number, number) for number in range(5)])(total.s()).get(timeout=20), 20, "a chord")


def django(port):
    """Django's own cache and django-redis; two backends of one interface."""
    from django.conf import settings

    def caches_of(backend, db):
        return {"BACKEND": backend, "LOCATION": f"redis://127.0.0.1:{port}/{db}"}

    settings.configure(CACHES={"default": caches_of("django.core.cache.backends.redis.RedisCache", 5),
                               "other": caches_of("django_redis.cache.RedisCache", 6)})
    import django as framework
    framework.setup()
    from django.core.cache import caches

    for name in ("default", "other"):
        cache = caches[name]
        cache.clear()
        cache.set("a", {"x": [1, 2]}, 30)
        expect(cache.get("a"), {"x": [1, 2]}, "a value")
        expect(cache.add("a", 1), False, "add of a key that is there")
        cache.set_many({"b": 1, "c": 2})
        expect(cache.get_many(["b", "c", "d"]), {"b": 1, "c": 2}, "get_many")
        expect(cache.incr("b", 5), 6, "incr")
        expect(cache.touch("b", 60), True, "touch")
        cache.set("short", 1, timeout=1)
        expect(cache.get("short"), 1, "before its time")
        cache.delete_many(["a", "b"])
        expect(cache.get("a"), None, "after delete")
    other = caches["other"]
    expect(other.delete_pattern("c*"), 1, "delete_pattern")
    with other.lock("held", timeout=5):
        expect(other.lock("held", timeout=5).acquire(blocking=False), False, "a lock that is held")


def channels(port):
    """The layer of channels: a message to a channel, to a group, capacity."""
    from channels.exceptions import ChannelFull
    from channels_redis.core import RedisChannelLayer

    async def day():
        layer = RedisChannelLayer(hosts=[f"redis://127.0.0.1:{port}/7"], capacity=5)
        await layer.send("one", {"type": "hello", "number": 1})
        expect((await layer.receive("one"))["number"], 1, "a message")
        names = [await layer.new_channel() for _ in range(3)]
        for name in names:
            await layer.group_add("group", name)
        await layer.group_send("group", {"type": "all", "text": "x"})
        for name in names:
            expect((await asyncio.wait_for(layer.receive(name), 10))["text"], "x", "a message to a group")
        await layer.group_discard("group", names[0])
        for number in range(5):
            await layer.send("full", {"type": "x", "number": number})
        try:
            await layer.send("full", {"type": "x"})
        except ChannelFull:
            pass
        else:
            raise AssertionError("a full channel took a message")
        await layer.flush()
        await layer.close_pools()

    asyncio.run(asyncio.wait_for(day(), 30))


def program(command, port, cwd):
    """A program that prints PASS and FAIL lines of its own."""
    done = subprocess.run([*command], cwd=cwd, env={**os.environ, "MANXDB_TEST_REDIS_PORT": str(port)}, capture_output=True, text=True,
                          timeout=120, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith(("PASS ", "FAIL "))]
    print("\n".join(lines), flush=True)
    if done.returncode != 0 and not any(line.startswith("FAIL ") for line in lines):
        raise AssertionError(f"ended with {done.returncode}: {done.stdout[-500:]} {done.stderr[-1500:]}")
    if not lines:
        raise AssertionError("it printed nothing")
    return sum(line.startswith("FAIL ") for line in lines)


def node(port):
    """ioredis, node-redis, BullMQ."""
    return program(["node", "redis_suite.js"], port, CLIENTS / "node")


def go(port):
    """go-redis."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or CLIENTS.parent.parent / "target").resolve()
    return program([str(target / "clients-go" / "redis")], port, CLIENTS / "go")


def jvm(port):
    """Jedis, lettuce."""
    target = Path(os.environ.get("CARGO_TARGET_DIR") or CLIENTS.parent.parent / "target").resolve() / "clients-jvm"
    return program(["java", "-cp", f"{target}/classes:{target}/lib/*", "manxdb.suite.RedisSuite"], port, CLIENTS / "jvm")


APPLICATIONS = {
    "redis-cli": redis_cli, "redis-benchmark": redis_benchmark, "redis-py": redis_py, "rq": rq, "celery": celery, "django": django,
    "channels": channels, "node": node, "go": go, "jvm": jvm,
}


def run_one(name, port):
    """Runs it; the number of failures."""
    began = time.monotonic()
    problem, failed = None, 0
    try:
        failed = APPLICATIONS[name](port) or 0
    except Exception as error:  # what an application raises is what is reported
        problem = f"{type(error).__name__}: {error}"
    seconds = time.monotonic() - began
    if name in ("node", "go", "jvm") and not problem:
        return failed
    return report(f"redis: {name}" + ("" if problem else f" ({seconds:.1f} s)"), problem)


def main():
    names = sys.argv[1:] or list(APPLICATIONS)
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        ours = Ours(os.path.join(scratch, "data"), durability="async")
        ours.start().close()
        try:
            for name in names:
                failed += run_one(name, ours.port)
        finally:
            ours.kill()
    return 1 if failed else 0


if __name__ == "__main__":
    # Threads of clients may linger; the checks are over.
    code = main()
    sys.stdout.flush()
    os._exit(code)
