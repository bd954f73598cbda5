// Refused: reduce() takes one of esker::Sum, Min and Max
#include <functional>

#include <esker/esker.hpp>

void reduce(esker::Runtime& rt) {
  rt.launch(10, [](esker::GroupItem& item) { (void)item.group().reduce(1u, std::plus<>{}); });
}
