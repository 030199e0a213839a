# Shared by ./quickstart and ./check: packages, Python tools, configure, build.
# Sourced with `set -euo pipefail`, in the root of the checkout.

export DEBIAN_FRONTEND=noninteractive
jobs=${JOBS:-$(nproc)}
step_index=0
start_seconds=$SECONDS

# step TEXT: says what happens now and how long everything took so far.
step() {
  step_index=$((step_index + 1))
  printf '\n==> %d. %s (%d s)\n' "$step_index" "$1" \
    "$((SECONDS - start_seconds))"
}

# fail TEXT: the one clear line at the end.
fail() {
  printf '%s: %s\n' "$(basename "$0")" "$1" >&2
  exit 1
}

# Installs what is missing of cmake/packages.txt.
install_packages() {
  local name missing=()
  command -v dpkg-query >/dev/null ||
    fail "needs Debian or Ubuntu; elsewhere install what cmake/packages.txt lists and use the CMake presets"
  while read -r name; do
    [[ -z $name || $name == \#* ]] && continue
    [[ $(dpkg-query -W -f='${db:Status-Status}' "$name" 2>/dev/null) == installed ]] ||
      missing+=("$name")
  done <cmake/packages.txt
  if [[ ${#missing[@]} == 0 ]]; then
    echo "all packages are installed"
    return
  fi
  local as_root=()
  if [[ $(id -u) != 0 ]]; then
    command -v sudo >/dev/null ||
      fail "needs root to install: ${missing[*]}"
    as_root=(sudo)
  fi
  echo "installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q </dev/null >/dev/null ||
    echo "apt-get update reported errors; trying with the lists at hand"
  "${as_root[@]}" apt-get install -y -q --no-install-recommends \
    "${missing[@]}" </dev/null ||
    fail "apt-get could not install: ${missing[*]}"
}

# Python packages of cmake/requirements.txt in .venv.
install_python() {
  if cmp -s cmake/requirements.txt .venv/requirements.txt &&
    .venv/bin/python -c '' 2>/dev/null; then
    echo "the Python packages are installed"
    return
  fi
  python3 -m venv --clear .venv || fail "could not create .venv"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check \
    -r cmake/requirements.txt </dev/null ||
    fail "pip could not install cmake/requirements.txt"
  cp cmake/requirements.txt .venv/requirements.txt
}

# build PRESET TARGET [CMAKE_OPTION...]
build() {
  local preset=$1 target=$2
  shift 2
  cmake --preset "$preset" "$@" </dev/null >"/tmp/cleave-configure.$$" ||
    { cat "/tmp/cleave-configure.$$"; fail "could not configure '$preset'"; }
  rm -f "/tmp/cleave-configure.$$"
  cmake --build --preset "$preset" --parallel "$jobs" --target "$target" \
    </dev/null || fail "could not build '$preset'"
}
