package streamed

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Hold has the steps that were written and may not begin yet. A step may begin when all that it refers to may, and it may
// be known before the text is over; at the end all may. The zero value is not of use; NewHold makes one.
type Hold struct {
	// Rounds says that names such as r0 are those of rounds that are over, which nothing waits for.
	Rounds bool

	last    func(*Step) bool
	written int
	ids     map[string]bool    // of steps that may begin
	waiting map[string][]*held // steps that wait for an id
	late    []*held            // steps that wait for the end
	all     map[int]*held      // all that wait, by number
}

// held is a step with how many names it waits for.
type held struct {
	step *Step
	left int
}

// NewHold returns one without steps. last says of a step whether it waits for the end of the text, whatever it refers to.
func NewHold(last func(*Step) bool) *Hold {
	return &Hold{last: last, ids: map[string]bool{}, waiting: map[string][]*held{}, all: map[int]*held{}}
}

// Add takes the next step of the text, and returns those that may begin now, in the order of the text.
func (h *Hold) Add(raw json.RawMessage) []*Step {
	x := &held{step: newStep(h.written, raw)}
	h.written++
	seen := map[string]bool{x.step.ID: true} // a step that refers to itself waits for nothing: it is a mistake
	for _, name := range x.step.names {
		if !seen[name] && !h.ids[name] && !(h.Rounds && isRound(name)) {
			x.left++
			h.waiting[name] = append(h.waiting[name], x)
		}
		seen[name] = true
	}
	h.all[x.step.Number] = x
	if h.last(x.step) {
		x.left++
		h.late = append(h.late, x)
	}
	if x.left > 0 {
		return nil
	}
	return inOrder(h.begin(x))
}

// isRound reports whether a name is that of a round of an agent.
func isRound(name string) bool {
	digits, is := strings.CutPrefix(name, "r")
	return is && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// begin lets a step begin, and those that waited for nothing but it.
func (h *Hold) begin(x *held) (now []*Step) {
	for next := []*held{x}; len(next) > 0; {
		x, next = next[0], next[1:]
		delete(h.all, x.step.Number)
		now = append(now, x.step)
		id := x.step.ID
		if id == "" || h.ids[id] {
			continue
		}
		h.ids[id] = true
		for _, w := range h.waiting[id] {
			if w.left--; w.left == 0 {
				next = append(next, w)
			}
		}
		delete(h.waiting, id)
	}
	return now
}

// End returns all that is left: each step behind those that it refers to, and last what refers to nothing that is there.
func (h *Hold) End() (rest []*Step) {
	for _, x := range h.late {
		if x.left--; x.left == 0 {
			rest = append(rest, h.begin(x)...)
		}
	}
	h.late = nil
	var lost []*Step
	for _, x := range h.all {
		lost = append(lost, x.step)
	}
	clear(h.all)
	return append(rest, inOrder(lost)...)
}

// Waits reports whether a step is held back.
func (h *Hold) Waits() bool { return len(h.all) > 0 }

// Written is how many steps were written.
func (h *Hold) Written() int { return h.written }

func inOrder(steps []*Step) []*Step {
	slices.SortFunc(steps, func(a, b *Step) int { return cmp.Compare(a.Number, b.Number) })
	return steps
}
