package plan

import (
	"fmt"
)

// unknownHint says which reference was probably meant, with the path that it has and in the form that it has.
func (w *walker) unknownHint(r ref, text bool, below string) string {
	at := site{text: text, object: below != ""}
	if r.id+"." == stepsPrefix && len(r.path) > 0 && r.path[0].isKey && w.known(r.path[0].key) {
		return w.didYouMeanID(r.path[0].key, r.path[1:], &at)
	}
	if r.id == defaultAs && w.item != "" {
		return fmt.Sprintf("the item is named %q here: %s", clip(w.item), w.didYouMeanID(w.item, r.path, &at))
	}
	if hint := w.p.asFrom(w.step, r.id); hint != "" {
		return hint
	}
	if hint := w.p.itemHint(r.id); hint != "" {
		return hint
	}
	ids := w.p.idList()
	near := w.p.nearIDs(w.step, r.id, ids)
	right := proposal{way: meant}
	for _, id := range near {
		t, _ := w.targetOf(id, r.path)
		if _, v := w.judge(&t, &at); v == fits && w.mayWrite(&t) {
			right.refs = append(right.refs, t)
		}
	}
	switch {
	case len(right.refs) > 0:
		return w.put(right, &at)
	case len(near) > 0:
		return w.didYouMeanID(near[0], r.path, &at)
	}
	return "the steps are: " + listSome(ids)
}

// didYouMeanID asks for a reference to a step or an item, by a path or, where that doesn't do, another.
func (w *walker) didYouMeanID(id string, path []elem, at *site) string {
	t, _ := w.targetOf(id, path)
	if found := w.proposed(t, at); len(found.refs) > 0 {
		found.way = meant
		return w.put(found, at)
	}
	return fmt.Sprintf("did you mean %q? What the path leads to there can't be taken here", clip(id))
}
