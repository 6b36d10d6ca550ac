"""A RESP client of few lines: what it reads is what the server sent, errors included. Maps of RESP 3 are flat."""

import socket
import ssl


class ReplyError(str):
    """An error reply."""


class Push(list):
    """What nobody asked for, in RESP 3."""


class Link:
    """A connection."""

    def __init__(self, port, timeout=20, certificate=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        if certificate:
            context = ssl.create_default_context(cafile=certificate)
            self.socket = context.wrap_socket(self.socket, server_hostname="localhost")
        self.file = self.socket.makefile("rb")

    def send(self, *words):
        """Sends a command."""
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        parts = [b"*%d\r\n" % len(words)] + [b"$%d\r\n%s\r\n" % (len(word), word) for word in words]
        self.socket.sendall(b"".join(parts))

    def read(self):
        """The next reply; EOFError when the server is gone."""
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError("the connection ended")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return rest.decode()
        if kind == b"-":
            return ReplyError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            if rest == b"-1":
                return None
            return self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        if kind == b">":
            return Push(self.read() for _ in range(int(rest)))
        if kind == b"~":
            return [self.read() for _ in range(int(rest))]
        if kind == b"%":
            return [self.read() for _ in range(2 * int(rest))]
        if kind == b"_":
            return None
        if kind == b",":
            return float(rest)
        if kind == b"#":
            return rest == b"t"
        if kind == b"=":
            return self.file.read(int(rest) + 2)[4:-2]
        raise ValueError(f"neither RESP 2 nor 3: {line!r}")

    def call(self, *words):
        """Sends a command and reads its reply."""
        self.send(*words)
        return self.read()

    def close(self):
        """Ends."""
        self.file.close()
        self.socket.close()


def info(link, *sections):
    """What INFO tells, all of it or these sections: texts by name."""
    lines = link.call("INFO", *sections).decode().split("\r\n")
    return dict(line.split(":", 1) for line in lines if ":" in line)
