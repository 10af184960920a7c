// Descriptor: the number of an open file, which its owner closes.
#pragma once

#include <unistd.h>

#include <utility>

namespace stoker {

// Move-only.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}  // below 0: no file
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    Close();
    number_ = std::exchange(other.number_, -1);
    return *this;
  }
  ~Descriptor() { Close(); }

  int operator*() const { return number_; }
  bool open() const { return number_ >= 0; }
  int Release() { return std::exchange(number_, -1); }  // the caller closes it
  void Close() {
    if (const int number = Release(); number >= 0) close(number);
  }

 private:
  int number_ = -1;
};

}  // namespace stoker
