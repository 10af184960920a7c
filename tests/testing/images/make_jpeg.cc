#include "tests/testing/images/make_jpeg.h"

#include <cstdio>  // jpeglib.h needs FILE
#include <cstdlib>

#include <jpeglib.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stoker::testing {
namespace {

// SplitMix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
uint64_t Hash(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

double Unit(uint64_t x) { return static_cast<double>(Hash(x) >> 11) * 0x1.0p-53; }

// Two waves, an edge, and noise.
uint8_t Pixel(int x, int y, int channel, uint64_t seed) {
  const uint64_t key = Hash(seed) + static_cast<uint64_t>(channel) * 977;
  const double u = x / (5.0 + 30 * Unit(key + 1));
  const double v = y / (5.0 + 30 * Unit(key + 2));
  double value = 128 + 60 * std::sin(u + v + 6 * Unit(key + 3)) + 30 * std::cos(u - 2 * v);
  const double slope = 4 * Unit(key + 4) - 2;
  if (x + slope * y > 20 + 40 * Unit(key + 5)) value = 255 - value;
  const uint64_t place = static_cast<uint64_t>(y) << 32 | static_cast<uint64_t>(x);
  value += 24 * (Unit(key ^ Hash(place)) - 0.5);
  return static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
}

int ChannelsOf(JpegColor color) {
  if (color == JpegColor::kGray) return 1;
  return color == JpegColor::kYCbCr || color == JpegColor::kRgb ? 3 : 4;
}

void SetColor(jpeg_compress_struct& jpeg, const JpegOptions& options) {
  switch (options.color) {
    case JpegColor::kGray:
      jpeg_set_colorspace(&jpeg, JCS_GRAYSCALE);
      break;
    case JpegColor::kYCbCr:
      jpeg_set_colorspace(&jpeg, JCS_YCbCr);
      break;
    case JpegColor::kRgb:
      jpeg_set_colorspace(&jpeg, JCS_RGB);
      break;
    case JpegColor::kCmyk:
      jpeg_set_colorspace(&jpeg, JCS_CMYK);
      break;
    case JpegColor::kYcck:
      jpeg_set_colorspace(&jpeg, JCS_YCCK);
      break;
  }
  if (!options.adobe_marker) jpeg.write_Adobe_marker = FALSE;
}

jpeg_scan_info Scan(std::vector<int> components, int first, int last, int high, int low) {
  jpeg_scan_info scan{};
  scan.comps_in_scan = static_cast<int>(components.size());
  std::copy(components.begin(), components.end(), scan.component_index);
  scan.Ss = first;
  scan.Se = last;
  scan.Ah = high;
  scan.Al = low;
  return scan;
}

// Each AC coefficient by itself, each of its six lowest bits by itself.
void AppendManyScans(std::vector<jpeg_scan_info>& script) {
  script.push_back(Scan({0, 1, 2}, 0, 0, 0, 0));
  for (int component = 0; component < 3; ++component) {
    for (int k = 1; k < 64; ++k) {
      script.push_back(Scan({component}, k, k, 0, 5));
      for (int bit = 5; bit > 0; --bit) script.push_back(Scan({component}, k, k, bit, bit - 1));
    }
  }
}

// Complete progressive scripts.
void AppendSpectral(const std::vector<int>& all, std::vector<jpeg_scan_info>& script) {
  script.push_back(Scan(all, 0, 0, 0, 0));
  for (const auto& [first, last] : {std::pair(1, 2), {3, 9}, {10, 62}, {63, 63}}) {
    for (int i : all) script.push_back(Scan({i}, first, last, 0, 0));
  }
}

void AppendSuccessive(const std::vector<int>& all, std::vector<jpeg_scan_info>& script) {
  script.push_back(Scan(all, 0, 0, 0, 3));
  for (int i : all) script.push_back(Scan({i}, 1, 63, 0, 3));
  for (int bit = 3; bit > 0; --bit) {
    for (int i : all) script.push_back(Scan({i}, 1, 63, bit, bit - 1));
    script.push_back(Scan(all, 0, 0, bit, bit - 1));
  }
}

void AppendRefinedDc(const std::vector<int>& all, std::vector<jpeg_scan_info>& script) {
  for (int i : all) script.push_back(Scan({i}, 0, 0, 0, 2));
  for (int bit = 2; bit > 0; --bit) {
    for (int i : all) script.push_back(Scan({i}, 0, 0, bit, bit - 1));
  }
  for (int i : all) script.push_back(Scan({i}, 1, 63, 0, 0));
}

void AppendBands(const std::vector<int>& all, std::vector<jpeg_scan_info>& script) {
  script.push_back(Scan({0}, 0, 0, 0, 1));
  const std::vector<int> others(all.begin() + 1, all.end());
  if (!others.empty()) script.push_back(Scan(others, 0, 0, 0, 1));
  for (int i : all) script.push_back(Scan({i}, 1, 8, 0, 2));
  for (int i : all) script.push_back(Scan({i}, 9, 63, 0, 1));
  for (int i : all) script.push_back(Scan({i}, 1, 8, 2, 1));
  script.push_back(Scan(all, 0, 0, 1, 0));
  for (int i : all) script.push_back(Scan({i}, 1, 63, 1, 0));
}

std::vector<jpeg_scan_info> ScriptOf(const JpegOptions& options) {
  std::vector<int> all;
  for (int i = 0; i < ChannelsOf(options.color); ++i) all.push_back(i);
  std::vector<jpeg_scan_info> script;
  switch (options.scans) {
    case JpegScans::kOne:
    case JpegScans::kProgressive:
      break;
    case JpegScans::kOnePerComponent:
      for (int i : all) script.push_back(Scan({i}, 0, 63, 0, 0));
      break;
    case JpegScans::kSpectral:
      AppendSpectral(all, script);
      break;
    case JpegScans::kSuccessive:
      AppendSuccessive(all, script);
      break;
    case JpegScans::kRefinedDc:
      AppendRefinedDc(all, script);
      break;
    case JpegScans::kBands:
      AppendBands(all, script);
      break;
    case JpegScans::kDcOnly:
      script.push_back(Scan(all, 0, 0, 0, 0));
      break;
    case JpegScans::kCoarse:
      script.push_back(Scan(all, 0, 0, 0, 1));
      for (int i : all) script.push_back(Scan({i}, 1, 63, 0, 1));
      break;
    case JpegScans::kMany:
      AppendManyScans(script);
      break;
  }
  return script;
}

void WriteRows(jpeg_compress_struct& jpeg, const JpegOptions& options) {
  std::vector<uint8_t> row(static_cast<size_t>(options.width * jpeg.input_components));
  for (int y = 0; y < options.height; ++y) {
    for (size_t i = 0; i < row.size(); ++i) {
      const int at = static_cast<int>(i);
      row[i] = Pixel(at / jpeg.input_components, y, at % jpeg.input_components, options.seed);
    }
    JSAMPROW pointer = row.data();
    jpeg_write_scanlines(&jpeg, &pointer, 1);
  }
}

void Configure(jpeg_compress_struct& jpeg, const JpegOptions& options) {
  jpeg.image_width = static_cast<JDIMENSION>(options.width);
  jpeg.image_height = static_cast<JDIMENSION>(options.height);
  jpeg.input_components = ChannelsOf(options.color);
  jpeg.in_color_space = jpeg.input_components == 1   ? JCS_GRAYSCALE
                        : jpeg.input_components == 3 ? JCS_RGB
                                                     : JCS_CMYK;
  jpeg_set_defaults(&jpeg);
  SetColor(jpeg, options);
  jpeg_set_quality(&jpeg, options.quality, TRUE);
  for (int i = 0; i < jpeg.num_components; ++i) {
    const auto at = static_cast<size_t>(i);
    const Sampling s = at < options.sampling.size() ? options.sampling[at] : Sampling{};
    jpeg.comp_info[i].h_samp_factor = s.columns;
    jpeg.comp_info[i].v_samp_factor = s.rows;
  }
  jpeg.arith_code = options.arithmetic ? TRUE : FALSE;
  jpeg.optimize_coding = options.optimize ? TRUE : FALSE;
  jpeg.restart_interval = static_cast<unsigned>(options.restart_interval);
}

// `write` begins the image and writes it.
template <typename Write>
std::vector<uint8_t> Compress(const JpegOptions& options, const Write& write) {
  jpeg_compress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg.err = jpeg_std_error(&errors);
  errors.error_exit = [](j_common_ptr common) {
    (*common->err->output_message)(common);
    std::abort();
  };
  jpeg_create_compress(&jpeg);
  unsigned char* buffer = nullptr;
  unsigned long size = 0;  // NOLINT: libjpeg's type
  jpeg_mem_dest(&jpeg, &buffer, &size);
  Configure(jpeg, options);
  const std::vector<jpeg_scan_info> script = ScriptOf(options);
  if (options.scans == JpegScans::kProgressive) jpeg_simple_progression(&jpeg);
  if (!script.empty()) {
    jpeg.scan_info = script.data();
    jpeg.num_scans = static_cast<int>(script.size());
  }
  write(jpeg);
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::vector<uint8_t> bytes(buffer, buffer + size);
  std::free(buffer);
  return bytes;
}

}  // namespace

std::vector<uint8_t> MakeJpeg(const JpegOptions& options) {
  const std::vector<uint8_t> bytes = Compress(options, [&](jpeg_compress_struct& jpeg) {
    jpeg_start_compress(&jpeg, TRUE);
    WriteRows(jpeg, options);
  });
  if (options.orientation == 0) return bytes;
  return WithSegment(bytes, ExifSegment(options.orientation, options.seed % 2 == 0));
}

std::vector<uint8_t> MakeGrayJpeg(std::span<const int16_t> coefficients,
                                  const JpegOptions& options) {
  return Compress(options, [&](jpeg_compress_struct& jpeg) {
    const JDIMENSION across = (jpeg.image_width + 7) / 8, down = (jpeg.image_height + 7) / 8;
    auto* const common = reinterpret_cast<j_common_ptr>(&jpeg);
    jvirt_barray_ptr blocks =
        jpeg.mem->request_virt_barray(common, JPOOL_IMAGE, TRUE, across, down, 1);
    std::array<unsigned, 64> ones;
    ones.fill(1);
    jpeg_add_quant_table(&jpeg, 0, ones.data(), 100, TRUE);
    jpeg_write_coefficients(&jpeg, &blocks);
    for (JDIMENSION y = 0; y < down; ++y) {
      JBLOCKROW row = jpeg.mem->access_virt_barray(common, blocks, y, 1, TRUE)[0];
      for (JDIMENSION x = 0; x < across; ++x) {
        std::copy_n(&coefficients[64 * (size_t{y} * across + x)], 64, row[x]);
      }
    }
  });
}

std::vector<uint8_t> ExifSegment(int orientation, bool big_endian) {
  std::vector<uint8_t> segment = {0xFF, 0xE1, 0, 34, 'E', 'x', 'i', 'f', 0, 0};
  const auto number = [&](unsigned value, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const size_t byte = big_endian ? count - 1 - i : i;
      segment.push_back(static_cast<uint8_t>(value >> (8 * byte)));
    }
  };
  for (int i = 0; i < 2; ++i) segment.push_back(big_endian ? 'M' : 'I');
  number(42, 2);
  number(8, 4);       // where the directory begins
  number(1, 2);       // its entries
  number(0x0112, 2);  // orientation
  number(3, 2);       // of type short
  number(1, 4);       // one of them
  number(static_cast<unsigned>(orientation), 2);
  number(0, 2);
  number(0, 4);  // no further directory
  return segment;
}

std::vector<uint8_t> WithSegment(std::span<const uint8_t> jpeg, std::span<const uint8_t> segment) {
  std::vector<uint8_t> bytes(jpeg.size() + segment.size());
  auto to = std::copy(jpeg.begin(), jpeg.begin() + 2, bytes.begin());
  to = std::copy(segment.begin(), segment.end(), to);
  std::copy(jpeg.begin() + 2, jpeg.end(), to);
  return bytes;
}

void SetJpegSize(std::vector<uint8_t>& jpeg, int width, int height, uint8_t frame) {
  const std::array<uint8_t, 2> marker = {0xFF, frame};
  const auto size = std::search(jpeg.begin(), jpeg.end(), marker.begin(), marker.end()) + 5;
  size[0] = static_cast<uint8_t>(height >> 8);
  size[1] = static_cast<uint8_t>(height);
  size[2] = static_cast<uint8_t>(width >> 8);
  size[3] = static_cast<uint8_t>(width);
}

}  // namespace stoker::testing
