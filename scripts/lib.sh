# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Shared by the scripts: install what the build needs on Debian 12.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"

packages="gcc g++ cmake ninja-build pkg-config llvm-22-dev llvm-22-tools libyaml-dev libjansson-dev check libzstd-dev zlib1g-dev"

# Installs the packages that are missing; asks for root only then.
install_packages() {
  missing=""
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing="$missing $package"
  done
  [ -n "$missing" ] || return 0
  echo "installing:$missing"
  sudo=""
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "need root (or sudo) to install:$missing" >&2; exit 1; }
    sudo=sudo
  fi
  $sudo apt-get update -qq
  # shellcheck disable=SC2086 # a list of package names
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# Configures (once; with ccache where there is one) and builds a preset.
build_preset() {
  preset=$1
  shift
  launcher=""
  command -v ccache >/dev/null && launcher="-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache"
  # shellcheck disable=SC2086 # options
  [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" $launcher >/dev/null
  cmake --build --preset "$preset" "$@"
}
