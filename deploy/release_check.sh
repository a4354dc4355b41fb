#!/usr/bin/env bash
# Checks the configuration of releases without making one: GoReleaser's own types read it, strictly, and what it names is
# there (release/_check). GoReleaser itself, of a thousand modules, is built by "make release" alone.
set -euo pipefail
cd "$(dirname "$0")/.."
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
(cd deploy/release/_check && ${GO:-go} build -o "$made/check" .)
. deploy/images.sh
value() { sed -n "s/^  $1: //p" deploy/helm/stepjet/values.yaml; }
names=()
for program in $images; do names+=("$(value registry)/$(value prefix)$program"); done # what the chart asks for
"$made/check" . "${names[@]}"
diff <(grep -E '^(USER|ENTRYPOINT)' deploy/Dockerfile) <(grep -E '^(USER|ENTRYPOINT)' deploy/release/Dockerfile) ||
  { echo "an image of a release differs from one of deploy/Dockerfile"; exit 1; }

# The check itself finds what it is for.
found() {
  mkdir -p "$made/wrong"
  ln -sfn "$PWD"/* "$made/wrong/"
  sed "$1" .goreleaser.yaml >"$made/wrong/.goreleaser.yaml"
  if cmp -s .goreleaser.yaml "$made/wrong/.goreleaser.yaml"; then echo "$1 changes nothing"; exit 1; fi
  if "$made/check" "$made/wrong" "${names[@]}" >"$made/said" 2>&1; then echo "the check finds nothing wrong after $1"; exit 1; fi
}
found 's/mod_timestamp:/mod_timestamps:/'
found 's/ids: \[toolworker\]/ids: [toolworkers]/'
found 's/version\.set=/version.is=/'
found 's,dockerfile: deploy/release/Dockerfile,dockerfile: deploy/release/Containerfile,'
found 's/platforms: \[linux.amd64, linux.arm64\]/platforms: [linux\/amd64]/'
found 's,images: .ghcr.io.stepjet.stepjet-toolworker.,images: [ghcr.io/stepjet/toolworker],'
found 's/^docker_signs:/docker_sign:/'
