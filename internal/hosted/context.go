package hosted

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsonfile"
	"github.com/stepjet/stepjet/internal/text"
	"github.com/stepjet/stepjet/wire"
	"github.com/stepjet/stepjet/worker"
)

// contextVariable returns the environment variable of a context key.
func contextVariable(key string) string { return wire.ContextVariable("STEPJET_CONTEXT_", key) }

// contextKeys reads the keys of the run's context that a program asks for.
func (r *reader) contextKeys(f jsonfile.Fields) []string {
	taken := map[string]string{}
	keys := f.Texts("context")
	for i, key := range keys {
		path, name := fmt.Sprintf("%s/%d", f.At("context"), i), contextVariable(key)
		if !wire.ValidContextKey(key) {
			r.problems.Wrong(path, keyGrammar, "%q is no context key", text.Cut(key, 80))
		} else if first, twice := taken[name]; twice {
			r.problems.Wrong(path, "", "%q becomes the variable %s, as %q does", key, name, first)
		}
		taken[name] = key
	}
	return keys
}

var keyGrammar = fmt.Sprintf("a key is 1 to %d of A-Z a-z 0-9 _ . -", wire.MaxContextKey)

// contextEnv passes a program what it asks for of the run's context. What is not there is not set.
func contextEnv(keys []string, c wire.Context) (env []string) {
	for _, key := range keys {
		if v, ok := c.Get(key); ok {
			env = append(env, contextVariable(key)+"="+strings.ReplaceAll(v, "\x00", ""))
		}
	}
	return env
}

// headerTemplate reads the value of a header: ${env:NAME} is replaced here and now, ${context:key} becomes a
// placeholder.
func (r *reader) headerTemplate(s string) (template, error) {
	if word := strayPlaceholder(s); word != "" {
		return nil, fmt.Errorf("${%s:…} is not known; did you mean ${%s:…}?", word, text.NearMiss(word, "env", "context"))
	}
	t, err := parseTemplate(s, "${context:", "}")
	if err != nil {
		return nil, err
	}
	for i, p := range t {
		if p.name != "" && !wire.ValidContextKey(p.name) {
			return nil, fmt.Errorf("%q is no context key: %s", text.Cut(p.name, 80), keyGrammar)
		}
		if p.name == "" {
			if t[i].text, err = r.expandEnv(p.text); err != nil {
				return nil, err
			}
		}
	}
	return t, nil
}

// strayPlaceholder returns the word of a ${word:…} that was probably meant to be env or context.
func strayPlaceholder(s string) string {
	for _, rest := range strings.Split(s, "${")[1:] {
		if word, _, ok := strings.Cut(rest, ":"); ok && word != "env" && word != "context" &&
			text.NearMiss(word, "env", "context") != "" {
			return word
		}
	}
	return ""
}

// contextHeaders sets the headers that take something from the run's context. One that is nothing but a key which isn't
// there is left out.
func (r *request) contextHeaders(h http.Header, c wire.Context) error {
	for name, t := range r.templates {
		if key, ok := t.whole(); ok {
			if _, there := c.Get(key); !there {
				continue
			}
		}
		value, err := t.expand(func(key string) (string, error) {
			v, there := c.Get(key)
			if !there {
				return "", fault.New(fault.ToolTerminal, "the run's context has no key %q, which the header %s of %q needs", key,
					name, r.name).
					WithHint("submit the run with it; an operator's filter may also keep it from this tool")
			}
			return v, nil
		})
		if err != nil {
			return err
		}
		if BadHeaderValue(value) { // it may be a secret: it is not shown
			return fault.New(fault.ToolTerminal,
				"the run's context holds control characters that the header %s of %q can't take", name, r.name)
		}
		h.Set(name, value)
	}
	return nil
}

// BadHeaderValue reports whether a text can not be the value of a header.
func BadHeaderValue(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f })
}

// stepOf returns the step that a call is for. Of a batch it tells what all of its steps have in common: of their
// contexts the keys that the tool asks for, by which they were put together.
func stepOf(ctx context.Context) worker.Info {
	info, _ := worker.InfoFrom(ctx)
	if items := worker.ItemsFrom(ctx); len(items) > 0 && info.Key == "" {
		info.Context = items[0].Context
	}
	return info
}

// together keeps steps out of one call that differ in the context that the tool asks for.
func together(keys []string) worker.Option {
	keys = slices.Sorted(slices.Values(keys))
	return worker.Together(func(i worker.Info) string {
		var b strings.Builder
		for _, k := range keys {
			v, ok := i.Context.Get(k)
			fmt.Fprintf(&b, "%t %q,", ok, v)
		}
		return b.String()
	})
}
