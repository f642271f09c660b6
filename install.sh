#!/bin/sh
# Installs svc on your PATH, without root. In an unpacked archive, or in a checkout after make build, it copies that program.
# The script of a release downloads the archive for this machine and checks its sum.
#
#   sh install.sh                                into ~/.local/bin, or /usr/local/bin as root
#   SVC_INSTALL_DIR=/opt/bin sh install.sh       into another directory
#   SVC_BASE_URL=https://… sh install.sh         from another place: a directory with the archives and SHA256SUMS
#   SVC_VERSION=0.1.0 sh install.sh              another version
set -eu

# A release writes its version and address into these two lines.
version=${SVC_VERSION:-}
base=${SVC_BASE_URL:-}

fail() {
  echo "install.sh: $1" >&2
  exit 1
}

# The last line calls main, so half a download of this script does nothing.
target() {
  case $(uname -s) in
    Linux)
      os=linux
      # Without this check the loader would fail on musl (Alpine) with an unclear error.
      if ls /lib/ld-musl-* >/dev/null 2>&1 && ! ls /lib64/ld-linux-* /lib/ld-linux-* >/dev/null 2>&1; then
        fail "svc needs glibc, this system has musl; use the container image or a system with glibc"
      fi
      ;;
    Darwin) os=macos ;;
    *) fail "there is no svc for $(uname -s); on Windows take the zip, or use WSL 2" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) echo "$os-x64" ;;
    aarch64 | arm64) echo "$os-arm64" ;;
    *) fail "there is no svc for $(uname -m)" ;;
  esac
}

fetch() {
  if command -v curl >/dev/null 2>&1; then
    curl --fail --silent --show-error --location --retry 3 --output "$2" "$1"
  elif command -v wget >/dev/null 2>&1; then
    wget -q -O "$2" "$1"
  else
    fail "needs curl or wget"
  fi || fail "cannot get $1"
}

sum_of() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1"
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 "$1"
  else
    fail "needs sha256sum or shasum to check what was downloaded"
  fi | cut -d ' ' -f 1
}

# Prints the directory of a program next to this script, or nothing. A script from a pipe has no directory.
beside() {
  case $0 in
    *install.sh) here=$(dirname "$0") ;;
    *) return ;;
  esac
  if [ -f "$here/svc" ] && [ -x "$here/svc" ]; then
    echo "$here"
  elif [ -x "$here/dist/svc" ]; then
    echo "$here/dist"
  elif [ -f "$here/main.ts" ]; then
    fail "this is a checkout without a built svc; type: make build && sh install.sh"
  fi
}

# Downloads the archive into $work, checks and unpacks it, and prints the directory of the program.
download() {
  name=svc-$version-$(target)
  archive=$name.tar.gz
  fetch "$base/SHA256SUMS" "$work/SHA256SUMS"
  wanted=$(sed -n "s/^\([0-9a-f]\{64\}\)  $archive\$/\1/p" "$work/SHA256SUMS")
  [ -n "$wanted" ] || fail "SHA256SUMS does not name $archive; there may be no build for this machine"
  fetch "$base/$archive" "$work/$archive"
  got=$(sum_of "$work/$archive")
  [ "$got" = "$wanted" ] || fail "the sum of $archive is $got and should be $wanted; nothing was installed"
  tar -xzf "$work/$archive" -C "$work"
  echo "$work/$name"
}

# Installs the man pages next to the programs. svc works without them.
install_man() {
  case $folder in
    */bin) pages=${folder%/bin}/share/man/man1 ;;
    *) return 0 ;;
  esac
  [ -f "$source/man/svc.1" ] || return 0
  mkdir -p "$pages" 2>/dev/null && cp "$source/man/svc.1" "$source/man/svc-ctl.1" "$pages" 2>/dev/null || true
}

usage() {
  echo "Installs svc on your PATH, without root.
  sh install.sh                                into ~/.local/bin, or /usr/local/bin as root
  SVC_INSTALL_DIR=/opt/bin sh install.sh       into another directory
  SVC_VERSION=0.1.0 SVC_BASE_URL=https://... sh install.sh
                                               from a directory with the archives and SHA256SUMS"
}

main() {
  case ${1:-} in
    '') ;;
    -h | --help | help)
      usage
      return 0
      ;;
    *) fail "does not know $1; it takes no arguments, only variables: sh install.sh --help" ;;
  esac
  source=
  if [ -z "$version" ] && [ -z "$base" ]; then
    source=$(beside)
    [ -n "$source" ] || fail "there is no svc here; unpack a release archive and run the install.sh in it, or build one from a checkout with: make build
  or say where a release is: SVC_VERSION=0.1.0 SVC_BASE_URL=https://... sh install.sh"
  fi
  [ -n "$source" ] || [ -n "$version" ] || fail "set SVC_VERSION, such as 0.1.0"
  [ -n "$source" ] || [ -n "$base" ] || fail "set SVC_BASE_URL to where the archives and SHA256SUMS are"
  folder=${SVC_INSTALL_DIR:-}
  if [ -z "$folder" ]; then
    if [ "$(id -u)" = 0 ]; then
      folder=/usr/local/bin
    else
      [ -n "${HOME:-}" ] || fail "HOME is not set; set SVC_INSTALL_DIR"
      folder=$HOME/.local/bin
    fi
  fi
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  [ -n "$source" ] || source=$(download)
  mkdir -p "$folder" 2>/dev/null || fail "cannot make $folder; set SVC_INSTALL_DIR"
  # A running svc keeps its file, because mv replaces the name in one step.
  cp "$source/svc" "$folder/.svc.new" 2>/dev/null || fail "cannot write to $folder; set SVC_INSTALL_DIR"
  chmod 755 "$folder/.svc.new"
  said=$("$folder/.svc.new" version) || {
    rm -f "$folder/.svc.new"
    fail "svc does not run on this machine; nothing was installed"
  }
  mv -f "$folder/.svc.new" "$folder/svc"
  install_man
  echo "$said is at $folder/svc"
  case ":$PATH:" in
    *":$folder:"*) ;;
    *) echo "add it to your PATH: export PATH=\"$folder:\$PATH\"" ;;
  esac
  echo "start it: svc serve    as a service of this machine: svc service install"
}

main "$@"
