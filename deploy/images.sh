# What the checks of images share: source it. All of it takes root, and Debian's buildah, which "store" installs where it
# is absent.

# The programs that have an image. The configuration of releases and the chart are held against it.
images="orchestrator toolworker modelworker stepjet"

# store FOLDER: buildah keeps all that it makes below the folder, and reads no configuration of the machine's.
store() {
  .ci/debian buildah buildah
  export BUILDAH_ISOLATION=chroot STORAGE_DRIVER=vfs STORAGE_OPTS= CONTAINERS_STORAGE_CONF=$1/storage.conf IMAGE_POLICY=$1/policy.json
  printf '[storage]\ndriver = "vfs"\nrunroot = "%s/run"\ngraphroot = "%s/graph"\n' "$1" "$1" >"$CONTAINERS_STORAGE_CONF"
  printf '{"default":[{"type":"insecureAcceptAnything"}]}\n' >"$IMAGE_POLICY"
}

# within ROOT USER ARGUMENT...: runs a program of a mounted image as a user, on the image's root, which is read-only; /tmp is
# the only place to write to, as an emptyDir is for a pod.
within() {
  mkdir -p "$1/tmp"
  unshare -m bash -c 'at=$1 user=$2; shift 2; mount --bind "$at" "$at" && mount -o remount,ro,bind "$at" &&
    mount -t tmpfs -o uid=65532,gid=65532,mode=700 tmpfs "$at/tmp" && exec chroot --userspec="$user" "$at" /program "$@"' - "$@"
}

# starts IMAGE PROGRAM: the image holds the program and nothing else, and starts it as a user without rights on a read-only
# root.
starts() {
  local image=$1 program=$2 container at user said says args
  container=$(buildah from --signature-policy "$IMAGE_POLICY" "$image")
  at=$(buildah mount "$container")
  [ "$(find "$at" -type f)" = "$at/program" ] || { echo "there is more in the image than the program:"; find "$at" -type f; exit 1; }
  # No certificates are there either: without its own authorities the program could verify no provider of models, no HTTPS
  # server and no NATS server of a public authority (internal/roots, whose test verifies one).
  case $(${GO:-go} version -m "$at/program") in
  *golang.org/x/crypto/x509roots/fallback*) ;;
  *) echo "$program has no authorities in it, and the image no certificates"; exit 1 ;;
  esac
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
  *"$says"*) echo "$image: $(stat -c %s "$at/program") bytes, runs as $user on an empty read-only root" ;;
  *) echo "$image did not run: $said"; exit 1 ;;
  esac
  buildah rm "$container" >/dev/null
}
