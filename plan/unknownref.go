package plan

import (
	"fmt"
	"strings"
)

// unknownHint says which reference was probably meant, with the path that it has and in the form that it has.
func (w *walker) unknownHint(r ref, text bool, below string) string {
	path := clip(r.text[len(r.id):])
	write := func(id string) string {
		switch {
		case below != "":
			return fmt.Sprintf(`{"$ref": %q}`, id+path)
		case text:
			return fmt.Sprintf("${ref:%s%s}", id, path)
		}
		return fmt.Sprintf("%q", refPrefix+id+path)
	}
	if rest, is := strings.CutPrefix(r.text, stepsPrefix); is && len(r.path) > 0 && r.path[0].isKey && w.known(r.path[0].key) {
		path = clip(strings.TrimPrefix(rest, r.path[0].key))
		return fmt.Sprintf("did you mean %s?", write(r.path[0].key))
	}
	if r.id == defaultAs && w.item != "" {
		return fmt.Sprintf("the item is named %q here: did you mean %s?", clip(w.item), write(w.item))
	}
	if hint := w.p.itemHint(r.id); hint != "" {
		return hint
	}
	ids := w.p.idList()
	near := w.p.nearIDs(w.step, r.id, ids, func(id string) bool { return w.p.mayHavePath(id, r.path) })
	if len(near) > 0 {
		return didYouMean(near, write)
	}
	return "the steps are: " + listSome(ids)
}

// mayHavePath reports whether a step's result may have a path, as far as its tool's output schema tells.
func (p *parser) mayHavePath(id string, path []elem) bool {
	i, known := p.plan.ids[id]
	if !known || p.catalog == nil || p.plan.Steps[i].ForEach != nil || strings.TrimSpace(p.plan.Steps[i].Tool) == "" {
		return true
	}
	t, _ := p.lookup(p.plan.Steps[i].Tool)
	return !t.Output.Look(elems(path)).Missing
}
