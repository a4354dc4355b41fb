package tool

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/expression"
	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/subjects"
)

// AlwaysApprove is the contract whose every call waits for an approval.
const AlwaysApprove = "always"

// Approval is what a contract says of approvals: nothing, AlwaysApprove, or a condition on the resolved arguments, such
// as "$args.amount > 100". Calls for which it holds begin when a person has approved of them.
type Approval string

// args begins a reference in a condition of a contract.
const args = "$args"

// check says why it is neither.
func (a Approval) check() error {
	if a == "" || a == AlwaysApprove {
		return nil
	}
	_, err := expression.Compile(string(a), readArgs)
	if err != nil {
		return badField("approval", "%s", err.Message).
			withHint(`write "always", or a condition on the arguments: "$args.amount > 100"`)
	}
	return nil
}

// Wanted reports whether a call with such arguments waits for an approval. Where that can't be told, it does. why is
// the reason for people to read where the condition failed; nil where it did not.
func (a Approval) Wanted(arguments []byte) (wanted bool, why *fault.Error) {
	switch a {
	case "":
		return false, nil
	case AlwaysApprove:
		return true, nil
	}
	x, err := expression.Compile(string(a), readArgs)
	if err != nil {
		return true, err
	}
	refs := x.References()
	holds, err := x.True(func(i int) ([]byte, bool) { return argument(arguments, refs[i]) }, expression.ConditionLimits)
	return holds || err != nil, err
}

// readArgs is the expression.Reader of contracts: "$args" with a path.
func readArgs(s string, i int) (end int, why string) {
	if !strings.HasPrefix(s[i:], args) {
		return 0, ""
	}
	end = i + len(args)
	for end < len(s) {
		_, next, ok := element(s, end)
		if !ok {
			break
		}
		end = next
	}
	if end < len(s) && (subjects.IsPlain(s[end]) && s[end] != '-' || s[end] == '[' || s[end] == '.') {
		return end, "a path is .key, [0] or [\"any key\"]"
	}
	return end, ""
}

// element reads one element of a path at s[i:]: a key, or an index of one or more digits.
func element(s string, i int) (e Elem, end int, ok bool) {
	switch {
	case s[i] == '.':
		for end = i + 1; end < len(s) && subjects.IsPlain(s[end]); {
			end++
		}
		return Elem{Key: s[i+1 : end], IsKey: true}, end, end > i+1
	case strings.HasPrefix(s[i:], `["`):
		key, err := strconv.QuotedPrefix(s[i+1:])
		end = i + 1 + len(key)
		if err != nil || end >= len(s) || s[end] != ']' || json.Unmarshal([]byte(key), &e.Key) != nil {
			return e, i, false
		}
		e.IsKey = true
		return e, end + 1, true
	case s[i] == '[':
		digits, rest, closed := strings.Cut(s[i+1:], "]")
		n, err := strconv.ParseUint(digits, 10, 31)
		return Elem{Index: int(n)}, len(s) - len(rest), closed && err == nil
	}
	return e, i, false
}

// argument returns what a reference of a condition finds in the arguments.
func argument(arguments []byte, ref string) (value []byte, ok bool) {
	at := jsontape.SkipSpace(arguments, 0)
	for i := len(args); i < len(ref); {
		e, end, is := element(ref, i)
		if !is || at >= len(arguments) {
			return nil, false
		}
		switch i = end; {
		case e.IsKey && arguments[at] == '{':
			at = jsontape.Member(arguments, at, e.Key)
		case !e.IsKey && arguments[at] == '[':
			at = jsontape.Item(arguments, at, e.Index)
		default:
			return nil, false
		}
		if at < 0 {
			return nil, false
		}
	}
	return arguments[at:jsontape.SkipValue(arguments, at)], true
}
