// What a program costs to compile that includes some of the standard library: the yardstick of compile_time_test.py.
#include <functional>
#include <map>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  std::map<std::string, std::vector<int>> positions;
  for (int i = 0; i < argc; ++i) positions[argv[i]].push_back(i);
  const std::function<bool(int)> is_odd = [&](int count) { return (count + argc) % 2 != 0; };
  int sum = 0;
  for (const auto& [name, at] : positions) sum += is_odd(static_cast<int>(at.size())) ? at.front() : 0;
  return sum;
}
