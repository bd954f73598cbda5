"""The files of HPCC: the input that makes it run random updates, and the rates in its output."""

import math
import re

MPI, STAR = "MPIRandomAccess", "StarRandomAccess"
MOST_ERRORS = 0.01  # of the table's entries, by HPCC's rules

HPCC_INPUT = """\
HPLinpack benchmark input file
Random updates are what is wanted: the rest is as short as it can be
HPL.out      output file name, ignored
8            device out, ignored
1            # of problem sizes (N)
{order}      Ns
1            # of NBs
{block}      NBs
0            PMAP process mapping (0=Row-,1=Column-major)
1            # of process grids (P x Q)
1            Ps
{pes}        Qs
16.0         threshold
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### Line 32 is ignored #####
0            Number of additional problem sizes for PTRANS
0            values of N
0            number of additional blocking sizes for PTRANS
0            values of NB
"""


class Refused(Exception):
    """A run that cannot be compared; says why."""


def matrix_order(table: int) -> int:
    """The least HPL N for that table: it is the largest power of two of words that the N x N matrix holds."""
    return math.isqrt(table - 1) + 1


def block_size(table: int, pes: int) -> int:
    """HPL's NB. HPCC counts the memory of the process that has most: fewer blocks than PEs would enlarge the table."""
    return min(128, math.ceil(matrix_order(table) / pes))


def hpcc_input(table: int, pes: int) -> str:
    """The text of hpccinf.txt."""
    return HPCC_INPUT.format(order=matrix_order(table), block=block_size(table, pes), pes=pes)


def section(text: str, name: str) -> str:
    match = re.search(rf"^Begin of {name} section\.$(.*?)^End of {name} section\.$", text, re.M | re.S)
    if match is None:
        raise Refused(f"hpcc: its output has no complete section '{name}': it ended early")
    return match[1]


def hpcc_summary(text: str) -> dict[str, str]:
    """The name=value lines at the end of hpccoutf.txt."""
    return dict(re.findall(r"^(\w+)=(.*)$", section(text, "Summary"), re.M))


def hpcc_rates(text: str, table: int, pes: int) -> dict[str, float]:
    """Both figures of hpccoutf.txt in 10^9 updates a second, all processes together. Raises Refused."""
    values = hpcc_summary(text)

    def number(name: str) -> float:
        try:
            return float(values[name])
        except (KeyError, ValueError):
            raise Refused(f"hpcc: its summary has {name}={values.get(name, 'nothing')}, not a number") from None

    for name, expected in (("Success", 1), ("CommWorldProcs", pes), ("MPIRandomAccess_N", table),
                           ("RandomAccess_N", table // pes)):
        if number(name) != expected:
            raise Refused(f"hpcc: {name} is {values[name]} where {expected} was asked for")
    if not number("MPIRandomAccess_ErrorsFraction") < MOST_ERRORS:
        raise Refused(f"hpcc: {values['MPIRandomAccess_ErrorsFraction']} of MPIRandomAccess's table is wrong, "
                      f"and less than {MOST_ERRORS} may be")
    if not re.search(r"^Node\(s\) with error 0$", section(text, STAR), re.M):
        raise Refused("hpcc: StarRandomAccess has nodes with errors")
    rates = {MPI: number("MPIRandomAccess_GUPs"), STAR: number("StarRandomAccess_GUPs") * pes}
    for name, rate in rates.items():
        if not 0 < rate < math.inf:
            raise Refused(f"hpcc: the rate of {name} is {rate}")
    return rates
