// Transfers between a host and its devices: plans of operands, sets of copies, batches whose time is known.
// Needs no Runtime and no MPI.
#pragma once

#include <esker/transfer/batch/batch.hpp>
#include <esker/transfer/batch/edf.hpp>
#include <esker/transfer/batch/link_profile.hpp>
#include <esker/transfer/batch/machine.hpp>
#include <esker/transfer/batch/models.hpp>
#include <esker/transfer/batch/schedule.hpp>
#include <esker/transfer/batch/throughput.hpp>
#include <esker/transfer/batch/topology.hpp>
#include <esker/transfer/copy/chunks.hpp>
#include <esker/transfer/copy/copies.hpp>
#include <esker/transfer/copy/copy_batch.hpp>
#include <esker/transfer/copy/copy_profile.hpp>
#include <esker/transfer/plan/affinity.hpp>
#include <esker/transfer/plan/arena.hpp>
#include <esker/transfer/plan/bounded.hpp>
#include <esker/transfer/plan/emit.hpp>
#include <esker/transfer/plan/operand_graph.hpp>
#include <esker/transfer/plan/paper_graphs.hpp>
#include <esker/transfer/plan/picture.hpp>
#include <esker/transfer/plan/plan.hpp>
#include <esker/transfer/plan/schedule.hpp>
#include <esker/transfer/plan/shared.hpp>
#include <esker/transfer/plan/solve.hpp>
#include <esker/transfer/plan/stabbing.hpp>
#include <esker/transfer/plan/transfers.hpp>
