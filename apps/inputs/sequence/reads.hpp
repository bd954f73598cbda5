// Reads of FASTA and FASTQ files, plain or compressed with gzip, in parts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "../file/line_reader.hpp"
#include "../file/part.hpp"
#include "bases.hpp"  // phred()

namespace inputs {

/// One record.
struct Read {
  std::string_view name;       // the header line without its '>' or '@'
  std::string_view bases;      // A C G T, and N R Y S W K M B D H V for one of several; as the file has them
  std::string_view qualities;  // a character a base, as phred() takes it; empty where the file is FASTA
};

/// The records of one part of a file, in the file's order.
///
/// Contract Each record of the file belongs to exactly one part, whatever the number of parts. The format is
///          recognised by the first bytes, not by the name. FASTA records may span lines; FASTQ records have
///          four lines, and what follows the '+' is nothing or the name again. Lines end with LF or CRLF;
///          empty lines are skipped between FASTA's and behind FASTQ's records.
///          Malformed is, and throws esker::Error{kConfiguration} with file, line and reason: other bases,
///          qualities outside '!' to '~', other than one quality a base, a missing '+', a last record that is
///          cut off, a FASTA record without bases, a file without records. A malformed file is noticed by
///          at least one part, not by all; a FASTA file cut inside its last sequence cannot be noticed.
/// Cost     Memory is one record and a few buffers of 64 KiB. A plain file is cut by byte ranges: a part
///          reads its own, and some lines around both ends. A gzip stream cannot be cut: every part reads
///          and decompresses all of it, and part p keeps every p-th block of 256 records, so that parts save
///          only what is done with the reads. Files that many processes read are better plain.
class ReadStream {
 public:
  /// Opens the file and finds the part.
  explicit ReadStream(const std::string& file, Part part = {});

  /// The next record, valid until the next call; false behind the last, and `read` is then untouched. After
  /// an error there is no next.
  bool next(Read& read);

 private:
  bool parse();
  bool parse_fasta();
  bool parse_fastq();
  void take_bases(std::string_view line);
  std::string_view line_of_record(const char* what);
  [[noreturn]] void fail(const std::string& reason) const;

  File file_;
  bool compressed_;
  LineReader lines_;
  bool is_fastq_ = false;
  std::uint64_t end_;         // of a plain file's part: where the next one's first record begins
  Part part_;                 // of a compressed file
  std::uint64_t parsed_ = 0;  // records
  std::string name_;
  std::string bases_;
  std::string qualities_;
};

/// Calls visit(read) for each record of the part; the views in `read` are valid during the call.
template <class Visit>
void for_each_read(const std::string& file, Part part, Visit visit) {
  ReadStream stream(file, part);
  for (Read read; stream.next(read);) visit(static_cast<const Read&>(read));
}

}  // namespace inputs
