// What the system says of the host.
#include <esker/net/host.hpp>

#include <unistd.h>

#include <fstream>

#include <esker/device/hash.hpp>

namespace esker {
namespace {

/// Empty where the system does not say.
std::string target_of(const char* link) {
  char text[256];
  const ssize_t length = readlink(link, text, sizeof text);
  return length > 0 ? std::string(text, static_cast<std::size_t>(length)) : std::string{};
}

}  // namespace

Host Host::here() {
  Host host;
  char name[256] = {};
  if (gethostname(name, sizeof name - 1) == 0) host.name = name;
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::getline(boot, host.boot);
  host.process_namespace = target_of("/proc/self/ns/pid");
  host.ipc_namespace = target_of("/proc/self/ns/ipc");
  return host;
}

std::uint64_t Host::identity() const {
  std::uint64_t hash = kTextHashStart;
  for (const std::string* part : {&name, &boot, &process_namespace, &ipc_namespace})
    hash = hash_text({part->c_str(), part->size() + 1}, hash);  // with the 0 that ends it: parts stay apart
  return hash;
}

}  // namespace esker
