#!/usr/bin/env bash
# Builds an image of each program that serves, as deploy/Dockerfile does in its last stage, and starts it as its own user
# on a read-only root that holds nothing else. Needs root, and Debian's buildah, which it installs where it is absent.
set -euo pipefail
cd "$(dirname "$0")/.."
.ci/debian buildah buildah
export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs
root=$(mktemp -d)
export STORAGE_OPTS= CONTAINERS_STORAGE_CONF=$root/storage.conf
printf '[storage]\ndriver = "vfs"\nrunroot = "%s/run"\ngraphroot = "%s/graph"\n' "$root" "$root" >"$root/storage.conf"
printf '{"default":[{"type":"insecureAcceptAnything"}]}\n' >"$root/policy.json"
trap 'rm -rf "$root"' EXIT
# within runs a program of a mounted image as a user, on the image's root, which is read-only; /tmp is the only place to write
# to, as an emptyDir is for a pod.
within() {
  mkdir -p "$1/tmp"
  unshare -m bash -c 'at=$1 user=$2; shift 2; mount --bind "$at" "$at" && mount -o remount,ro,bind "$at" &&
    mount -t tmpfs -o uid=65532,gid=65532,mode=700 tmpfs "$at/tmp" && exec chroot --userspec="$user" "$at" /program "$@"' - "$@"
}
for program in orchestrator toolworker modelworker stepjet; do
  mkdir -p "$root/context/out"
  cp "bin/$program" "$root/context/out/program"
  { echo "FROM scratch"; sed -n '/^COPY --from=build/,$p' deploy/Dockerfile | sed 's/^COPY --from=build \/out/COPY out/'; } >"$root/Dockerfile"
  buildah bud --signature-policy "$root/policy.json" -q -f "$root/Dockerfile" -t "$program" "$root/context" >/dev/null
  container=$(buildah from --signature-policy "$root/policy.json" "$program")
  at=$(buildah mount "$container")
  [ "$(find "$at" -type f | wc -l)" = 1 ] || { echo "there is more in the image than the program:"; find "$at" -type f; exit 1; }
  user=$(buildah inspect --format '{{.OCIv1.Config.User}}' "$container")
  [ "$user" = 65532:65532 ] || { echo "$program runs as $user"; exit 1; }
  case $program in
  # Nothing is there but the program: what it says of a server that is not there, or of a file, shows that it has begun.
  orchestrator | toolworker) args=(--url nats://127.0.0.1:1 --wait-for-nats 0) says=no_connection ;;
  modelworker) args=(--url nats://127.0.0.1:1 --models /tmp/models.json) says=/tmp/models.json ;;
  # A whole Stepjet in one process: server, orchestrator, worker, and a plan to its end.
  stepjet) args=(run - --data /tmp/data) says='8.5 degrees warmer' ;;
  esac
  said=$(within "$at" "$user" "${args[@]}" <examples/plans/weather.json 2>&1 || true)
  case $said in
  *"$says"*) echo "$program: $(stat -c %s "$at/program") bytes, runs as $user on an empty read-only root" ;;
  *) echo "$program did not run: $said"; exit 1 ;;
  esac
  buildah rm "$container" >/dev/null
done
