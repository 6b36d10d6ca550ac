"""Sessions of a cluster that replicates SQL's rows, and what happens to its servers."""

import random
import time

import pymysql

from harness.checks import expect
from processes import PATIENCE

# What a client meets when its server dies, stands still, or is no master any more.
BROKEN = (pymysql.err.OperationalError, pymysql.err.InterfaceError, pymysql.err.InternalError,
          OSError, EOFError, IndexError, AssertionError)


def connect(port, database="bank", timeout=PATIENCE):
    """A session."""
    return pymysql.connect(host="127.0.0.1", port=port, user="root", password="", database=database,
                           autocommit=True, connect_timeout=5, read_timeout=timeout)


def query(connection, text):
    """The rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(text)
        return cursor.fetchall()


def patiently(cluster, what):
    """What a session of any server answers, as soon as one serves."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection = connect(random.choice(cluster.mysql_ports()), None)
            try:
                return what(connection)
            finally:
                connection.close()
        except BROKEN as error:
            if time.monotonic() > deadline:
                raise AssertionError(f"nobody serves: {error}") from error
            time.sleep(0.1)


def harmed(*command, wait):
    """Something that `manxdb cluster` does."""
    def harm(cluster):
        ran = cluster.run(*command)
        expect(ran.returncode, 0, ran.stdout)
        time.sleep(wait)  # longer than anybody may be silent

    return harm
