#!/usr/bin/env python3
"""Plants violations in a small tree: scripts/check_includes.py finds each, and nothing in the clean tree."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from check_includes import Checker  # noqa: E402

CLEAN = {
    "cmake/public_headers.txt": "# A comment.\nerror.hpp device\nesker.hpp runtime\nruntime.hpp runtime\n",
    "include/esker/error.hpp": "#include <esker/device/platform.hpp>\n",
    "include/esker/esker.hpp": "#include <esker/runtime.hpp>\n",
    "include/esker/runtime.hpp": "#include <esker/runtime/impl.hpp>\n#include <esker/error.hpp>\n",
    "runtime/impl.hpp": "#include <esker/net/network.hpp>\n#include <esker/device/platform.hpp>\n",
    "net/network.hpp": "#include <esker/aggregator/wire.hpp>\n",
    "net/mpi/transport.cpp": "#include <mpi.h>\n",
    "aggregator/wire.hpp": "#include <cstdint>  // like cudaMemcpy()\n",
    "queue/queue.hpp": "#include <esker/device/platform.hpp>\n",
    "device/error.hpp": "#include <esker/error.hpp>\n",
    "device/platform.hpp": "#if defined(__HIPCC__)\n#include <hip/hip_runtime.h>\n#endif\n",
    "apps/gups/main.cpp": '#include <esker/esker.hpp>\n#include "table.hpp"\nconst char* name = "cudaMalloc";\n',
    "apps/gups/table.hpp": "#include <vector>\n",
    "tests/queue/queue_test.cpp": "#include <esker/queue/queue.hpp>\n",
}


class CheckIncludes(unittest.TestCase):
    def violations(self, **planted):
        """Violations in the clean tree after adding lines to some of its files."""
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **{p: CLEAN.get(p, "") + t for p, t in planted.items()}}.items():
                file = Path(root) / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            return Checker(root).check()

    def assert_found(self, path, text, message):
        found = self.violations(**{path: text})
        self.assertEqual(len(found), 1, found)
        self.assertIn(message, found[0])
        self.assertTrue(found[0].startswith(f"{path}:"), found[0])

    def test_a_clean_tree_has_no_violation(self):
        self.assertEqual(self.violations(), [])

    def test_an_include_that_points_up_is_found(self):
        self.assert_found("queue/queue.hpp", "#include <esker/runtime.hpp>\n", "queue may not include include/esker/runtime.hpp")

    def test_the_aggregator_may_not_know_the_network(self):
        self.assert_found("aggregator/wire.hpp", "#include <esker/net/network.hpp>\n", "aggregator may not include net/")

    def test_a_relative_include_is_no_way_round(self):
        self.assert_found("queue/queue.hpp", '#include "../runtime/impl.hpp"\n', "queue may not include runtime/")

    def test_folders_of_one_layer_do_not_know_each_other(self):
        self.assert_found("tasks/a.hpp", "#include <esker/pipeline/b.hpp>\n", "tasks may not include pipeline/")

    def test_the_library_may_not_include_its_own_front_door(self):
        self.assert_found("net/network.hpp", "#include <esker/esker.hpp>\n", "net may not include include/esker/esker.hpp")

    def test_a_public_header_keeps_the_rules_of_its_layer(self):
        self.assert_found("include/esker/error.hpp", "#include <esker/queue/queue.hpp>\n", "device may not include queue/")
        self.assert_found("include/esker/error.hpp", "#include <esker/runtime.hpp>\n", "device may not include include/esker/")

    def test_a_public_header_that_is_not_listed_or_not_there_is_found(self):
        self.assertEqual(self.violations(**{"include/esker/more.hpp": "\n"}),
                         ["cmake/public_headers.txt: include/esker/more.hpp is not listed"])
        self.assertEqual(self.violations(**{"cmake/public_headers.txt": "none.hpp runtime\n"}),
                         ["cmake/public_headers.txt: include/esker/none.hpp is listed and does not exist"])

    def test_a_sixteenth_public_header_is_found(self):
        names = [f"more_{i}.hpp" for i in range(13)]
        added = {f"include/esker/{name}": "\n" for name in names}
        added["cmake/public_headers.txt"] = "".join(f"{name} runtime\n" for name in names)
        self.assertEqual(self.violations(**added), ["include/esker/: 16 public headers, at most 15"])

    def test_a_public_header_declares_what_is_in_detail_and_defines_nothing_there(self):
        self.assert_found("include/esker/error.hpp", "namespace detail {\nstruct A {};\n}  // namespace detail\n",
                          "only declares names of namespace detail")
        declared = "namespace detail {\nstruct A;\n/// Of a pass.\ntemplate <class Pass>\nclass B;\n}  // namespace detail\n"
        self.assertEqual(self.violations(**{"include/esker/error.hpp": declared}), [])

    def test_an_application_sees_public_headers_only(self):
        self.assert_found("apps/gups/main.cpp", "#include <esker/queue/queue.hpp>\n", "an application includes")

    def test_an_example_sees_public_headers_only_and_may_name_vendors(self):
        self.assert_found("examples/own.cpp", "#include <esker/queue/queue.hpp>\n", "an application includes")
        self.assertEqual(self.violations(**{"examples/own.cpp": "#include <mpi.h>\nvoid f() { hipFree(nullptr); }\n"}), [])

    def test_mpi_stands_behind_a_door_of_its_own(self):
        door = {"include/esker/mpi.hpp": "#include <mpi.h>\n", "cmake/public_headers.txt": "mpi.hpp runtime\n"}
        self.assertEqual(self.violations(**door), [])
        found = self.violations(**door, **{"include/esker/runtime.hpp": "#include <esker/mpi.hpp>\n"})
        self.assertEqual(found, ["include/esker/mpi.hpp:1: <mpi.h> reaches every user of the library: put it behind an #if"])
        self.assert_found("include/esker/runtime.hpp", "#include <mpi.h>\n", "does not belong here")

    def test_a_vendor_macro_outside_device_is_found(self):
        self.assert_found("runtime/impl.hpp", "#if defined(__CUDACC__)\n#endif\n", "__CUDACC__ outside device/")

    def test_a_vendor_call_outside_device_is_found(self):
        self.assert_found("apps/gups/main.cpp", "void f() { hipFree(nullptr); }\n", "hipFree outside device/")

    def test_mpi_belongs_to_its_transport(self):
        self.assert_found("runtime/impl.hpp", "#include <mpi.h>\n", "<mpi.h> does not belong here")

    def test_a_vendor_header_that_reaches_every_user_is_found(self):
        self.assert_found("device/platform.hpp", "#include <cuda_runtime.h>\n", "put it behind an #if")


if __name__ == "__main__":
    unittest.main()
