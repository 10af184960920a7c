// The floor: decodes every photograph whole to RGB by libjpeg-turbo, on one core, each file read
// again.
//
//   c++ -O2 floor.cc -o floor -ljpeg && ./floor SECONDS COLD < PATHS
//
// COLD 0: one pass over the photographs first, then whole passes for SECONDS. COLD 1: one pass.
// Prints a line of JSON: images, seconds, CPU seconds.

#include <cstdio>  // before jpeglib.h, which needs FILE

#include <jpeglib.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

namespace {

void Decode(const std::string& path, std::vector<unsigned char>& encoded,
            std::vector<unsigned char>& pixels) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) {
    std::cerr << path << ": cannot be read\n";
    std::exit(1);
  }
  encoded.resize(static_cast<size_t>(file.tellg()));
  file.seekg(0).read(reinterpret_cast<char*>(encoded.data()),
                     static_cast<std::streamsize>(encoded.size()));
  jpeg_decompress_struct decompress;
  jpeg_error_mgr errors;
  decompress.err = jpeg_std_error(&errors);  // ends the program at an error
  jpeg_create_decompress(&decompress);
  jpeg_mem_src(&decompress, encoded.data(), encoded.size());
  jpeg_read_header(&decompress, TRUE);
  decompress.out_color_space = JCS_RGB;
  jpeg_start_decompress(&decompress);
  const size_t row = size_t{3} * decompress.output_width;
  pixels.resize(row * decompress.output_height);
  while (decompress.output_scanline < decompress.output_height) {
    unsigned char* to = pixels.data() + row * decompress.output_scanline;
    jpeg_read_scanlines(&decompress, &to, 1);
  }
  jpeg_finish_decompress(&decompress);
  jpeg_destroy_decompress(&decompress);
}

double CpuSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval t) { return double(t.tv_sec) + double(t.tv_usec) * 1e-6; };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const double least_seconds = std::atof(argv[1]);
  const bool cold = std::atoi(argv[2]) != 0;
  std::vector<std::string> paths;
  for (std::string line; std::getline(std::cin, line);) paths.push_back(line);
  std::vector<unsigned char> encoded, pixels;
  const auto pass = [&] {
    for (const std::string& path : paths) Decode(path, encoded, pixels);
  };
  using Clock = std::chrono::steady_clock;
  if (!cold) pass();
  const auto begun = Clock::now();
  const double cpu = CpuSeconds();
  size_t images = 0;
  double seconds = 0;
  do {
    pass();
    images += paths.size();
    seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  } while (!cold && seconds < least_seconds);
  std::printf(R"({"images": %zu, "seconds": %f, "cpu_seconds": %f})"
              "\n",
              images, seconds, CpuSeconds() - cpu);
}
