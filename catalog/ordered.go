package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// object is a JSON object that keeps the order of its members: a model writes the properties of a schema in the order
// in which they stand, and its author had reasons for that.
type object []member

type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := jsontape.Marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := jsontape.Marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

func (o object) get(name string) any {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// with returns the object with a member changed, or added at its end.
func (o object) with(name string, value any) object {
	c := make(object, len(o), len(o)+1)
	copy(c, o)
	for i := range c {
		if c[i].name == name {
			c[i].value = value
			return c
		}
	}
	return append(c, member{name, value})
}

// without returns the object without a member.
func (o object) without(name string) object {
	c := make(object, 0, len(o))
	for _, m := range o {
		if m.name != name {
			c = append(c, m)
		}
	}
	return c
}

// parse reads JSON into object, []any, string, bool, nil and json.Number.
func parse(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := value(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("more than one value")
	}
	return v, nil
}

const maxDepth = 256 // tool refuses definitions that are deeper

func value(d *json.Decoder, depth int) (any, error) {
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	delim, ok := t.(json.Delim)
	if !ok {
		return t, nil
	}
	if depth > maxDepth {
		return nil, fmt.Errorf("nested more than %d deep", maxDepth)
	}
	o, a := object{}, []any{}
	for d.More() {
		if delim == '[' {
			v, err := value(d, depth+1)
			if err != nil {
				return nil, err
			}
			a = append(a, v)
			continue
		}
		name, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := value(d, depth+1)
		if err != nil {
			return nil, err
		}
		s, _ := name.(string) // the decoder takes nothing else for a key
		o = append(o, member{s, v})
	}
	if _, err := d.Token(); err != nil { // the closing one
		return nil, err
	}
	if delim == '[' {
		return a, nil
	}
	return o, nil
}
