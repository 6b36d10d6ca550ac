"""TPC-C by a client that ends at its first error, as programs written for MySQL do (`manxdb bench
tpcc --mysql`): at the server's default level and at SERIALIZABLE no worker ends, and the conditions
of consistency hold. The checker must notice books that are wrong."""

import json
import os
import subprocess
import tempfile
from pathlib import Path

import pymysql

from harness.checks import HOST, PASSWORD, PORT, USER, check, expect, main

BINARY = os.environ.get("MANXDB_TEST_BINARY") or str(
    Path(os.environ.get("CARGO_TARGET_DIR") or "../target").resolve() / "debug" / "manxdb")
NAME = "tpcc_suite"


def bench(*arguments, seconds=4):
    """(exit code, report) of a run on a small warehouse."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [BINARY, "bench", "tpcc", "--mysql", f"{HOST}:{PORT}", "--user", USER, "--database", NAME,
                   "--tpcc-scale", "tiny", "--threads", "8", "--seconds", str(seconds), "--warm-up", "0",
                   "--json", report.name, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              env={**os.environ, "MANXDB_PASSWORD": PASSWORD})
        text = Path(report.name).read_text()
        if not text:
            raise AssertionError(f"exit {done.returncode}: {done.stdout}{done.stderr}")
        return done.returncode, json.loads(text)


def holds(code, report):
    """No worker ended, all five transactions were made, the books are right."""
    expect(report["errors"], [])
    expect(report["workers_ended"], 0)
    expect(report["does_not_hold"], [])
    expect(sorted(report["transactions"]), ["Delivery", "NewOrder", "OrderStatus", "Payment", "StockLevel"])
    expect(code, 0)


@check
def no_worker_ends_at_the_default_level():
    holds(*bench())


@check
def with_retries_the_books_are_right_at_serializable():
    code, report = bench("--isolation", "serializable", "--on-error", "retry")
    expect(report["does_not_hold"], [])
    expect(report["workers_ended"], 0)
    expect(code, 0)


@check
def books_that_are_wrong_are_noticed():
    connection = pymysql.connect(host=HOST, port=PORT, user=USER, password=PASSWORD, database=NAME,
                                 autocommit=True)
    for damage, mend, condition in (
            ("UPDATE warehouse SET w_ytd = w_ytd + 1", "UPDATE warehouse SET w_ytd = w_ytd - 1", "1:"),
            ("UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_id = 2",
             "UPDATE district SET d_next_o_id = d_next_o_id - 1 WHERE d_id = 2", "2:"),
            ("UPDATE orders SET o_ol_cnt = o_ol_cnt + 1 WHERE o_d_id = 3 AND o_id = 1",
             "UPDATE orders SET o_ol_cnt = o_ol_cnt - 1 WHERE o_d_id = 3 AND o_id = 1", "4:"),
            ("UPDATE customer SET c_balance = c_balance + 1 WHERE c_d_id = 1 AND c_id = 1",
             "UPDATE customer SET c_balance = c_balance - 1 WHERE c_d_id = 1 AND c_id = 1", "12:")):
        with connection.cursor() as cursor:
            cursor.execute(damage)
        code, report = bench("--no-fill", seconds=0)
        with connection.cursor() as cursor:
            cursor.execute(mend)
        expect(code, 1)
        assert any(f"condition {condition}" in what for what in report["does_not_hold"]), report
    code, report = bench("--no-fill", seconds=0)
    expect((code, report["does_not_hold"]), (0, []))


if __name__ == "__main__":
    main()
