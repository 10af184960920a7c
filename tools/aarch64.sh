#!/usr/bin/env bash
# Cross-compiles stoker for 64-bit Arm and runs the C++ tests of the transforms in qemu. Works as root, on
# Debian 12 with mmdebstrap, in a Debian of its own (build/aarch64-root), because some libraries cannot be
# installed for two architectures at once.
#
#   tools/aarch64.sh [CTEST'S ARGUMENTS...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly root=build/aarch64-root
readonly packages=(ca-certificates ccache cmake g++-aarch64-linux-gnu ninja-build pkg-config qemu-user
  libcli11-dev libprotozero-dev nlohmann-json3-dev
  {libtbb,liburing,libjpeg62-turbo,libspng,libwebp,zlib1g,libarchive,libcurl4-openssl,libhwy,libfmt}-dev:arm64
  {libgtest,libgmock}-dev:arm64)

if [ ! -d "$root" ]; then
  list=$(IFS=,; echo "${packages[*]}")
  mkdir -p build
  mmdebstrap --variant=minbase --architectures=amd64,arm64 --include="$list" bookworm "$root.new"
  mkdir "$root.new/stoker"
  mv "$root.new" "$root"
fi
trap 'umount "$root/stoker" "$root/proc"' EXIT
mount --bind . "$root/stoker"
mount -t proc proc "$root/proc"
# shellcheck disable=SC2016 # for the shell inside
chroot "$root" env CCACHE_BASEDIR=/stoker CCACHE_NOHASHDIR=1 bash -euc '
  cd /stoker
  cmake --preset aarch64
  cmake --build build/aarch64 --target tests/transforms/all stoker_cli
  ctest --test-dir build/aarch64/tests/transforms --output-on-failure --parallel "$(nproc)" "$@"' \
  aarch64 "$@"
