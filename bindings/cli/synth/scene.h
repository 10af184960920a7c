// Renders pixels that look and compress like a photograph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/numbers/random.h"

namespace stoker {

struct Plane {
  int width = 0;
  int height = 0;
  std::vector<uint8_t> pixels;  // row after row, without gaps

  uint8_t* row(int y) {
    return pixels.data() + static_cast<size_t>(y) * static_cast<size_t>(width);
  }
};

struct SceneOptions {
  int width = 0;        // a multiple of 16
  int height = 0;       // a multiple of 16
  double detail = 1.0;  // strength of texture and grain; 0.1: a wall in a fog, 3: gravel
  bool colour = true;   // otherwise cb and cr stay empty
};

// YCbCr as JPEG files store it (full range, Cb and Cr around 128).
struct Scene {
  Plane y;
  Plane cb, cr;  // half as wide and half as high
};

// Shapes that occlude each other ("dead leaves": Lee, Mumford, Huang: "Occlusion models for natural
// images", IJCV 2001), over noise whose octaves have about equal energy, as in photographs; the
// finest octaves are strong in some shapes and weak in others.
//
// Uses integers, and doubles with + - * / and sqrt only: the same pixels on every machine.
Scene RenderScene(const SceneOptions& options, RandomStream random);

// Doubles the width or height by linear interpolation.
Plane DoubleWidth(const Plane& plane);
Plane DoubleHeight(const Plane& plane);

}  // namespace stoker
