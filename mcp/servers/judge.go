package servers

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Verdict says how a tool stands to the lock.
type Verdict int

// The verdicts.
const (
	Same    Verdict = iota // as it was agreed to
	New                    // nobody has agreed to it
	Changed                // its server says something else than what was agreed to
	Gone                   // its server doesn't list it any more
	Unseen                 // its server could not be asked: what was agreed to counts
	Unfit                  // it can't be called
)

// Judgement is one tool of a server, held against the lock.
type Judgement struct {
	At           int // of the server
	Server, Tool string
	State        Verdict
	Was, Now     json.RawMessage // pinned fields; nil where there are none
	Suspicions   []string        // of Now; of an unfit tool, why it is that
}

// Listing is what came of asking a server for its tools.
type Listing struct {
	Tools []Remote
	Err   error
	Lazy  bool // it was not asked
}

// Judge holds what servers list against the lock. Tools that the file excludes are in neither.
func Judge(entries []*Entry, found []Listing, pins *Lock) (all []*Judgement) {
	names := make([][]string, len(entries))
	for i := range entries {
		for _, t := range found[i].Tools {
			names[i] = append(names[i], t.Name)
		}
	}
	for i, e := range entries {
		var others []string
		for k := range names {
			if k != i {
				others = append(others, names[k]...)
				for _, n := range names[k] {
					others = append(others, Name(entries[k].Name, n))
				}
			}
		}
		for _, j := range judgeOne(e, found[i], pins, others) {
			j.At = i
			all = append(all, j)
		}
	}
	return all
}

func judgeOne(e *Entry, l Listing, pins *Lock, others []string) (all []*Judgement) {
	listed := map[string]bool{}
	for _, t := range l.Tools {
		if !e.picked(t) || listed[t.Name] {
			continue
		}
		listed[t.Name] = true
		all = append(all, judgeTool(e, t, pins, others))
	}
	for name, p := range pins.servers[e.Name] {
		if listed[name] || !e.picked(Remote{name, p.Definition}) {
			continue
		}
		j := &Judgement{Server: e.Name, Tool: name, State: Gone, Was: p.Definition}
		if l.Err != nil || l.Lazy {
			j.State = Unseen
		}
		all = append(all, j)
	}
	slices.SortFunc(all, func(a, b *Judgement) int {
		if a.Tool < b.Tool {
			return -1
		}
		return 1
	})
	return all
}

func judgeTool(e *Entry, t Remote, pins *Lock, others []string) *Judgement {
	j := &Judgement{Server: e.Name, Tool: t.Name}
	var err error
	if j.Now, err = t.Pinned(); err != nil {
		j.State, j.Suspicions = Unfit, []string{"its definition can't be read: " + err.Error()}
		return j
	}
	if t.taskOnly() {
		j.State = Unfit
		j.Suspicions = []string{"it can be called as a task alone, in the way of 2025-11-25, which is not known here"}
		return j
	}
	p, known := pins.Get(e.Name, t.Name)
	j.Was = p.Definition
	switch {
	case !known:
		j.State = New
		if _, err := e.Define(t.Name, j.Now); err != nil {
			j.State, j.Suspicions = Unfit, []string{err.Error()}
			return j
		}
		j.Suspicions = suspicions(j.Now, others)
	case p.SHA256 != Digest(j.Now):
		j.State = Changed
		j.Suspicions = suspicions(j.Now, others)
	}
	return j
}

// Kind says in a word how a tool differs from the lock: "new", "changed", "gone", "unfit"; "" where it doesn't.
func (j *Judgement) Kind() string {
	return map[Verdict]string{New: "new", Changed: "changed", Gone: "gone", Unfit: "unfit"}[j.State]
}

// Change is a part of a definition, as JSON; nil where it is absent.
type Change struct {
	Field string          `json:"field"`
	Was   json.RawMessage `json:"was,omitempty"`
	Now   json.RawMessage `json:"now,omitempty"`
}

// Changes returns the parts of a changed definition that are others than before.
func (j *Judgement) Changes() (all []Change) {
	if j.State != Changed {
		return nil
	}
	was, now := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	_, _ = json.Unmarshal(j.Was, &was), json.Unmarshal(j.Now, &now) // Pinned has made them
	for _, field := range pinnedFields {
		if !bytes.Equal(was[field], now[field]) {
			all = append(all, Change{field, was[field], now[field]})
		}
	}
	return all
}
