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
