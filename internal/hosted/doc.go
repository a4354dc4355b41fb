// Package hosted makes tools of a file, for "stepjet worker" and for dev mode: built-in ones, programs to execute and
// HTTP requests to send. docs/tools-file.md describes every field, and a test holds the page and this package to each
// other.
//
//	{"tools": [
//	  {"builtin": "arithmetic"},
//	  {"name": "json_query", "description": "…", "inputSchema": {…}, "annotations": {…}, "x-orchestration": {…},
//	   "exec": {"argv": ["jq", "-c", "{{filter}}"], "stdin": "arguments"}},
//	  {"name": "get_city", "description": "…", "inputSchema": {…},
//	   "http": {"method": "GET", "url": "https://api.example.com/v1/{city}", "query": {"lang": "{lang}"}}}
//	]}
//
// # Safety
//
// Arguments come from a model, and so from whoever wrote what it has read. They are data and nothing else: one stays
// within its element of the command line, its segment of a path, its parameter of a query, whatever it holds; it can't
// be taken for an option; it chooses neither program nor host. What it can't be put into is refused before anything is
// started or sent.
//
// A program gets none of the worker's variables but a few that it can't run without and those that the file names,
// never the worker's own settings. A request reaches public addresses alone, unless the file says otherwise, and then
// its own host alone; the address is looked at when the connection is made, after the name was resolved.
//
// # Liveness
//
// A call ends with its context, its timeout, or its limit of output. What a program started is killed with it, also
// what left its process group (on Linux). A worker that is itself killed (-9) can't do that: its programs run on beside
// the redelivered step, so one with effects has to make use of the idempotency key.
//
// # Failure
//
// A file is read strictly, and all its problems are reported at once, each with its place as a JSON pointer. What may
// pass by itself (an exit code, a connection, a status such as 503) is tool_failed and may be tried again; what can't
// be helped by that is tool_terminal. Values of secret context keys are taken out of messages.
package hosted
