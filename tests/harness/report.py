"""Counts checks of all suites and prints the closing line."""

import sys
from dataclasses import dataclass, field
from pathlib import Path

KNOWN_GAPS = Path(__file__).resolve().parent.parent / "known_gaps.txt"


def load_known_gaps(path=KNOWN_GAPS):
    """Maps (suite, check) to the reason; a malformed line is an error of ours."""
    gaps = {}
    for number, line in enumerate(path.read_text().splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split(" :: ")]
        if len(parts) != 3 or not all(parts):
            raise SystemExit(f"{path}:{number}: expected 'suite :: check :: reason'")
        gaps[(parts[0], parts[1])] = parts[2]
    return gaps


@dataclass
class Report:
    """Results of one run. `known` is consulted only for runs against ManxDB."""

    known: dict = field(default_factory=dict)
    passed: int = 0
    failures: list = field(default_factory=list)
    gaps: list = field(default_factory=list)
    skipped: list = field(default_factory=list)
    closed: list = field(default_factory=list)
    # Seconds of tests and suites, by name.
    times: list = field(default_factory=list)
    # What was said, of a report that is printed in one piece when it is merged; None: it is printed at once.
    said: list | None = None

    def say(self, line):
        """Prints a line, now or when this report is merged."""
        if self.said is None:
            print(line, flush=True)
        else:
            self.said.append(line)

    def part(self):
        """A report of something that runs beside others; `merge` takes it in."""
        return Report(known=self.known, said=[])

    def merge(self, part):
        """Counts and prints what a part says."""
        self.passed += part.passed
        for mine, its in ((self.failures, part.failures), (self.gaps, part.gaps), (self.skipped, part.skipped),
                          (self.closed, part.closed), (self.times, part.times)):
            mine.extend(its)
        self.say("\n".join(part.said))

    def add_passed(self, suite, check, quiet=False):
        """A check passed; one that is listed as a gap should leave the list."""
        self.passed += 1
        if (suite, check) in self.known:
            self.closed.append((suite, check, "passes now"))
        if not quiet:
            self.say(f"  PASS {check}")

    def add_failed(self, suite, check, why):
        """A check failed, unless it is a known gap."""
        reason = self.known.get((suite, check))
        if reason:
            self.gaps.append((suite, check, reason))
            self.say(f"  GAP  {check}: {reason}")
            return
        self.failures.append((suite, check, why))
        self.say(f"  FAIL {check}: {why}")

    def add_skipped(self, suite, check, why):
        """A check could not run here; said, not counted."""
        self.skipped.append((suite, check, why))
        self.say(f"  SKIP {check}: {why}")

    def add_time(self, name, seconds):
        """How long a test or a suite took."""
        self.times.append((seconds, name))

    def print_slowest(self, count=10):
        """What a shorter run would begin with."""
        if self.times:
            print(f"\nslowest {count}:")
        for seconds, name in sorted(self.times, reverse=True)[:count]:
            print(f"  {seconds:6.1f} s  {name}")

    def take_line(self, suite, line):
        """Understands one line of a suite; returns False when it is not a result."""
        word, _, rest = line.partition(" ")
        check, _, why = rest.partition(": ")
        if word == "PASS":
            self.add_passed(suite, rest.strip())
        elif word == "FAIL":
            self.add_failed(suite, check.strip(), why.strip() or "no reason given")
        elif word == "SKIP":
            self.add_skipped(suite, check.strip(), why.strip())
        else:
            return False
        return True

    def close(self):
        """Prints the summary; returns the exit code."""
        for title, rows in (("skipped", self.skipped), ("known gaps", self.gaps),
                            ("no gaps any more, remove them from tests/known_gaps.txt", self.closed), ("FAILED", self.failures)):
            if rows:
                print(f"\n{title}:")
                for suite, check, why in rows:
                    print(f"  {suite} / {check}: {why}")
        self.print_slowest()
        print()
        print(f"{self.passed} passed, {len(self.failures)} failed, {len(self.skipped)} skipped")
        sys.stdout.flush()
        return 1 if self.failures else 0
