"""A proxy between two processes, over which bytes pass, wait, are lost, or are told otherwise.

    proxy.py PORT TARGET     by hand: from a port of this machine to another one of it
"""

import socket
import sys
import threading


class Proxy:
    """A port on this machine that leads to another one."""

    def __init__(self, target, told=lambda data: data, port=0):
        """`told` makes of what a caller says what the other end hears; any `port` is 0."""
        self.target = target
        self.told = told
        self.may_pass = threading.Event()
        self.may_pass.set()
        self.is_cut = False
        self.ends = set()
        self.listener = socket.create_server(("127.0.0.1", port))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.take, daemon=True).start()

    def take(self):
        """Callers, one after another."""
        while True:
            caller, _ = self.listener.accept()
            if self.is_cut:
                caller.close()
                continue
            try:
                other = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                caller.close()
                continue
            self.ends |= {caller, other}
            for from_, to, told in [(caller, other, self.told), (other, caller, bytes)]:
                threading.Thread(target=self.carry, args=(from_, to, told), daemon=True).start()

    def carry(self, from_, to, told):
        """What one end says, until it says nothing more or the proxy is cut."""
        try:
            while data := from_.recv(1 << 16):
                self.may_pass.wait()
                to.sendall(told(data))
        except OSError:
            pass  # it was cut, or one end is gone
        for end in (from_, to):
            self.ends.discard(end)
            end.close()

    def drop(self):
        """As when every packet is dropped: connections stay, and nothing arrives."""
        self.may_pass.clear()

    def cut(self):
        """Connections break, and new ones too."""
        self.is_cut = True
        for end in list(self.ends):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # it has ended

    def open(self):
        """Bytes pass again, those that waited first."""
        self.is_cut = False
        self.may_pass.set()


if __name__ == "__main__":
    Proxy(int(sys.argv[2]), port=int(sys.argv[1]))
    threading.Event().wait()
