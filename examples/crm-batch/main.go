// Crm-batch writes contacts, all or none: a plan with a bad row, the corrected plan, and then fifty runs with one contact
// each, whose steps the worker gathers into a few calls.
package main

import (
	"context"
	"embed"
	"fmt"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/example"
	"github.com/stepjet/stepjet/outcome"
)

var (
	//go:embed plan.json plan-bad.json
	plans embed.FS
	//go:embed tools.json
	toolsJSON []byte
)

func main() { example.Main(byHand()) }

// byHand is what "go run" shows.
func byHand() example.Example {
	c := &crm{}
	return example.Example{
		Name:  "crm-batch",
		About: "Write contacts, all or none. In the first plan two rows have the same address; the second is corrected.",
		Files: plans,
		Plans: []string{"plan-bad.json", "plan.json"},
		World: example.Options{Host: c.host(example.MustTools(toolsJSON))},
		More: func(ctx context.Context, w *example.World) ([]string, error) {
			before := w.Meter.Of("create_contacts").Calls
			if err := createSingly(ctx, w.Client, "guest", 50); err != nil {
				return nil, err
			}
			after, err := c.list(ctx, struct{}{})
			return []string{fmt.Sprintf("Then 50 runs with one contact each came to %d calls of create_contacts; the CRM holds %d contacts.\n",
				w.Meter.Of("create_contacts").Calls-before, len(after.Contacts))}, err
		},
	}
}

// createSingly waits until all of submitSingly's runs have succeeded.
func createSingly(ctx context.Context, c *client.Client, name string, n int) error {
	runs, err := submitSingly(ctx, c, name, n)
	if err != nil {
		return err
	}
	for _, r := range runs {
		out, err := r.Wait(ctx)
		if err != nil {
			return err
		}
		if out.Status != outcome.Succeeded {
			return fmt.Errorf("run %s: %s", r.ID(), out.JSON())
		}
	}
	return nil
}

// submitSingly starts n runs that create one contact each, with the fields of a row as the step's arguments.
func submitSingly(ctx context.Context, c *client.Client, name string, n int) (runs []*client.Run, err error) {
	for i := range n {
		plan := fmt.Appendf(nil, `{"steps":[{"id":"create","tool":"create_contacts","arguments":{"name":"%s %d","email":"%[1]s-%[2]d@example.com"}}]}`, name, i)
		r, err := c.Submit(ctx, plan, client.SubmitOptions{Run: fmt.Sprintf("%s-%d", name, i)})
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	return runs, nil
}
