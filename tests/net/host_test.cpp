// Which PEs share a host.
#include <esker/net/host.hpp>

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

namespace esker::testing {
namespace {

TEST(Host, IsTheSameForProcessesThatReachEachOther) {
  const std::uint64_t mine = Host::here().identity();
  const pid_t child = fork();
  if (child == 0) _exit(Host::here().identity() == mine ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// As containers of one machine do: the system's own words, and not those of this test, tell them apart.
TEST(Host, DiffersWhereANamespaceDoes) {
  const Host here = Host::here();
  ASSERT_NE(here.process_namespace, "");
  ASSERT_NE(here.ipc_namespace, "");
  const std::uint64_t mine = here.identity();
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWIPC) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWIPC) != 0) _exit(2);
    _exit(Host::here().identity() != mine ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this system lets nobody make a namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(Host, EachPartOfItCounts) {
  const std::set<std::uint64_t> all{Host{"a", "b", "c", "d"}.identity(), Host{"x", "b", "c", "d"}.identity(),
                                    Host{"a", "x", "c", "d"}.identity(), Host{"a", "b", "x", "d"}.identity(),
                                    Host{"a", "b", "c", "x"}.identity(), Host{"ab", "", "c", "d"}.identity(),
                                    Host{"", "ab", "c", "d"}.identity()};
  EXPECT_EQ(all.size(), 7u);
}

}  // namespace
}  // namespace esker::testing
