#include "bindings/cli/synth/scene.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace stoker {
namespace {

constexpr int kUnit = 8;  // values are in eighths of a gray level
constexpr int kUnitBits = 3;
constexpr int kGainLevels = 3;  // octaves that shapes strengthen and weaken
constexpr int kGainUnit = 32;   // gain 1
constexpr int kLevels = 8;      // octaves; the coarsest has a value every 2^7 pixels

// Signed values on a grid.
struct Grid {
  Grid(int w, int h) : width(w), height(h), values(static_cast<size_t>(w) * h) {}
  int16_t* row(int y) { return values.data() + static_cast<size_t>(y) * width; }
  const int16_t* row(int y) const { return values.data() + static_cast<size_t>(y) * width; }

  int width, height;
  std::vector<int16_t> values;
};

// Eight xorshift generators side by side (Marsaglia: "Xorshift RNGs", J. Stat. Software 2003),
// which compilers turn into SIMD. Good enough for grain, and 30 times as fast as a counter-based
// one.
class NoiseBytes {
 public:
  explicit NoiseBytes(RandomStream& random) {
    for (uint32_t& s : state_) s = static_cast<uint32_t>(random.Below(0xFFFFFFFF)) + 1;
  }

  // Uniform in [-128, 127].
  void Fill(std::vector<int8_t>& bytes) {
    std::array<uint32_t, 8> s = state_;
    for (size_t i = 0; i + sizeof(s) <= bytes.size(); i += sizeof(s)) {
      for (uint32_t& v : s) {
        v ^= v << 13;
        v ^= v >> 17;
        v ^= v << 5;
      }
      std::memcpy(bytes.data() + i, s.data(), sizeof(s));
    }
    state_ = s;
  }

 private:
  std::array<uint32_t, 8> state_;
};

// Returns a buffer with one value for each pixel of a row, and room for rounding up to whole steps.
std::vector<int8_t> RowOfBytes(int width) {
  return std::vector<int8_t>((static_cast<size_t>(width) + 31) / 32 * 32);
}

// Returns (3a + b) / 4: a new sample lies a quarter of the way from a to b. Below ±8191 everything
// fits int16.
inline int16_t Quarter(int16_t a, int16_t b) {
  const auto sum = static_cast<int16_t>(3 * a + b + 2);
  return static_cast<int16_t>(sum >> 2);
}

void DoubleRow(const int16_t* from, int width, int16_t* to, int to_width) {
  to[0] = from[0];
  const int pairs = std::min(width - 1, (to_width - 1) / 2);
  for (int x = 0; x < pairs; ++x) {
    to[2 * x + 1] = Quarter(from[x], from[x + 1]);
    to[2 * x + 2] = Quarter(from[x + 1], from[x]);
  }
  for (int x = 2 * pairs + 1; x < to_width; ++x) to[x] = from[width - 1];
}

// Returns the next finer octave: `coarse` interpolated to width × height.
Grid Doubled(const Grid& coarse, int width, int height) {
  Grid wide(width, coarse.height);
  for (int y = 0; y < coarse.height; ++y) {
    DoubleRow(coarse.row(y), coarse.width, wide.row(y), width);
  }
  Grid fine(width, height);
  for (int y = 0; y < height; ++y) {
    const int near = std::min(y / 2, coarse.height - 1);
    const int far = std::clamp(y % 2 == 0 ? near - 1 : near + 1, 0, coarse.height - 1);
    const int16_t *a = wide.row(near), *b = wide.row(far);
    int16_t* out = fine.row(y);
    for (int x = 0; x < width; ++x) out[x] = Quarter(a[x], b[x]);
  }
  return fine;
}

// Steps of a shape's outline, from its top to its bottom.
constexpr int kOutline = 16;

// A rectangle, or an ellipse with an uneven outline, at any angle, in units of the picture's longer
// side.
struct Shape {
  double x, y;    // centre
  double ux, uy;  // a point p is inside when (p - centre)·u and (p - centre)·v lie in the unit
  double vx, vy;  //   circle, or in the unit square
  bool square;
  std::array<double, kOutline + 1> outline;  // offset of the left side; to the right, upwards
  int16_t luma, cb, cr;                      // added, in kUnit
  int16_t gain;                              // of texture, in kGainUnit
};

struct Colour {
  double cb, cr;  // in gray levels
};

// Sky, leaves, grass, earth, wood, skin, brick, stone: the subjects of photographs are seldom
// vivid.
constexpr std::array<Colour, 8> kColours = {
    {{18, -14}, {-14, -9}, {-22, -6}, {-14, 9}, {-10, 5}, {-9, 15}, {-12, 26}, {1, -1}}};

// Sets half the length along the direction (dx, dy), and half the breadth across it.
void SetAxes(Shape& shape, double dx, double dy, double length, double breadth) {
  shape.ux = dx / length;
  shape.uy = dy / length;
  shape.vx = -dy / breadth;
  shape.vy = dx / breadth;
}

void DrawSurface(RandomStream& random, const Colour& colour, Shape& shape) {
  const double light = random.Uniform(-1, 1);
  const double vivid = random.Uniform(0.3, 1.6) * (1.1 - light * light) * kUnit;
  shape.luma = static_cast<int16_t>(75 * kUnit * light);
  shape.cb = static_cast<int16_t>(colour.cb * vivid);
  shape.cr = static_cast<int16_t>(colour.cr * vivid);
  // Most surfaces are smooth, some are very rough.
  const double rough = random.Uniform();
  shape.gain = static_cast<int16_t>(kGainUnit * (0.15 + 3.3 * rough * rough * rough));
}

// `width`, `height`: the size of the picture, whose longer side is 1.
Shape DrawShape(RandomStream& random, double width, double height, const Colour& colour) {
  // Radii with density r^-3: equally much area from every size.
  constexpr double kSmallest = 0.025, kLargest = 0.5;
  constexpr double kRatio = kSmallest / kLargest;
  const double radius = kSmallest / std::sqrt(1 - random.Uniform() * (1 - kRatio * kRatio));
  double dx = random.Uniform(-1, 1), dy = random.Uniform(-1, 1);
  const double length = std::sqrt(dx * dx + dy * dy) + 1e-9;
  Shape shape{};
  shape.x = random.Uniform(0, width);
  shape.y = random.Uniform(0, height);
  SetAxes(shape, dx / length, dy / length, radius, radius * random.Uniform(0.3, 1.0));
  shape.square = random.Uniform() < 0.2;
  for (double& step : shape.outline) {
    step = shape.square ? 0 : radius * random.Uniform(-0.25, 0.25);
  }
  DrawSurface(random, colour, shape);
  return shape;
}

// Draws ground that fills the lower part, up to a horizon that is seldom level.
Shape DrawGround(RandomStream& random, double width, double height, const Colour& colour) {
  Shape shape{};
  const double slope = random.Uniform(-0.15, 0.15);
  const double length = std::sqrt(1 + slope * slope);
  shape.x = width / 2;
  shape.y = height * random.Uniform(0.25, 0.8) + 2;
  SetAxes(shape, 1 / length, slope / length, 4, 2);
  shape.square = true;
  DrawSurface(random, colour, shape);
  shape.gain = static_cast<int16_t>(kGainUnit + shape.gain / 2);
  return shape;
}

std::vector<Shape> DrawShapes(const SceneOptions& options, RandomStream& random) {
  const double longer = std::max(options.width, options.height);
  const double width = options.width / longer, height = options.height / longer;
  std::array<Colour, 4> palette;
  for (Colour& colour : palette) colour = kColours[random.Below(kColours.size())];
  std::vector<Shape> shapes;
  shapes.push_back(DrawGround(random, width, height, palette[0]));
  for (uint64_t n = 40 + random.Below(160); n > 0; --n) {
    shapes.push_back(DrawShape(random, width, height, palette[random.Below(palette.size())]));
  }
  return shapes;
}

// Returns the columns of row `y` (in the shape's units) that are inside; empty if first > second.
std::array<double, 2> SpanAt(const Shape& shape, double y) {
  const double dy = y - shape.y;
  const double u0 = dy * shape.uy, v0 = dy * shape.vy;
  if (shape.square) {  // |u0 + t ux| <= 1 and |v0 + t vx| <= 1
    double low = -10, high = 10;
    for (auto [offset, slope] : {std::array{u0, shape.ux}, std::array{v0, shape.vx}}) {
      if (std::abs(slope) < 1e-9) {
        if (std::abs(offset) > 1) return {1, 0};
        continue;
      }
      const double a = (-1 - offset) / slope, b = (1 - offset) / slope;
      low = std::max(low, std::min(a, b));
      high = std::min(high, std::max(a, b));
    }
    return {shape.x + low, shape.x + high};
  }
  const double a = shape.ux * shape.ux + shape.vx * shape.vx;
  const double b = u0 * shape.ux + v0 * shape.vx, c = u0 * u0 + v0 * v0 - 1;
  const double root = b * b - a * c;
  if (root < 0) return {1, 0};
  const double half = std::sqrt(root);
  return {shape.x + (-b - half) / a, shape.x + (-b + half) / a};
}

// Fills the inside with `value`. `scale`: pixels of the grid per unit of the shape.
void Paint(const Shape& shape, double scale, int16_t value, Grid& grid) {
  // The extent in y of u² + v² <= 1, or 2, which the square's corners lie on.
  const double det = shape.ux * shape.vy - shape.uy * shape.vx;
  const double reach =
      std::sqrt((shape.ux * shape.ux + shape.vx * shape.vx) * (shape.square ? 2 : 1)) /
      std::abs(det);
  const double top = shape.y - reach;
  const int first = std::clamp(static_cast<int>(top * scale), 0, grid.height);
  const int end = std::clamp(static_cast<int>((shape.y + reach) * scale) + 1, 0, grid.height);
  for (int row = first; row < end; ++row) {
    const double y = (row + 0.5) / scale;
    const auto [low, high] = SpanAt(shape, y);
    if (low > high) continue;
    const double at = std::clamp((y - top) / (2 * reach), 0.0, 0.9999) * kOutline;
    const int step = static_cast<int>(at);
    const auto outline = [&](int i, int next) {
      return shape.outline[i] + (at - step) * (shape.outline[next] - shape.outline[i]);
    };
    const double from = (low - outline(step, step + 1)) * scale;
    const double to = (high + outline(kOutline - step, kOutline - step - 1)) * scale;
    const int begin = static_cast<int>(std::clamp(from + 0.5, 0.0, double(grid.width)));
    const int stop = static_cast<int>(std::clamp(to + 0.5, 0.0, double(grid.width)));
    if (begin < stop) std::fill(grid.row(row) + begin, grid.row(row) + stop, value);
  }
}

// Filters with (a + 2b + c) / 4 in both directions, the sharpness of a lens.
void Soften(Grid& grid) {
  const auto tap = [](int16_t a, int16_t b, int16_t c) {
    return static_cast<int16_t>(static_cast<int16_t>(a + 2 * b + c + 2) >> 2);
  };
  Grid wide(grid.width, grid.height);
  for (int y = 0; y < grid.height; ++y) {
    const int16_t* in = grid.row(y);
    int16_t* out = wide.row(y);
    out[0] = in[0];
    for (int x = 1; x + 1 < grid.width; ++x) out[x] = tap(in[x - 1], in[x], in[x + 1]);
    out[grid.width - 1] = in[grid.width - 1];
  }
  for (int y = 0; y < grid.height; ++y) {
    const int16_t *a = wide.row(std::max(y - 1, 0)), *b = wide.row(y);
    const int16_t* c = wide.row(std::min(y + 1, grid.height - 1));
    int16_t* out = grid.row(y);
    for (int x = 0; x < grid.width; ++x) out[x] = tap(a[x], b[x], c[x]);
  }
}

// A plane's noise: the amplitude of each octave in kUnit, level 0 (pixels) first.
using Amplitudes = std::array<double, kLevels>;

struct Canvas {
  int width, height;  // of this plane
  double scale;       // its pixels per unit of the shapes
  const std::vector<Shape>* shapes;
};

// Adds one octave of noise: uniform, within ±amplitude × gain.
void AddNoise(Grid& grid, double amplitude, const Grid& gain, NoiseBytes& noise) {
  std::vector<int8_t> bytes = RowOfBytes(grid.width);
  const auto strength = static_cast<int16_t>(std::clamp(amplitude, 0.0, 255.0));
  for (int y = 0; y < grid.height; ++y) {
    noise.Fill(bytes);
    const int16_t* gains = gain.row(y);
    int16_t* row = grid.row(y);
    for (int x = 0; x < grid.width; ++x) {  // all products fit 16 bits
      const auto product = static_cast<int16_t>(gains[x] * strength);
      const auto reach = std::min<int16_t>(static_cast<int16_t>(product >> 5), 255);
      const auto value = static_cast<int16_t>(bytes[x] * reach);
      row[x] = static_cast<int16_t>(row[x] + (value >> 7));
    }
  }
}

// Adds octaves from the coarsest down to pixels.
Grid Noise(const Canvas& canvas, const Amplitudes& amplitudes, NoiseBytes& noise) {
  Grid grid(1, 1);
  for (int level = kLevels - 1; level >= 0; --level) {
    const int width = std::max(1, canvas.width >> level) + (level > 0 ? 1 : 0);
    const int height = std::max(1, canvas.height >> level) + (level > 0 ? 1 : 0);
    grid = Doubled(grid, width, height);
    Grid gain(width, height);
    std::fill(gain.values.begin(), gain.values.end(), int16_t{kGainUnit});
    if (level < kGainLevels) {
      const double scale = canvas.scale / (1 << level);
      for (const Shape& shape : *canvas.shapes) Paint(shape, scale, shape.gain, gain);
    }
    AddNoise(grid, amplitudes[level], gain, noise);
  }
  return grid;
}

// `member`: the property of the shapes to paint.
Plane RenderPlane(const Canvas& canvas, int16_t Shape::*member, int base,
                  const Amplitudes& amplitudes, NoiseBytes& noise) {
  Grid shapes(canvas.width, canvas.height);
  for (const Shape& shape : *canvas.shapes) Paint(shape, canvas.scale, shape.*member, shapes);
  Soften(shapes);
  const Grid texture = Noise(canvas, amplitudes, noise);
  Plane plane{canvas.width, canvas.height, {}};
  plane.pixels.resize(shapes.values.size());
  for (size_t i = 0; i < plane.pixels.size(); ++i) {
    const auto value =
        static_cast<int16_t>(shapes.values[i] + texture.values[i] + base * kUnit + kUnit / 2);
    plane.pixels[i] =
        static_cast<uint8_t>(std::clamp<int16_t>(static_cast<int16_t>(value >> kUnitBits), 0, 255));
  }
  return plane;
}

// Returns octaves of about equal energy; `detail` scales the finest ones.
Amplitudes LumaAmplitudes(double detail) {
  Amplitudes amplitudes;
  amplitudes.fill(13 * kUnit);
  amplitudes[3] = 9 * kUnit * std::min(1.6, detail);
  amplitudes[2] = 9 * kUnit * detail;
  amplitudes[1] = 6 * kUnit * detail;
  amplitudes[0] = 3.5 * kUnit * detail;
  return amplitudes;
}

// Returns amplitudes for planes whose pixels are two pixels wide.
Amplitudes ChromaAmplitudes(double detail) {
  Amplitudes amplitudes;
  amplitudes.fill(4 * kUnit);
  amplitudes[2] = 2.5 * kUnit * std::min(1.6, detail);
  amplitudes[1] = 2.5 * kUnit * detail;
  amplitudes[0] = 2 * kUnit * detail;
  return amplitudes;
}

}  // namespace

Scene RenderScene(const SceneOptions& options, RandomStream random) {
  const double longer = std::max(options.width, options.height);
  const std::vector<Shape> shapes = DrawShapes(options, random);
  const int base = 80 + static_cast<int>(random.Below(80));
  NoiseBytes noise(random);
  Scene scene;
  const Canvas full{options.width, options.height, longer, &shapes};
  scene.y = RenderPlane(full, &Shape::luma, base, LumaAmplitudes(options.detail), noise);
  if (!options.colour) return scene;
  const Canvas half{options.width / 2, options.height / 2, longer / 2, &shapes};
  const Amplitudes chroma = ChromaAmplitudes(options.detail);
  scene.cb = RenderPlane(half, &Shape::cb, 128, chroma, noise);
  scene.cr = RenderPlane(half, &Shape::cr, 128, chroma, noise);
  return scene;
}

Plane DoubleWidth(const Plane& plane) {
  Plane wide{plane.width * 2, plane.height, {}};
  wide.pixels.resize(plane.pixels.size() * 2);
  for (int y = 0; y < plane.height; ++y) {
    const uint8_t* in = plane.pixels.data() + static_cast<size_t>(y) * plane.width;
    uint8_t* out = wide.row(y);
    out[0] = in[0];
    for (int x = 0; x + 1 < plane.width; ++x) {
      out[2 * x + 1] = static_cast<uint8_t>((3 * in[x] + in[x + 1] + 2) >> 2);
      out[2 * x + 2] = static_cast<uint8_t>((in[x] + 3 * in[x + 1] + 2) >> 2);
    }
    out[2 * plane.width - 1] = in[plane.width - 1];
  }
  return wide;
}

Plane DoubleHeight(const Plane& plane) {
  Plane high{plane.width, plane.height * 2, {}};
  high.pixels.resize(plane.pixels.size() * 2);
  for (int y = 0; y < high.height; ++y) {
    const int near = y / 2;
    const int far = std::clamp(y % 2 == 0 ? near - 1 : near + 1, 0, plane.height - 1);
    const uint8_t* a = plane.pixels.data() + static_cast<size_t>(near) * plane.width;
    const uint8_t* b = plane.pixels.data() + static_cast<size_t>(far) * plane.width;
    uint8_t* out = high.row(y);
    for (int x = 0; x < plane.width; ++x) out[x] = static_cast<uint8_t>((3 * a[x] + b[x] + 2) >> 2);
  }
  return high;
}

}  // namespace stoker
