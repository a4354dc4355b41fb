package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/tool"
)

func workersCommand(a *app) *cobra.Command {
	var wait time.Duration
	c := &cobra.Command{
		Use:   "workers",
		Short: "List the workers that live, and what each has at work",
		Long: `Asks all workers to say that they live, and lists those that do: where they run, which version
of Stepjet they were built with, for how long they are up, what they have at work, what they have
done since they came up, and their tools with how many of the slots are taken. A tool is "held"
while the worker takes no steps of it.

All this is what workers say of themselves. One that was killed does not answer, so it is missing.
A worker in another language may answer nobody; with --wait 6s it is heard too, if it says that it
lives every 5 s. Where users have permissions of their own, the users "observer" and "doctor" hear
workers, and no other.`,
		Example: `  stepjet workers
  stepjet workers --wait 6s
  stepjet workers -o json | jq -r '.[] | select(.version != "v1.2.3") | .worker'`,
		Args: exactly(),
		RunE: a.work(func(cmd *cobra.Command, _ []string) error { return listWorkers(cmd.Context(), a, wait) }),
	}
	c.Flags().DurationVar(&wait, "wait", kv.AnswerWithin, "listen for this `duration`")
	return c
}

func listWorkers(ctx context.Context, a *app, wait time.Duration) error {
	if wait <= 0 {
		return usage(errors.New("--wait is a duration above 0"))
	}
	s, err := a.open(ctx, registry)
	if err != nil {
		return err
	}
	defer s.close()
	return a.withStore(ctx, s, func(store *kv.Store) error {
		ctx, cancel := context.WithTimeout(ctx, a.flags.timeout+wait)
		defer cancel()
		all, missed, err := store.Beats().Listen(ctx, wait)
		if err != nil {
			return why(ctx, err)
		}
		if missed > 0 {
			a.say("%s there are more workers than are listed", a.errStyle.yellow("note:"))
		}
		if a.json() {
			if all == nil {
				all = []tool.Worker{}
			}
			return a.printJSON(all)
		}
		return showWorkers(a, all)
	})
}

func showWorkers(a *app, all []tool.Worker) error {
	if len(all) == 0 {
		a.say("no worker says that it lives")
		return nil
	}
	t := table{}
	head := func(s string) cell { return cell{text: s, paint: a.style.dim} }
	number := func(s string) cell { return cell{text: s, right: true} }
	t.add(head("WORKER"), head("HOST"), head("VERSION"), cell{text: "UP", paint: a.style.dim, right: true}, cell{text: "BUSY", paint: a.style.dim, right: true},
		cell{text: "DONE", paint: a.style.dim, right: true}, cell{text: "FAILED", paint: a.style.dim, right: true}, head("TOOLS"))
	versions := map[string]bool{}
	for i := range all {
		w := &all[i]
		versions[w.Version] = true
		t.add(plain(oneLine(w.Name)), plain(oneLine(w.Host)), plain(oneLine(w.Version)), number(took(w.Heard.Sub(w.Since).Round(time.Second))),
			number(strconv.Itoa(w.Busy)), number(strconv.FormatInt(w.Done, 10)), number(strconv.FormatInt(w.Failed, 10)), plain(workerTools(w)))
	}
	var b bytes.Buffer
	t.write(&b, "", a.width())
	if _, err := a.stdout.Write(b.Bytes()); err != nil {
		return err
	}
	if len(versions) > 1 {
		a.say("%s the workers are of %s of Stepjet", a.errStyle.yellow("note:"), text.Count(len(versions), "version"))
	}
	return nil
}

// workerTools writes the tools of a worker in a line, those at work first.
func workerTools(w *tool.Worker) string {
	tools := slices.Clone(w.Tools)
	slices.SortStableFunc(tools, func(a, b tool.WorkerTool) int { return b.Busy - a.Busy })
	var parts []string
	if w.Leaving {
		parts = append(parts, "(leaving)")
	}
	for _, t := range tools {
		part := fmt.Sprintf("%s %d/%d", t.Tool, t.Busy, t.Slots)
		if t.Held {
			part += " held"
			if t.Why != "" {
				part += " (" + oneLine(t.Why) + ")"
			}
		}
		parts = append(parts, part)
	}
	if w.More > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", w.More))
	}
	return strings.Join(parts, ", ")
}
