package subjects

import (
	"strconv"
	"strings"
)

// RecordKind is the kind of a ledger record.
type RecordKind uint8

// The kinds of records.
const (
	UnknownRecord RecordKind = iota // one beside "step." that a newer Stepjet wrote
	PlanKind
	StartKind
	StopKind
	ToldKind
	AnswerKind
	AmendKind
	RoundKind
	SayKind
	StepKind
	ClaimKind
	NoteKind
	// StrayRecord lies below "step." and is of no attempt. Whoever hosts a tool may write such, so it means nothing.
	StrayRecord
	// MisplacedRecord lies where no run has its records: in the partition of others, below a generation that is none,
	// or on a subject with a wildcard or an empty token in it.
	MisplacedRecord
)

// Record is a parsed ledger subject.
type Record struct {
	Kind       RecordKind
	Run        Run
	Generation uint64  // 0 for a plan: there it is the record's own sequence
	Attempt    Attempt // of StepKind, ClaimKind and NoteKind
	Step, What string  // of ToldKind: whose evaluation it is, and which; of AnswerKind, whose question; of AmendKind and RoundKind, the scope; of SayKind, the agent, and the word's id
	Number     int     // of AnswerKind: of the question, from 1; of AmendKind: the revision, from 1; of ToldKind: which of several of the kind, from 2, 0 for the first
}

// ParseRecord reads a ledger subject. ok is false where it isn't one of a run's place; Kind is MisplacedRecord then,
// where it will never be anything. A subject of a run that this version doesn't know has Kind UnknownRecord.
//
// Whoever hosts a tool may write below any run whatever ends in "step.<tool>.…". So every name has one form only: were
// there two names of one attempt, it could be decided twice.
//
// A server stores what is published on a subject with a literal "*". It is below no run: whoever read or purged by such
// a name would mean every run that it matches.
func ParseRecord(subject string) (rec Record, ok bool) {
	rest, found := strings.CutPrefix(subject, "$KV.runs_")
	if !found {
		return rec, false
	}
	if !Literal(rest) {
		return Record{Kind: MisplacedRecord}, false
	}
	var t [10]string // shard P T R G kind …
	tokens := split(rest, t[:])
	if tokens < 5 {
		return rec, false
	}
	rec.Run = Run{t[2], t[3]}
	if p, ok := canonical(t[1]); !ok || p != uint64(rec.Run.Partition()) {
		return Record{Kind: MisplacedRecord}, false
	}
	if tokens == 5 && t[4] == "plan" {
		rec.Kind = PlanKind
		return rec, true
	}
	g, ok := canonical(t[4])
	switch {
	case (!ok || g == 0) && tokens > 5 && t[5] == "step":
		return Record{Kind: MisplacedRecord}, false
	case !ok:
		return rec, true
	}
	rec.Generation = g
	rec.below(t[5:], tokens-5)
	return rec, true
}

// below reads what stands behind the generation: n tokens, or as many as there is room for.
func (rec *Record) below(t []string, n int) {
	switch {
	case n == 1 && t[0] == "start":
		rec.Kind = StartKind
	case n == 1 && t[0] == "stop":
		rec.Kind = StopKind
	case n == 3 && t[0] == "told" && isTold(t[2]) && t[1] != "":
		rec.Kind, rec.Step, rec.What = ToldKind, t[1], t[2]
	case n == 4 && t[0] == "told" && t[2] == ToldApproval && t[1] != "":
		if number, ok := number(t[3]); ok && number > 1 {
			rec.Kind, rec.Step, rec.What, rec.Number = ToldKind, t[1], t[2], number
		}
	case n == 3 && t[0] == "answer" && t[1] != "":
		if number, ok := number(t[2]); ok && number > 0 {
			rec.Kind, rec.Step, rec.Number = AnswerKind, t[1], number
		}
	case n == 3 && t[0] == "amend" && t[1] != "":
		if number, ok := number(t[2]); ok && number > 0 {
			rec.Kind, rec.Step, rec.Number = AmendKind, t[1], number
		}
	case n == 2 && t[0] == "round" && t[1] != "":
		rec.Kind, rec.Step = RoundKind, t[1]
	case n == 3 && t[0] == "say" && t[1] != "" && ValidStepID(t[2]):
		rec.Kind, rec.Step, rec.What = SayKind, t[1], t[2]
	case n > 0 && t[0] == "step":
		rec.Kind = StrayRecord
		if n != 4 && (n != 5 || t[4] != claim && t[4] != note) {
			return
		}
		tool, known := toolOfRecord(t[1])
		a, ok := attemptOf(rec.Run, rec.Generation, tool, t[2], t[3])
		if !known || !ok {
			return
		}
		rec.Attempt, rec.Kind = a, StepKind
		if n == 5 && t[4] == claim {
			rec.Kind = ClaimKind
		} else if n == 5 {
			rec.Kind = NoteKind
		}
	}
}

// What lies beside the record of an attempt.
const (
	claim = "claim"
	note  = "note"
)

// isTold reports whether a record may tell such a thing of a step.
func isTold(what string) bool {
	return what == ToldIf || what == ToldValue || what == ToldApproval || what == ToldOutput || what == ToldUntil || what == ToldState
}

// toolOfRecord reads the tool in a record's subject.
func toolOfRecord(token string) (tool string, ok bool) {
	if token == CompositeTool {
		return CompositeTool, true
	}
	tool, ok = Decode(token)
	return tool, ok && tool != CompositeTool
}

// parseAttempt reads what names an attempt. The step's token is not looked into: it may be of a newer grammar.
func parseAttempt(r Run, g uint64, tool, step, number string) (Attempt, bool) {
	name, ok := Decode(tool)
	if !ok {
		return Attempt{}, false
	}
	return attemptOf(r, g, name, step, number)
}

func attemptOf(r Run, g uint64, tool, step, number string) (Attempt, bool) {
	n, ok := canonical(number)
	if !ok || n < 1 || n > maxNumber || step == "" {
		return Attempt{}, false
	}
	return Attempt{Run: r, Generation: g, Tool: tool, Step: step, Number: int(n)}, true
}

// canonical reads a number in the one form that it has: decimal, without sign or leading zeros.
func canonical(token string) (n uint64, ok bool) {
	if token == "" || token[0] < '0' || token[0] > '9' || token[0] == '0' && len(token) > 1 {
		return 0, false
	}
	n, err := strconv.ParseUint(token, 10, 64)
	return n, err == nil
}

// Literal reports whether a subject stands for itself alone. A server stores what is published on one with a "*" or ">"
// in it, but who purges or reads by it means all that it matches; and it takes none with an empty token for that.
func Literal(subject string) bool {
	return strings.IndexByte(subject, '*') < 0 && strings.IndexByte(subject, '>') < 0 &&
		!strings.Contains(subject, "..") && !strings.HasSuffix(subject, ".")
}
