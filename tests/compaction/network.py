"""Connections between server, control plane and workers: cut, silent, or through a proxy that lies."""

import zlib

from harness.checks import check, expect
from harness.pool import wait_for
from fixture import Fixture
from proxy import Proxy


@check
def a_server_cut_off_from_its_control_plane_compacts_at_home():
    here = Fixture()
    try:
        proxy = Proxy(here.control_port)
        here.start_worker()
        here.start_server(proxy.address)
        here.create()
        here.goes_on()
        for breaks in (proxy.drop, proxy.cut):
            away = here.local("away")
            here.write_until("a job runs", here.running, breaks)
            here.write_until("compactions at home", lambda: here.local("away") >= away + 2)
            here.compare()
            proxy.open()
            here.goes_on()
        expect(here.local("refused"), 0)
        here.ends_well()
    finally:
        here.close()


@check
def what_a_worker_has_that_is_cut_off_is_done_by_another():
    here = Fixture()
    try:
        proxy = Proxy(here.control_port)
        cut_off = here.start_worker(proxy.address)
        here.start_server()
        here.create()
        here.goes_on()
        for breaks in (proxy.drop, proxy.cut):
            lost = here.control.numbers()["manxdb_compactor_lost_total"]
            here.write_until("a job runs", here.running, breaks)
            other = here.start_worker()
            here.write_until("its lease runs out",
                             lambda: here.control.numbers()["manxdb_compactor_lost_total"] > lost)
            here.goes_on()
            other.end()
            proxy.open()
            finished = cut_off.numbers()["manxdb_compactor_worker_finished_total"]
            here.write_until("it works again", lambda: (
                cut_off.numbers()["manxdb_compactor_worker_finished_total"] > finished))
            here.goes_on()
        expect(here.local("refused"), 0)
        here.ends_well()
    finally:
        here.close()


class Liar:
    """Says of a worker's results something else, once."""

    def __init__(self, lie):
        self.lie = lie
        self.has_lied = False

    def __call__(self, data):
        """`data`, or the lie when it holds a result: that names sorted files."""
        name = data.find(b".sst")
        if self.has_lied or name < 0:
            return data
        told = self.lie(data, name)
        self.has_lied = told != data
        return told


def noise(data, name):
    """A bit of it is another one."""
    return data[:name] + bytes([data[name] ^ 4]) + data[name + 1:]


def another_file(data, name):
    """It names another file as what it has made, under the right sum: as a worker would that does
    so on purpose."""
    for start in range(name):
        sum_ = zlib.crc32(data[start:name + 4])
        for end in range(name + 4, len(data) - 3):
            if data[end:end + 4] == sum_.to_bytes(4, "little"):
                other = bytearray(data[start:end])
                digit = name - 1 - start
                other[digit] = ord("8") if other[digit] == ord("9") else ord("9")
                return data[:start] + other + zlib.crc32(other).to_bytes(4, "little") + data[end + 4:]
            sum_ = zlib.crc32(data[end:end + 1], sum_)
    return data  # not all of it is here


@check
def a_worker_that_lies_about_what_it_made_is_found_out():
    here = Fixture()
    try:
        here.start_server()
        here.create()
        for lie in (noise, another_file):
            liar = Liar(lie)
            worker = here.start_worker(Proxy(here.control_port, liar).address)
            refused = here.local("refused")
            banned = here.control.numbers()["manxdb_compactor_refused_total"]
            here.write_until(f"{lie.__name__} is found out",
                             lambda: here.local("refused") > refused)
            expect(liar.has_lied, True)
            here.compare()
            wait_for("the pool knows",
                     lambda: here.control.numbers()["manxdb_compactor_refused_total"] > banned)
            finished = worker.numbers()["manxdb_compactor_worker_finished_total"]
            here.write_until("nobody is asked", lambda: here.local("no_worker") > 0)
            expect(worker.numbers()["manxdb_compactor_worker_finished_total"], finished)
            worker.end()
        here.start_worker()
        here.goes_on()
        here.ends_well()
    finally:
        here.close()
