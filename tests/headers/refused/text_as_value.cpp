// Refused: keys and values of a map are trivially copyable
#include <string>

#include <esker/containers.hpp>

esker::containers::Map<std::uint64_t, std::string> map;
