package dryrun

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/machine"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/plan"
	"github.com/stepjet/stepjet/tool"
)

// arguments resolves those of a call and holds them against the tool's input schema. The error is one that is certain;
// of anything else that is wrong there is a doubt, and arguments that could not be resolved are nil.
func (t *trial) arguments(c machine.Call) ([]byte, *fault.Error) {
	x, hasRefs := t.at(c.Step), t.machine.PlanStep(c.Step).HasRefs
	o := t.machine.Origin(c)
	item := t.item(o.Of)
	t.sure = x.sure && t.at(o.Of.Step).sure
	args, err := t.resolved(c)
	switch sure := t.sure; {
	case err != nil && sure:
		return nil, err
	case err != nil:
		t.doubtOf(c, "/arguments", err)
		return nil, nil
	case hasRefs:
		t.spend(len(args))
		err := t.check(c, item, args, sure)
		if err == nil {
			t.nothing(c, item)
		}
		return args, err
	}
	return args, nil
}

// check holds resolved arguments against the input schema of the tool. What breaks it is an error where it is sure.
func (t *trial) check(c machine.Call, item, args []byte, sure bool) *fault.Error {
	k := t.at(c.Step).tool
	sc, step, _ := t.originOf(c)
	bad := k.input.CheckWithin(args, nil, &t.checks)
	if t.checks <= 0 {
		t.stop("it takes too many steps to check arguments against schemas")
		return nil
	}
	if len(bad) == 0 {
		return nil
	}
	refusal := tool.Refusal(k.name, bad)
	for _, v := range bad {
		why := sc.resolver.Explain(step, item, v.Pointer, sc.result)
		switch {
		case sure && why != "":
			refusal.Message += "; " + why
			return refusal
		case sure:
			return refusal
		case why != "":
			v.Message, v.Hint = v.Message+"; "+why, "" // which says what to write in place of the reference
		}
		err := fault.New(fault.InvalidArguments, "the tool would refuse this: %s", v.Message).WithHint("%s", v.Hint)
		t.doubtOf(c, "/arguments"+v.Pointer, err)
	}
	return nil
}

// nothing doubts references that found nothing, in the first call of a step: those at places that the tool would not
// refuse for it.
func (t *trial) nothing(c machine.Call, item []byte) {
	sc, step, _ := t.originOf(c)
	if !t.isFirst(c) || strings.Contains(t.around(c.Step), elsewhere) {
		return
	}
	_, id := t.place(c.Step)
	for _, n := range sc.resolver.Nothing(step, item, sc.result) {
		at := inDocument(t.around(c.Step) + n.At)
		if slices.ContainsFunc(t.doubts, func(p fault.Problem) bool {
			return p.Path == at && p.Code == fault.InvalidArguments
		}) {
			continue
		}
		t.add(fault.Problem{Code: fault.UnresolvedRef, Path: at, Step: id, Message: n.Message()})
	}
}

// result returns what a reference to a step sees, and notes whether it is certain.
func (t *trial) result(dep int) ([]byte, bool) {
	t.asked++
	res := t.machine.Result(machine.Call{Step: dep})
	if res == nil {
		return nil, false
	}
	x, s := t.at(dep), t.machine.PlanStep(dep)
	value, uncalled := res.Value, x.tool == nil
	if s.ForEach != nil && !s.Value {
		value, uncalled = t.entriesOf(dep), uncalled || len(x.list) == 0
	}
	t.sure = t.sure && t.certain(dep) && (uncalled || x.tool.from == outcome.FromExample)
	t.spend(len(value) / 16)
	return value, value != nil
}

// certain reports whether what a step makes of its inputs is certain: of a value, whether all that it refers to is; of a
// composite, whether what is called within it is, too.
func (t *trial) certain(step int) bool {
	x, s := t.at(step), t.machine.PlanStep(step)
	if (s.Value || s.Plan != nil) && !x.judged {
		x.judged = true
		x.sure = t.certainInput(step) && (s.Value || t.certainWithin(s.Plan) && (s.Repeat == nil || s.Repeat.Until == nil))
	}
	return x.sure
}

// entriesOf returns what a reference to a for_each step sees.
func (t *trial) entriesOf(step int) []byte {
	x := t.at(step)
	if x.entries != nil || t.cut != "" {
		return x.entries
	}
	const around = 40 // bytes of an entry besides its data
	size := len(x.list) * around
	if x.tool != nil {
		size += len(x.list) * len(x.tool.returns())
	} else {
		size += int(t.machine.Result(machine.Call{Step: step}).Size)
	}
	if t.kept -= size; size > plan.MaxOutput || t.kept < 0 {
		_, id := t.place(step)
		t.stop("the made-up results of all items of %q are too large together", id)
		return nil
	}
	t.spend(size)
	x.entries = t.machine.Value(step)
	return x.entries
}

// spend takes from the work that is left.
func (t *trial) spend(bytes int) {
	if t.work -= bytes; t.work < 0 {
		t.stop("there is too much to resolve: more than 256 MiB of arguments and lists")
	}
}

// doubtOf notes what may be wrong with a call: of items, with the first.
func (t *trial) doubtOf(c machine.Call, at string, err *fault.Error) {
	if !t.isFirst(c) {
		return
	}
	path, id := t.place(c.Step)
	t.add(fault.Problem{Code: err.Code, Path: inDocument(path + at), Step: id, Message: err.Message, Hint: err.Hint})
}

func (t *trial) add(p fault.Problem) {
	if len(t.doubts) == maxDoubts {
		t.leftOut++
		return
	}
	t.doubts = append(t.doubts, p)
}
