"""docs/quick-start.md, done as it says: files are written, commands run, and what it shows is looked for.

Blocks `sh` run one after the other in one shell, `LANGUAGE file=NAME` are written to that file, and each
line of `output` must be in what the `sh` block before it printed. Everything happens in an empty
directory and in a network of its own, where the page's ports are free.

    run.py
"""

import fcntl
import os
import pathlib
import re
import socket
import struct
import subprocess
import sys
import tempfile
import threading

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "quick-start.md"
BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Longer than any block takes; only a hanging one meets it.
PATIENCE = 90
INSIDE = "MANXDB_QUICK_START_NETWORK"


def blocks(text):
    """(language, name of a file or None, content) of each block, in order."""
    return [match.groups() for match in BLOCK.finditer(text)]


def bring_up_loopback():
    """A new network's loopback device is down."""
    get_flags, set_flags, up = 0x8913, 0x8914, 0x1
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as handle:
        request = struct.pack("16sh14x", b"lo", 0)
        (flags,) = struct.unpack_from("h", fcntl.ioctl(handle, get_flags, request), 16)
        fcntl.ioctl(handle, set_flags, struct.pack("16sh14x", b"lo", flags | up))


class Shell:
    """One bash for all blocks, as a person has one."""

    END = "-- end of a block: "

    def __init__(self, directory):
        binaries = pathlib.Path(os.environ["MANXDB_TEST_BINARY"]).parent
        path = f"{binaries}:{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"
        self.process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"], cwd=directory, text=True,
            env={**os.environ, "PATH": path}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, commands):
        """(whether every command succeeded, what was printed)."""
        # `eval` in a condition would switch `-e` off within: the trap notes the first command that fails.
        self.process.stdin.write(f"failed=0; trap 'failed=1' ERR\n{commands}\ntrap - ERR; echo; echo '{self.END}'$failed\n")
        self.process.stdin.flush()
        printed = []
        # A block that waits for what will not come ends with the shell.
        late = threading.Timer(PATIENCE, self.process.kill)
        late.start()
        try:
            return self.answer(printed)
        finally:
            late.cancel()

    def answer(self, printed):
        """What the block that runs prints, into the list, to its end."""
        for line in self.process.stdout:
            if line.startswith(self.END):
                return line.removeprefix(self.END).strip() == "0", "".join(printed)
            printed.append(line)
        return False, "".join(printed) + "\nthe shell ended"

    def close(self):
        """Ends the shell and what it started."""
        if self.process.poll() is None:
            self.process.stdin.write("kill $(jobs -p) 2> /dev/null; wait\nexit\n")
            self.process.stdin.close()
            self.process.wait()


def run_page(directory):
    """Whether all of the page does what it says."""
    shell, printed, all_good = Shell(directory), "", True
    for number, (language, name, content) in enumerate(blocks(PAGE.read_text()), 1):
        first = content.splitlines()[0] if content else ""
        good, why = True, ""
        if name:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(content)
            continue
        if language == "sh":
            good, printed = shell.run(content)
            why = printed
        elif language == "output":
            lost = [line for line in content.splitlines() if line not in printed]
            good, why = not lost, f"{lost} is not in: {printed}"
        else:
            continue
        print(f"PASS block {number}: {first}" if good else f"FAIL block {number} ({first}): {why[-2000:]}", flush=True)
        all_good = all_good and good
    shell.close()
    return all_good


def main():
    """The command line."""
    if INSIDE not in os.environ:
        rights = [] if os.geteuid() == 0 else ["--map-root-user"]
        command = ["unshare", "--net", "--kill-child", *rights]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode != 0:
            print("SKIP the first hour: no right to make a network namespace")
            return
        os.environ[INSIDE] = "1"
        os.execvp(command[0], [*command, "--", sys.executable, *sys.argv])
    bring_up_loopback()
    with tempfile.TemporaryDirectory(prefix="manxdb-quick-start-") as directory:
        sys.exit(0 if run_page(pathlib.Path(directory)) else 1)


if __name__ == "__main__":
    main()
