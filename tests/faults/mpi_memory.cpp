// What MPI itself comes to hold: the same traffic as memory.cpp's, without Esker.
#include <fmt/format.h>
#include <mpi.h>

#include <cstddef>
#include <cstdio>
#include <vector>

#include "resident.hpp"

int main(int argc, char** argv) {
  constexpr int kBytes = 64 * 1024;
  constexpr int kRounds = 8;
  MPI_Init(&argc, &argv);
  int pe = 0;
  int n_pes = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &pe);
  MPI_Comm_size(MPI_COMM_WORLD, &n_pes);
  const std::string before = faults::resident_in_words();
  std::vector<std::byte> out(kBytes);
  std::vector<std::byte> in(kBytes);
  for (int round = 0; round < kRounds; ++round) {
    for (int step = 1; step < n_pes; ++step) {
      MPI_Request send = MPI_REQUEST_NULL;
      MPI_Issend(out.data(), kBytes, MPI_BYTE, (pe + step) % n_pes, 1, MPI_COMM_WORLD, &send);
      MPI_Recv(in.data(), kBytes, MPI_BYTE, (pe + n_pes - step) % n_pes, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
      MPI_Wait(&send, MPI_STATUS_IGNORE);
    }
  }
  std::fputs(fmt::format("PE {} of MPI alone: at the start {}; in the end {}\n", pe, before,
                         faults::resident_in_words())
                 .c_str(),
             stdout);
  std::fflush(stdout);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
}
