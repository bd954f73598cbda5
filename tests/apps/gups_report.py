"""What only the report of esker-gups can say, in the runtime's own style."""

from job import require


def option(arguments, name, default):
    return arguments[arguments.index(name) + 1] if name in arguments else default


def number(text):
    base, _, exponent = text.partition("^")
    return int(base) ** int(exponent or 1)


def hpcc_remote(table, pes):
    """Updates of HPCC's stream, from its start, whose entry is another PE's. The start is far from random."""
    remote, a = 0, 1
    for k in range(4 * table):
        a = (a << 1) ^ 7 if a >> 63 else a << 1
        a &= 2**64 - 1
        remote += k // (4 * table // pes) != (a & (table - 1)) // (table // pes)
    return remote


def check(report, arguments):
    pes = report["pes"]
    hpcc = "--hpcc" in arguments
    nodes = int(option(arguments, "--project", "0"))
    require(report["op"] == ("xor" if hpcc else option(arguments, "--op", "inc")), f"op is {report['op']}")
    require(report["election"] == option(arguments, "--election", "auto"), f"election is {report['election']}")

    # Each PE sends as many updates, and no fewer than asked for in all; of a projection one PE's are sent.
    work = report["work"]
    if "--size" not in arguments:
        table = number(option(arguments, "--table", "2^22"))
        asked = 4 * table if hpcc else number(option(arguments, "--updates", "2^24"))
        parts = nodes or pes
        require(work == -(-asked // parts) * (1 if nodes else parts), f"{work} updates of {asked}")
        require(report["table_words"] == -(-table // parts) * parts, f"{report['table_words']} words")

    local, remote = report["messages_local"], report["messages_remote"]
    puts_at_home = option(arguments, "--op", "inc") == "put" and option(arguments, "--election", "auto") == "auto"
    if puts_at_home:  # a put to the PE itself is a store and no message
        require(local == 0, f"{local} of the puts to this PE are messages")
        require(abs(remote / work - (pes - 1) / pes) < 0.02, f"{remote} of {work} puts are remote")
        require(abs(report["remote_fraction"] - remote / work) < 1e-9, "remote_fraction is not of all puts")
    else:
        local, remote = local + report["combined_local"], remote + report["combined_remote"]
        require(local + remote == work, f"{local} + {remote} calls for {work} updates")
        require(abs(report["remote_fraction"] - remote / work) < 1e-9, "remote_fraction is another one")
        expected = hpcc_remote(table, pes) / work if hpcc else 1 - 1 / (nodes or pes)
        require(abs(remote / work - expected) < (1e-9 if hpcc else 0.02),
                f"{remote / work:.3f} of the updates are remote, not {expected:.3f}")
    in_buffers = report["messages_remote"] - report["messages_direct"]
    require(report["messages_direct"] == 0 or report["backend"] != "cpu", "lanes have reached another PE's heap")
    if in_buffers > 0:
        require(report["buffers_sent"] > 0, "no buffer was sent")
        limit = report["config"]["node_buffer_bytes"]
        require(64 < report["average_buffer_bytes"] <= limit, f"buffers of {report['average_buffer_bytes']} bytes")
    else:
        require(report["buffers_sent"] == 0, "buffers without messages")
    if hpcc:
        require(report["hpcc_rules"]["look_ahead_held"] is True, "the look-ahead is not that of the rules")
        require(report["wrong_entries"] * 100 <= report["table_words"], "more than 1 % of the entries are wrong")
    if nodes:
        require(report["projected_pes"] == nodes, "the projection is of another size")
