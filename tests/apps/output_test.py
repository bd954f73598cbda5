#!/usr/bin/env python3
"""What applications write with --output is what a serial program finds, whatever the number of PEs.

output_test.py --mpiexec FILE BIN APP GRAPH-OR-POINTS
"""

import argparse
import heapq
import math
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "faults"))
from job import Failed, Job, require  # noqa: E402  (where it stands is known only here)

SECONDS = 180


def run(options, folder, pes, *arguments):
    """Lines of the file that a job has written."""
    file = Path(folder) / f"of-{pes}"
    command = [str(Path(options.bin) / f"esker-{options.app}"), "--startup", "quiet", "--output", str(file), *arguments]
    with Job(options.mpiexec, pes, command, folder=folder) as job:
        status, _ = job.wait(SECONDS)
        print(job.output(), end="", flush=True)
    require(status == 0, f"the exit status is {status}")
    return file.read_text().splitlines()


def read_graph(path):
    """The edges of a symmetric matrix, in both directions, and the number of vertices."""
    lines = [line.split() for line in Path(path).read_text().splitlines() if not line.startswith("%")]
    edges = [(int(i) - 1, int(j) - 1) for i, j, *_ in lines[1:]]
    return int(lines[0][0]), edges + [(j, i) for i, j in edges if i != j]


def values_of(lines, kind):
    """One a vertex, in order."""
    pairs = [line.split(" ") for line in lines]
    require([int(vertex) for vertex, _ in pairs] == list(range(len(pairs))), "the vertices are not in order")
    return [kind(value) for _, value in pairs]


def ranks(vertices, edges, iterations):
    out = [[] for _ in range(vertices)]
    for i, j in edges:
        out[i].append(j)
    rank = [1 / vertices] * vertices
    for _ in range(iterations):
        lost = sum(r for r, to in zip(rank, out) if not to)
        new = [0.15 / vertices + 0.85 * lost / vertices] * vertices
        for i, to in enumerate(out):
            for j in to:
                new[j] += 0.85 * rank[i] / len(to)
        rank = new
    return rank


def distances(vertices, edges, source):
    neighbours = [[] for _ in range(vertices)]
    for i, j in edges:
        neighbours[i].append(j)
    far = [math.inf] * vertices
    far[source] = 0
    open_vertices = [(0, source)]
    while open_vertices:
        distance, i = heapq.heappop(open_vertices)
        for j in neighbours[i]:
            if distance + 1 < far[j]:
                far[j] = distance + 1
                heapq.heappush(open_vertices, (far[j], j))
    return far


def centres(points, clusters, iterations):
    centre = points[:clusters]
    for _ in range(iterations):
        groups = [[] for _ in centre]
        for point in points:
            groups[min(range(clusters), key=lambda c: math.dist(point, centre[c]))].append(point)
        centre = [[sum(column) / len(group) for column in zip(*group)] if group else old
                  for group, old in zip(groups, centre)]
    return centre


def near(found, expected, error=1e-9):
    return len(found) == len(expected) and all(
        a == b or abs(a - b) <= error * max(1, abs(b)) for a, b in zip(found, expected))


def check(options, folder):
    several = [1, 2, 3]
    if options.app == "kmeans":
        points = [[float(x) for x in line.split(",")[:4]] for line in Path(options.input).read_text().splitlines()
                  if line and line[0].isdigit()]
        expected = [x for centre in centres(points, 40, 5) for x in centre]
        for pes in [1, 2, 4]:  # four have fewer than 40 points each
            lines = run(options, folder, pes, "--input", options.input, "--clusters", "40", "--iterations", "5")
            require(len(lines) == 40, f"{len(lines)} lines for 40 centres")
            require(near([float(x) for line in lines for x in line.split(",")], expected), "centres differ")
        return
    vertices, edges = read_graph(options.input)
    arguments = ["--graph", options.input]
    for pes in several:
        if options.app == "pagerank":
            more = ["--iterations", "9", "--partition", "hash" if pes > 1 else "block"]
            found = values_of(run(options, folder, pes, *arguments, *more), float)
            require(near(found, ranks(vertices, edges, 9), 1e-7), "ranks differ")  # they are floats
        elif options.app == "sssp":
            more = ["--source", "5", "--partition", "hash" if pes > 1 else "block"]
            found = values_of(run(options, folder, pes, *arguments, *more), float)
            require(found == distances(vertices, edges, 5), "distances differ")
        elif options.app == "bfs":
            more = ["--source", "5", "--partition", "hash" if pes > 1 else "block"]
            found = values_of(run(options, folder, pes, *arguments, *more), int)
            depths = distances(vertices, edges, 5)
            require(found[5] == 5, "the source is not its own parent")
            around = set(edges)
            require(all((found[v], v) in around and depths[found[v]] + 1 == depths[v]
                        for v in range(vertices) if v != 5), "parents are not nearer by one")
        elif options.app == "in-degree":
            found = values_of(run(options, folder, pes, *arguments), int)
            require(found == [sum(1 for _, j in edges if j == v) for v in range(vertices)], "in-degrees differ")
        else:
            found = values_of(run(options, folder, pes, *arguments), int)
            require(len(found) == vertices and all(found[i] != found[j] for i, j in edges), "neighbours' colours")
            # Greedy: a vertex has the least colour that its neighbours leave, in some order.
            around = [{found[j] for i, j in edges if i == v} for v in range(vertices)]
            require(all(set(range(found[v])) <= around[v] for v in range(vertices)), "a lower colour was free")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpiexec", required=True)
    parser.add_argument("bin")
    parser.add_argument("app")
    parser.add_argument("input")
    options = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="esker-output-") as folder:
            check(options, folder)
    except Failed as failed:
        print(f"output_test {options.app}: {failed}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
