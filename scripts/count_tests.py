#!/usr/bin/env python3
"""Adds up a ctest report: prints passed, failed and skipped, then the names of those that failed. With --failures, the
end of what each of those printed in their place.

A GoogleTest program whose cases were all skipped exits 0, so to ctest it has passed; here it was skipped. To ctest a
test that could not run, because its program was not built, was skipped; here it has failed.

usage: count_tests.py [--failures] REPORT.xml
"""

import argparse
import sys
import xml.etree.ElementTree as ElementTree


LINES_OF_A_FAILURE = 40


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--failures", action="store_true")
    parser.add_argument("report")
    arguments = parser.parse_args()
    try:
        tests = ElementTree.parse(arguments.report).getroot().iter("testcase")
    except (OSError, ElementTree.ParseError) as error:
        sys.exit(f"count_tests: {arguments.report}: {error}")
    passed, failed, skipped = [], [], []
    for test in tests:
        output = test.findtext("system-out") or ""
        ran_nothing = "[  SKIPPED ]" in output and "[  PASSED  ] 0 tests" in output
        status, reason = test.get("status"), ""
        if (left_out := test.find("skipped")) is not None:
            reason = left_out.get("message", "")
        if status == "fail" or (status == "notrun" and not reason.startswith("SKIP_")):
            failed.append((test.get("name"), output))
        elif status != "run" or ran_nothing:
            skipped.append(test.get("name"))
        else:
            passed.append(test.get("name"))
    if arguments.failures:
        for name, output in failed:
            print(f"--- {name}")
            print(*output.rstrip().splitlines()[-LINES_OF_A_FAILURE:], sep="\n")
    else:
        print(len(passed), len(failed), len(skipped), *(name for name, _ in failed))


if __name__ == "__main__":
    main()
