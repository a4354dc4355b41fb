// Package unknown keeps what a reader doesn't know: the fields that a newer Stepjet has put into a document which an
// older one reads, changes or hands on. They are kept as they came and written again behind those that are known.
package unknown

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/stepjet/stepjet/internal/jsontape"
)

// Fields are the unknown fields of one JSON object, each as `,"name":value`; nil for none.
type Fields []byte

// Names are the names of the known fields of an object.
type Names map[string]bool

// NamesOf returns the names under which encoding/json writes the fields of structs, those of embedded structs included.
func NamesOf(structs ...any) Names {
	all := Names{}
	for _, s := range structs {
		all.add(reflect.TypeOf(s))
	}
	return all
}

func (n Names) add(t reflect.Type) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			n.add(f.Type)
		case name != "" && name != "-":
			n[strings.ToLower(name)] = true // encoding/json reads them in any case
		}
	}
}

// Of returns the fields of an object that have none of the names. raw has to be valid JSON; what is no object has none.
func Of(raw []byte, known Names) (all Fields) {
	jsontape.Members(raw, func(key, value []byte) bool {
		text := jsontape.Unquoted(key)
		if !known[strings.ToLower(text)] {
			name, _ := json.Marshal(text) // strings can't fail
			all = append(all, ',')
			all = append(all, name...)
			all = append(all, ':')
			all = append(all, value...)
		}
		return true
	})
	return all
}

// Into puts the fields behind those of an object that has at least one, and gives the longer object.
func (f Fields) Into(object []byte) []byte {
	if len(f) == 0 {
		return object
	}
	return append(append(object[:len(object)-1], f...), '}')
}
