package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// answer answers about the objects that tools have returned.
func (b *board) answer(name string, arguments json.RawMessage, most int) (json.RawMessage, *fault.Error) {
	var in struct {
		Name, Path, Type string
		From, Bytes      int
	}
	if len(arguments) > 0 && json.Unmarshal(arguments, &in) != nil {
		return nil, fault.New(fault.InvalidArguments, "the arguments can't be read")
	}
	switch name {
	case "blackboard_list":
		return b.listed(), nil
	case "blackboard_count":
		return marshal(len(b.ofType(in.Type))), nil
	case "blackboard_last":
		all := b.ofType(in.Type)
		if len(all) == 0 {
			return nil, fault.New(fault.NotFound, "there is no object of the type %q", clip(in.Type)).
				WithHint("%s", thereAre(in.Type, b.types()))
		}
		return all[len(all)-1].Value, nil
	}
	i := slices.IndexFunc(b.objects.all, func(a Artifact) bool { return a.Name == in.Name })
	if i < 0 {
		return nil, fault.New(fault.NotFound, "there is no object %q", clip(in.Name)).WithHint("%s", thereAre(in.Name, b.names()))
	}
	if name == "blackboard_describe" {
		return quoteJSON(b.objects.all[i].describe()), nil
	}
	return b.objects.all[i].part(in.Path, in.From, in.Bytes, most)
}

func (b *board) listed() json.RawMessage {
	type entry struct {
		Index int    `json:"index"`
		Name  string `json:"name"`
		Type  string `json:"type"`
		Bytes int    `json:"bytes"`
	}
	all := []entry{}
	for i, a := range b.objects.all {
		all = append(all, entry{i, a.Name, a.Type, len(a.Value)})
	}
	return marshal(all)
}

// describe tells what an object looks like.
func (a Artifact) describe() string {
	kind := kindOf(a.Value)
	text := fmt.Sprintf("%s is of the type %s: %s of %d bytes", a.Name, a.Type, kind, len(a.Value))
	if kind == jsontape.Object {
		keys, _ := value{raw: a.Value}.members()
		text += " with the keys " + strings.Join(keys, ", ")
	}
	return text
}

// part returns an object, or what stands at a path of it. What is longer than most bytes is returned as a text of some of
// its bytes, with how to read on, that is no longer itself.
func (a Artifact) part(path string, from, bytes, most int) (json.RawMessage, *fault.Error) {
	v := []byte(a.Value)
	if path != "" {
		r, end, why := readReference("$result"+dotted(path), 1, []string{ofResult})
		ok := why == "" && end == len("$result"+dotted(path))
		if ok {
			v, ok = within(a.Value, r.path)
		}
		if !ok {
			return nil, fault.New(fault.NotFound, "there is nothing at %q of %s", clip(path), a.Name).WithHint("%s", a.describe())
		}
	}
	if bytes <= 0 || bytes > most {
		bytes = most
	}
	if from <= 0 && len(v) <= bytes {
		return v, nil
	}
	from = min(max(from, 0), len(v))
	for to := min(from+bytes, len(v)); ; {
		for end := to; to < len(v) && to > from+1 && to > end-utf8.UTFMax && !utf8.RuneStart(v[to]); {
			to-- // the next part begins with a whole character
		}
		out := marshal(map[string]any{"text": strings.ToValidUTF8(string(v[from:to]), ""), "from": from, "to": to, "bytes": len(v)})
		if len(out) <= most || to-from <= 1 { // else the planner would be shown a preview of it
			return out, nil
		}
		to = from + max((to-from)*(most-16)/len(out), 1)
	}
}
