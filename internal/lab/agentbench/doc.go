// Package agentbench measures what agents cost, and tries what becomes of them when processes are killed: "lab agents".
// Its figures are files of the folder bench, and a part of docs/performance.md.
//
// Planners here think for no time at all and tools answer at once, so that what is measured is Stepjet. Both are hosted
// by workers in processes of their own, beside a server and an orchestrator in theirs.
package agentbench
