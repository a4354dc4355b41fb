package tool

import (
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/expression"
)

// AlwaysApprove is the contract whose every call waits for an approval.
const AlwaysApprove = "always"

// Approval is what a contract says of approvals: nothing, AlwaysApprove, or a condition on the resolved arguments, such
// as "$args.amount > 100". Calls for which it holds begin when a person has approved of them.
type Approval string

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

// flaw says that the condition asks for what no arguments that fit the schema have.
func (a Approval) flaw(input *Schema) error {
	if a == "" || a == AlwaysApprove {
		return nil
	}
	x, err := expression.Compile(string(a), readArgs)
	if err != nil {
		return nil // check says so
	}
	for _, ref := range x.References() {
		look := input.Look(elems(argPath(ref)))
		if !look.Missing {
			continue
		}
		hint := "refer to what the input schema declares"
		if len(look.Names) > 0 {
			hint = "there it declares " + listed(look.Names)
		}
		return badField("approval", "%s is in no arguments that fit the input schema", clip(ref)).withHint("%s", hint)
	}
	return nil
}

// WantsApproval reports whether a call with such arguments waits for an approval. Where that can't be told, it does: a
// guard that fails must not open. So a condition that comes to null asks, since something that it needs isn't there, and
// one that goes into a string, a number or a boolean as if it had parts. why is the reason for people to read where the
// condition failed; nil where it did not.
//
// A tool with a batch is called with the array or with one item's arguments, whichever its caller likes, and its
// condition counts for both. One that speaks of the array sees a single call as an array of one; any other sees each
// item as the single call that it could have been, and one item that asks is enough.
func (c *Contract) WantsApproval(arguments []byte) (wanted bool, why *fault.Error) {
	switch c.Approval {
	case "":
		return false, nil
	case AlwaysApprove:
		return true, nil
	}
	x, err := expression.Compile(string(c.Approval), readArgs)
	if err != nil {
		return true, err
	}
	asked := newGuard(x)
	if c.Batch == nil {
		return asked.wants(given{all: arguments})
	}
	return asked.wantsBatch(arguments, c.Batch.Argument)
}
