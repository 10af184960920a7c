// A temporary folder of small made photographs in class folders, deleted when it goes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/sources/source.h"

namespace stoker::testing {

class PhotoFolder {
 public:
  // `count` JPEGs of various sizes and chroma formats, dealt out to `classes` folders in turn.
  PhotoFolder(int count, int classes);
  ~PhotoFolder();
  PhotoFolder(const PhotoFolder&) = delete;
  PhotoFolder& operator=(const PhotoFolder&) = delete;

  const std::string& path() const { return path_; }
  std::shared_ptr<const SampleSource> Source() const;  // lists the folder anew

  // The file of sample `id` of Source(), as the folder was made.
  std::string FileOf(uint64_t id) const;
  void Overwrite(uint64_t id, const std::string& bytes) const;

 private:
  std::string path_;
};

}  // namespace stoker::testing
