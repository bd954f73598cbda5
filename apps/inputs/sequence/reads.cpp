// Where a part begins, and the two grammars.
#include "reads.hpp"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "bases.hpp"

namespace inputs {
namespace {

/// Records of a compressed file that go to the same part together.
constexpr std::uint64_t kBlockRecords = 256;

/// IUPAC's letters of DNA: a base, or one of several.
bool is_base(char c) {
  constexpr std::string_view kOneOfSeveral = "NRYSWKMBDHVnryswkmbdhv";
  return base_code(c) != kNoBase || kOneOfSeveral.find(c) != std::string_view::npos;
}

std::string shown(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= ' ' && byte <= '~' ? fmt::format("'{}'", c) : fmt::format("byte 0x{:02x}", byte);
}

std::uint64_t fasta_start(LineReader& lines) {
  while (lines.peek().value_or('>') != '>') lines.next();
  return lines.offset();
}

/// A line is a FASTQ header if it begins with '@', the second line behind it with '+', and the two lines
/// around that one are equally long. A quality line may begin with '@' too, but the second line behind it is
/// then a sequence, which no '+' begins.
std::uint64_t fastq_start(LineReader& lines) {
  struct Line {
    std::uint64_t offset;
    char first;
    std::size_t length;
  };
  std::array<Line, 4> last{};
  for (std::uint64_t n = 0;; ++n) {
    if (n >= 4) {
      const auto back = [&](std::uint64_t i) { return last[(n - i) % 4]; };
      if (back(4).first == '@' && back(2).first == '+' && back(3).length == back(1).length) {
        return back(4).offset;
      }
    }
    const auto line = lines.next();
    if (!line) return lines.offset();
    last[n % 4] = {lines.last_offset(), line->empty() ? '\n' : line->front(), line->size()};
  }
}

/// The first record that begins at `offset` or behind it, or the file's size: a function of the file alone,
/// so that neighbours agree. In a malformed file it may be wrong; then the part before it meets the error.
std::uint64_t record_start(const File& file, std::uint64_t offset, bool is_fastq) {
  if (offset == 0) return 0;
  if (offset == file.size()) return offset;
  LineReader lines(file, file.line_start(offset));
  try {
    return is_fastq ? fastq_start(lines) : fasta_start(lines);
  } catch (const Malformed& malformed) {
    bad_line(file.path(), file.line_of(lines.last_offset()), malformed.what());
  }
}

}  // namespace

ReadStream::ReadStream(const std::string& file, Part part)
    : file_{file},
      compressed_{is_gzip(file_)},
      lines_{compressed_ ? gzip_bytes(file_) : plain_bytes(file_)},
      end_{std::numeric_limits<std::uint64_t>::max()} {
  const Range range = range_of(file_.size(), part);
  const auto first = lines_.peek();
  if (!first) bad_file(file_.path(), "holds nothing but an empty gzip stream");
  if (*first != '>' && *first != '@') {
    bad_line(file_.path(), 1,
             "neither FASTA nor FASTQ: it begins with " + shown(*first) + ", not '>' or '@'");
  }
  is_fastq_ = *first == '@';
  if (compressed_) {
    part_ = part;
  } else {
    lines_ = LineReader(file_, record_start(file_, range.begin, is_fastq_));
    end_ = record_start(file_, range.end, is_fastq_);
  }
}

bool ReadStream::next(Read& read) {
  while (parse()) {
    if ((parsed_++ / kBlockRecords) % part_.count == part_.index) {
      read = {name_, bases_, qualities_};
      return true;
    }
  }
  return false;
}

/// One record; false behind the part's last.
bool ReadStream::parse() {
  // Behind the end, not at it: what looked like a record's first line was a quality line, so the sequence
  // that follows begins with '+', and the next record is the error.
  if (lines_.offset() == end_ || !lines_.peek()) return false;
  try {
    return is_fastq_ ? parse_fastq() : parse_fasta();
  } catch (const Malformed& malformed) {
    fail(malformed.what());
  }
}

bool ReadStream::parse_fasta() {
  name_ = lines_.next()->substr(1);
  bases_.clear();
  while (lines_.peek().value_or('>') != '>') take_bases(*lines_.next());
  if (bases_.empty()) fail("the record has no bases: the file is cut off here or a sequence is missing");
  return true;
}

bool ReadStream::parse_fastq() {
  const std::string_view header = *lines_.next();
  if (header.empty()) {
    while (const auto line = lines_.next()) {
      if (!line->empty()) fail("empty lines stand before this one, and they may only end the file");
    }
    return false;
  }
  if (header.front() != '@') fail("a record begins with '@', not with " + shown(header.front()));
  name_ = header.substr(1);

  bases_.clear();
  take_bases(line_of_record("bases"));

  const std::string_view plus = line_of_record("'+'");
  if (!plus.starts_with('+')) fail("the third line of a record begins with '+', and this one does not");
  if (plus.size() > 1 && plus.substr(1) != name_) fail("the name behind '+' is not the record's");

  qualities_ = line_of_record("qualities");
  for (const char c : qualities_) {
    if (c < '!' || c > '~') fail(shown(c) + " is not a quality; they go from '!' to '~'");
  }
  if (qualities_.size() != bases_.size()) {
    fail(fmt::format("{} qualities for {} bases{}", qualities_.size(), bases_.size(),
                     lines_.peek() ? "" : ": the file may be cut off here"));
  }
  return true;
}

void ReadStream::take_bases(std::string_view line) {
  for (const char c : line) {
    if (!is_base(c))
      fail(shown(c) +
           " is not a base; A, C, G, T are, and N R Y S W K M B D H V for one of several, in either case");
  }
  bases_ += line;
}

/// The next line of the record that is being read.
std::string_view ReadStream::line_of_record(const char* what) {
  const auto line = lines_.next();
  if (!line) fail(fmt::format("the file is cut off behind this line: the record's {} are missing", what));
  return *line;
}

/// About the line that was read last.
void ReadStream::fail(const std::string& reason) const {
  bad_line(file_.path(), compressed_ ? lines_.lines() : file_.line_of(lines_.last_offset()), reason);
}

}  // namespace inputs
