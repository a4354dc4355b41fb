package doctor

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/agent"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// lookAtSinks looks whether the bucket is there that objects of registered agents go to.
func lookAtSinks(ctx context.Context, d *doctor) error {
	var into []string
	for _, t := range d.templates {
		body, err := json.Marshal(t.Definition)
		if err != nil || !t.Agent() {
			continue
		}
		if a, _ := agent.Parse(body, nil); a != nil && slices.ContainsFunc(a.Entries(), func(e *agent.Entry) bool {
			return slices.ContainsFunc(e.Sinks(), func(s agent.Sink) bool { return s.Bucket != "" })
		}) {
			into = append(into, t.Name)
		}
	}
	if len(into) == 0 {
		d.fine("no agent has any in a bucket")
		return nil
	}
	info, err := d.look(ctx, subjects.BucketStream(subjects.SinksBucket))
	if err != nil {
		return err
	}
	if info == nil {
		d.add(Finding{
			Health: Notable, Expected: "the bucket " + subjects.SinksBucket, Found: "none, and objects of " + text.Count(len(into), "agent") + " go there: " + strings.Join(into[:min(len(into), maxNamed)], ", "),
			Means: "these objects are on the agents' blackboards alone", Fix: "nats kv add " + subjects.SinksBucket,
		}, nil)
		return nil
	}
	d.fine("the bucket is there")
	return nil
}
