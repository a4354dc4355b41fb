package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/tool"
)

// argumentHint says what to write for an argument that breaks its tool's schema. w is nil where there are no arguments.
func (p *parser) argumentHint(step int, w *walker, v tool.Violation) string {
	warned := p.col.blameAt(p.argumentsAt(step) + v.Pointer) // what was warned of there is why it is wrong
	switch {
	case v.Text && w != nil:
		return w.textHint(v.Pointer)
	case warned != "":
		return warned
	}
	if hint := askedHint(&p.plan.Steps[step], w, v); hint != "" {
		return hint
	}
	if v.Missing != "" && v.Pointer == "" {
		if hint := p.besideArguments(step, w, v.Missing); hint != "" {
			return hint
		}
	}
	return v.Hint
}

// askWords are what models write for the arguments of the tool that asks a person.
var askWords = map[string]string{
	"prompt": "question", "text": "question", "message": "question", "ask": "question", "title": "question", "description": "question",
	"options": "choices", "answers": "choices", "enum": "choices", "values": "choices", "allowed": "choices",
	"type": "schema", "format": "schema", "json_schema": "schema", "answer_schema": "schema",
}

// askedHint says how an argument of a step that asks a person is called, where another word for it stands there: left
// out, it would be lost.
func askedHint(s *Step, w *walker, v tool.Violation) string {
	if w == nil || !s.Ask {
		return ""
	}
	rename := func(word, meant string) string { return fmt.Sprintf("rename %q to %q", word, meant) }
	if word := strings.TrimPrefix(v.Pointer, "/"); askWords[word] != "" && !w.hasArgument(askWords[word]) {
		return rename(word, askWords[word])
	}
	for _, word := range slices.Sorted(maps.Keys(askWords)) {
		if v.Pointer == "" && v.Missing == askWords[word] && w.hasArgument(word) {
			return rename(word, v.Missing)
		}
	}
	return ""
}

// besideArguments says that an argument stands beside the arguments, if a field that nobody knows seems to be it.
func (p *parser) besideArguments(step int, w *walker, missing string) string {
	all := p.strangersOf(step)
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = p.keyName(s.key)
	}
	i := slices.Index(names, missing)
	if i < 0 {
		near := p.near.nearest(missing, names)
		if len(near) != 1 {
			return ""
		}
		i = slices.Index(names, near[0])
	}
	p.col.blame(all[i].warning)
	into := `write "arguments": {` + p.written(missing, all[i].key+1) + `}`
	if w != nil && w.tape[w.root].Next > w.root+1 { // there are others
		into = "add " + p.written(missing, all[i].key+1) + ` to "arguments"`
	}
	return fmt.Sprintf("%s; %q stands beside it, where it is ignored", into, clip(names[i]))
}

// textHint says what to write where something else than text is taken, and a reference stands within text.
func (w *walker) textHint(pointer string) string {
	const madeFirst = "where something is to be made of it first, let a step do that and refer to its result"
	at := site{into: w.p.schema(w.step).Form(w.hasArgument).Find(pointed(pointer)), found: true}
	for _, h := range w.texts {
		if h.pointer != pointer {
			continue
		}
		if write := w.likely(h.ref, &at); write != "" {
			return fmt.Sprintf("write %s alone, with nothing around it; %s", write, madeFirst)
		}
		return "let a step make what is taken here, and write a reference to its result alone"
	}
	return "write the reference alone, with nothing around it"
}

// pointed is the path that a JSON pointer stands for.
func pointed(pointer string) (path []tool.Elem) {
	if pointer == "" {
		return nil
	}
	for _, key := range strings.Split(pointer[1:], "/") {
		key = jsontape.UnescapeToken(key)
		path = append(path, tool.Elem{Key: key, Index: indexOf(key), IsKey: true})
	}
	return path
}

// held is a reference within text.
type held struct{ pointer, ref string }

// remember keeps the first reference of a text that the schema is asked about.
func (w *walker) remember(pieces []piece) {
	if !w.track || len(w.holes) == 0 {
		return
	}
	for _, x := range pieces {
		if len(x.refs) > 0 {
			w.texts = append(w.texts, held{w.holes[len(w.holes)-1].Pointer, x.refs[0].text})
			return
		}
	}
}
