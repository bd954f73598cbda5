// Refused: a kernel takes a WorkItem, a GroupItem&, a Lane or a GroupLane&
#include <esker/esker.hpp>

void launch(esker::Runtime& rt) {
  rt.launch(10, [](int) {});
}
