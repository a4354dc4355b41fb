package reference

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxItems is the most items that a list may have.
const maxItems = 10_000

// parseForEach reads {"in", "as"}.
func (s *PlanStep) parseForEach(v *value) error {
	if v == nil {
		return nil
	}
	s.ForEach, s.As, s.in = true, "item", v.option("in")
	if as := v.option("as"); as != nil {
		s.As = as.text
	}
	if !idRE.MatchString(s.As) {
		return fmt.Errorf("%q is no name for an item", s.As)
	}
	if s.in == nil {
		return fmt.Errorf("for_each has no list")
	}
	switch s.in.kind {
	case '[':
		if len(s.in.members) > maxItems {
			return fmt.Errorf("more than %d items", maxItems)
		}
		return nil
	case '{':
		if _, is, _ := objectForm(s.in); is {
			return nil
		}
	case '"':
		phrase, err := parse(s.in.text)
		if err != nil || phrase.form == whole || phrase.form == alternatives && phrase.scalar == nil {
			return err
		}
		if phrase.form == template || phrase.plain != s.in.text || phrase.scalar != nil {
			return errRef
		}
	}
	return fmt.Errorf("the list is neither a reference nor an array")
}

// linkForEach returns the references to other steps: all in the list, and those in the arguments that don't mean the
// item.
func (p *Plan) linkForEach(i int, refs []ref) ([]ref, error) {
	s := p.Steps[i]
	if p.index(s.As) >= 0 {
		return nil, fmt.Errorf("the item is called like step %q", s.As)
	}
	if slices.ContainsFunc(refs, func(r ref) bool { return r.id == s.As && r.of != ofResult }) {
		return nil, errRef // an item did not end in any way
	}
	others := slices.DeleteFunc(refs, func(r ref) bool { return r.id == s.As })
	list, err := references(s.in)
	return append(others, list...), err
}

// intoEntries is whether a path can lead into what a for_each step yields: an array of index, status, data or error.
func (r ref) intoEntries() bool {
	if len(r.path) == 0 {
		return true
	}
	if r.path[0].form != '*' && (r.path[0].form == '"' || !indexRE.MatchString(r.path[0].text)) {
		return false
	}
	return len(r.path) == 1 || r.path[1].form != '[' && r.path[1].form != '*' && slices.Contains([]string{"index", "status", "data", "error"}, r.path[1].text)
}

// Items returns the items of a for_each step's list.
func (p *Plan) Items(step int, s Sight) ([][]byte, *Err) {
	r := resolver{plan: p, sight: s}
	out := r.resolve(p.Steps[step].in)
	if r.err != nil {
		return nil, r.err
	}
	list, err := readResult(out)
	switch {
	case err != nil:
		return nil, &Err{Code: codeToolTerminal, Message: err.Error()}
	case list.kind != '[':
		return nil, &Err{Code: codeUnresolvedRef, Message: "there is no list"}
	case len(list.members) > maxItems:
		return nil, &Err{Code: codeInvalidArguments, Message: "the list is too long"}
	}
	items := [][]byte{}
	for _, m := range list.members {
		items = append(items, m.value.raw)
	}
	return items, nil
}

// ItemArguments returns the arguments of a for_each step for one of its items.
func (p *Plan) ItemArguments(step int, item []byte, s Sight) ([]byte, *Err) {
	return p.arguments(step, item, s)
}

// entries returns what references to a for_each step see.
func entries(items []Step) []byte {
	var list []string
	for i, s := range items {
		text := fmt.Sprintf(`{"index":%d,"status":"ok","data":%s}`, i, s.Result)
		if s.Status != succeeded {
			hint := ""
			if s.hint != "" {
				hint = `"hint":` + string(encode(s.hint)) + ","
			}
			text = fmt.Sprintf(`{"index":%d,"status":"error","error":{"code":%s,"message":%s,%s"retryable":%t}}`,
				i, encode(s.Code), encode(s.Message), hint, s.retryable)
		}
		list = append(list, text)
	}
	return []byte("[" + strings.Join(list, ",") + "]")
}

// token names an item, as Behaviour and Decided have it.
func token(step string, item int) string { return step + "=" + strconv.Itoa(item) }

// splitToken takes a name apart that may be an item's; item is -1 where it is a step's.
func splitToken(name string) (step string, item int) {
	step, number, is := strings.Cut(name, "=")
	n, err := strconv.Atoi(number)
	if !is || err != nil {
		return name, -1
	}
	return step, n
}
