// Package agents is what an owner of runs does for the agents in them: it reads their definitions against the tools of
// the registry, or those that a run froze, and says what follows from the records of a loop. It is pure: what it asks
// for, package orchestrator carries out.
package agents
