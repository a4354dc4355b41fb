package machine

import ()

// Closing asks for the record that closes an open scope which was not amended for as long as it may.
type Closing struct {
	Scope    string
	Revision int
}

// openScopes returns the scopes that may still wait for an amendment.
func openScopes(t *tree) (list []*scope) {
	waits := func(sc *scope) bool { return sc.plan.Open && !sc.stopping && !sc.amended.closed }
	if waits(&t.root) {
		list = append(list, &t.root)
	}
	if t.scopes == nil {
		return list
	}
	for _, sc := range t.scopes.below {
		if i, ok := t.index(sc.of); ok && t.calls[i].state == entered && t.insideOf(i) == sc && waits(sc) {
			list = append(list, sc)
		}
	}
	return list
}

// Closings returns the records that would close all scopes which are open.
func Closings(r *Run) (list []Closing) {
	for _, sc := range openScopes(&r.tree) {
		list = append(list, Closing{sc.token, sc.amended.revision + 1})
	}
	return list
}

// toBeClosed marks the deadline of an open scope.
const toBeClosed = -1
