"""The same with an object store, which gets copies of what compactions read: moto, an S3 server."""

import atexit
import os
import shutil
import subprocess
import sys

import boto3

from harness.checks import check, expect
from harness.pool import BINARY, wait_for
from harness.servers import Manxdb, free_port
from fixture import Fixture

BUCKET = "shop"
PROGRAM = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=int(sys.argv[1]), verbose=False)
server.start()
print("up", flush=True)
sys.stdin.read()
"""


class Store:
    """A server with an empty bucket; it forgets everything when it ends."""

    def __init__(self):
        self.port = free_port()
        self.endpoint = f"http://127.0.0.1:{self.port}"
        os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret",
                          AWS_DEFAULT_REGION="us-east-1")
        self.process = None
        self.start()
        atexit.register(self.end)

    def start(self):
        """Starts it."""
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(self.port)], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        expect(self.process.stdout.readline(), "up\n", "moto")
        self.client().create_bucket(Bucket=BUCKET)

    def client(self):
        """Someone who looks into it."""
        return boto3.client("s3", endpoint_url=self.endpoint)

    def end(self):
        """Kills it."""
        self.process.kill()
        self.process.wait()

    def keys(self):
        """All objects."""
        pages = self.client().get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return [one["Key"] for page in pages for one in page.get("Contents", [])]

    def databases(self):
        """Numbers that databases are known by."""
        return {key.split("/")[1] for key in self.keys()}

    def sessions(self):
        """Times that databases were open."""
        return {tuple(key.split("/")[1:3]) for key in self.keys()}


STORE = None
FIXTURE = None


def fixture():
    """The one fixture of these checks, with a server and a worker."""
    global STORE, FIXTURE
    if FIXTURE is None:
        STORE = Store()
        FIXTURE = Fixture.with_all(f"far=s3://{BUCKET}/copies?endpoint={STORE.endpoint}")
    return FIXTURE


@check
def compactions_go_through_an_object_store():
    here = fixture()
    here.compacts_through_a_store()
    expect(len(STORE.databases()), 1)


@check
def a_server_that_was_killed_removes_what_its_earlier_session_put():
    here = fixture()
    before = STORE.sessions()
    expect(len(before), 1)
    here.server.kill()
    here.start_server()
    here.compare()
    wait_for("the earlier session's objects are gone", lambda: not before & STORE.sessions())
    installed = here.installed()
    here.write_until("the pool goes on", lambda: here.installed() > installed)
    here.compare()
    expect(len(STORE.databases()), 1, "it kept its name")


@check
def a_copy_of_a_data_directory_takes_nothing_from_its_original():
    here = fixture()
    expect(here.server.stop(), 0)
    clone = Manxdb(BINARY, here.server_flags(here.token))
    atexit.register(clone.close)
    clone.data = here.path / "clone"
    shutil.copytree(here.path / "data", clone.data)
    rows = dict(here.rows)
    here.start_server()
    clone.start()
    here.write_until("the original's compactions are done by the pool", lambda: here.installed() >= 2)
    here.compare()
    original = (here.server, here.rows)
    here.server, here.rows = clone, rows
    here.write_until("the copy's compactions are done by the pool", lambda: here.installed() >= 2)
    here.compare()
    expect(here.local("storage"), 0)
    wait_for("both are in the store", lambda: len(STORE.databases()) == 2)
    expect(clone.stop(), 0)
    if "is a copy" not in clone.log_path.read_text():
        raise AssertionError(clone.log_tail())
    here.server, here.rows = original
    here.compare()


@check
def without_the_object_store_compactions_are_done_here():
    here = fixture()
    STORE.end()
    here.write_until("compactions without the store", lambda: here.local("storage") >= 2)
    here.compare()
    expect(here.server.stop(), 0)
    here.start_server()
    here.compare()
    STORE.start()
    here.write_until("the store is used again", lambda: here.installed() >= 1)
    here.compare()
    expect(here.server.stop(), 0)
    said = here.server.log_path.read_text()
    for bad in ("panicked at", "are refused"):
        if bad in said:
            raise AssertionError([line for line in said.splitlines() if bad in line][:5])
