package tool

import (
	"fmt"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/stepjet/stepjet/internal/jsontape"
	"github.com/stepjet/stepjet/internal/text"
)

// required adds the properties that an object lacks. One that seems to stand there under another name is said to: the
// two are one mistake.
func (f *finder) required(e *jsonschema.ValidationError, at string, missing []string) {
	names := f.misnamed(e, at, missing)
	for _, name := range missing {
		v := Violation{Pointer: at, Message: f.s.missing(e.SchemaURL, name), Missing: name}
		switch other := names[name]; {
		case other != "":
			v.Message += fmt.Sprintf("; there is no property %q", clip(other))
			v.Hint = fmt.Sprintf("rename %q to %q", clip(other), clip(name))
		default:
			v.Hint = f.addHint(e, name)
		}
		f.add(v)
	}
}

// addHint says how a property is added, or where it stands already: a level deeper.
func (f *finder) addHint(e *jsonschema.ValidationError, name string) string {
	value, _ := f.at(e.InstanceLocation)
	m, _ := value.(map[string]any)
	for _, outer := range sortedKeys(m) {
		if in, ok := m[outer].(map[string]any); ok && !f.s.knows(e.SchemaURL, outer) {
			if _, there := in[name]; there {
				return fmt.Sprintf("take what stands in %q out of it: %q has to stand beside it, not in it", clip(outer),
					clip(name))
			}
		}
	}
	p := f.s.property(e.SchemaURL, name)
	return fmt.Sprintf("add %q: %s", clip(name), placeholderOf(p))
}

// superfluous adds the properties that an object may not have, but for those that only bear the wrong name.
func (f *finder) superfluous(e *jsonschema.ValidationError, at string, names []string) {
	renamed := f.misnamed(e, at, f.lacking(e))
	for _, name := range names {
		if isRenamed(renamed, name) {
			continue // it stands in the problem of the one that is missing
		}
		m, hint := f.s.superfluous(e.SchemaURL, name, f.keys(e))
		f.add(Violation{Pointer: at + "/" + jsontape.EscapeToken(name), Message: m, Hint: hint})
	}
}

func isRenamed(renamed map[string]string, name string) bool {
	for _, other := range renamed {
		if other == name {
			return true
		}
	}
	return false
}

// keys returns the properties that the object of an error has, sorted.
func (f *finder) keys(e *jsonschema.ValidationError) []string {
	v, _ := f.at(e.InstanceLocation)
	m, _ := v.(map[string]any)
	return sortedKeys(m)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// lacking returns the required properties that the object of an error doesn't have.
func (f *finder) lacking(e *jsonschema.ValidationError) (missing []string) {
	x := f.s.byURL[e.SchemaURL]
	if x == nil {
		return nil
	}
	keys := f.keys(e)
	for _, name := range x.Required {
		if _, there := slices.BinarySearch(keys, name); !there {
			missing = append(missing, name)
		}
	}
	return missing
}

// maxKeys is the most properties of an object that are looked through for one that bears the wrong name.
const maxKeys = 64

// misnamed finds, for properties that are missing, those that are not known and seem to be them: by their names, or
// because there is one of each.
func (f *finder) misnamed(e *jsonschema.ValidationError, at string, missing []string) map[string]string {
	var strangers []string
	for _, name := range f.keys(e) {
		if !f.s.knows(e.SchemaURL, name) && !f.holdsOne(e, name, missing) {
			strangers = append(strangers, name)
		}
	}
	if len(strangers) == 0 || len(strangers) > maxKeys || len(missing) > maxKeys {
		return nil
	}
	found := map[string]string{}
	take := func(name, other string) {
		found[name] = other
		strangers = slices.DeleteFunc(strangers, func(s string) bool { return s == other })
	}
	for _, name := range missing {
		if near := text.Nearest(name, strangers); len(near) == 1 {
			take(name, near[0])
		}
	}
	left := slices.DeleteFunc(slices.Clone(missing), func(s string) bool { return found[s] != "" })
	if len(left) == 1 && len(strangers) == 1 && f.mayBe(e, at, left[0], strangers[0]) {
		take(left[0], strangers[0])
	}
	return found
}

// holdsOne reports whether a property is an object in which one of those names stands.
func (f *finder) holdsOne(e *jsonschema.ValidationError, outer string, names []string) bool {
	v, _ := f.at(append(slices.Clone(e.InstanceLocation), outer))
	in, _ := v.(map[string]any)
	return slices.ContainsFunc(names, func(name string) bool {
		_, there := in[name]
		return there
	})
}

// mayBe reports whether the value of one property is of a type that another may have.
func (f *finder) mayBe(e *jsonschema.ValidationError, at, name, other string) bool {
	p := f.s.property(e.SchemaURL, name)
	if p == nil || p.Types == nil || isHole(f.holes, at+"/"+jsontape.EscapeToken(other)) {
		return true
	}
	v, _ := f.at(append(slices.Clone(e.InstanceLocation), other))
	for _, t := range p.Types.ToStrings() {
		if isType(t, v) || converted(t, v) != "" {
			return true
		}
	}
	return false
}

// knows reports whether a schema says anything of a property of this name.
func (s *Schema) knows(url, name string) bool {
	x := s.byURL[url]
	if x == nil || len(x.Properties) == 0 || branches(x) {
		return true
	}
	if x.Properties[name] != nil {
		return true
	}
	for re := range x.PatternProperties {
		if re.MatchString(name) {
			return true
		}
	}
	return false
}

// superfluous says that a property isn't known, and which was meant or which there are. has are those of the object.
func (s *Schema) superfluous(url, name string, has []string) (message, hint string) {
	message, hint = fmt.Sprintf("there is no property %q", clip(name)), "leave it out"
	x := s.byURL[url]
	if x == nil || len(x.Properties) == 0 {
		return message, hint
	}
	known := make([]string, 0, len(x.Properties))
	for p := range x.Properties {
		known = append(known, p)
	}
	slices.Sort(known)
	const most = 12
	if len(known) > most {
		message += "; there are " + quotedList(known[:most]) + " and others"
	} else {
		message += "; there is " + quotedList(known)
	}
	free := slices.DeleteFunc(slices.Clone(known), func(k string) bool {
		_, there := slices.BinarySearch(has, k)
		return there
	})
	if near := text.Nearest(name, free); len(near) == 1 {
		return message, fmt.Sprintf("rename %q to %q", clip(name), clip(near[0]))
	} else if len(near) > 1 {
		return message, fmt.Sprintf("leave it out, or rename it to %s", strings.ReplaceAll(quotedList(near), " and ", " or "))
	}
	return message, fmt.Sprintf("leave %q out", clip(name))
}
