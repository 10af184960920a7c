#!/usr/bin/env bash
# Everything that needs a GPU, in one go: builds with CUDA, tests on the device, sanitizes the kernel,
# measures copies, kernel, end to end, and training steps. Meant to take under 8 minutes on 16 cores;
# not run yet.
#
#   bench/gpu/measure.sh fetch DIR      where there is a package registry, on Debian 12 amd64: download
#                                       what the build needs
#   bench/gpu/measure.sh run [DIR] [PHOTOS]
#                                       on the machine with the GPU; DIR: what `fetch` has downloaded,
#                                       where the packages are not installed; PHOTOS: a folder of
#                                       photographs (else some are made)
#
# Folders are named from the checkout's root. Results go to build/on-gpu/results/, a file each, and are
# summed up at the end, and packed into $OUT/results.tgz where OUT names a folder. What failed, and what
# there was no time for, is said; the rest goes on, and the exit code is 1. A test that is skipped has
# failed. Needs nvcc, CMake, Ninja, and a Python with torch, torchvision, jax, cupy, numpy, pytest,
# pybind11 and scikit-build-core (python3, or what PYTHON says).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly packages=(libtbb-dev libtbb12 libtbbmalloc2 libtbbbind-2-5 libhwloc15 liburing-dev liburing2
  libjpeg62-turbo-dev libjpeg62-turbo libturbojpeg0-dev libturbojpeg0 libspng-dev libspng0 libarchive-dev libcurl4-openssl-dev libprotozero-dev libwebp-dev
  libwebp7 libwebpdemux2 libwebpmux3 libhwy-dev libhwy1 libcli11-dev nlohmann-json3-dev libfmt-dev libfmt9
  zlib1g-dev libgtest-dev libgmock-dev googletest libbenchmark-dev libbenchmark1debian
  pkg-config pkgconf pkgconf-bin libpkgconf3)
readonly last_begin=470 last_end=560 # seconds after which no step begins, and none goes on
export PATH=$PATH:/usr/local/cuda/bin
export build=$PWD/build/on-gpu python=${PYTHON:-python3} photos
readonly results=$build/results
failed=0 not_run=0

fetch() {
  mkdir -p "$1"
  (cd "$1" && apt-get download -q "${packages[@]}")
}

unpack() { # what the build and the programs find them by
  local root=$build/packages library
  for package in "$1"/*.deb; do dpkg -x "$package" "$root"; done
  library=$root/usr/lib/x86_64-linux-gnu
  export PATH=$root/usr/bin:$PATH
  export CMAKE_PREFIX_PATH=$root/usr LIBRARY_PATH=$library PKG_CONFIG_PATH=$library/pkgconfig
  export CPATH=$root/usr/include:$root/usr/include/x86_64-linux-gnu
  export LD_LIBRARY_PATH=$library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
}

# Whether a test run skipped something or had nothing to run: its exit code is 0 then.
left_out() {
  grep -qE '^\[  SKIPPED \]|^\[  PASSED  \] 0 tests|[0-9]+ skipped.* in [0-9.]+s|no tests ran' "$1"
}

# step SECONDS NAME COMMAND...: what it prints goes to NAME.txt.
step() {
  local seconds=$1 name=$2 begun=$SECONDS status=0 verdict=ok
  shift 2
  if [ "$SECONDS" -gt $last_begin ]; then
    not_run=$((not_run + 1))
    printf '%-28s NOT RUN: no time left\n' "$name"
    return
  fi
  if [ "$seconds" -gt $((last_end - SECONDS)) ]; then seconds=$((last_end - SECONDS)); fi
  timeout -k 5 "$seconds" bash -ec '"$@"' -- "$@" >"$results/$name.txt" 2>&1 || status=$?
  if [ $status != 0 ]; then
    verdict="FAILED ($status)"
  elif left_out "$results/$name.txt"; then
    verdict="FAILED (something was skipped, or nothing run)"
  fi
  printf '%-28s %s  %d s\n' "$name" "$verdict" $((SECONDS - begun))
  if [ "$verdict" != ok ]; then
    failed=$((failed + 1))
    tail -n 15 "$results/$name.txt" | sed 's/^/    /'
  fi
}

compile() {
  cmake -G Ninja -S . -B "$build" -DCMAKE_BUILD_TYPE=Release -DSTOKER_CUDA=ON -DSTOKER_BENCH=ON \
    -DCMAKE_CUDA_ARCHITECTURES=native
  cmake --build "$build" --target stoker_cli device_bench gpu_device_test gpu_deferred_ops_test stager_test \
    device_loader_test
}

doctor() {
  "$build/stoker" doctor
  "$build/stoker" doctor --json >"$build/doctor.json"
}

# Says why no device can be used; nothing where one can.
why_no_device() {
  "$python" -c 'import json, sys; print(json.load(sys.stdin)["cuda"]["why_not"] or "")' <"$build/doctor.json"
}

install_package() {
  "$python" -m pip install -q --no-index --disable-pip-version-check --no-deps --no-build-isolation \
    --target "$build/site" --upgrade . -Cbuild-dir="$build/python" -Ccmake.define.STOKER_CUDA=ON \
    -Ccmake.define.CMAKE_CUDA_ARCHITECTURES=native
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
    if [ "$threads" -gt "$(nproc)" ]; then break; fi
    echo "--- $threads threads"
    taskset -c "0-$((threads - 1))" "$build/stoker" bench "$photos" --transform train --batch-size 256 \
      --epochs 2 --threads "$threads" --device cuda:0 --json
  done
}

training() { # FRAMEWORK LOADER
  PYTHONPATH=$build/site "$python" bench/gpu/training.py "$photos" --framework "$1" --loader "$2" \
    --workers "$(nproc)"
}

export -f compile doctor install_package end_to_end training

end_to_end_in_short() { # one line a run
  "$python" - "$results/end-to-end.txt" <<'END'
import json
import sys

name = ""
for line in open(sys.argv[1]):
    if line.startswith("---"):
        name = line[4:].strip()
    elif line.startswith("{"):
        run = json.loads(line)
        figures = {k: run[k] for k in ("images_per_second", "cpu_seconds_per_1000_images") if k in run}
        figures.update(run.get("device") or {})
        numbers = (f"{v:.4g}" if isinstance(v, float) else json.dumps(v) for v in figures.values())
        print(f"{name}:", ", ".join(f"{k} {n}" for k, n in zip(figures, numbers)))
END
}

sum_up() {
  local status=$? name
  set +e
  for name in doctor device-bench; do
    if [ -f "$results/$name.txt" ]; then echo "--- $name" && cat "$results/$name.txt"; fi
  done
  if [ -f "$results/end-to-end.txt" ]; then echo "--- end to end" && end_to_end_in_short; fi
  for name in python-tests memcheck racecheck; do
    if [ -f "$results/$name.txt" ]; then echo "--- $name: $(tail -n 1 "$results/$name.txt")"; fi
  done
  echo "--- training"
  cat "$results"/training-*.txt 2>/dev/null | grep '^{'
  echo "--- $failed failed, $not_run not run, $SECONDS s"
  [ -n "${OUT:-}" ] && tar czf "$OUT/results.tgz" -C "$build" results
  if [ "$failed" != 0 ] || [ "$not_run" != 0 ]; then status=1; fi
  exit $status
}

run() {
  rm -rf "$results"
  mkdir -p "$results"
  trap sum_up EXIT
  if [ -n "${1:-}" ]; then unpack "$1"; fi
  nvidia-smi >"$results/machine.txt" 2>&1 || true
  step 200 build compile
  step 60 doctor doctor
  if [ $((failed + not_run)) != 0 ]; then echo "Without these there is nothing to measure." && exit 1; fi
  local why test framework loader
  why=$(why_no_device)
  if [ -n "$why" ]; then echo "There is no GPU to measure on: $why" && exit 1; fi

  step 120 package install_package
  photos=${2:-$build/photos}
  if [ -z "${2:-}" ]; then step 60 photographs "$build/stoker" synth "$photos" --count 16000 --seed 1; fi
  # On made-up devices only: that the library and its tests go together with this machine's driver.
  step 60 gpu_device_test "$build/tests/gpu/gpu_device_test"
  for test in gpu/stager_test pipeline/device_loader_test; do
    step 60 "$(basename "$test")" "$build/tests/$test" --gtest_filter='*/Cuda'
  done
  local -r deferred=("$build/tests/gpu/gpu_deferred_ops_test" --gtest_filter='*Cuda*')
  step 60 gpu_deferred_ops_test "${deferred[@]}"
  step 120 device-bench "$build/bench/device_bench" cuda:0
  step 60 memcheck compute-sanitizer --tool memcheck --error-exitcode 1 "${deferred[@]}"
  step 90 racecheck compute-sanitizer --tool racecheck --error-exitcode 1 "${deferred[@]}"
  step 150 end-to-end end_to_end
  step 120 python-tests env PYTHONPATH="$build/site" STOKER_PHOTOS="$photos" \
    "$python" -m pytest -q -rs tests/python/test_gpu.py
  for framework in torch jax; do
    for loader in stoker usual; do
      step 90 "training-$framework-$loader" training "$framework" "$loader"
    done
  done
}

case "${1:-}" in
  fetch | run) "$@" ;;
  *) sed -n '2,/^set /{/^#/s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" && exit 2 ;;
esac
