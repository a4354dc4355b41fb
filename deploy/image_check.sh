#!/usr/bin/env bash
# Builds an image of each program that serves, as deploy/Dockerfile does in its last stage, and starts it as its own user
# on a read-only root that holds nothing else. Needs root, and Debian's buildah, which it installs where it is absent.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/images.sh
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
store "$root"
for program in $images; do
  mkdir -p "$root/context/out"
  cp "bin/$program" "$root/context/out/program"
  { echo "FROM scratch"; sed -n '/^COPY --from=build/,$p' deploy/Dockerfile | sed 's/^COPY --from=build \/out/COPY out/'; } >"$root/Dockerfile"
  buildah bud --signature-policy "$IMAGE_POLICY" -q -f "$root/Dockerfile" -t "$program" "$root/context" >/dev/null
  starts "$program" "$program"
done
