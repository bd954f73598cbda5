// What PEs tell each other while they connect, by the gathers of a transport on which nothing is under way.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <esker/net/transport.hpp>

namespace esker {

/// Whether a PE goes by a transport: not; where all of the job can; or it is an error if one cannot.
enum class Wish : std::uint8_t { kOff, kIfAllCan, kMust };

/// Collective. What each PE gives, by PE. Waits for all of them; `meanwhile`, if there is one, is called
/// again and again, and ends the wait by what it throws. Error{kNetwork}: a PE has died.
std::vector<GatherBlock> gather_now(Transport& transport, const std::array<std::uint64_t, 6>& values,
                                    const std::function<void()>& meanwhile = {});

/// In a handler of an exception, which goes on: leaves the peers of a transport that is connecting.
[[noreturn]] void close_and_rethrow(Transport& transport);

/// Collective. Whether some PE must.
bool must_some(Transport& transport, Wish mine);

/// Collective. The bytes that each PE gives, as many as it likes, by PE. Waits as gather_now()
/// does.
std::vector<std::vector<std::byte>> gather_bytes(Transport& transport, std::span<const std::byte> mine);

/// Collective. "PE 2: why" of the first PE that has a reason, "" if none has one. Waits as gather_bytes()
/// does.
std::string first_reason(Transport& transport, const std::string& why);

}  // namespace esker
