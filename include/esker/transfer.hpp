// Transfers between a host and its devices: plans of operands, sets of copies, batches whose time is known.
// Needs no Runtime and no MPI.
#pragma once

#include <esker/transfer/copy/copies.hpp>
#include <esker/transfer/copy/copy_batch.hpp>
#include <esker/transfer/copy/copy_profile.hpp>
