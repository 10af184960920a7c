#!/usr/bin/env bash
# Everything that needs a GPU, in one go: builds with CUDA, tests on the device, sanitizes the kernel,
# measures copies, kernel, end to end, and training steps. Under 8 minutes on 16 cores.
#
#   bench/gpu/measure.sh fetch DIR      where there is a package registry: download what the build needs
#   bench/gpu/measure.sh run [DIR] [PHOTOS]
#                                       on the machine with the GPU, from the checkout's root; DIR: what
#                                       `fetch` has downloaded, where the packages are not installed;
#                                       PHOTOS: a folder of photographs (else some are made)
#
# Results go to build/gpu/results/, a file each, and are summed up at the end; what failed is said, and
# the rest goes on. Needs nvcc, CMake, Ninja, and a Python with torch, torchvision, jax, numpy, pytest,
# pybind11 and scikit-build-core (python3, or what PYTHON says).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly packages=(libtbb-dev libtbb12 libtbbmalloc2 libtbbbind-2-5 libhwloc15 liburing-dev liburing2
  libjpeg62-turbo-dev libjpeg62-turbo libturbojpeg0-dev libturbojpeg0 libspng-dev libspng0 libwebp-dev
  libwebp7 libwebpdemux2 libwebpmux3 libhwy-dev libhwy1 libcli11-dev nlohmann-json3-dev libfmt-dev libfmt9
  zlib1g-dev libgtest-dev libgmock-dev googletest libbenchmark-dev libbenchmark1debian)
export build=$PWD/build/gpu results=$PWD/build/gpu/results python=${PYTHON:-python3} photos

fetch() {
  mkdir -p "$1"
  (cd "$1" && apt-get download -q "${packages[@]}")
}

unpack() { # what the build and the programs find them by
  local root=$build/packages library
  for package in "$1"/*.deb; do dpkg -x "$package" "$root"; done
  library=$root/usr/lib/x86_64-linux-gnu
  export CMAKE_PREFIX_PATH=$root/usr LIBRARY_PATH=$library PKG_CONFIG_PATH=$library/pkgconfig
  export CPATH=$root/usr/include:$root/usr/include/x86_64-linux-gnu
  export LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# step SECONDS NAME COMMAND...: what it prints goes to NAME.txt.
step() {
  local seconds=$1 name=$2 begun=$SECONDS status=0
  shift 2
  timeout "$seconds" bash -c '"$@"' -- "$@" >"$results/$name.txt" 2>&1 || status=$?
  printf '%-28s %s  %d s\n' "$name" "$([ $status = 0 ] && echo ok || echo "FAILED ($status)")" $((SECONDS - begun))
  if [ $status != 0 ]; then tail -n 15 "$results/$name.txt" | sed 's/^/    /'; fi
}

compile() {
  cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DSTOKER_CUDA=ON -DSTOKER_BENCH=ON \
    -DCMAKE_CUDA_ARCHITECTURES=native &&
    cmake --build "$build" --target stoker_cli device_bench gpu_device_test gpu_finish_test stager_test device_loader_test
}

install_package() {
  "$python" -m pip install -q --no-deps --no-build-isolation --target "$build/site" --upgrade . \
    -Cbuild-dir="$build/python" -Ccmake.define.STOKER_CUDA=ON -Ccmake.define.CMAKE_CUDA_ARCHITECTURES=native
}

end_to_end() { # in turns, so that what else happens on the machine hits all of them
  local round threads to
  for round in 1 2 3; do
    for to in "" "--device=cuda:0"; do
      echo "--- round $round, ${to:-no device}"
      "$build/stoker" bench "$photos" --transform train --batch-size 256 --epochs 4 --json ${to:+"$to"}
    done
  done
  for threads in 1 2 4 8 16; do
    echo "--- $threads threads"
    taskset -c "0-$((threads - 1))" "$build/stoker" bench "$photos" --transform train --batch-size 256 \
      --epochs 2 --threads "$threads" --device cuda:0 --json
  done
}

training() { # FRAMEWORK LOADER
  PYTHONPATH=$build/site "$python" bench/gpu/training.py "$photos" --framework "$1" --loader "$2" \
    --workers "$(nproc)" --steps 40
}

export -f compile install_package end_to_end training

run() {
  mkdir -p "$results"
  if [ -n "${1:-}" ]; then unpack "$1"; fi
  nvidia-smi >"$results/machine.txt" 2>&1 || true
  step 200 build compile
  step 60 doctor "$build/stoker" doctor
  step 120 package install_package
  photos=${2:-$build/photos}
  if [ -z "${2:-}" ]; then step 60 photographs "$build/stoker" synth "$photos" --count 4000 --seed 1; fi
  local test
  for test in gpu/gpu_device_test gpu/gpu_finish_test gpu/stager_test pipeline/device_loader_test; do
    step 60 "$(basename "$test")" "$build/tests/$test"
  done
  step 120 device-bench "$build/bench/device_bench" cuda:0
  step 60 memcheck compute-sanitizer --tool memcheck --error-exitcode 1 "$build/tests/gpu/gpu_finish_test" --gtest_filter='*Cuda*'
  step 90 racecheck compute-sanitizer --tool racecheck --error-exitcode 1 "$build/tests/gpu/gpu_finish_test" --gtest_filter='*Cuda*'
  step 150 end-to-end end_to_end
  step 120 python-tests env PYTHONPATH="$build/site" "$python" -m pytest -q tests/python/test_gpu.py
  local framework loader
  for framework in torch jax; do
    for loader in stoker usual; do step 90 "training-$framework-$loader" training $framework $loader; done
  done
  echo "--- what was measured"
  cat "$results"/device-bench.txt "$results"/training-*.txt
}

case "${1:-}" in
  fetch | run) "$@" ;;
  *) sed -n '2,15s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit 2 ;;
esac
