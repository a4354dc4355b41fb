// Package hosted makes tools of a file, for the program toolworker and for dev mode: built-in ones, programs to execute
// and HTTP requests to send. docs/tools-file.md describes it.
//
//	{"tools": [
//	  {"builtin": "arithmetic"},
//	  {"name": "json_query", "description": "…", "inputSchema": {…}, "annotations": {…}, "x-orchestration": {…},
//	   "exec": {"argv": ["jq", "-c", "{{filter}}"], "stdin": "arguments"}},
//	  {"name": "get_city", "description": "…", "inputSchema": {…},
//	   "http": {"method": "GET", "url": "https://api.example.com/v1/{city}", "query": {"lang": "{lang}"}}}
//	]}
//
// Each tool has exactly one of builtin, exec and http. Fields that nobody knows are refused, and all problems of a file
// are reported at once, each with its place as a JSON pointer. The limits of a file are 16 MiB and a depth of 64.
//
// # builtin
//
// The name of a group (arithmetic, text, json, or all for these three; demo, nestful), or of one tool. One tool may be given
// another name, title, description, tenants or x-orchestration than it has. The tools of demo (sleep, fail) and nestful (a
// data set's, some of which bear the names of those in arithmetic) are hosted only where a file names them.
//
// # exec
//
// A program is started directly, never through a shell.
//
//   - argv: the program and its arguments. {{name}} stands for the argument of that name, which is a string, a number or a
//     boolean; {{{{ stands for two braces. What is put in stays within its element: it can't become another argument.
//     The program itself can't hold a placeholder.
//   - allow_dash: names of arguments that may begin an element with "-". All others may do so only after an element "--",
//     so that no argument can be taken for an option.
//   - stdin: "arguments" (the arguments as JSON) or "none" (default).
//   - timeout_ms: after which the program and its process group are killed; by default the tool's own contract decides.
//   - output_limit_bytes: of standard output, 1 MiB by default, 64 MiB at most. A program that prints more is killed and
//     the step fails with too_large.
//   - env: "NAME=value" sets a variable, "NAME" passes the worker's own on. Nothing else is passed on but PATH, LANG,
//     LC_ALL, LC_CTYPE, TZ and TMPDIR; NATS_* and STEPJET_* can't be. STEPJET_KEY (the idempotency key),
//     STEPJET_RETRIED_KEY (what the step had in the run that this one retries, if any), STEPJET_ATTEMPT, STEPJET_TENANT,
//     STEPJET_RUN, STEPJET_STEP and TRACEPARENT are set for every call.
//   - context: keys of the run's out-of-band context that the program gets, as STEPJET_CONTEXT_<KEY>: upper-cased, all but
//     letters and digits as "_". What the run doesn't have is not set. Nothing of the context is passed on unasked.
//   - dir: working directory, relative to the file's own; the file's own by default.
//
// Exit code 0 is success, and the output is standard output without its trailing newlines: JSON where it is valid JSON,
// else a string. Any other exit code is tool_failed, with the end of standard error in the message. What the program
// leaves running in its process group is killed when it ends. A worker that is itself killed (-9) can't do that: its
// programs run on beside the redelivered step, so one that has effects must make use of STEPJET_KEY.
//
// # http
//
//   - method: GET (default), HEAD, POST, PUT, PATCH or DELETE.
//   - url: http or https. {name} in the path stands for an argument, escaped so that it stays within its segment; {{ stands
//     for a brace. Scheme, host and port can't hold placeholders.
//   - query: parameters to add; a value that is nothing but {name} is left out where the argument is absent.
//   - headers: sent as they are; ${env:NAME} is the worker's environment variable, for credentials. ${context:key} is a
//     value of the run's out-of-band context: a header that is nothing but it is left out where the run has no such key, in
//     any other the key must be there. Nothing of the context is sent unasked.
//   - body: "arguments" (the arguments as JSON) or "none" (default).
//   - allow_private: also reach loopback, private, link-local and other addresses that are not public. This holds for the
//     host of the url alone, not for one that it redirects to.
//   - timeout_ms; output_limit_bytes of the response's body, 1 MiB by default, 64 MiB at most.
//
// Addresses are checked when a connection is made, after names were resolved, so that a name can't lead to a private
// address at the second look. Proxies of the environment are not used. At most 5 redirects are followed, none from https
// to http; configured headers are not sent to another host, nor is a body. Each request carries Idempotency-Key, in a run that
// retries another Stepjet-Retried-Key (what the step had there, if any) and, where the plan came with one, traceparent. 2xx is success; 408, 425, 429 and 5xx are tool_failed and may be tried again, not
// before Retry-After has passed; any other status is tool_terminal.
//
// # Batches
//
// A tool whose x-orchestration has a batch is given {argument: [item, …], …} as its arguments, of many steps, and answers
// {"results":[{"index":0,"status":"ok","data":…},{"index":1,"status":"error","error":{"message":…}}],"summary":{…}}. Only
// steps go together that agree in the context keys which the tool asks for. A call for more than one step has no
// STEPJET_KEY and no Idempotency-Key, nor any of the other variables and headers that tell of a step.
package hosted
