"""The file of users: ACL SAVE and LOAD beside redis-server's, over kill -9, and a file that is wrong."""

import os
import subprocess

from resp import Link, ReplyError
from servers import Ours, free_port, wait_for

# What is put into the file before ACL LOAD; the answers of both servers are compared, errors by their ends: they name lines otherwise.
FILES = ["user x on nopass ~a +get\n\nuser y on >p (+set ~b)\n", "user x on nopass ~a +nope\nuser z on\n", "usr y\n", "user x off\nuser x on\n",
         "user default on nopass ~* &* +@all -get\nuser w on nopass %R~r %W~w &c (%RW~both +@all)\n", ""]


def same(reply):
    return "refused: " + reply.rsplit("WARNING", maxsplit=1)[-1] if isinstance(reply, ReplyError) else reply


def beside(ours, theirs, files):
    """Both servers with the same files answer alike and write the same."""
    for text in FILES:
        said = []
        for link, file in zip((ours, theirs), files):
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)
            replies = [same(link.call("ACL", "LOAD")), link.call("ACL", "LIST"), link.call("ACL", "SETUSER", "made", "on", "(%R~k", "+get)"), link.call("ACL", "SAVE")]
            with open(file, encoding="utf-8") as written:
                said.append([*replies, sorted(written.read().splitlines())])
        if said[0] != said[1]:
            return f"{text!r}: {said[0]}, redis-server says {said[1]}"
    return None


def users(scratch):
    """What is wrong with the file of users, if anything."""
    files = [os.path.join(scratch, name) for name in ("ours.acl", "theirs.acl")]
    for file in files:
        with open(file, "w", encoding="utf-8") as out:
            out.write("")
    ours, port = Ours(os.path.join(scratch, "users"), flags=("--redis-acl-file", files[0])), free_port()
    theirs = subprocess.Popen(["redis-server", "--port", str(port), "--save", "", "--dir", scratch, "--aclfile", files[1]], stdout=subprocess.DEVNULL)
    try:
        link = ours.start()
        problem = beside(link, wait_for(port, theirs), files)
        if problem:
            return problem
        link.call("ACL", "SETUSER", "kept", "on", ">secret", "~k*", "+get")
        link.call("ACL", "SAVE")
        link.call("ACL", "SETUSER", "lost", "on")
        before = [line for line in link.call("ACL", "LIST") if not line.startswith(b"user lost")]
        if os.stat(files[0]).st_mode & 0o777 != 0o600:
            return "others than the server's user may read the file"
        one, other = Link(ours.port), Link(ours.port)
        asked = one.call("AUTH", "kept", "secret"), other.call("AUTH", "kept", "secret")
        with open(files[0], encoding="utf-8") as saved:
            text = saved.read()
        if asked != ("OK", "OK") or one.call("GET", "key") is not None or "secret" in text:
            return f"a user with a password: {asked}, {text}"
        # Connections of users that stay as they are go on.
        if link.call("ACL", "LOAD") != "OK" or one.call("GET", "key") is not None:
            return "ACL LOAD ends connections of users that it did not change"
        with open(files[0], "w", encoding="utf-8") as out:
            out.write(text.replace("+get", "+mget"))
        link.call("ACL", "LOAD")
        try:
            return f"a connection of a user that is another now is answered {other.call('GET', 'key')}"
        except (OSError, EOFError):
            pass
        with open(files[0], "w", encoding="utf-8") as out:
            out.write(text)
        ours.kill()
        after = ours.start().call("ACL", "LIST")
        if after != before:
            return f"after kill -9 there are {after} of {before}"
        ours.kill()
        with open(files[0], "a", encoding="utf-8") as out:
            out.write("user wrong +nope\n")
        try:
            ours.start()
        except RuntimeError:
            return None
        return "a server starts with a file of users that is wrong"
    finally:
        theirs.kill()
        theirs.wait()
        if ours.process.poll() is None:
            ours.kill()
