// Package chaos runs Stepjet as real processes, harms them as a bad day would, and checks what came out.
//
// NATS servers, orchestrators, workers and agents are processes of their own: in network namespaces where the harness
// runs as root with the command ip at hand, else on ports of the loopback interface. Agents and workers keep logs that
// are flushed to the disk line by line. For power cuts and full disks a server's store lies on a block device of its
// own, which needs root. A Scenario injects one kind of fault again and again; then everything is healed, the agents
// finish what they began, and Check reads the logs, the ledger, the history, the dead letters and the step streams and
// verifies the invariants I1 to I15.
//
// Nothing is left to luck that can be computed: the plan of a run, what its tools do and what it must come to all
// follow from the run's id (package reference makes and runs them), so a worker needs to be told nothing.
//
// Safety: faults go only to processes that the harness started, by their process ids, and to namespaces that it made.
// Liveness: every wait has a deadline. A process ends when the pipe to its parent does, so that a harness that is
// itself killed leaves nothing running. Failure: what was started is ended and what was made is removed, also after an
// error or an interrupt; namespaces left by a harness that was killed are removed by the next.
package chaos
