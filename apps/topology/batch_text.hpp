// Batches as they are typed: "host>0:256MiB:10ms,1>host:128MiB".
#pragma once

#include <string>

#include <esker/transfer.hpp>

/// Streams with commas between them: FROM>TO:BYTES, or FROM>TO:BYTES:KERNEL, or DEVICE:KERNEL. FROM and TO
/// are host or the number of a device, BYTES as 256MiB, KERNEL as 10ms. Text that begins with [ is JSON:
/// [{from, to, bytes, kernel}], with the same values. Blanks around it are left out. Throws
/// esker::UsageError.
esker::transfer::Batch batch_of(const std::string& given);
