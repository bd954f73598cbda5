#!/usr/bin/env python3
"""What scripts/compare_gap.py makes of a road network. No program is run."""

import lzma
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
import compare_gap  # noqa: E402

NETWORK = "c a comment\np tw 3 2\n1 2\n2 3\n"
OF_ARCS = "c a comment\np sp 3 2\na 1 2 803\na 2 3 158\n"


class CompareGap(unittest.TestCase):
    def test_weights_are_those_of_gap(self):
        weights = [compare_gap.weight_of(number) for number in range(100_000)]
        self.assertEqual((min(weights), max(weights)), (1, 255))
        self.assertAlmostEqual(sum(weights) / len(weights), 128, delta=1)

    def test_a_road_network_becomes_an_edge_list(self):
        expected = [[number, number + 1, compare_gap.weight_of(number)] for number in range(2)]
        with tempfile.TemporaryDirectory() as folder:
            plain, packed, target = (Path(folder) / name for name in ("a.gr", "b.gr.xz", "out.wel"))
            for text in (NETWORK, OF_ARCS):
                plain.write_text(text, encoding="ascii")
                packed.write_bytes(lzma.compress(text.encode()))
                for network in (plain, packed):
                    compare_gap.write_weighted_list(network, target)
                    lines = target.read_text(encoding="ascii").splitlines()
                    self.assertEqual([[int(field) for field in line.split()] for line in lines], expected)


if __name__ == "__main__":
    unittest.main()
