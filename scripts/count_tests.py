#!/usr/bin/env python3
"""Adds up a ctest report: prints passed, failed and skipped, then the names of those that failed.

A GoogleTest program whose cases were all skipped exits 0, so to ctest it has passed; here it was skipped. To ctest a
test that could not run, because its program was not built, was skipped; here it has failed.

usage: count_tests.py REPORT.xml
"""

import sys
import xml.etree.ElementTree as ElementTree


def main():
    passed, failed, skipped = [], [], []
    for test in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        output = test.findtext("system-out") or ""
        ran_nothing = "[  SKIPPED ]" in output and "[  PASSED  ] 0 tests" in output
        status, reason = test.get("status"), ""
        if (left_out := test.find("skipped")) is not None:
            reason = left_out.get("message", "")
        if status == "fail" or (status == "notrun" and not reason.startswith("SKIP_")):
            failed.append(test.get("name"))
        elif status != "run" or ran_nothing:
            skipped.append(test.get("name"))
        else:
            passed.append(test.get("name"))
    print(len(passed), len(failed), len(skipped), *failed)


if __name__ == "__main__":
    main()
