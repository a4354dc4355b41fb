#!/usr/bin/env bash
# Checks the worker against the protocol, then lets it do the steps of a plan. $1 is the stepjet command.
set -euo pipefail
stepjet=$(realpath "$1")
cd "$(dirname "$0")"

# What "stepjet init" makes has what npm has just installed here.
made=$(mktemp -d)
"$stepjet" init ts "$made/my-worker" --stepjet ../.. --quiet > /dev/null
cp -r node_modules "$made/my-worker/"
(cd "$made/my-worker" && npm test)

lines=$(wc -l < worker.ts)
if [ "$lines" -gt 100 ]; then echo "worker.ts has $lines lines, more than 100"; exit 1; fi

plan() { # a request, and what the planner answers
  if [ "$(echo "$1" | node dist/planner.js)" != "$2" ]; then echo "the planner answers another than $2 to $1"; exit 1; fi
}
asked='"input":{"topic":"tides"},"tools":[{"name":"search"}],"max_rounds":20,"final":false'
plan "{$asked,\"rounds\":[],\"round\":0}" '{"steps":[{"id":"search","tool":"search","arguments":{"q":"tides"}}]}'
plan "{$asked,\"rounds\":[{\"round\":0,\"records\":[{\"id\":\"search\",\"tool\":\"search\",\"status\":\"succeeded\",\"result\":7}]}],\"round\":1}" \
  '{"output":{"found":[7],"failed":0}}'

data=$(mktemp -d)
"$stepjet" conformance worker -- node dist/worker.js | tee "$data/conformance"
if grep -q '^!' "$data/conformance"; then echo "the worker could do better"; exit 1; fi

"$stepjet" dev --data "$data" --listen 127.0.0.1:0 -o json > "$data/address" &
dev=$!
worker=
# The worker goes first, so that it can finish; each has gone when wait returns.
end() { for pid in $worker $dev; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done; rm -rf "$data" "$made"; }
trap end EXIT
until [ -s "$data/address" ]; do kill -0 $dev; sleep 0.1; done
url=$(node -p 'JSON.parse(require("fs").readFileSync(process.argv[1], "utf8")).url' "$data/address")
NATS_URL=$url node dist/worker.js &
worker=$!
(cd "$made/my-worker" && NATS_URL=$url exec node dist/worker.js) &
worker="$worker $!"
# The worker with a planner in the place of its tool.
mkdir -p dist/writing
cp dist/*.js dist/writing/ && mv dist/writing/writing.js dist/writing/tool.js
NATS_URL=$url node dist/writing/worker.js &
worker="$worker $!"
# The planner that reads a request and writes an answer, as a program.
"$stepjet" worker --url "$url" --tools planner.json &
worker="$worker $!"
for tool in conformance get_weather writing searching; do
  until "$stepjet" tools show $tool --url "$url" > "$data/tool" 2>&1; do for pid in $worker; do kill -0 "$pid"; done; sleep 0.1; done
done
"$stepjet" run --quiet -o json --url "$url" plan.json > "$data/outcome"
node -e '
  const outcome = JSON.parse(require("fs").readFileSync(process.argv[1], "utf8"));
  console.log("a plan through the worker:", JSON.stringify(outcome.results));
  process.exit(outcome.results?.join === "London slept" ? 0 : 1);' "$data/outcome"
said=$("$stepjet" run --quiet -o json --url "$url" "$made/my-worker/plan.json")
case $said in
*'"said":"Tokyo is 8.5 degrees warmer than London"'*) echo "a plan through the worker that was made: $said" ;;
*) echo "the worker that was made: $said"; exit 1 ;;
esac
said=$("$stepjet" run --quiet -o json --url "$url" streamed.json)
case $said in
*'"a":"it began while the answer was written"'*) echo "an agent whose planner hands over its steps: $said" ;;
*) echo "an agent whose planner hands over its steps: $said"; exit 1 ;;
esac
said=$("$stepjet" run --quiet -o json --url "$url" planned.json)
case $said in
*'"a":{"found":[{"q":"tides"}],"failed":0}'*) echo "an agent whose planner is a program: $said" ;;
*) echo "an agent whose planner is a program: $said"; exit 1 ;;
esac
