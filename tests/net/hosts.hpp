// A job of several hosts, on one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <esker/net/transport.hpp>

namespace esker::testing {

/// Two PEs a host, as far as shared memory can tell.
class Hosts final : public Transport {
 public:
  explicit Hosts(std::unique_ptr<Transport> inner) : inner_{std::move(inner)} {}
  bool is_for_any_thread() const override { return inner_->is_for_any_thread(); }
  std::uint32_t pe() const override { return inner_->pe(); }
  std::uint32_t n_pes() const override { return inner_->n_pes(); }
  std::uint32_t pes_on_host() const override { return inner_->pes_on_host(); }
  std::string name() const override { return inner_->name(); }
  bool try_send(std::uint32_t to, std::span<const std::byte> bytes, void* token) override {
    if (to / 2 == pe() / 2) throw std::runtime_error("a frame to a PE of this host goes by the network");
    return inner_->try_send(to, bytes, token);
  }
  void poll_sent(std::vector<void*>& tokens) override { inner_->poll_sent(tokens); }
  std::optional<Frame> try_receive() override { return inner_->try_receive(); }
  void release(const Frame& frame) override { inner_->release(frame); }
  void begin_gather(const GatherBlock& mine) override { inner_->begin_gather(mine); }
  bool test_gather(std::span<GatherBlock> all) override { return inner_->test_gather(all); }
  void begin_exchange(std::shared_ptr<Exchange> exchange) override {
    inner_->begin_exchange(std::move(exchange));
  }
  bool test_exchange() override { return inner_->test_exchange(); }
  std::string find_dead_peer() override { return inner_->find_dead_peer(); }
  PeerProcess find_process(std::uint32_t other) const override {
    return other / 2 == pe() / 2 ? inner_->find_process(other) : PeerProcess{};
  }
  std::vector<void*> close(bool orderly) override { return inner_->close(orderly); }
  [[noreturn]] void abort(int status) override {
    inner_->abort(status);
    std::_Exit(status);
  }

 private:
  std::unique_ptr<Transport> inner_;
};

}  // namespace esker::testing
