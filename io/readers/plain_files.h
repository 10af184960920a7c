// PlainFiles: reads like ReadPlainly, but keeps the files of ranges open for their next ranges.
#pragma once

#include <cstdint>
#include <vector>

#include "io/readers/kept_files.h"
#include "io/readers/plain_read.h"

namespace stoker {

class PlainFiles {
 public:
  // Keeps at most `most` descriptors. `calls` must outlive it.
  PlainFiles(uint32_t most, const FileCalls& calls);
  ~PlainFiles() { CloseAll(); }
  PlainFiles(const PlainFiles&) = delete;
  PlainFiles& operator=(const PlainFiles&) = delete;

  // Sets request.size and request.status as reader.h promises. If an open file does not give the
  // whole range, the file is opened again by its path, once. Without a free descriptor (EMFILE,
  // ENFILE) it closes the files that it keeps open and tries again.
  void Read(ReadRequest& request);

  // Closes the files that it keeps open. Returns false if there were none.
  bool CloseAll();

 private:
  bool ReadKept(ReadRequest& request);
  int Open(const std::string& path);
  void Keep(const std::string& path, int descriptor);
  void Close(const KeptFile& file);

  const FileCalls& calls_;
  KeptFiles files_;
  std::vector<int> descriptors_;  // by slot; -1 means none
};

}  // namespace stoker
