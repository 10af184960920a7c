// A temporary folder of small generated photographs in class folders, deleted by the destructor.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/source/source.h"

namespace stoker::testing {

class PhotoFolder {
 public:
  // `count` JPEGs of various sizes and chroma formats, distributed over `classes` folders in turn.
  PhotoFolder(int count, int classes);
  ~PhotoFolder();
  PhotoFolder(const PhotoFolder&) = delete;
  PhotoFolder& operator=(const PhotoFolder&) = delete;

  const std::string& path() const { return path_; }
  std::shared_ptr<const SampleSource> Source() const;  // lists the folder again

  // The file of sample `id` of Source(), as the folder was made.
  std::string FileOf(uint64_t id) const;
  void Overwrite(uint64_t id, const std::string& bytes) const;

 private:
  std::string path_;
};

}  // namespace stoker::testing
