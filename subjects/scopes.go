package subjects

import (
	"strconv"
	"strings"
)

// A run is a tree of scopes: the plan is the root, and a step that is a plan itself has a scope of its own below. The
// token of a step is its way from the root, with one segment for each scope:
//
//	fetch        a step of the plan
//	map=3/fetch  a step in the scope of the fourth item of "map"
//	poll/=2/get  a step in the third iteration of "poll"; the rounds of an agent are written so too
//	a/=2/=plan   the call "plan" that the agent "a" makes for itself in its third round
//	a/=2         that round, as a scope
//	=            the root, as a scope
//
// Workers hand tokens back as they came. Nothing but this file takes them apart.

const (
	// RootScope is the token of a run's plan. No step and no tool has this name.
	RootScope = "="
	// CompositeTool stands for the tool in the records that a step without one has: those of its scope as a whole. It
	// stands there as it is, where names of tools are encoded, so that no role of a tool may write such records.
	CompositeTool = "="

	// MaxStepToken is the longest token of a step, in bytes.
	MaxStepToken = 512
	// MaxComposites is the most steps above another: items, iterations and rounds don't count.
	MaxComposites = 8
)

// SegmentKind is what one segment of a step token stands for.
type SegmentKind uint8

// The kinds of segments.
const (
	StepSegment      SegmentKind = iota // a step, by its id
	ItemSegment                         // an item of a step's for_each
	IterationSegment                    // an iteration of the step before it, or a round of an agent
	CallSegment                         // a call that an agent makes for itself, in the round before it
)

// Segment is one segment of a step token.
type Segment struct {
	Kind SegmentKind
	// Name is the id of a step, also of an item's; of a call a letter and up to 63 of [A-Za-z0-9_-].
	Name string
	// Number is that of an item, an iteration or a round, from 0.
	Number int
}

// String writes the segment as it stands in a token.
func (s Segment) String() string {
	switch s.Kind {
	case ItemSegment, IterationSegment:
		return ItemToken(s.Name, s.Number)
	case CallSegment:
		return "=" + s.Name
	default:
		return s.Name
	}
}

// StepToken joins segments to a token; none are the root scope. ParseStepToken says whether it is one.
func StepToken(segments ...Segment) string {
	parts := make([]string, len(segments))
	for i, s := range segments {
		parts[i] = s.String()
	}
	if len(parts) == 0 {
		return RootScope
	}
	return strings.Join(parts, "/")
}

// InScope returns the token of what has a segment of its own in a scope: a step, an iteration ("=2"), a call ("=plan").
func InScope(scope, segment string) string {
	if scope == RootScope {
		return segment
	}
	return scope + "/" + segment
}

// Iteration returns the token of the i-th iteration or round of a step, from 0.
func Iteration(step string, i int) string { return InScope(step, ItemToken("", i)) }

// IsIteration reports whether a token is that of an iteration or round itself.
func IsIteration(token string) bool {
	at := strings.LastIndexByte(token, '/')
	if at < 0 || !strings.HasPrefix(token[at:], "/=") {
		return false
	}
	_, ok := number(token[at+len("/="):])
	return ok
}

// OwnCall returns the token of a call that an agent makes for itself in a round.
func OwnCall(round, name string) string { return InScope(round, "="+name) }

// ScopeOf returns the token of the scope that a token other than the root's lies in.
func ScopeOf(token string) string {
	i := strings.LastIndexByte(token, '/')
	if i < 0 {
		return RootScope
	}
	return token[:i]
}

// ItemToken returns the step token of the i-th item of a for_each: S=i. No step id holds "=".
func ItemToken(step string, item int) string { return step + "=" + strconv.Itoa(item) }

// SplitItem reads a step token: the token of the step, and the item's number where it is one.
func SplitItem(token string) (step string, item int, isItem bool) {
	at := strings.LastIndexByte(token, '=')
	if at <= 0 || token[at-1] == '/' {
		return token, 0, false
	}
	n, ok := number(token[at+1:])
	if !ok {
		return token, 0, false
	}
	return token[:at], n, true
}

// ValidStepToken reports whether a token is one that a step or a scope may have.
func ValidStepToken(token string) bool {
	_, ok := ParseStepToken(token)
	return ok
}

// ParseStepToken reads the token of a step or a scope; the root has no segments. StepToken makes the same of them again.
func ParseStepToken(token string) (segments []Segment, ok bool) {
	if token == RootScope {
		return nil, true
	}
	if len(token) > MaxStepToken {
		return nil, false
	}
	var last Segment
	steps := 0
	for part := range strings.SplitSeq(token, "/") {
		s, ok := parseSegment(part)
		if !ok || !s.follows(last, segments == nil) {
			return nil, false
		}
		if s.isStep() {
			steps++
		}
		segments, last = append(segments, s), s
	}
	if last.isStep() {
		steps-- // it isn't above itself
	}
	if steps > MaxComposites {
		return nil, false
	}
	return segments, true
}

func (s Segment) isStep() bool { return s.Kind == StepSegment || s.Kind == ItemSegment }

// follows reports whether a segment may stand behind another: a call behind a round alone, and behind a call nothing but a
// step of what its planner has begun.
func (s Segment) follows(last Segment, isFirst bool) bool {
	switch {
	case isFirst:
		return s.isStep()
	case s.Kind == CallSegment:
		return last.Kind == IterationSegment
	}
	return last.Kind != CallSegment || last.Name == streamed && s.Kind == StepSegment
}

// streamed is the name of the call in which stands what a planner has begun before its answer was whole.
const streamed = "stream"

// parseSegment reads one segment of a token.
func parseSegment(part string) (Segment, bool) {
	name, behind, marked := strings.Cut(part, "=")
	n, isNumber := number(behind)
	switch {
	case !marked:
		return Segment{Name: name}, ValidStepID(name)
	case isNumber && name == "":
		return Segment{Kind: IterationSegment, Number: n}, true
	case isNumber:
		return Segment{Kind: ItemSegment, Name: name, Number: n}, ValidStepID(name)
	}
	return Segment{Kind: CallSegment, Name: behind}, name == "" && ValidStepID(behind) && isLetter(behind[0])
}

// number reads the number of an item, an iteration or a round, in the one form that it has.
func number(token string) (int, bool) {
	n, ok := canonical(token)
	return int(n), ok && n <= maxNumber
}

// maxNumber is more items, iterations and attempts than there will ever be, and a number in every language.
const maxNumber = 1<<31 - 1

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
