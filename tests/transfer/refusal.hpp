// What a call is refused with, for tests of errors.
#pragma once

#include <string>

#include <esker/error.hpp>

#include "../device/gtest.hpp"

namespace esker::transfer {

/// The message of the Error of this kind that `call` throws.
template <class Call>
std::string refusal(const Call& call, Error::Kind kind = Error::Kind::kTransfer) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return "nothing was thrown";
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace esker::transfer
