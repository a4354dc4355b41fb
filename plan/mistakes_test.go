package plan_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mistake is one way in which models break plans. breaks does so, and gives the text that an answer has to contain; ""
// where the plan has nothing of the kind.
type mistake struct {
	name   string
	breaks func(b *broken) string
}

var mistakes = []mistake{
	foreignMarks("{{%s}}"), foreignMarks("${%s}"), foreignMarks("$%s"), foreignMarks("<%s>"), foreignMarks("$steps.%s"), foreignMarks("{{steps.%s}}"),
	foreignMarks("[[%s]]"), foreignMarks("%%%s%%"), foreignMarks("#%s"), foreignMarks("@%s"), foreignMarks("ref:%s"), foreignMarks("$ref.%s"), foreignMarks("{{$ref:%s}}"),
	{"whole object for a number", func(b *broken) string {
		return b.ref(func(m map[string]any, k, ref string) string {
			id, path, _ := strings.Cut(ref, ".")
			if path != "result" || b.kindOf(m, k) != "number" {
				return ""
			}
			m[k] = "$ref:" + id
			return `"$ref:` + ref + `"`
		})
	}},
	{"wrong field", func(b *broken) string {
		return b.ref(func(m map[string]any, k, ref string) string {
			id, path, _ := strings.Cut(ref, ".")
			if path != "result" {
				return ""
			}
			m[k] = "$ref:" + id + ".value"
			return `"$ref:` + ref + `"`
		})
	}},
	{"misspelt field", func(b *broken) string {
		return b.ref(func(m map[string]any, k, ref string) string {
			if !strings.HasSuffix(ref, ".result") {
				return ""
			}
			m[k] = "$ref:" + strings.TrimSuffix(ref, ".result") + ".reslut"
			return `"$ref:` + ref + `"`
		})
	}},
	{"misspelt step", func(b *broken) string {
		return b.ref(func(m map[string]any, k, ref string) string {
			if !strings.Contains(ref, "_") || strings.HasPrefix(ref, "item") {
				return ""
			}
			m[k] = "$ref:" + strings.Replace(ref, "_", "", 1)
			return `"$ref:` + ref + `"`
		})
	}},
	{"negative index", func(b *broken) string {
		return b.ref(func(m map[string]any, k, ref string) string {
			m[k] = "$ref:" + ref + "[-1]"
			return "negative indexes"
		})
	}},
	{"operator behind a reference", func(b *broken) string {
		return b.ref(func(m map[string]any, k, ref string) string {
			if b.kindOf(m, k) != "number" {
				return ""
			}
			m[k] = "$ref:" + ref + " * 100"
			return `write "$ref:` + ref + `" alone`
		})
	}},
	{"number as text", func(b *broken) string {
		return b.value(func(m map[string]any, k string, v any) string {
			n, ok := v.(json.Number)
			if !ok || b.kindOf(m, k) != "number" {
				return ""
			}
			m[k] = n.String()
			return fmt.Sprintf("write %s, without quotes", n)
		})
	}},
	{"array for a scalar", func(b *broken) string {
		return b.value(func(m map[string]any, k string, v any) string {
			n, ok := v.(json.Number)
			if !ok || b.kindOf(m, k) != "number" {
				return ""
			}
			m[k] = []any{n}
			return fmt.Sprintf("write %s, without the brackets", n)
		})
	}},
	{"misspelt argument", func(b *broken) string {
		return b.value(func(m map[string]any, k string, v any) string {
			if !b.required(m, k) || len(k) < 4 {
				return ""
			}
			wrong := k[:2] + k[3:] // a letter is left out
			delete(m, k)
			m[wrong] = v
			return fmt.Sprintf("rename %q to %q", wrong, k)
		})
	}},
	{"argument by another name", func(b *broken) string {
		return b.value(func(m map[string]any, k string, v any) string {
			if !b.required(m, k) {
				return ""
			}
			delete(m, k)
			m["zzz"] = v
			return fmt.Sprintf(`rename "zzz" to %q`, k)
		})
	}},
	{"missing argument", func(b *broken) string {
		return b.value(func(m map[string]any, k string, _ any) string {
			if !b.required(m, k) {
				return ""
			}
			delete(m, k)
			return fmt.Sprintf("add %q: ", k)
		})
	}},
	{"extra argument", func(b *broken) string {
		return b.value(func(m map[string]any, k string, _ any) string {
			if b.kindOf(m, k) == "" {
				return ""
			}
			m["verbose"] = true
			return `leave "verbose" out`
		})
	}},
	{"nested arguments", func(b *broken) string {
		return b.value(func(m map[string]any, k string, _ any) string {
			if !b.required(m, k) {
				return ""
			}
			inner := maps.Clone(m)
			clear(m)
			m["input"] = inner
			return `take what stands in "input" out`
		})
	}},
	{"arguments beside", func(b *broken) string {
		return b.value(func(m map[string]any, k string, v any) string {
			if !b.required(m, k) {
				return ""
			}
			if _, isRef := v.(string); isRef {
				return ""
			}
			for _, s := range b.steps() {
				if args, _ := s["arguments"].(map[string]any); sameMap(args, m) {
					delete(m, k)
					s[k] = v
				}
			}
			return string(jsonOf(k)) + ": " + string(jsonOf(v))
		})
	}},
	{"case of an enumeration", func(b *broken) string {
		return b.value(func(m map[string]any, k string, v any) string {
			word, ok := v.(string)
			if !ok || b.kindOf(m, k) != "enum" {
				return ""
			}
			m[k] = strings.ToUpper(word)
			return fmt.Sprintf("write %q", word)
		})
	}},
	renamed("name for tool", "tool", "name"), renamed("function for tool", "tool", "function"), renamed("step_id for id", "id", "step_id"),
	renamed("args for arguments", "arguments", "args"), renamed("parameters for arguments", "arguments", "parameters"),
	{"called as a function", func(b *broken) string {
		return b.step(func(s map[string]any) string {
			name := s["tool"]
			s["function"] = map[string]any{"name": name, "arguments": s["arguments"]}
			delete(s, "tool")
			delete(s, "arguments")
			return fmt.Sprintf("write \"tool\": %q", name)
		})
	}},
	{"misspelt tool", func(b *broken) string {
		return b.step(func(s map[string]any) string {
			name, _ := s["tool"].(string)
			s["tool"] = name[1:2] + name[:1] + name[2:]
			return fmt.Sprintf("%q", name)
		})
	}},
	{"tool in another case", func(b *broken) string {
		return b.step(func(s map[string]any) string {
			name, _ := s["tool"].(string)
			s["tool"] = strings.ToUpper(strings.ReplaceAll(name, "_", ""))
			return fmt.Sprintf("%q", name)
		})
	}},
	{"tool with an ending", func(b *broken) string {
		return b.step(func(s map[string]any) string {
			name, _ := s["tool"].(string)
			if len(name) < 3 {
				return ""
			}
			s["tool"] = name + "_numbers"
			return fmt.Sprintf("%q", name)
		})
	}},
	{"dependencies", func(b *broken) string {
		steps := b.steps()
		if len(steps) < 2 {
			return ""
		}
		steps[1]["dependencies"] = []any{steps[0]["id"]}
		return fmt.Sprintf(`write "depends_on": [%q]`, steps[0]["id"])
	}},
	{"depends_on a reference", func(b *broken) string {
		steps := b.steps()
		if len(steps) < 2 {
			return ""
		}
		steps[1]["depends_on"] = []any{fmt.Sprint("$ref:", steps[0]["id"], ".result")}
		return fmt.Sprintf(`write the id alone: %q`, steps[0]["id"])
	}},
	{"output_steps a string", func(b *broken) string {
		id := b.steps()[0]["id"]
		b.doc["output_steps"] = id
		return fmt.Sprintf(`write "output_steps": [%q]`, id)
	}},
	{"output step misspelt", func(b *broken) string {
		id, _ := b.steps()[0]["id"].(string)
		if len(id) < 4 {
			return ""
		}
		b.doc["output_steps"] = []any{id + "x"}
		return fmt.Sprintf("%q", id)
	}},
	{"wrapped in plan", func(b *broken) string {
		b.doc = map[string]any{"plan": b.doc}
		return `write what stands under "plan", and nothing around it`
	}},
	{"wrapped in a call", func(b *broken) string {
		b.doc = map[string]any{"name": "execute_tool_plan", "arguments": b.doc}
		return `write what stands under "arguments", and nothing around it`
	}},
	{"steps as a string", func(b *broken) string {
		b.doc["steps"] = string(jsonOf(b.doc["steps"]))
		return "write the array itself"
	}},
	{"tasks for steps", func(b *broken) string {
		b.doc["tasks"] = b.doc["steps"]
		delete(b.doc, "steps")
		return `write "steps" for "tasks"`
	}},
	{"on_error", func(b *broken) string {
		b.steps()[0]["on_error"] = "continue"
		return `write "optional": true`
	}},
	{"retries", func(b *broken) string {
		b.steps()[0]["retries"] = 2
		return `write "retry": {"max_attempts": 3}`
	}},
	{"timeout in seconds", func(b *broken) string {
		b.steps()[0]["timeout"] = 30
		return `write "30s"`
	}},
}

func sameMap(a, b map[string]any) bool { return a != nil && fmt.Sprint(a) == fmt.Sprint(b) }

// foreignMarks writes a reference as another language would.
func foreignMarks(form string) mistake {
	return mistake{"marks " + fmt.Sprintf(form, "a.x"), func(b *broken) string {
		return b.ref(func(m map[string]any, k, ref string) string {
			m[k] = fmt.Sprintf(form, ref)
			return `"$ref:` + ref + `"`
		})
	}}
}

// renamed returns a field of the first step another name.
func renamed(name, field, wrong string) mistake {
	return mistake{name, func(b *broken) string {
		return b.step(func(s map[string]any) string {
			v, there := s[field]
			if !there {
				return ""
			}
			delete(s, field)
			s[wrong] = v
			if text, ok := v.(string); ok {
				return "write " + string(jsonOf(field)) + ": " + string(jsonOf(text))
			}
			return "write " + string(jsonOf(field)) + ": {"
		})
	}}
}

// step breaks the first step that can be broken so.
func (b *broken) step(breaks func(map[string]any) string) string {
	for _, s := range b.steps() {
		if s["tool"] == nil {
			continue // a value
		}
		if want := breaks(s); want != "" {
			return want
		}
	}
	return ""
}

// value breaks the first argument that can be broken so, step by step and then by name.
func (b *broken) value(breaks func(m map[string]any, key string, v any) string) string {
	for _, s := range b.steps() {
		args, _ := s["arguments"].(map[string]any)
		for _, k := range slices.Sorted(maps.Keys(args)) {
			if want := breaks(args, k, args[k]); want != "" {
				return want
			}
		}
	}
	return ""
}

// ref breaks the first whole reference to a step that can be broken so.
func (b *broken) ref(breaks func(m map[string]any, key, ref string) string) string {
	return b.value(func(m map[string]any, k string, v any) string {
		text, _ := v.(string)
		ref, ok := strings.CutPrefix(text, "$ref:")
		if !ok || strings.ContainsAny(ref, " |") {
			return ""
		}
		return breaks(m, k, ref)
	})
}

// required reports whether a tool with a closed schema has to have an argument.
func (b *broken) required(args map[string]any, key string) bool {
	kind := b.kindOf(args, key)
	return kind == "number" || kind == "other"
}

// kindOf returns the type of a required argument of a closed schema: "number", "enum" or "other"; "" where that is not
// declared, so that nothing could be said of it.
func (b *broken) kindOf(args map[string]any, key string) string {
	for _, s := range b.steps() {
		if own, _ := s["arguments"].(map[string]any); !sameMap(own, args) {
			continue
		}
		name, _ := s["tool"].(string)
		return b.tools.kindOf(name, key)
	}
	return ""
}
