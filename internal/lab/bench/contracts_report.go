package bench

import (
	"fmt"
	"os"
	"strings"

	"github.com/stepjet/stepjet/fault"
)

// The lines between which the figures stand in docs/contracts.md.
const (
	figuresBegin = "<!-- figures: written by make bench-contracts -->"
	figuresEnd   = "<!-- end of figures -->"
)

// Insert writes the figures between their marks in a document.
func (c *Contracts) Insert(path string) error {
	b, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(b), figuresBegin)
	_, after, closed := strings.Cut(rest, figuresEnd)
	if !found || !closed {
		return fault.New(fault.InvalidConfig, "%s has no marks for the figures", path).
			WithHint("it needs the lines %s and %s", figuresBegin, figuresEnd)
	}
	return write(path, []byte(before+figuresBegin+"\n"+c.Markdown()+figuresEnd+after))
}

// Markdown returns the figures for people.
func (c *Contracts) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, version %s, %s; server, orchestrator, workers and agents in one process.\n",
		c.Time.UTC().Format("2006-01-02 15:04 MST"), c.Version, c.Machine)
	b.WriteString("\n**A small run beside a huge one.** A chain of three steps, first on an idle system, then beside runs of 9,999 steps of another tenant that call the same tool or another, one after the other without a pause. Milliseconds from submit to outcome.\n\n")
	b.WriteString("| tool, limit | the huge runs' tool | small runs | idle p50 | idle p99 | beside p50 | beside p99 | p99 ratio | steps/s of the huge runs |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, f := range c.Fairness {
		fmt.Fprintf(&b, "| %s, %d | %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.0f |\n", f.Tool, f.Limit, f.Beside, f.Runs,
			f.IdleP50, f.IdleP99, f.BesideP50, f.BesideP99, f.Ratio(), f.HugeSteps)
	}
	b.WriteString("\n**Leases.** 1,000 ready steps of four runs, ten workers of 64 slots each, executions of 2 ms. The most at a time is computed from the complete log of all workers.\n\n")
	b.WriteString("| limit | most at a time | seconds | at best |\n|---|---|---|---|\n")
	for _, l := range c.Leases {
		fmt.Fprintf(&b, "| %d | %d | %.2f | %.2f |\n", l.Limit, l.Most, l.Seconds, l.Best)
	}
	fmt.Fprintf(&b, "\n**A step that waits for its next attempt holds no slot.** At a tool of one slot, %d steps of other runs were executed between the two attempts of a step that failed with `retry_after_ms` %.0f; the second attempt began %.0f ms after the first.\n",
		c.Retrying.Through, c.Retrying.AskedMS, c.Retrying.PauseMS)
	b.WriteString("\n**Batches.** Runs of 100 items each call a tool of which one call takes 2 ms, with a batch of at most 50 and without; limit 512, one worker of 8 slots.\n\n")
	b.WriteString("| runs | steps | calls | items a call | seconds | without batches |\n|---|---|---|---|---|---|\n")
	for _, x := range c.Batches {
		fmt.Fprintf(&b, "| %d | %d | %d | %.1f | %.3f | %.3f |\n", x.Runs, x.Steps, x.Calls,
			float64(x.Steps)/float64(max(x.Calls, 1)), x.Seconds, x.Single)
	}
	c.gatheringText(&b)
	r := c.Registry
	fmt.Fprintf(&b, "\n**A large registry.** %d tools in %d step streams: %.1f ms to register one, %.0f ms to list all; exported as OpenAI tools %.0f kB, the `execute_tool_plan` tool that names them all %.0f kB.\n",
		r.Tools, r.Streams, r.RegisterMS, r.ListMS, r.ExportKB, r.MetaKB)
	return b.String()
}
