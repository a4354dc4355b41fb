package kv

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool"
	"github.com/stepjet/stepjet/wire"
)

// Tool returns one tool, from the registry's leader. Errors: NotFound, and those of Read.
func (s *Registry) Tool(ctx context.Context, name string) (tool.Registered, error) {
	e, err := s.read(ctx, toolSubject(name))
	if err != nil {
		return tool.Registered{}, err
	}
	return parseTool(s.cfg.Knows, *e, name)
}

// operation is not empty for a message that stands for a removed key.
func operation(h nats.Header) string {
	return first(h, "KV-Operation") + first(h, jetstream.MarkerReasonHeader)
}

// parseTool reads the registry's entry of a tool; NotFound for one that was removed, NewerVersion for one to leave
// alone.
func parseTool(knows wire.Knowledge, e Entry, name string) (tool.Registered, error) {
	var t tool.Registered
	if !knows.KnownEntry(e.Header, e.Data) {
		return t, wire.Newer("the registry's entry of " + name)
	}
	if operation(e.Header) != "" {
		return t, fault.New(fault.NotFound, "the tool %s was removed", name)
	}
	if err := json.Unmarshal(e.Data, &t); err != nil {
		return t, fault.Wrap(fault.Internal, err, "reading the registry's entry of "+name)
	}
	if t.Definition == nil || t.Name != name || t.Definition.Name != name || t.Shard < 0 || t.Contract.Limit < 1 {
		return t, fault.New(fault.Internal, "the registry's entry of %s was not written by Stepjet", name)
	}
	t.Revision = e.Seq
	t.Guard()
	return t, nil
}

// refillsWithin is how long after a purge of the registry tools may be missing that are registered again: the workers
// that host them notice, and each registers its tools one after the other.
const refillsWithin = time.Minute

// RegistryEmptied reports whether somebody purged the registry: it held something once and holds nothing now, not even a
// mark of what was removed, or all that it holds is younger than a minute. Where tools are registered anew that is not
// so, since the definitions that they had before stay. Errors as those of Read.
func (s *Registry) RegistryEmptied(ctx context.Context) (emptied bool, err error) {
	var info struct {
		Now   time.Time `json:"ts"`
		State struct {
			Messages uint64    `json:"messages"`
			First    time.Time `json:"first_ts"`
			FirstSeq uint64    `json:"first_seq"`
			LastSeq  uint64    `json:"last_seq"`
		} `json:"state"`
	}
	err = s.retry(ctx, func(ctx context.Context) error {
		return s.ask(ctx, apiPrefix+"STREAM.INFO."+subjects.BucketStream(subjects.ToolsBucket), infoRequest{}, &info)
	})
	if err != nil || info.State.LastSeq == 0 {
		return false, err
	}
	return info.State.Messages == 0 || info.State.FirstSeq > 1 && info.Now.Sub(info.State.First) < refillsWithin, nil
}

// Tools returns all registered tools, by name. Errors as those of Read.
func (s *Registry) Tools(ctx context.Context) ([]tool.Registered, error) {
	return listTools(ctx, s.WatchTools)
}

// listTools collects what a watch reports until it is ready.
func listTools(ctx context.Context, watch func(context.Context, func(tool.Registered, bool), func()) error) ([]tool.Registered, error) {
	there := map[string]tool.Registered{} // what is read again after the connection was lost is reported again
	complete := errors.New("complete")
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	err := watch(ctx, func(t tool.Registered, deleted bool) {
		if deleted {
			delete(there, t.Name)
		} else {
			there[t.Name] = t
		}
	}, func() { cancel(complete) })
	if !errors.Is(context.Cause(ctx), complete) {
		return nil, err
	}
	return slices.SortedFunc(maps.Values(there), func(a, b tool.Registered) int { return strings.Compare(a.Name, b.Name) }), nil
}

// WatchTools reports every tool, then calls ready, then reports every change, all from the calling goroutine, until ctx
// ends. A tool that was removed is reported as deleted, with the revision of its mark, also if it was not reported
// before: of what is written twice in a moment only the last may be seen. After a lost connection or another server it reads the registry again: then every tool is reported once more,
// and those that are gone as deleted; ready is called once only. Errors: ctx's, and those of Read.
func (s *Registry) WatchTools(ctx context.Context, each func(t tool.Registered, deleted bool), ready func()) error {
	known := map[string]bool{}
	if s.limited {
		return s.pollTools(ctx, known, each, ready)
	}
	for {
		lost, err := s.watchTools(ctx, known, each, ready)
		if !lost {
			return err
		}
		ready = func() {}
		if !s.pause(ctx, unknownPause) {
			return s.explain(ctx, context.Cause(ctx))
		}
	}
}

// toolNews is one thing that the registry's cursor tells: an entry, or that the snapshot is complete, or that it was
// lost.
type toolNews struct {
	entry    Entry
	complete bool
	lost     bool
}

var toolPrefix = subjects.BucketSubject(subjects.ToolsBucket, "")

// watchTools reads the registry until its cursor is lost. known are the tools that were reported and stand.
func (s *Registry) watchTools(ctx context.Context, known map[string]bool, each func(tool.Registered, bool), ready func()) (lost bool, err error) {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	news := make(chan toolNews)
	tell := func(n toolNews) {
		select {
		case news <- n:
		case <-inner.Done():
		}
	}
	_, err = s.newCursor(inner, "KV_"+subjects.ToolsBucket, []string{toolPrefix + "*"}, // definitions have two tokens
		func(e Entry) { tell(toolNews{entry: e}) },
		func(uint64) { tell(toolNews{complete: true}) },
		func(error) { tell(toolNews{lost: true}) })
	if err != nil {
		return false, err
	}
	unseen := maps.Clone(known)
	for {
		select {
		case <-ctx.Done():
			return false, s.explain(ctx, context.Cause(ctx))
		case <-s.ctx.Done():
			return false, errClosed()
		case n := <-news:
			switch {
			case n.lost:
				return true, nil
			case n.complete:
				for name := range unseen { // removed, and the marker with them, while nobody watched
					delete(known, name)
					each(tool.Registered{Name: name}, true)
				}
				unseen = nil
				ready()
			default:
				delete(unseen, s.reportTool(n.entry, known, each))
			}
		}
	}
}

// reportTool reports an entry, and returns the tool's name.
func (s *Registry) reportTool(e Entry, known map[string]bool, each func(tool.Registered, bool)) string {
	name, ok := subjects.Decode(strings.TrimPrefix(e.Subject, toolPrefix))
	if !ok {
		return ""
	}
	if operation(e.Header) != "" { // whoever registered it knows it, also where this watch never saw the entry
		delete(known, name)
		each(tool.Registered{Name: name, Revision: e.Seq}, true)
		return name
	}
	t, err := parseTool(s.cfg.Knows, e, name)
	if err != nil {
		s.cfg.Logger.Error("an entry of the tool registry can't be read and is left out", "tool", name, "error", err)
		return name
	}
	known[name] = true
	each(t, false)
	return name
}

// Definition returns a definition by its digest. Errors: NotFound, InvalidTool, NewerVersion, and those of Read.
func (s *Registry) Definition(ctx context.Context, digest string) (*tool.Definition, error) {
	e, err := s.read(ctx, definitionSubject(digest))
	if err != nil {
		return nil, err
	}
	if operation(e.Header) != "" {
		return nil, fault.New(fault.NotFound, "the definition %s was deleted", digest)
	}
	if !s.cfg.Knows.KnownEntry(e.Header, e.Data) {
		return nil, wire.Newer("the definition " + digest)
	}
	return tool.ParseDefinition(e.Data)
}

// registryPause is how often a limited store looks whether the registry has changed.
const registryPause = 2 * time.Second

// pollTools is watchTools for a limited store: it reads the registry, and again whenever its stream has changed.
func (s *Registry) pollTools(ctx context.Context, known map[string]bool, each func(tool.Registered, bool), ready func()) error {
	stream := subjects.BucketStream(subjects.ToolsBucket)
	seen := map[string]uint64{} // by subject
	for read, last := false, uint64(0); ; {
		info, err := s.streamInfo(ctx, stream, "")
		if err != nil {
			return err
		}
		if !read || info.State.LastSeq != last {
			now, err := s.entries(ctx, stream, toolPrefix+"*")
			if err != nil {
				return err
			}
			s.reportChanges(now, seen, known, each)
			if !read {
				ready()
			}
			read, last = true, info.State.LastSeq
		}
		if !s.pause(ctx, registryPause) {
			return s.explain(ctx, context.Cause(ctx))
		}
	}
}

// reportChanges reports what is new among the entries of the registry, and what is gone.
func (s *Registry) reportChanges(now []Entry, seen map[string]uint64, known map[string]bool, each func(tool.Registered, bool)) {
	there := map[string]bool{}
	for _, e := range now {
		name, _ := subjects.Decode(strings.TrimPrefix(e.Subject, toolPrefix))
		there[name] = true
		if seen[e.Subject] != e.Seq {
			seen[e.Subject] = e.Seq
			s.reportTool(e, known, each)
		}
	}
	for name := range known {
		if !there[name] { // with its mark
			delete(known, name)
			each(tool.Registered{Name: name}, true)
		}
	}
}
