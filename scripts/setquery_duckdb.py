#!/usr/bin/env python3
"""Compares the answers of esker-pipe-setquery with DuckDB's, on the same table: the program writes it to a file.

Needs the duckdb package (python3 -m pip install duckdb); without it the status is 77. The queries are written down here
once more, as SQL. --condition of the program is tried from 1 to 10.

usage: setquery_duckdb.py [--rows N] [--seed N] PROGRAM [OPTION OF THE PROGRAM...]
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

CONDITIONS = ["K2 = 1", "K100 > 80", "K10K BETWEEN 2000 AND 3000", "K5 = 3", "(K25 = 11 OR K25 = 19)", "K4 = 3",
              "K100 < 41", "K1K BETWEEN 850 AND 950", "K10 = 7", "K25 IN (3, 4)"]


def sql_of(query, column, condition, rows):
    """The query over table bench; `condition` is the first of Q4's, from 1."""
    def part(first, last):
        return f"KSEQ BETWEEN {rows * first // 100} AND {rows * last // 100}"

    several = " OR ".join(part(*ends) for ends in ((40, 41), (42, 43), (44, 45), (46, 47), (48, 50)))
    n = {"Q4A": 3, "Q4B": 5}.get(query, 0)
    of_q4 = " AND ".join(CONDITIONS[(condition - 1 + i) % 10] for i in range(n))
    count, total, both = "count(*)", "count(*), sum(K1K)", "count(*), sum(KSEQ), sum(K500K)"
    what, where = {
        "Q1": (count, f"{column} = 2"),
        "Q2A": (count, f"K2 = 2 AND {column} = 3"),
        "Q2B": (count, f"K2 = 2 AND NOT {column} = 3"),
        "Q3A": (total, f"{part(40, 50)} AND {column} = 3"),
        "Q3B": (total, f"({several}) AND {column} = 3"),
        "Q4A": (both, of_q4),
        "Q4B": (both, of_q4),
    }[query]
    return f"SELECT {what} FROM bench WHERE {where}"


def answer_of(run):
    """What the program says of a run, in the order of sql_of()'s columns."""
    names = ("count", "sum", "sum_kseq", "sum_k500k")
    return tuple(run[name] for name in names if name in run)


def run_program(options, *more):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [options.program, "--rows", str(options.rows), "--seed", str(options.seed), "--repeats", "1",
                   "--json", str(report), *more, *options.options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return json.loads(report.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("program")
    parser.add_argument("options", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    try:
        import duckdb
    except ImportError:
        print("setquery_duckdb: there is no package duckdb")
        return 77

    compared = wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        table = str(Path(folder) / "bench.csv")
        reports = [run_program(options, "--dump", table)]
        reports += [run_program(options, "--condition", str(first), "--query", query)
                    for first in range(2, 11) for query in ("Q4A", "Q4B")]
        database = duckdb.connect()
        database.execute(f"CREATE TABLE bench AS SELECT * FROM read_csv_auto('{table}', header = true)")
        (rows,) = database.execute("SELECT count(*) FROM bench").fetchone()
        if rows != options.rows:
            print(f"the table has {rows} rows, not {options.rows}")
            return 1
        for report in reports:
            for query in report["queries"]:
                for run in query["runs"]:
                    sql = sql_of(query["query"], run["column"], report["condition"], rows)
                    expected = tuple(value or 0 for value in database.execute(sql).fetchone())
                    compared += 1
                    if answer_of(run) != expected:
                        wrong += 1
                        print(f"{query['query']}: {answer_of(run)}, and DuckDB has {expected}: {sql}")
        for query in reports[0]["queries"]:
            print(f"{query['query']:4} {len(query['runs']):3} runs, {100 * query['skipped']:5.1f} % of the bytes skipped")
    print(f"setquery_duckdb: {compared} answers compared with DuckDB {duckdb.__version__}'s, {wrong} differ")
    return 1 if wrong or not compared else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(f"setquery_duckdb: {error}")
