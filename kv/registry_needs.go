package kv

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/wire"
)

// needs are what the runs of the ledger may need (wire.Need), as far as this process has read: a key for each in the
// registry, which is created once, before the first run that has the need is started, and which stays there.
// Orchestrators share the partitions among those that know all of them (ADR 16). A key that is missing does no harm
// but that some runs stand still: who meets a run with a need that is not recorded records it.
type needs struct {
	*account
	mu    sync.Mutex
	there map[string]bool
}

var needPrefix = subjects.BucketSubject(subjects.ToolsBucket, "") + subjects.NeedKey("")

// all returns the names, sorted.
func (n *needs) all() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var names []string
	for name := range n.there {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// note takes over that a need is recorded, or is not any more, and reports whether that is news.
func (n *needs) note(name string, there bool) (news bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.there == nil {
		n.there = map[string]bool{}
	}
	news = n.there[name] != there
	if there {
		n.there[name] = true
	} else {
		delete(n.there, name)
	}
	return news
}

// RecordNeeds makes sure that needs are recorded. Only orchestrators have the right. Errors as those of Create.
func (s *Registry) RecordNeeds(ctx context.Context, names []string) error {
	return s.needs.recordAll(ctx, names)
}

// recordAll creates the keys that are missing, as RecordNeeds promises.
func (n *needs) recordAll(ctx context.Context, names []string) error {
	there := n.all()
	for _, name := range names {
		if !wire.ValidNeed(name) || slices.Contains(there, name) {
			continue // of what is no name, nobody can know anything: its run is left alone by all
		}
		if err := n.record(ctx, needPrefix+name); err != nil {
			return n.explain(ctx, err)
		}
		n.note(name, true)
	}
	return nil
}

// record creates the key of a need.
func (n *needs) record(ctx context.Context, subject string) error {
	h, body := wire.NeedMessage()
	decision, _, err := n.createOnce(ctx, subject, h, body, nil)
	if err != nil || decision == Written {
		return err
	}
	e, err := n.read(ctx, subject)
	if err != nil || operation(e.Header) == "" {
		return err
	}
	// Somebody deleted it; its mark is what lies there.
	h, body = wire.NeedMessage()
	_, err = n.put(ctx, &nats.Msg{Subject: subject, Header: h, Data: body}, jetstream.WithExpectLastSequencePerSubject(e.Seq))
	if apiCode(err) == codeWrongLastSequence { // and somebody else has recorded it meanwhile
		return nil
	}
	return err
}

// introduce prepares for an entry that needs something: every live orchestrator has to know it, since one that does not
// goes on with what it has read before, and would start runs by that. For those that come later it is recorded as a run's
// need is, so that they own nothing. Errors: NotReady naming an orchestrator, and those of Create.
func (n *needs) introduce(ctx context.Context, tool string, names []string) error {
	id, lacks, err := n.behind(ctx, names)
	switch {
	case err != nil:
		return err
	case id != "":
		return fault.New(fault.NotReady, "the tool %s needs what the orchestrator %s does not know: %s", tool, id, lacks).
			WithHint("upgrade or end it, then ask again; stepjet doctor names those that know less than others")
	}
	return n.recordAll(ctx, names)
}

// behind names a live orchestrator that lacks some of what is needed, and what; empty for none.
func (n *needs) behind(ctx context.Context, names []string) (id, lacks string, err error) {
	for lost := true; lost && err == nil; {
		id = ""
		lost, err = n.readAll(ctx, subjects.BucketStream(subjects.MembersBucket), memberPrefix+">", func(e Entry) {
			if operation(e.Header) != "" {
				return
			}
			if not := wire.Lacking(names, wire.ParseMember(e.Data).Knows); not != "" {
				id, lacks = strings.TrimPrefix(e.Subject, memberPrefix), not
			}
		})
	}
	return id, lacks, err
}

// Needs returns what is recorded, sorted, as the registry's leader has it. Errors as those of Read.
func (s *Registry) Needs(ctx context.Context) (names []string, err error) {
	for lost := true; lost && err == nil; {
		names = nil
		lost, err = s.readAll(ctx, subjects.BucketStream(subjects.ToolsBucket), needPrefix+"*", func(e Entry) {
			if operation(e.Header) == "" {
				names = append(names, strings.TrimPrefix(e.Subject, needPrefix))
			}
		})
	}
	slices.Sort(names)
	return names, err
}

// follow reads what is recorded, then all changes, until ctx ends. changed is called after each, complete once all
// that was there has been read, lost where it has to be called again; from one goroutine.
func (n *needs) follow(ctx context.Context, changed, complete, lost func()) error {
	unseen := map[string]bool{}
	for _, name := range n.all() {
		unseen[name] = true
	}
	_, err := n.newCursor(ctx, subjects.BucketStream(subjects.ToolsBucket), []string{needPrefix + "*"},
		func(e Entry) {
			name := strings.TrimPrefix(e.Subject, needPrefix)
			delete(unseen, name)
			if n.note(name, operation(e.Header) == "") {
				changed()
			}
		},
		func(uint64) {
			for name := range unseen { // removed, with its mark, while nobody read
				n.note(name, false)
			}
			complete()
		},
		func(error) { lost() })
	return err
}
