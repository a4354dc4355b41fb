package orchestrator

import (
	"context"
	"encoding/json"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/orchestrator/agents"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// amending is one request to amend a scope. It is answered when this owner has read from the ledger what stands under
// the number: only its order says whether that is in force.
type amending struct {
	s      *api
	l      *loop
	m      *nats.Msg
	r      *run
	asks   wire.AmendRequest
	digest string
	// approved is whether who asks may approve, so that nobody else is asked.
	approved bool

	looked   bool // for tools that this owner did not know
	counts   standing
	warnings []fault.Problem // of what is added
}

func (a *amending) refuse(err error) { a.s.refuse(a.m, err) }

// take checks the amendment against the scope as it stands now, and records it.
func (a *amending) take() {
	now, there := machine.Revision(a.r.machine, a.asks.Scope)
	if there && now != a.asks.Revision {
		if stands := a.r.machine.Amendment(a.asks.Scope, a.asks.Revision+1); stands != nil && stands.Digest == a.digest {
			a.told(stands)(true)
			return
		}
		a.refuse(a.conflict(now))
		return
	}
	if a.asks.Approves != "" && !a.approved {
		a.refuse(fault.New(fault.Permission, "an amendment that approves of the plan is for those who may approve").
			WithHint("stepjet approve RUN --plan FILE, as an approver"))
		return
	}
	change, err := a.change()
	switch {
	case err != nil:
		a.refuse(err)
		return
	case change.KeepOpen && !a.isOpen():
		a.refuse(fault.New(fault.InvalidValue, "the plan of %s is not open", shownScope(a.asks.Scope)).WithHint(`"keep_open" is for plans that wait for amendments: "open": true`))
		return
	case change.IsZero() && a.asks.Approves == "": // the plan is as it should be
		p, _, _ := machine.ScopeNamed(a.r.machine, a.asks.Scope)
		a.s.reply(a.m, wire.AmendReply{Run: a.r.id.Plain(), Scope: a.asks.Scope, Revision: now, Steps: len(p.Steps), Already: true}.Body())
		return
	}
	if of, round, is := machine.RoundNamed(a.r.machine, a.asks.Scope); is {
		a.admit(of, round, change)
		return
	}
	a.record(change, nil)
}

// admit has what an amendment adds to a round of an agent admitted, as its planner's answer was, beside the loop, and records
// it. Meanwhile the run goes on: whether the amendment is still one is asked again, here and where its record stands.
func (a *amending) admit(of machine.Call, round int, change wire.Change) {
	if change.Output != nil || change.OutputSteps != nil || change.Close || change.KeepOpen {
		a.refuse(fault.New(fault.InvalidValue, "what the round %s returns is its planner's to say", a.asks.Scope).WithHint(`an amendment of it has "add" and "discard"`))
		return
	}
	rec := wire.Amend{Digest: a.digest, Change: wire.Change{Discard: change.Discard}}
	rec.Approved = a.approved && machine.ApprovesOf(a.r.machine, a.asks.Scope)
	_, left, err := machine.Consider(a.r.machine, amendmentOf(a.r, subjects.Record{Step: a.asks.Scope, Number: a.asks.Revision + 1}, &rec), nil)
	if err != nil {
		a.refuse(err)
		return
	}
	ag, its, r := a.l.dispatcher.agentry, a.r.agents, a.r
	x := ag.look(r, of, round, false)
	ag.memory.reserve(x.size, func(ctx context.Context) {
		var d *wire.AmendedRound
		var problems []fault.Problem
		add := change.Add
		l, err := x.read(ctx, ag.values)
		if err == nil {
			add, d, problems, err = agents.Amend(l, round, a.asks.Scope, &change)
		}
		if ctx.Err() != nil {
			return // only when stopping: whoever asks does so again
		}
		ag.post(func() {
			if x.found(its); r.phase != running || r.awaitingInput() {
				return // likewise
			}
			problems = append(left.Problems, problems...)
			switch now, there := machine.Revision(r.machine, a.asks.Scope); {
			case err != nil:
				a.refuse(err)
			case there && now != a.asks.Revision: // somebody was faster
				a.take()
			case len(problems) > 0:
				a.refuse(refusedFor(problems))
			default:
				change.Add = add
				a.record(change, d)
			}
		})
	})
}

// against returns what the steps of an amendment are held against: those of a round have passed their admission.
func (a *amending) against(c *amendCatalog, round *wire.AmendedRound) plan.Catalog {
	if round != nil {
		return nil
	}
	return c
}

// isOpen reports whether the plan waits for amendments, if there is one.
func (a *amending) isOpen() bool {
	p, _, there := machine.ScopeNamed(a.r.machine, a.asks.Scope)
	return !there || p.Open // that there is none is told with what else is wrong
}

func (a *amending) conflict(now int) error {
	why := "was amended meanwhile"
	if a.asks.Revision > now {
		why = "was not amended so often"
	}
	return atRevision(now, fault.New(fault.Conflict, "the plan of %s %s: it is at revision %d, and this amendment is to revision %d", shownScope(a.asks.Scope), why, now, a.asks.Revision).
		WithHint("look at it as it is now, and amend that: stepjet get %s", a.r.id.Plain()))
}

// atRevision says in an error at which revision the plan is.
func atRevision(now int, err *fault.Error) error {
	err.Details, _ = json.Marshal(wire.AmendConflict{Revision: now}) // a number
	return err
}

func shownScope(scope string) string {
	if scope == subjects.RootScope {
		return "the run"
	}
	return "the step " + text.Clip(scope, 80)
}

// change returns what is asked for: where it is said what the whole plan should be, how that differs from what it is.
func (a *amending) change() (wire.Change, error) {
	if a.asks.Plan == nil {
		return a.asks.Change, nil
	}
	now, err := shapeOf(a.r, a.asks.Scope)
	if err != nil {
		return wire.Change{}, err
	}
	should, ok := wire.ReadShape(a.asks.Plan)
	if !ok {
		return wire.Change{}, fault.New(fault.InvalidValue, `"plan" is no plan: it has no list of steps`).
			WithHint(`write {"plan": {"steps": [all steps, as they should be]}}`)
	}
	c, err := now.To(should)
	c.Close, c.KeepOpen = a.asks.Close, a.asks.KeepOpen
	return c, err
}

// record creates the record of a change that may be made, and answers once a record of its number was read. round is what was
// decided of its steps, where the scope is a round of an agent.
func (a *amending) record(change wire.Change, round *wire.AmendedRound) {
	rec := wire.Amend{Digest: a.digest, Change: change, By: a.asks.By, Verified: a.asks.Verified, Reason: a.asks.Reason, Round: round}
	rec.Approved = a.approved && machine.ApprovesOf(a.r.machine, a.asks.Scope)
	rec.Approves = a.asks.Approves
	at := subjects.Record{Step: a.asks.Scope, Number: a.asks.Revision + 1}
	catalog := &amendCatalog{r: a.r, catalog: a.s.reg.catalog(a.r.id.Tenant)}
	permits, unread := permitted(a.r.start.Permits)
	if unread != nil {
		a.refuse(unread)
		return
	}
	catalog.permits = permits
	x, report, err := machine.Consider(a.r.machine, amendmentOf(a.r, at, &rec), a.against(catalog, round))
	switch {
	case err != nil:
		a.refuse(err)
		return
	case len(report.Problems) > 0:
		if !a.looks(catalog.missing()) {
			a.refuse(refusedFor(report.Problems))
		}
		return
	}
	a.warnings = report.Warnings
	if round == nil { // the tools of an agent are frozen with its run
		rec.Tools = catalog.freeze(x)
	}
	if rec.Needs = needsOfAmendment(a.r, rec.Tools); rec.Approves != "" {
		rec.Needs = append(rec.Needs, wire.EditedApprovals)
	}
	if round != nil {
		rec.Needs = append(rec.Needs, wire.AmendedRounds)
		if rec.Discard.Rest || len(rec.Discard.Steps) > 0 {
			rec.Needs = append(rec.Needs, wire.DiscardedCalls)
		}
		if len(round.Reaches) > 0 {
			rec.Needs = append(rec.Needs, wire.RoundReferences)
		}
	}
	h, body, bad := rec.Message()
	if bad == nil && len(body) > plan.MaxBytes {
		bad = fault.New(fault.TooLarge, "the amendment has %d bytes with the contracts of its tools, at most %d are allowed", len(body), plan.MaxBytes).
			WithHint("amend in several parts")
	}
	if bad != nil {
		a.refuse(bad)
		return
	}
	recordAndWait(a.l, a.r, at, &rec, h, body, func() bool {
		stands := a.r.machine.Amendment(a.asks.Scope, at.Number)
		if stands == nil {
			return false
		}
		a.counts.stands(a.told(stands))
		return true
	}, a.counts.recorded)
}

// recordAndWait creates the record of an amendment. told is asked once records were read, until it has heard of the one that stands
// under the number; done hears, on the loop, what became of writing it. Where it could not be written, nobody waits.
func recordAndWait(l *loop, r *run, at subjects.Record, rec *wire.Amend, h nats.Header, body []byte, told func() bool, done func(kv.Decision, error)) {
	c, failed := changesOf(r), false
	c.waiting = append(c.waiting, amender{amendmentOf(r, at, rec), func() bool { return failed || told() }})
	l.decider.recordAmendment(r, at.Step, at.Number, h, body, func(d kv.Decision, err error) {
		l.post(func() {
			if done(d, err); err != nil {
				failed = true
				l.driver.settleAmendments(r)
			}
		})
	})
}

// looks looks for tools that this owner has not heard of yet, and takes the amendment again. It reports false where it
// did so before.
func (a *amending) looks(missing []string) bool {
	if a.looked || len(missing) == 0 {
		return false
	}
	a.looked = true
	a.l.job(func(ctx context.Context) {
		a.s.reg.refresh(ctx, missing)
		a.l.post(func() {
			if a.r.phase == running && !a.r.awaitingInput() {
				a.take()
			}
		})
	})
	return true
}

// refusedFor is the error of an amendment with problems: the first, and all as details.
func refusedFor(problems []fault.Problem) error {
	p := problems[0]
	err := fault.New(p.Code, "%s", p.Message).WithHint("%s", p.Hint)
	err.Retryable = false
	err.Details, _ = json.Marshal(wire.AmendProblems{Problems: problems}) // of texts
	return err
}

// told returns what is answered by what stands under the number, to one that was there already or to the one that counted.
func (a *amending) told(stands *machine.Amendment) (send func(already bool)) {
	reply, err := a.becomes(stands)
	return func(already bool) {
		if err != nil {
			a.refuse(err)
			return
		}
		if reply.Already = already; already {
			reply.Warnings = nil
		}
		a.s.reply(a.m, reply.Body())
	}
}

// becomes returns what became of an amendment, where it is what stands under the number; or why it does nothing.
func (a *amending) becomes(stands *machine.Amendment) (wire.AmendReply, error) {
	now, _ := machine.Revision(a.r.machine, a.asks.Scope)
	switch why := stands.Stale(); {
	case stands.Digest != a.digest:
		return wire.AmendReply{}, a.conflict(now)
	case why != nil && why.Code == fault.Rejected:
		return wire.AmendReply{}, rejected(why, now)
	case why != nil:
		return wire.AmendReply{}, overtaken(why, now)
	}
	return wire.AmendReply{
		Run: a.r.id.Plain(), Scope: a.asks.Scope, Revision: stands.Revision, Steps: stands.Steps(), Waits: stands.Waits(), Warnings: a.warnings,
	}, nil
}

// rejected is the answer to an amendment that a person refused, or nobody approved of in time.
func rejected(why *fault.Error, now int) error {
	return atRevision(now, fault.New(fault.Rejected, "the plan stays as it is: %s", why.Message).
		WithHint("what is asked for next is to revision %d", now))
}

// overtaken is the answer to an amendment that was recorded and does nothing.
func overtaken(why *fault.Error, now int) error {
	return atRevision(now, fault.New(fault.Overtaken, "the run went on before the amendment stood, so it does nothing: %s", why.Message).
		WithHint("amend the plan as it is now, at revision %d: %s", now, why.Hint))
}

// notAmended is why an amendment can't add a call of an agent.
const notAmended = "an amendment adds no calls of agents"

// notOfThePlan is why it can't add one of a template that the plan could not call: the run has it for its agents.
const notOfThePlan = "the run has this template for its agents, and its plan does not know it"

// unamended is an agent that an amendment can't add a call of.
func unamended(why string) *plan.Agent {
	return &plan.Agent{Flaw: why, Hint: "write the call into the plan that is submitted; into one that is streamed as its first step"}
}

// amendCatalog is the tools that an amendment may call: those of the run as they were frozen, all others as they are.
type amendCatalog struct {
	*catalog
	r *run
}

// Lookup returns a tool.
func (c *amendCatalog) Lookup(name string) (plan.Tool, bool) {
	f := c.r.start.Tools[name]
	if f == nil {
		t, ok := c.catalog.Lookup(name)
		if t.Agent != nil {
			t.Agent = unamended(notAmended)
		}
		return t, ok
	}
	output := c.g.heardOf(f.Digest).out // it was read with the input schema, so that nobody waits for it here
	if f.Agent {
		return plan.Tool{Input: c.r.schemas[name], Agent: unamended(notAmended)}, true
	}
	t := plan.Tool{Input: c.r.schemas[name], Output: output, DependsOn: f.Contract.DependsOn, Approval: f.Contract.Approval != ""}
	switch is := machine.Template(c.r.machine, name); {
	case is != nil:
		t.Plan, t.Input, t.Output = is.Plan, is.Input, is.Output
	case f.Plan: // no worker has it, so a call would wait for ever
		t.Agent = unamended(notOfThePlan)
	}
	return t, true
}

// InlineAgent is none that an amendment may add, also within a template.
func (c *amendCatalog) InlineAgent(string, string, []byte) (plan.Tool, plan.Report) {
	return plan.Tool{Agent: unamended(notAmended)}, plan.Report{}
}

// freeze returns what a run keeps of the tools that it used none of before.
func (c *amendCatalog) freeze(x *plan.Addition) map[string]*wire.FrozenTool {
	tools := map[string]*wire.FrozenTool{}
	for _, name := range machine.AddedTools(x) {
		if c.r.start.Tools[name] == nil {
			tools[name] = c.used[name].frozen
		}
	}
	return tools
}
