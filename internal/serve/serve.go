// Package serve holds the programs that serve until a signal ends them, as commands: the orchestrator and the
// toolworker. The programs of these names and "stepjet orchestrator" and "stepjet worker" are the same code.
package serve
