#!/bin/sh
# $1 is the level; the arguments come as JSON on standard input. A step that is executed again has the same STEPJET_KEY,
# so its entry is written once. What is printed is no JSON, so the step's result is a string.
set -e
if ! grep -qsF "$STEPJET_KEY " "$JOURNAL"; then
	printf '%s %s %s %s\n' "$STEPJET_KEY" "${STEPJET_CONTEXT_USER:-nobody}" "$1" "$(cat)" >>"$JOURNAL"
fi
echo "written, attempt $STEPJET_ATTEMPT"
