#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#   tools/_environment.sh EXTRAS COMMAND [ARGUMENT...]
#
# Runs COMMAND inside the checkout's own virtual environment, .venv, where the project is installed
# editable with the comma-separated EXTRAS. The environment is made at the first call and brought up
# to date when pyproject.toml, the interpreter behind it or the checkout's place has changed.
# TWOFOUR_PYTHON names the interpreter to make it with; without it, python3 or the newest python3.N.

set -uo pipefail

root=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
venv=$root/.venv
# Three lines: the extras, TWOFOUR_PYTHON, and what `origin` printed when the environment was made.
stamp=$venv/twofour-stamp

fail() {
  echo "error: $1" >&2
  exit 1
}

# What an installed environment depends on.
origin() {
  echo "$(sha256sum <"$root/pyproject.toml") $(readlink -f "$venv/bin/python") $root"
}

read_stamp() {
  recorded_extras='' recorded_python='' recorded_origin=''
  if [[ -f $stamp ]]; then
    { read -r recorded_extras && read -r recorded_python && read -r recorded_origin; } <"$stamp"
  fi
}

has_extra() {
  [[ ,$recorded_extras, == *,$1,* ]]
}

is_made_with_wanted_python() {
  [[ ${TWOFOUR_PYTHON:-$recorded_python} == "$recorded_python" ]]
}

# is_current EXTRAS: whether .venv can be used as it is. Every start pays for this: no Python here.
is_current() {
  local extra
  read_stamp
  [[ -x $venv/bin/python && $recorded_origin == "$(origin)" ]] || return 1
  is_made_with_wanted_python || return 1
  for extra in ${1//,/ }; do
    has_extra "$extra" || return 1
  done
}

is_python_3_10() {
  "$1" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null
}

find_python() {
  local candidate
  if [[ -n ${TWOFOUR_PYTHON:-} ]]; then
    is_python_3_10 "$TWOFOUR_PYTHON" ||
      fail "expected TWOFOUR_PYTHON to be Python >= 3.10, got '$TWOFOUR_PYTHON'"
    echo "$TWOFOUR_PYTHON"
    return
  fi
  for candidate in python3 python3.{30..10}; do
    if is_python_3_10 "$candidate"; then
      echo "$candidate"
      return
    fi
  done
  fail "expected Python >= 3.10 on PATH as python3 or python3.N, got none"
}

# Whether pip can work on the .venv that is there. One that was moved cannot be used: its commands
# begin with the path of their old place.
can_be_updated() {
  is_made_with_wanted_python &&
    is_python_3_10 "$venv/bin/python" &&
    "$venv/bin/python" -m pip --version &>/dev/null &&
    grep -qsF "$venv" "$venv/bin/activate"
}

create_with_ensurepip() {
  rm -rf "$venv"
  "$1" -m venv "$venv"
}

# Runs the system's pip under the environment's interpreter, as `pip --python` does, for which the
# pip of Ubuntu 22.04 is too old.
create_with_system_pip() {
  local pip
  rm -rf "$venv"
  pip=$("$1" -c 'import pip; print(pip.__path__[0])') &&
    "$1" -m venv --without-pip "$venv" &&
    PIP_USER=0 "$venv/bin/python" "$pip" install --quiet --ignore-installed pip
}

install_system_package() {
  local apt=(env DEBIAN_FRONTEND=noninteractive apt-get -qq)
  ((EUID == 0)) || apt=(sudo -n "${apt[@]}")
  "${apt[@]}" install -y "$1" || { "${apt[@]}" update && "${apt[@]}" install -y "$1"; }
}

can_install_system_packages() {
  command -v apt-get && { ((EUID == 0)) || sudo -n true; }
} &>/dev/null

create() {
  local python executable package=python3-venv
  python=$(find_python) || exit 1
  create_with_ensurepip "$python" >>"$log" 2>&1 && return
  create_with_system_pip "$python" >>"$log" 2>&1 && return
  # Debian and Ubuntu keep ensurepip in a package of its own, one for each of their interpreters.
  executable=$("$python" -c 'import os, sys; print(os.path.realpath(sys.executable))')
  if [[ $executable == /usr/bin/python3.* ]]; then
    package=${executable##*/}-venv
    if can_install_system_packages; then
      echo "installing the system package $package (once)" >&2
      install_system_package "$package" >>"$log" 2>&1 &&
        create_with_ensurepip "$python" >>"$log" 2>&1 && return
    fi
  fi
  rm -rf "$venv"
  if "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    cat "$log" >&2
    fail "expected '$python' to make the environment .venv, got the output above"
  fi
  fail "expected '$python' to have ensurepip or pip, got neither; \
on Debian or Ubuntu: apt-get install $package"
}

installed_packages() {
  "$venv/bin/python" -m pip freeze --all 2>/dev/null
}

# set_up EXTRAS: makes or updates .venv.
set_up() {
  local extras=$1 extra before=''
  echo "setting up .venv (once)" >&2
  log=$(mktemp) || exit 1
  trap 'rm -f "$log"' EXIT
  if can_be_updated; then
    for extra in ${recorded_extras//,/ }; do
      [[ ,$extras, == *,$extra,* ]] || extras+=,$extra
    done
    before=$(installed_packages)
    # Whatever ends this halfway leaves no stamp behind.
    mv -f "$stamp" "$stamp.old" 2>/dev/null
  else
    create
  fi
  # From within the checkout, since its path may hold characters that mean something to pip.
  (cd "$root" && PIP_USER=0 "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
    --editable ".[$extras]") >>"$log" 2>&1 || {
    cat "$log" >&2
    # What works without the update goes on working.
    [[ -n $before && $before == "$(installed_packages)" ]] &&
      mv -f "$stamp.old" "$stamp" 2>/dev/null
    fail "expected pip to install the project into .venv, got the output above"
  }
  printf '%s\n' "$extras" "${TWOFOUR_PYTHON:-$recorded_python}" "$(origin)" >"$stamp"
  rm -f "$stamp.old"
}

(($# >= 2)) || fail "expected EXTRAS COMMAND [ARGUMENT...], got $# arguments"
extras=$1
shift
if ! is_current "$extras"; then
  [[ -w $root ]] || fail "expected to make the environment .venv, got a folder that is read-only"
  (
    # Of several that start together one works, and the others find its work done.
    if command -v flock >/dev/null; then flock 9; fi
    is_current "$extras" || set_up "$extras"
  ) 9>"$root/.venv.lock" || exit 1
fi
export VIRTUAL_ENV=$venv PATH=$venv/bin:$PATH
exec "$@"
