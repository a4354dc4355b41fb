package parts

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// Fetch reads the bytes of a part by its name.
type Fetch func(ctx context.Context, name string) ([]byte, error)

// Changes is the member of a round's entry that says how the tools have changed. A head that was rendered after it
// knows.
const Changes = "tool_changes"

// Chain is what a request stands on: all parts that it needs, put together.
type Chain struct {
	// Head are the members that the request begins with, and In is the part that has them.
	Head json.RawMessage
	In   Link
	// Cut stands in the place of the rounds before From.
	Cut  []json.RawMessage
	From int
	// Entries are those from From on, and Anew is the round from whose end on the request began so.
	Entries []json.RawMessage
	Anew    int
}

// Chain puts the parts together that end with one, as far as a request needs them.
func (k *Keeper) Chain(ctx context.Context, last Link, fetch Fetch) (*Chain, error) {
	c := &Chain{Anew: -1}
	var headIn *Link
	for at := &last; at != nil; {
		p, err := k.part(ctx, *at, fetch)
		if err != nil {
			return nil, err
		}
		if c.Anew < 0 && p.Anew() {
			c.Anew, c.From, c.Cut, c.Head, c.In, headIn = p.Round, p.From, p.Cut, p.Head, *at, p.HeadIn
		}
		c.Entries = append(c.Entries, p.Entry)
		if at = p.Before; c.Anew >= 0 && p.Round <= c.From {
			break
		}
	}
	if headIn != nil {
		p, err := k.part(ctx, *headIn, fetch)
		if err != nil {
			return nil, err
		}
		if p.Head == nil {
			return nil, wrong("the part %q has no head, and another one says so", headIn.Name)
		}
		c.Head, c.In = p.Head, *headIn
	}
	slices.Reverse(c.Entries)
	for i := range min(c.Anew-c.From+1, len(c.Entries)) {
		c.Entries[i] = Settled(c.Entries[i])
	}
	return c, nil
}

// Settled returns the entry of a round as it stands behind a head that was rendered later, whose tools have changed
// already.
func Settled(entry json.RawMessage) json.RawMessage {
	if jsontape.Member(entry, 0, Changes) < 0 {
		return entry
	}
	return without(entry, Changes)
}

// Whole puts a request together; one that names no part is whole already. A part whose bytes the request has is not fetched.
// Errors: invalid_arguments for parts that are not what they should be, else those of fetch.
func (k *Keeper) Whole(ctx context.Context, request []byte, fetch Fetch) ([]byte, error) {
	l, content, named, err := inRequest(request)
	if err != nil || !named {
		return request, err
	}
	if content != nil {
		fetch = carried(l, content, fetch)
	}
	c, err := k.Chain(ctx, l, fetch)
	if err != nil {
		return nil, err
	}
	return c.With(without(request, "part")), nil
}

// With returns the request that has the members of an object of its own.
func (c *Chain) With(own []byte) []byte {
	size := len(c.Head) + len(own) + 16
	all := slices.Concat(c.Cut, c.Entries)
	for _, e := range all {
		size += len(e) + 1
	}
	b := make([]byte, 0, size)
	b = append(b, c.Head[:len(c.Head)-1]...)
	b = append(b, `,"rounds":`...)
	b = jsontape.AppendArray(b, all)
	if len(own) > len("{}") {
		b = append(append(b, ','), own[1:]...)
		return b
	}
	return append(b, '}')
}

// Named returns the part that a request names.
func Named(request []byte) (l Link, named bool, err error) {
	l, _, named, err = inRequest(request)
	return l, named, err
}
