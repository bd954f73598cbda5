// Control frames: a header, and perhaps a text.
#include <esker/net/control.hpp>

#include <algorithm>
#include <cstring>

namespace esker {

void Control::send(wire::Kind kind, std::uint32_t pe, std::uint64_t value, std::string_view text) {
  text = text.substr(0, frame_bytes_ - sizeof(wire::FrameHeader));
  auto* const buffer =
      new Buffer(static_cast<std::uint32_t>(sizeof(wire::FrameHeader) + text.size()), nullptr);
  wire::FrameHeader header = wire::make_header(kind, pe_, pe);
  header.value = value;
  header.text_bytes = static_cast<std::uint32_t>(text.size());
  header.bytes += header.text_bytes;
  std::memcpy(buffer->bytes.get(), &header, sizeof header);
  std::copy_n(reinterpret_cast<const std::byte*>(text.data()), text.size(),
              buffer->bytes.get() + sizeof header);
  buffer->used = header.bytes;
  shipping_.send_first(pe, buffer);
}

void Control::receive(const Arrival& arrival) const {
  const wire::FrameHeader& header = arrival.header;
  if (index(header.kind) >= listeners_.size() || !listeners_[index(header.kind)]) return;
  const auto* const text = reinterpret_cast<const char*>(arrival.bytes + sizeof header);
  listeners_[index(header.kind)]({header.source, header.value, {text, header.text_bytes}});
}

}  // namespace esker
