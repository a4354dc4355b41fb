// Package dryrun tells what a plan would come to without running it: it lets the same state machine that orchestrators
// drive go through the plan, resolves references with the same resolver, and answers every call with a made-up result
// of its tool (tool.SampleOf).
//
// It is pure: no I/O, no clock. No time passes in such a run, so no timeout ends anything, and every attempt is the
// first. Calls that are ready at the same time are answered together, as though each took as long as every other.
//
// What is certain fails a step, as it would in a run: what rests on the plan's own constants, and on results that a
// tool's author gave as an example. What rests on other made-up values proves nothing, since the tool may return more,
// or something else: it is told as a doubt, and the step goes on.
//
// The work is bounded in calls and bytes, never in time; a run that would go beyond that is cut, and says so.
package dryrun

import (
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/tool/group"
)

// Tool is a tool that the plan may call, as it counts for the plan's tenant.
type Tool struct {
	Definition *tool.Definition
	Contract   tool.Contract
}

// Of returns what a plan would come to with these tools; permits is what its run may call, nil for everything. It has no outcome where the plan has problems. Errors:
// InvalidTool for a tool of the plan whose input schema can't be used.
func Of(body []byte, tools []Tool, permits *group.Permits) (*outcome.DryRun, error) {
	c := newCatalog(tools)
	c.permits = permits
	p, report := plan.Parse(body, c)
	if c.err != nil {
		return nil, c.err
	}
	d := &outcome.DryRun{Problems: notNil(report.Problems), Warnings: notNil(report.Warnings)}
	if p == nil {
		return d, nil
	}
	t := newTrial(p, c)
	t.run()
	t.describe(d)
	return d, nil
}

// notNil is never null in JSON.
func notNil(p []fault.Problem) []fault.Problem {
	if p == nil {
		return []fault.Problem{}
	}
	return p
}
