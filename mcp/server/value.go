package server

import (
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

const (
	jsonType = "application/json"
	// mostRead is the most that is read of a resource at once, in bytes.
	mostRead = 256 << 10
)

func resourceURI(run, step string) string {
	return "stepjet://runs/" + url.PathEscape(run) + "/steps/" + url.PathEscape(step)
}

// place is what a URI names.
type place struct {
	run, step, path string
	offset, limit   int
}

// parsePlace reads the URI of a resource.
func parsePlace(uri string) (p place, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "stepjet" || u.Host != "runs" {
		return p, false
	}
	run, step, ok := strings.Cut(strings.TrimPrefix(u.EscapedPath(), "/"), "/steps/")
	if !ok {
		return p, false
	}
	if p.run, err = url.PathUnescape(run); err != nil {
		return p, false
	}
	if p.step, err = url.PathUnescape(step); err != nil {
		return p, false
	}
	query := u.Query()
	p.path, p.limit = query.Get("path"), mostRead
	for name, to := range map[string]*int{"offset": &p.offset, "limit": &p.limit} {
		if text := query.Get(name); text != "" {
			if *to, err = strconv.Atoi(text); err != nil || *to < 0 {
				return p, false
			}
		}
	}
	p.limit = min(p.limit, mostRead)
	return p, p.run != "" && p.step != ""
}

// value returns what a place of a run's document holds.
func (r *runs) value(ctx context.Context, p place) (json.RawMessage, error) {
	doc, err := r.client.Get(ctx, p.run)
	if err != nil {
		return nil, err
	}
	raw, err := r.stepResult(ctx, doc, p.step)
	if err != nil {
		return nil, err
	}
	return inside(raw, p.path)
}

// stepResult returns what a step, or an item of one, came to: "=" is the plan's output.
func (r *runs) stepResult(ctx context.Context, doc *outcome.Run, step string) (json.RawMessage, error) {
	none := fault.New(fault.NotFound, "the step %s has no result", step)
	if doc.Outcome != nil {
		if step == subjects.RootScope && doc.Outcome.Output != nil {
			return doc.Outcome.Output, nil
		}
		if raw, there := doc.Outcome.Results.Get(step); there {
			return raw, nil
		}
	}
	s := findStep(doc.Steps, step)
	switch {
	case s == nil:
		return nil, none
	case s.Result != nil:
		return s.Result, nil
	case s.Blob == nil:
		return nil, none
	}
	raw, err := r.client.Blob(ctx, s.Blob)
	if err == nil && s.Text {
		raw = jsontape.AppendQuoted(nil, string(raw))
	}
	return raw, err
}

func findStep(all []outcome.Step, id string) *outcome.Step {
	for i := range all {
		if all[i].ID == id {
			return &all[i]
		}
		if s := findStep(all[i].Items, id); s != nil {
			return s
		}
		if s := findStep(all[i].Steps, id); s != nil {
			return s
		}
	}
	return nil
}

// inside follows a JSON pointer into a value.
func inside(raw json.RawMessage, pointer string) (json.RawMessage, error) {
	if pointer == "" {
		return raw, nil
	}
	for _, token := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		key := jsontape.UnescapeToken(token)
		var members map[string]json.RawMessage
		var items []json.RawMessage
		if json.Unmarshal(raw, &members) == nil {
			raw = members[key]
		} else if i, err := strconv.Atoi(key); err == nil && json.Unmarshal(raw, &items) == nil && i >= 0 && i < len(items) {
			raw = items[i]
		} else {
			raw = nil
		}
		if raw == nil {
			return nil, fault.New(fault.NotFound, "the path %s leads to nothing", pointer)
		}
	}
	return raw, nil
}

// cut returns the beginning of a text, at most so many bytes, without half a character at either end.
func cut(b []byte, most int) string {
	for len(b) > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	if len(b) > most {
		for most > 0 && !utf8.RuneStart(b[most]) {
			most--
		}
		b = b[:most]
	}
	return string(b)
}
