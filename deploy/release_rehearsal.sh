#!/usr/bin/env bash
# Makes a release by GoReleaser itself, of a tag that only a clone has, and looks into it as a user would: GoReleaser's own
# check of .goreleaser.yaml; the archives of this platform, checksums, the sources, syft's bills of materials; the images, by
# buildah where a release has docker, pushed to a registry of this run's and started out of it; cosign's signatures of
# checksums and images, by a key of this run's where a release has the identity of its workflow. Nothing leaves the machine.
# ALL=1 makes all platforms. The first time, the tools take half an hour to build; bin/tools keeps them. Takes root for the
# images: IMAGES=off leaves them out.
set -euo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
tools=$PWD/bin/tools
made=$(mktemp -d)
started=()
trap 'kill "${started[@]}" 2>/dev/null || true; wait; rm -rf "$made"' EXIT
have() { [ -x "$tools/$1" ] || GOBIN="$tools" GOFLAGS=-mod=mod $go install "$2"; }
have goreleaser github.com/goreleaser/goreleaser/v2@v2.15.2
have syft github.com/anchore/syft/cmd/syft@v1.52.0
have cosign github.com/sigstore/cosign/v3/cmd/cosign@v3.1.3
have registry github.com/google/go-containerregistry/cmd/registry@v0.20.7
export PATH=$tools:$PATH SYFT_CHECK_FOR_APP_UPDATE=false
. deploy/images.sh
serve() { # NAME, what it prints once it is there, and the program with its arguments
  local log=$made/$1.log words=$2
  shift 2
  "$@" >"$log" 2>&1 &
  started+=($!)
  for _ in {1..150}; do
    if grep -q "$words" "$log"; then return; fi
    sleep 0.1
  done
  cat "$log"
  exit 1
}

goreleaser check
os=$($go env GOOS) arch=$($go env GOARCH) skip=before,announce version=v0.0.0-rehearsal
serve registry 'serving on port' registry -port 0
at=localhost:$(sed -n 's/.*serving on port //p' "$made/registry.log")
sed "s,ghcr\.io/,$at/,; s/^  draft: true.*/  disable: true/" .goreleaser.yaml >"$made/config.yaml"
if [ -z "${ALL:-}" ]; then
  sed -i "s/goos: \[linux, .*\]$/goos: [$os]/; s/goos: \[linux\]/goos: [$os]/; s/goarch: \[amd64, arm64\]/goarch: [$arch]/; s,platforms: \[.*\],platforms: [linux/$arch]," "$made/config.yaml"
fi
if [ "${IMAGES:-}" = off ]; then
  skip=$skip,docker
else
  mkdir "$made/store" "$made/path"
  store "$made/store"
  ln -s "$PWD/deploy/release/docker" "$made/path/docker"
  export PATH=$made/path:$PATH
fi

# cosign reads from its environment what the configuration does not say: a key, and that nobody is asked for certificates,
# times or entries of a log. So what a release runs is run, word for word, and reaches no network.
export COSIGN_PASSWORD='' COSIGN_SIGNING_CONFIG=$made/services.json COSIGN_TRUSTED_ROOT=$made/roots.json COSIGN_ALLOW_HTTP_REGISTRY=true
cosign signing-config create --out "$COSIGN_SIGNING_CONFIG"
cosign trusted-root create --out "$COSIGN_TRUSTED_ROOT"
(cd "$made" && cosign generate-key-pair 2>/dev/null && mkdir other && cd other && cosign generate-key-pair 2>/dev/null)

git clone --quiet --depth 1 "file://$PWD" "$made/stepjet"
git -C "$made/stepjet" tag $version
(cd "$made/stepjet" && COSIGN_KEY=$made/cosign.key goreleaser release --clean "--skip=$skip" -f "$made/config.yaml")

cd "$made/stepjet/dist"
sha256sum --quiet -c checksums.txt
for archive in *.tar.gz *.zip; do
  [ -e "$archive" ] || continue
  grep -q "  $archive\$" checksums.txt || { echo "checksums.txt has no $archive"; exit 1; }
  sbom=$archive.sbom.json
  grep -q "  $sbom\$" checksums.txt || { echo "checksums.txt has no $sbom"; exit 1; }
  grep -q '"spdxVersion":' "$sbom" || { echo "$sbom is no bill of materials"; exit 1; }
  grep -q 'nats-io/nats.go' "$sbom" || { echo "$sbom does not say what $archive is made of"; exit 1; }
  echo "$archive: $(stat -c %s "$archive") bytes, $(grep -o '"SPDXID": *"SPDXRef-Package' "$sbom" | wc -l) packages in its bill of materials"
done

# A signature holds for what it is of and this key, and for no other.
holds() { # the public key, and what to verify
  case $2 in
  *.txt) set -- verify-blob --key "$1" --bundle checksums.txt.sigstore.json "$2" ;;
  *) set -- verify --key "$1" "$2" ;;
  esac
  cosign "$@" --insecure-ignore-tlog >"$made/said" 2>&1
}
signed() {
  holds "$made/cosign.pub" "$1" || { cat "$made/said"; exit 1; }
  if holds "$made/other/cosign.pub" "$1"; then echo "the signature of $1 holds for another key"; exit 1; fi
  echo "$1: signed"
}
signed checksums.txt
sed '1s/^./x/' checksums.txt >"$made/changed.txt"
if holds "$made/cosign.pub" "$made/changed.txt"; then echo "the signature of checksums.txt holds for others"; exit 1; fi

# Each program says the version that the release has.
for archive in stepjet stepjet-programs; do
  mkdir "$archive" && tar -xzf "${archive}_${version#v}_${os}_${arch}.tar.gz" -C "$archive"
done
for file in LICENSE README.md CHANGELOG.md llms.txt skills/stepjet/SKILL.md; do
  [ -s "stepjet/$file" ] || { echo "the archive of stepjet has no $file"; exit 1; }
done
says() { # WHAT, and what it said on standard input
  case $(cat) in *"$version"*) echo "$1 says $version" ;; *) echo "$1 does not say $version"; exit 1 ;; esac
}
./stepjet/stepjet version | says stepjet
for program in orchestrator toolworker modelworker; do
  ./stepjet-programs/$program --version | says $program
done
NO_COLOR=1 ./stepjet/stepjet run - --data "$made/run" <"../examples/plans/weather.json" | grep 'degrees warmer'

# While they run they say it too: in pings, beats and metrics.
ask() { # ADDRESS, and what to send it; prints what comes back within two seconds
  exec 3<>"/dev/tcp/${1%:*}/${1#*:}"
  printf '%b' "$2" >&3
  timeout 2 cat <&3 || true
  exec 3>&-
}
serve dev 'is up' ./stepjet/stepjet dev --ui off --listen 127.0.0.1:0 --data "$made/dev"
url=$(grep -om1 'nats://[0-9.:]*' "$made/dev.log")
for program in orchestrator toolworker; do
  serve $program msg=ready ./stepjet-programs/$program --url "$url" --health 127.0.0.1:0
  ask "$(sed -n 's/.*health endpoint.* address=\([0-9.:]*\).*/\1/p' "$made/$program.log")" 'GET /metrics HTTP/1.0\r\n\r\n' |
    grep '^stepjet_build_info' | says "build_info of $program"
done
ask "${url#nats://}" 'CONNECT {"verbose":false}\r\nSUB _INBOX.v 1\r\nPUB api.ping _INBOX.v 0\r\n\r\n' | grep '"member"' | says "a ping"
beats=$(./stepjet/stepjet workers --url "$url" -o json | grep -o '"version":"[^"]*"' | sort | uniq -c | tr -s ' ')
[ "$beats" = " 2 \"version\":\"$version\"" ] || { echo "beats do not say $version: $beats"; exit 1; }
echo "beats of both workers say $version"

if [ "${IMAGES:-}" != off ]; then
  cd "$made/stepjet"
  for program in $images; do
    image=$at/stepjet/stepjet-$program:${version#v}
    signed "$image"
    buildah pull -q --tls-verify=false --signature-policy "$IMAGE_POLICY" "$image" >/dev/null
    starts "$image" "$program"
  done
fi
