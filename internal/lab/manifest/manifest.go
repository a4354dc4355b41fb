// Package manifest holds objects of Kubernetes against the definitions that their controllers bring. Such a definition
// lets what it does not know pass, and the server drops it without a word: here it is closed, so that a field that is
// written wrong is an error.
package manifest

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"
)

// definition is what is read of a CustomResourceDefinition.
type definition struct {
	Spec struct {
		Group    string
		Names    struct{ Kind string }
		Versions []struct {
			Name   string
			Schema struct {
				OpenAPI map[string]any `yaml:"openAPIV3Schema"`
			}
		}
	}
}

// CheckAll returns what is wrong with the objects of a file, each by the one that it is of among the definitions of another,
// and how many there are.
func CheckAll(crds, objects []byte) (checked int, err error) {
	definitions := map[string][]byte{}
	for _, one := range documents(crds) {
		var d definition
		if err := yaml.Unmarshal(one, &d); err != nil {
			return 0, fmt.Errorf("reading the definitions: %w", err)
		}
		definitions[d.Spec.Names.Kind] = one
	}
	for _, one := range documents(objects) {
		var o struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal(one, &o); err != nil {
			return checked, fmt.Errorf("reading the objects: %w", err)
		}
		if definitions[o.Kind] == nil {
			return checked, fmt.Errorf("%s: there is no definition of %q", o.Metadata.Name, o.Kind)
		}
		if err := Check(definitions[o.Kind], one); err != nil {
			return checked, fmt.Errorf("%s %s: %w", o.Kind, o.Metadata.Name, err)
		}
		checked++
	}
	return checked, nil
}

// documents are those of a file, but for such as hold nothing.
func documents(file []byte) (all [][]byte) {
	for one := range strings.SplitSeq("\n"+string(file), "\n---") {
		var fields map[string]any
		if err := yaml.Unmarshal([]byte(one), &fields); err != nil || len(fields) > 0 {
			all = append(all, []byte(one)) // what can't be read is told by who reads it
		}
	}
	return all
}

// Check returns what is wrong with an object that a definition is of.
func Check(crd, object []byte) error {
	var d definition
	if err := yaml.Unmarshal(crd, &d); err != nil {
		return fmt.Errorf("reading the definition: %w", err)
	}
	var o map[string]any
	if err := yaml.Unmarshal(object, &o); err != nil {
		return fmt.Errorf("reading the object: %w", err)
	}
	if o["kind"] != d.Spec.Names.Kind {
		return fmt.Errorf("the kind is %v, and the definition is of %s", o["kind"], d.Spec.Names.Kind)
	}
	for _, v := range d.Spec.Versions {
		if o["apiVersion"] == d.Spec.Group+"/"+v.Name {
			return fits(v.Schema.OpenAPI, o)
		}
	}
	return fmt.Errorf("the definition of %s has no version %v", d.Spec.Names.Kind, o["apiVersion"])
}

// everyObject is what objects have that a definition need not list.
var everyObject = map[string]any{
	"apiVersion": map[string]any{"type": "string"}, "kind": map[string]any{"type": "string"}, "metadata": map[string]any{"type": "object"},
}

func fits(schema, object map[string]any) error {
	if listed, ok := schema["properties"].(map[string]any); ok {
		for name, of := range everyObject {
			if _, there := listed[name]; !there {
				listed[name] = of
			}
		}
	}
	closed(schema)
	raw, err := json.Marshal(schema)
	if err != nil {
		return err
	}
	var s openapi3.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("reading the schema: %w", err)
	}
	if raw, err = json.Marshal(object); err != nil {
		return err
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return err
	}
	return s.VisitJSON(value, openapi3.MultiErrors())
}

// closed has every object of a schema that lists its fields allow no others, but where it says that it keeps all.
func closed(node any) {
	switch x := node.(type) {
	case map[string]any:
		_, lists := x["properties"].(map[string]any)
		if _, free := x["additionalProperties"]; lists && !free && x["x-kubernetes-preserve-unknown-fields"] != true {
			x["additionalProperties"] = false
		}
		for _, inner := range x {
			closed(inner)
		}
	case []any:
		for _, inner := range x {
			closed(inner)
		}
	}
}

// field is a line of a scaler of KEDA that says what it reads of a trigger's metadata.
var field = regexp.MustCompile("`keda:\"name=([^,\"]+)([^\"]*)\"`")

// CheckTrigger holds the metadata of an object's trigger of a type against the source of the scaler of KEDA that reads
// it: a definition says nothing of them, and the scaler finds out once it runs.
func CheckTrigger(scaler, object []byte, kind string) error {
	var o struct {
		Spec struct {
			Triggers []struct {
				Type     string
				Metadata map[string]any
			}
		}
	}
	if err := yaml.Unmarshal(object, &o); err != nil {
		return fmt.Errorf("reading the object: %w", err)
	}
	known := map[string]string{}
	for _, f := range field.FindAllStringSubmatch(string(scaler), -1) {
		for name := range strings.SplitSeq(f[1], ";") {
			known[name] = strings.ReplaceAll(f[2], " ", "")
		}
	}
	checked := 0
	for _, t := range o.Spec.Triggers {
		if t.Type != kind {
			continue
		}
		checked++
		for name, options := range known {
			if _, is := t.Metadata[name]; !is && strings.Contains(options, "triggerMetadata") && !strings.Contains(options, "optional") && !strings.Contains(options, "default=") {
				return fmt.Errorf("a trigger of type %s needs %s", kind, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(t.Metadata)) {
			options, is := known[name]
			if !is {
				return fmt.Errorf("a trigger of type %s has no %s", kind, name)
			}
			text, is := t.Metadata[name].(string)
			if !is {
				return fmt.Errorf("%s is no text: metadata are texts, also numbers", name)
			}
			if _, one, limited := strings.Cut(options, "enum="); limited {
				one, _, _ = strings.Cut(one, ",")
				if !slices.Contains(strings.Split(one, ";"), text) {
					return fmt.Errorf("%s is %q, and has to be one of %s", name, text, one)
				}
			}
		}
	}
	if checked == 0 {
		return fmt.Errorf("the object has no trigger of type %s", kind)
	}
	return nil
}
