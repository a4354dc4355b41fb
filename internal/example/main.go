package example

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/outcome"
)

// Example is one of the worked examples, to be run by hand.
type Example struct {
	// Name is that of its folder; it begins the run ids.
	Name string
	// About says in a sentence what is to be seen.
	About string
	// Files holds the plans.
	Files fs.FS
	// Plans are those that are run one after the other; default: plan.json.
	Plans []string
	// World is what they run on.
	World Options
	// Submit is how they are submitted; the run id is filled in.
	Submit client.SubmitOptions
	// More does something after the plans and says what came of it; nil for nothing.
	More func(context.Context, *World) ([]string, error)
}

// Main runs an example and ends the process: with 1 where it could not run.
func Main(e Example) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := e.Run(ctx, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "examples/"+e.Name+":", err)
		os.Exit(1)
	}
}

// Run runs an example from the first server to the last outcome.
func (e Example) Run(ctx context.Context, out io.Writer) (err error) {
	w, err := Start(ctx, e.World)
	if err != nil {
		return err
	}
	defer func() {
		if stopped := w.Stop(); err == nil {
			err = stopped
		}
	}()
	fmt.Fprintln(out, e.About)
	if len(e.Plans) == 0 {
		e.Plans = []string{"plan.json"}
	}
	for _, file := range e.Plans {
		o, err := e.submit(ctx, w, file)
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "\nThe outcome of examples/%s/%s:\n\n%s", e.Name, file, Pretty(o.JSON()))
	}
	fmt.Fprintln(out)
	if e.More != nil {
		lines, err := e.More(ctx, w)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, strings.Join(lines, "\n"))
	}
	fmt.Fprintln(out, strings.Join(w.Meter.Lines(), "\n"))
	return nil
}

func (e Example) submit(ctx context.Context, w *World, file string) (*outcome.Outcome, error) {
	body, err := fs.ReadFile(e.Files, file)
	if err != nil {
		return nil, err
	}
	o := e.Submit
	o.Run = RunID(e.Name, file)
	return w.Client.Run(ctx, body, o)
}

// RunID gives the run id of a plan's file: weather for plan.json, weather-bad for plan-bad.json.
func RunID(name, file string) string {
	return name + strings.TrimPrefix(strings.TrimSuffix(file, ".json"), "plan")
}
