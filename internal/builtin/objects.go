package builtin

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/stepjet/stepjet/fault"
)

// members are an object's, each key once: in the order of its first appearance, with its last value. Keys are kept raw
// too, so that they are written as they were.
type members struct {
	at     map[string]int // by unescaped key
	keys   []string       // raw, quoted
	values []value
}

// value is JSON as it was read or, once something was merged into it, an object taken apart.
type value struct {
	gjson.Result
	object *members
}

func newMembers() *members { return &members{at: map[string]int{}} }

func membersOf(obj gjson.Result) *members {
	m := newMembers()
	obj.ForEach(func(k, v gjson.Result) bool {
		m.set(k.String(), k.Raw, value{Result: v})
		return true
	})
	return m
}

func (m *members) set(key, raw string, v value) {
	if i, ok := m.at[key]; ok {
		m.values[i] = v
		return
	}
	m.at[key] = len(m.keys)
	m.keys, m.values = append(m.keys, raw), append(m.values, v)
}

func (m *members) get(key string) (gjson.Result, bool) {
	i, ok := m.at[key]
	if !ok {
		return gjson.Result{}, false
	}
	return m.values[i].Result, true
}

func (m *members) write(b *strings.Builder) {
	b.WriteByte('{')
	for i, key := range m.keys {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(key)
		b.WriteByte(':')
		if m.values[i].object != nil {
			m.values[i].object.write(b)
		} else {
			b.WriteString(m.values[i].Raw)
		}
	}
	b.WriteByte('}')
}

func (m *members) wrapped() []byte {
	var b strings.Builder
	m.write(&b)
	return wrap(b.String())
}

func objectArg(args gjson.Result, name string) (*members, error) {
	v := member(args, name)
	if !v.IsObject() {
		return nil, notObject(name, v)
	}
	return membersOf(v), nil
}

func notObject(name string, v gjson.Result) error {
	return fault.New(fault.InvalidArguments, "the argument %q is no object but %s", name, clip([]byte(v.Raw)))
}

func jsonKeys(args gjson.Result) ([]byte, error) {
	m, err := objectArg(args, "value")
	if err != nil {
		return nil, err
	}
	return wrap("[" + strings.Join(m.keys, ",") + "]"), nil
}

func jsonValues(args gjson.Result) ([]byte, error) {
	m, err := objectArg(args, "value")
	if err != nil {
		return nil, err
	}
	raw := make([]string, len(m.values))
	for i, v := range m.values {
		raw[i] = v.Raw
	}
	return wrap("[" + strings.Join(raw, ",") + "]"), nil
}

func jsonPick(args gjson.Result) ([]byte, error) {
	m, err := objectArg(args, "value")
	if err != nil {
		return nil, err
	}
	picked := newMembers()
	for _, key := range member(args, "keys").Array() {
		if i, ok := m.at[key.String()]; ok {
			picked.set(key.String(), m.keys[i], m.values[i])
		}
	}
	return picked.wrapped(), nil
}

func jsonMerge(args gjson.Result) ([]byte, error) {
	deep := member(args, "deep").Bool()
	merged := newMembers()
	for _, v := range member(args, "values").Array() {
		if !v.IsObject() {
			return nil, notObject("values", v)
		}
		merged.merge(v, deep)
	}
	return merged.wrapped(), nil
}

// merge lets the members of obj win; deep merges objects that both have. An object is taken apart once, when the first
// one is merged into it, so that merging costs no more than what is merged.
func (m *members) merge(obj gjson.Result, deep bool) {
	obj.ForEach(func(k, v gjson.Result) bool {
		i, ok := m.at[k.String()]
		if !ok || !deep || !v.IsObject() || !m.values[i].IsObject() {
			m.set(k.String(), k.Raw, value{Result: v})
			return true
		}
		if m.values[i].object == nil {
			m.values[i].object = membersOf(m.values[i].Result)
		}
		m.values[i].object.merge(v, true)
		return true
	})
}
