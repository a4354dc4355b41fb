package kv

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/tool/group"
	"github.com/stepjet/stepjet/wire"
)

// Groups is what providers have for the roles of groups of tools (package tool/group), in a bucket (subjects.GroupsBucket),
// each under <role>.<provider>. It is small and read as a whole.
type Groups struct{ *account }

var groupsPrefix = subjects.BucketSubject(subjects.GroupsBucket, "")

// AllGroups returns all groups as they stand. What can't be read is an error, not left out: it may be what keeps runs from
// a tool. Errors: NewerVersion, Internal, and those of Read; NotReady where there is no such bucket yet.
func (s *Groups) AllGroups(ctx context.Context) (*group.Set, error) {
	for {
		found := map[string]*group.Definition{}
		var bad error
		lost, err := s.readAll(ctx, subjects.BucketStream(subjects.GroupsBucket), groupsPrefix+">", func(e Entry) {
			d, err := parseGroup(e)
			switch {
			case err != nil:
				bad = err
			case d == nil:
				delete(found, e.Subject)
			default:
				found[e.Subject] = d
			}
		})
		switch {
		case lost && s.pause(ctx, unknownPause):
			continue
		case lost:
			return nil, s.explain(ctx, context.Cause(ctx))
		case err != nil || bad != nil:
			return nil, firstError(err, bad)
		}
		var all []*group.Definition
		for _, d := range found {
			all = append(all, d)
		}
		return group.NewSet(all), nil
	}
}

func firstError(errs ...error) error {
	return errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
}

// parseGroup reads an entry; nil for one that was removed.
func parseGroup(e Entry) (*group.Definition, error) {
	key := strings.TrimPrefix(e.Subject, groupsPrefix)
	if operation(e.Header) != "" {
		return nil, nil
	}
	if !wire.KindGroup.Known(e.Header) {
		return nil, wire.Newer("the group " + key)
	}
	d, err := group.Parse(e.Data)
	if err != nil || d.Key() != key {
		return nil, fault.New(fault.Internal, "the entry of the group %s was not written by Stepjet", key).
			WithHint("apply it anew, or take it out: stepjet groups remove")
	}
	return d, nil
}

// Apply sets what a provider has for a role, over what is there. Errors: those of group.Parse; InvalidValue for the
// definition of another; and those of Create.
func (s *Groups) Apply(ctx context.Context, role, provider string, raw []byte) (*group.Definition, error) {
	d, err := group.Parse(raw)
	if err != nil {
		return nil, err
	}
	if d.Role != role || d.Provider != provider {
		return nil, fault.New(fault.InvalidValue, "this is the group %q of %q, and the request is for %q of %q", d.Role, d.Provider, role, provider)
	}
	body, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	return d, s.write(ctx, &nats.Msg{Subject: groupsPrefix + d.Key(), Header: wire.Versioned(), Data: body})
}

// Remove takes what a provider has for a role out. Errors: NotFound, and those of Create.
func (s *Groups) Remove(ctx context.Context, role, provider string) error {
	subject := groupsPrefix + subjects.GroupKey(role, provider)
	e, err := s.read(ctx, subject)
	if fault.CodeOf(err) == fault.NotFound || err == nil && operation(e.Header) != "" {
		return fault.New(fault.NotFound, "there is no group %q of %q", role, provider).WithHint("stepjet groups list names all")
	}
	if err != nil {
		return err
	}
	return s.write(ctx, &nats.Msg{Subject: subject, Header: deletion()})
}

func (s *Groups) write(ctx context.Context, msg *nats.Msg) error {
	err := s.retry(ctx, func(ctx context.Context) error {
		_, err := s.put(ctx, msg)
		return err
	})
	if err != nil {
		return s.explain(ctx, err)
	}
	return nil
}
