#!/bin/bash
# image.sh - makes an OCI image of the Debian packages, without a registry
#
# usage: mk/image.sh DEBS OUT VERSION    OUT is an archive that "podman load -i OUT" reads
#
# The packages and what they depend on come from the Debian release and the sources that apt uses here. The image has no
# service manager: a container runs one of the programs (deploy/ has examples).
set -eu
export LC_ALL=C

debs=$(realpath "$1") out=$2 version=$3
gid=971 # of group profil, which deploy/ names: whose members read the machine's profile
suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
dir=$(mktemp -d)
trap 'rm -rf "$dir"; test -z "${from:-}" || buildah rm "$from" >/dev/null' EXIT

mirrors() {
	local file

	for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do
		test ! -s "$file" || echo "$file"
	done
}

# A path takes an --include of its own.
packages=("$debs"/{profild,profilctl,profil-http,libprofil1}_*.deb)
mapfile -t mirrors < <(mirrors)
# shellcheck disable=SC2016 # mmdebstrap's
mmdebstrap --quiet --variant=essential --hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount \
	"${packages[@]/#/--include=}" --include=systemd-standalone-sysusers,libcurl4,ca-certificates \
	--dpkgopt=path-exclude=/usr/share/doc/* --dpkgopt=path-include=/usr/share/doc/*/copyright \
	--dpkgopt=path-exclude=/usr/share/man/* --dpkgopt=path-exclude=/usr/share/locale/* \
	--essential-hook="echo profil:x:$gid: >>\"\$1\"/etc/group" \
	--customize-hook='rm -rf "$1"/var/lib/apt/lists/* "$1"/var/cache/* "$1"/var/log/*' \
	--customize-hook='mkdir -p "$1"/run/profil "$1"/var/lib/profil-spool "$1"/var/lib/profil-push' \
	"$suite" "$dir/root.tar" "${mirrors[@]}"

from=$(buildah from scratch)
buildah add --quiet "$from" "$dir/root.tar" / >/dev/null
buildah config --env PROFIL_SOCKET=/run/profil/profil.sock --cmd profild \
	--label org.opencontainers.image.title=profil --label org.opencontainers.image.version="$version" \
	--label org.opencontainers.image.licenses="BSD-2-Clause OR GPL-2.0-only" "$from"
rm -f "$out"
buildah commit --quiet --format oci "$from" "oci-archive:$out:profil:$version" >/dev/null
