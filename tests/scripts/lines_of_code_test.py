#!/usr/bin/env python3
"""What scripts/lines_of_code.py counts, and what it refuses to count."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import lines_of_code  # noqa: E402
from lines_of_code import Missing, Source  # noqa: E402

SOURCE = """\
// A file.
#include <x>

int shared() { return 1; }  // counted without a region only
// lines: gravel host
/* A comment
   over lines */ int host;

const char* text = "// no comment";
// lines: end
// lines: gravel device
  // only a comment
void kernel();
// lines: end
// lines: gravel host
int more;
// lines: end
"""


class Lines(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.write(SOURCE)

    def write(self, text):
        (self.root / "a.hpp").write_text(text)

    def assert_missing(self, message, region="gravel host", path="a.hpp"):
        with self.assertRaisesRegex(Missing, message):
            lines_of_code.count(self.root, Source(path, region))

    def test_regions_of_one_name_count_together(self):
        self.assertEqual(lines_of_code.count(self.root, Source("a.hpp", "gravel host")), 3)
        self.assertEqual(lines_of_code.count(self.root, Source("a.hpp", "gravel device")), 1)

    def test_a_file_counts_without_comments_and_empty_lines(self):
        self.assertEqual(lines_of_code.count(self.root, Source("a.hpp")), 6)

    def test_what_is_not_there_has_no_figure(self):
        self.assert_missing("none.hpp: No such file", path="none.hpp")
        self.assert_missing("a.hpp: it has no region '// lines: coalesced'", region="coalesced")
        self.write("// lines: gravel host\n// nothing\n// lines: end\n")
        self.assert_missing("'gravel host' has no code")

    def test_comments_that_do_not_match_are_refused(self):
        self.write("int a;\n// lines: end\n")
        self.assert_missing("a.hpp:2: 'lines: end' without")
        self.write("// lines: a\nint a;\n// lines: b\n// lines: end\n")
        self.assert_missing("a.hpp:3: 'lines: b' inside 'a', which began in line 1")
        self.write("// lines: a\nint a;\n")
        self.assert_missing("a.hpp:1: 'a' has no 'lines: end'")

    def run_script(self, table, *options):
        out, err = io.StringIO(), io.StringIO()
        with (mock.patch.object(lines_of_code, "TABLE", table), contextlib.redirect_stdout(out),
              contextlib.redirect_stderr(err)):
            return lines_of_code.main([str(self.root), *options]), out.getvalue(), err.getvalue()

    def test_the_table_stands_beside_the_thesis(self):
        table = {"gravel": {"host": [Source("a.hpp", "gravel host")], "device": [Source("a.hpp", "gravel device")]}}
        status, out, err = self.run_script(table)
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"gravel +3 +1 +4 +174, 19, 193\n")

    def test_a_style_that_is_not_there_is_an_error_beside_those_that_are(self):
        table = {"gravel": {"host": [Source("a.hpp", "gravel host")], "device": [Source("a.hpp", "gravel device")]},
                 "coalesced": {"host": [Source("a.hpp", "gravel host")], "device": [Source("b.hpp")]}}
        status, out, err = self.run_script(table)
        self.assertEqual(status, 1)
        self.assertEqual(err, "lines_of_code: coalesced: b.hpp: No such file or directory\n")
        self.assertRegex(out, r"gravel +3 +1 +4 ")
        self.assertRegex(out, r"coalesced +- +- +- ")
        self.assertEqual(json.loads(self.run_script(table, "--json")[1]),
                         {"gravel": {"host": 3, "device": 1}, "coalesced": None})

    def test_every_style_of_the_table_has_the_thesis_beside_it(self):
        self.assertEqual(set(lines_of_code.TABLE), set(lines_of_code.THESIS))


if __name__ == "__main__":
    unittest.main()
