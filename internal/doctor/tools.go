package doctor

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
)

// broken is an entry of the registry that nobody can read.
type brokenEntry struct{ key, tool, override, reason string }

// readRegistry reads all of the registry.
func (d *doctor) readRegistry(ctx context.Context) (bad []brokenEntry, digests map[string]bool, err error) {
	d.tools, d.templates = nil, nil
	d.removed, d.kept, digests = map[string]int{}, map[string]keptDefinition{}, map[string]bool{}
	d.newer, d.foreign = nil, map[string]bool{}
	lost := true
	for lost && err == nil {
		lost, err = d.in.Registry(ctx, func(e kv.RegistryEntry) {
			switch {
			case e.Newer:
				d.newer = append(d.newer, e.Key)
				d.foreign[subjects.Durable(e.Name)] = e.Name != ""
			case e.Removed:
				d.removed[e.Name] = e.Shard
			case e.Unreadable != nil:
				if e.Digest != "" {
					digests[e.Digest] = true
				}
				bad = append(bad, brokenEntry{key: e.Key, tool: e.Name, override: e.OverrideOf, reason: e.Unreadable.Error()})
			case e.Tool != nil && !e.Tool.Hosted():
				d.templates = append(d.templates, *e.Tool)
			case e.Tool != nil:
				d.tools = append(d.tools, *e.Tool)
			case e.Definition != nil:
				digests[e.Digest] = true
				if e.Seq > d.kept[e.Definition.Name].seq {
					d.kept[e.Definition.Name] = keptDefinition{e.Definition, e.Seq}
				}
			}
		})
	}
	slices.SortFunc(d.tools, func(a, b tool.Registered) int { return strings.Compare(a.Name, b.Name) })
	return bad, digests, err
}

// registeredShards returns how many step streams the registered tools need.
func (d *doctor) registeredShards(ctx context.Context) (n int, err error) {
	if info, err := d.look(ctx, subjects.BucketStream(subjects.ToolsBucket)); err != nil || info == nil {
		return 0, err
	}
	_, _, err = d.readRegistry(ctx)
	for _, t := range d.tools {
		n = max(n, t.Shard+1)
	}
	return n, err
}

// registry looks at every entry: whether it can be read, and whether its definition is kept for runs that froze it.
func (d *doctor) registry(ctx context.Context) error {
	if d.info(subjects.BucketStream(subjects.ToolsBucket)) == nil {
		return nil // said already
	}
	bad, digests, err := d.readRegistry(ctx)
	if err != nil {
		return err
	}
	for _, b := range bad {
		d.unreadable(ctx, b)
	}
	for _, key := range d.newer {
		d.add(Finding{
			About: key, Health: Notable, Expected: "an entry that this version can read",
			Found: "it was written by a newer version of Stepjet",
			Means: "orchestrators and workers of this version leave it alone", Fix: "upgrade them, and this program",
		}, nil)
	}
	for _, t := range slices.Concat(d.tools, d.templates) {
		if !digests[t.Digest] {
			d.add(Finding{
				About: t.Name, Health: Broken, Expected: "its definition kept under " + t.Digest, Found: "nothing is kept there",
				Means: "runs that froze this definition can't go on under another orchestrator", Fix: "keeps it again",
			}, func() error { return d.in.KeepDefinition(ctx, t) })
		}
	}
	templatesRun(d)
	if info := d.info(subjects.BucketStream(subjects.ToolsBucket)); info.State.Msgs == 0 && info.State.LastSeq > 0 {
		d.add(Finding{
			About: subjects.BucketStream(subjects.ToolsBucket), Health: Broken, Expected: "the tools that were registered",
			Found: fmt.Sprintf("nothing, though %d messages were stored: the registry was emptied", info.State.LastSeq),
			Means: "plans are not judged: they wait until tools are registered",
			Fix:   "start workers of the tools, or stepjet tools apply FILE",
		}, nil)
	}
	d.fine(fmt.Sprintf("%s, each readable and with its definition kept", text.Count(len(d.tools), "tool")))
	if d.worst > 0 && d.o.Mend {
		_, _, err = d.readRegistry(ctx)
	}
	return err
}

// templatesRun looks whether what each template calls is there, and takes what it is called with.
func templatesRun(d *doctor) {
	c := registered{}
	for _, t := range slices.Concat(d.tools, d.templates) {
		c[t.Name] = t
	}
	for _, t := range d.templates {
		if t.Agent() { // an orchestrator reads it when a run begins that calls it
			continue
		}
		problems := plan.CheckTemplate(t.Definition, c).Problems
		if len(problems) == 0 {
			continue
		}
		found := problems[0].Path + ": " + problems[0].Message
		if n := len(problems) - 1; n > 0 {
			found += fmt.Sprintf(" (and %d more)", n)
		}
		d.add(Finding{
			About: t.Name, Health: Notable, Expected: "a plan that can run", Found: found,
			Means: "plans that call it are rejected; runs that began before go on",
			Fix:   "start a worker of what is missing, or stepjet templates apply FILE",
		}, nil)
	}
}

// registered is the tools of the registry as a plan's catalog, whoever may call them.
type registered map[string]tool.Registered

func (c registered) Lookup(name string) (t plan.Tool, ok bool) {
	r, ok := c[name]
	if !ok {
		return t, false
	}
	t.Input, _ = r.Definition.Input() // schemas that can't be used are another matter
	t.Output, _ = r.Definition.Output()
	t.DependsOn, t.Approval, t.Plan = r.Contract.DependsOn, r.Contract.Approval != "", r.Definition.Plan
	return t, true
}

func (c registered) Names() []string { return slices.Collect(maps.Keys(c)) }

func (d *doctor) unreadable(ctx context.Context, b brokenEntry) {
	f := Finding{About: b.key, Health: Broken, Expected: "an entry that Stepjet wrote", Found: b.reason,
		Fix: "nats kv del tools " + b.key}
	switch {
	case b.override != "":
		f.Means = "the tool can't be registered again, since nobody may be given more than an operator allowed"
		f.Fix = "stepjet tools override " + b.override + " --clear"
	case b.tool != "":
		f.Means = "plans that name the tool are rejected"
		if k, ok := d.kept[b.tool]; ok {
			f.Fix = "registers the definition that was kept last"
			d.add(f, func() error { return d.restore(ctx, k.def, d.shardOf(ctx, b.tool), 0) })
			return
		}
		f.Fix = "start a worker of the tool, or stepjet tools apply FILE"
	}
	d.add(f, nil)
}

// shardOf returns where a tool's consumer is; 0 where there is none.
func (d *doctor) shardOf(ctx context.Context, name string) int {
	if shard, ok, err := d.in.ToolShard(ctx, name); err == nil && ok {
		return shard
	}
	return 0
}

func (d *doctor) restore(ctx context.Context, def *tool.Definition, shard int, ackWait time.Duration) error {
	restored, err := d.s.Registry.Restore(ctx, def, shard, ackWait)
	if err == nil && !restored {
		_, err = d.s.Registry.Tool(ctx, def.Name)
	}
	return err
}
