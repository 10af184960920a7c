// A program whose own headers have the names of some of stoker's.
#include <stoker/stoker.h>

#include <cstdio>

#include "core/result/result.h"
#include "gpu/backend/device.h"
#include "io/source/source.h"
#include "transforms/spec/transform.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto source = stoker::ImageFolder(argv[1]);
  if (!source.ok()) return 1;
  std::printf("own %d, own %d, own %d, own %d, stoker's %d\n", own::Result().value,
              own::Source().value, own::Transform().value, own::Device().value,
              static_cast<int>((*source)->size()));
  return 0;
}
