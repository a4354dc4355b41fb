package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/nats-io/nuid"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/wire"
)

// runStream runs a plan while it is being written.
func runStream(ctx context.Context, a *app, name string, f runFlags) error {
	text := a.env.Stdin
	if name != "-" {
		file, err := os.Open(name)
		if err != nil {
			return unreadable(name, err)
		}
		defer func() { _ = file.Close() }() // it was only read
		text = file
	}
	bag, err := a.runContext(&f.with, nil)
	if err != nil {
		return err
	}
	s, err := a.open(ctx, place{start: always, tools: f.tools})
	if err != nil {
		return err
	}
	defer s.close()
	if f.run == "" {
		f.run = nuid.Next()
	}
	ctx, cancel := waitFor(ctx, f.wait)
	defer cancel()
	a.tellIfOpen(ctx, s, bag)
	x := streamed{a: a, s: s, o: client.StreamOptions{SubmitOptions: client.SubmitOptions{Run: f.run, Context: bag, Permissions: f.may.permissions()}, OpenFor: f.open}}
	out, err := x.run(ctx, text)
	if err == nil {
		return a.outcome(out)
	}
	var came wire.StreamDetails
	var path *os.PathError
	switch known := json.Unmarshal(fault.As(err).Details, &came) == nil && came.Run != ""; {
	case known && ctx.Err() != nil:
		return &settled{endedBy(context.Cause(ctx), err)}
	case known:
		return &settled{allProblems(err)}
	case ctx.Err() == nil && errors.As(err, &path): // before anything was submitted
		return unreadable(name, path)
	case x.handed:
		a.tellLater(s, f.run, err)
	}
	return why(ctx, allProblems(err))
}

// endedBy is an error of a stream whose cause is the end of the command's context, which the exit code tells.
func endedBy(cause, err error) error {
	f := *fault.As(err)
	f.Cause = cause
	return &f
}

// streamed is one plan that runs while it is being written.
type streamed struct {
	a      *app
	s      *session
	o      client.StreamOptions
	handed bool // all of the plan was handed over: the run goes on by itself
}

// run follows the run from its first steps on, while the text is read.
func (x *streamed) run(ctx context.Context, text io.Reader) (*outcome.Outcome, error) {
	w, err := x.s.client.NewWatcher(ctx, x.o.Run) // before the plan is sent, so that nothing is missed
	if err != nil {
		return nil, err
	}
	defer w.Close()
	following, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	begun, handed := make(chan *client.Run, 1), make(chan over, 1)
	x.o.Begun = func(r *client.Run) {
		select {
		case begun <- r:
		default: // one is followed already
		}
	}
	go func() {
		r, err := x.s.client.Stream(ctx, text, x.o)
		if err != nil {
			stop(err)
		}
		handed <- over{r, err}
	}()
	select {
	case r := <-begun:
		w.Of(r)
		x.a.tellIfAttached(r)
	case all := <-handed:
		if all.err != nil {
			return nil, all.err
		}
		w.Of(all.run)
		handed <- all
	}
	out, err := x.a.follow(following, w, x.a.report(x.o.Run, nil, nil))
	all := <-handed
	if all.err != nil {
		return nil, all.err
	}
	x.handed = true
	if err == nil && out.Status == outcome.Rejected { // perhaps the first steps alone, before all was written
		return all.run.Wait(ctx)
	}
	return out, err
}

// over is what Stream returned.
type over struct {
	run *client.Run
	err error
}
