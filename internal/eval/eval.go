// Package eval runs a file of plans whose answers are known and compares what comes out.
//
// A file holds one case a line: {"name", "plan", "answer"}; other fields are ignored. The package knows no NATS: it is
// given a function that runs one plan. Every case ends in exactly one verdict, in the order of the file, whatever order
// the runs end in; a run that can't be started is a wrong answer with its reason and does not end the evaluation.
package eval

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

// Case is one plan with its known answer.
type Case struct {
	// Name tells the case from others; "line N" where the file gives none.
	Name string
	// Plan is the plan's own bytes.
	Plan json.RawMessage
	// Answer is the known answer, as it was published: its number of decimals counts.
	Answer json.RawMessage
}

// maxLine bounds one line of a file, in bytes: the largest plan with room for question and answer.
const maxLine = 4 << 20

// Read reads all cases of a file; empty lines are skipped. Errors: InvalidConfig naming the line that is no case.
func Read(r io.Reader) ([]Case, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	var cases []Case
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		c, err := parse(line, n)
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}
	if err := lines.Err(); err != nil {
		return nil, fault.New(fault.InvalidConfig, "line %d can't be read: %v", n+1, err)
	}
	if len(cases) == 0 {
		return nil, fault.New(fault.InvalidConfig, "no cases").WithHint("one {\"name\", \"plan\", \"answer\"} a line")
	}
	return cases, nil
}

func parse(line []byte, n int) (Case, error) {
	var in struct {
		Name   string          `json:"name"`
		Plan   json.RawMessage `json:"plan"`
		Answer json.RawMessage `json:"answer"`
	}
	if err := json.Unmarshal(line, &in); err != nil {
		return Case{}, fault.New(fault.InvalidConfig, "line %d is no JSON object: %v", n, err)
	}
	if in.Plan == nil || in.Answer == nil {
		return Case{}, fault.New(fault.InvalidConfig, "line %d has no plan or no answer", n).
			WithHint("one {\"name\", \"plan\", \"answer\"} a line")
	}
	if in.Name == "" {
		in.Name = "line " + itoa(n)
	}
	return Case{in.Name, in.Plan, in.Answer}, nil
}

// Runner runs one plan to its end. An error means that there is no outcome.
type Runner func(ctx context.Context, plan []byte) (*outcome.Outcome, error)

// Options say how to evaluate.
type Options struct {
	// InFlight is the number of plans that run at a time; 0: 64.
	InFlight int
	// Progress is told of every verdict, as they come, one call at a time; nil: nobody is.
	Progress func(done, total int, v Verdict)
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

// defaultInFlight keeps two cores busy without a queue that would show in p99.
const defaultInFlight = 64

// Run evaluates all cases and returns when each has its verdict. When ctx ends, cases that have not started yet are
// wrong with the context's error.
func Run(ctx context.Context, cases []Case, run Runner, o Options) *Report {
	if o.InFlight <= 0 {
		o.InFlight = defaultInFlight
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	verdicts := make([]Verdict, len(cases))
	next := make(chan int)
	var progress sync.Mutex
	done := 0
	began := o.Now()
	var wg sync.WaitGroup
	for range min(o.InFlight, len(cases)) {
		wg.Go(func() {
			for i := range next {
				verdicts[i] = one(ctx, cases[i], run, o.Now)
				if o.Progress != nil {
					progress.Lock()
					done++
					o.Progress(done, len(cases), verdicts[i])
					progress.Unlock()
				}
			}
		})
	}
	for i := range cases {
		next <- i
	}
	close(next)
	wg.Wait()
	return newReport(verdicts, o.Now().Sub(began))
}

func one(ctx context.Context, c Case, run Runner, now func() time.Time) Verdict {
	v := Verdict{Name: c.Name, Want: c.Answer}
	if err := ctx.Err(); err != nil {
		v.Why = "not started: " + context.Cause(ctx).Error()
		return v
	}
	began := now()
	out, err := run(ctx, c.Plan)
	v.Took = now().Sub(began)
	if err != nil {
		v.Why = err.Error()
		return v
	}
	v.Run, v.Status, v.Steps, v.Succeeded = out.Run, out.Status, out.Stats.Steps-out.Stats.NotTaken, out.Stats.Succeeded
	v.judge(out)
	return v
}
