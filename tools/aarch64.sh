#!/usr/bin/env bash
# Cross-compiles stoker for 64-bit Arm, and runs the C++ tests of the transforms in qemu, or another PROGRAM of
# the build. Works as root, on Debian 12 with mmdebstrap, in a Debian of its own (build/aarch64-root), because
# some libraries cannot be installed for two architectures at once.
#
#   tools/aarch64.sh [PROGRAM ARGUMENTS...]     for example: build/aarch64/stoker doctor
set -euo pipefail
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly checkout
readonly root=$checkout/build/aarch64-root
readonly packages=(ca-certificates ccache cmake g++-aarch64-linux-gnu ninja-build pkg-config qemu-user
  libcli11-dev libprotozero-dev nlohmann-json3-dev
  {libtbb,liburing,libjpeg62-turbo,libspng,libwebp,zlib1g,libarchive,libcurl4-openssl,libhwy,libfmt}-dev:arm64
  {libgtest,libgmock}-dev:arm64)

if [ ! -d "$root" ]; then
  list=$(IFS=,; echo "${packages[*]}")
  mkdir -p "$checkout/build"
  rm -rf "$root.new"
  mmdebstrap --variant=minbase --architectures=amd64,arm64 --include="$list" bookworm "$root.new"
  mkdir "$root.new/stoker"
  mv "$root.new" "$root"
fi

# Only these processes see the mounts, which end with them.
# shellcheck disable=SC2016 # the variables are those of the shells inside
exec unshare --mount --propagation private bash -euc '
  root=$1 checkout=$2
  shift 2
  mount --bind "$checkout" "$root/stoker"
  mount -t proc proc "$root/proc"
  exec chroot "$root" env CCACHE_BASEDIR=/stoker CCACHE_NOHASHDIR=1 bash -euc "
    cd /stoker
    cmake --preset aarch64 >/dev/null
    cmake --build build/aarch64 --target tests/transforms/all stoker_cli
    if [ \$# -gt 0 ]; then exec qemu-aarch64 \"\$@\"; fi
    ctest --test-dir build/aarch64/tests/transforms --output-on-failure --parallel \$(nproc)" aarch64 "$@"' \
  aarch64 "$root" "$checkout" "$@"
