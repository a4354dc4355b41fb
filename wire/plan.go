package wire

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unique"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/subjects"
)

// Plan is what travels with a submitted plan, in its headers. The body is the plan itself, as its submitter wrote it.
type Plan struct {
	// Client is the token of the client to be told when the run is over; empty for none.
	Client string
	// Retry names the run that this one tries again; the zero Retry: none.
	Retry   Retry
	Context RunContext // out-of-band, for the tools alone
	Trace   Trace
	// Permissions are what the run may use; nil for everything, empty for nothing that needs any.
	Permissions []string
}

// Retry names the finished run that a plan tries again, and the step that is executed again, with all that depends on
// it, though it succeeded. Both are as submitted: neither was checked.
type Retry struct{ Of, From string }

// NoRun is the problem of a plan that tries again what can't be a run.
func (r Retry) NoRun() fault.Problem {
	return fault.Problem{
		Code: fault.InvalidID, Message: fmt.Sprintf("%q is no run id", text.Clip(r.Of, 80)),
		Hint: fmt.Sprintf("%s names a finished run: 1 to %d bytes", subjects.HeaderRetryOf, subjects.MaxRunID),
	}
}

// Set writes the plan's headers beside those that are there, such as a submitter's own.
func (p Plan) Set(h nats.Header) {
	h[subjects.HeaderVersion] = ourVersion
	set := func(name, value string) {
		if value != "" {
			h[name] = []string{value}
		}
	}
	set(subjects.HeaderClient, p.Client)
	set(subjects.HeaderRetryOf, p.Retry.Of)
	set(subjects.HeaderRetryFrom, p.Retry.From)
	p.Trace.Set(h)
	p.Context.set(h) // behind these: it may raise the version
	if p.Permissions != nil {
		set(subjects.HeaderPermissions, cmp.Or(strings.Join(p.Permissions, ","), noPermissions))
		h[subjects.HeaderVersion] = []string{subjects.PermittedVersion}
		if NamesGroups(p.Permissions) {
			h[subjects.HeaderVersion] = []string{subjects.GroupedVersion}
		}
	}
}

// noPermissions stands for a list without any.
const noPermissions = "none"

// permissionsOf reads what a run may use: nil for everything.
func permissionsOf(h nats.Header) ([]string, error) {
	list := get(h, subjects.HeaderPermissions)
	if list == "" {
		return nil, nil
	}
	all := []string{}
	if list == noPermissions {
		return all, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		name = strings.TrimSpace(name)
		if !subjects.ValidTenant(strings.TrimPrefix(name, subjects.GroupPermission)) || len(all) == maxPermissions {
			return all, fault.New(fault.InvalidValue, "the header %s has %q, which is no list of permissions", subjects.HeaderPermissions,
				text.Clip(list, 80)).WithHint("up to %d names of A-Z a-z 0-9 _ -, separated by commas, group:NAME for the tools of a group alone; none for no permission",
				maxPermissions)
		}
		all = append(all, strings.Clone(name))
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// maxPermissions is the most permissions of a run.
const maxPermissions = 64

// NamesGroups reports whether permissions bound a run to the tools of groups.
func NamesGroups(permissions []string) bool {
	return slices.ContainsFunc(permissions, func(x string) bool { return strings.HasPrefix(x, subjects.GroupPermission) })
}

// ParsePlan reads the headers of a plan whose version is known. What it returns doesn't keep the message alive. The
// error, of a version that is no number (invalid_value) or of the context (invalid_value, limit_exceeded), is what
// the plan is rejected with; all else is there nevertheless.
func ParsePlan(h nats.Header) (Plan, error) {
	p := Plan{
		Retry: Retry{strings.Clone(get(h, subjects.HeaderRetryOf)), strings.Clone(get(h, subjects.HeaderRetryFrom))},
		Trace: TraceOf(h).Clone(),
	}
	// Only a plain token counts, since it becomes part of a subject. There are few clients and many runs.
	if token := get(h, subjects.HeaderClient); subjects.ValidClient(token) {
		p.Client = unique.Make(token).Value()
	}
	var err error
	p.Context, err = runContextOf(h)
	var unfit error
	if p.Permissions, unfit = permissionsOf(h); unfit != nil {
		err = unfit
	}
	if _, malformed := Version(h); malformed != nil {
		err = malformed
	}
	return p, err
}
