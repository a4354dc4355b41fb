package ui

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/outcome"
)

// members returns the names in JSON of what a type has.
func members(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		if of.Field(i).Anonymous {
			names = append(names, members(of.Field(i).Type)...)
		} else if name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

// Each member of a step, and of what an agent's step has, is described, nothing else is, and the page knows those that it shows.
func TestAllOfAStepIsDescribed(t *testing.T) {
	t.Parallel()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	require.NoError(t, err)
	source, err := os.ReadFile("../../web/api.ts")
	require.NoError(t, err)
	for _, x := range []struct {
		of           any
		schema, page string
		unserved     []string // below the step, as steps of their own
		unseen       []string // that the page does not read
	}{
		{detail{}, "Step", "Detail", []string{"items", "steps"},
			[]string{"bytes", "blob", "text", "type", "shown", "discarded", "revision", "list", "retried_key", "tool_logs", "tool_logs_left_out"}},
		{outcome.Said{}, "Word", "Said", nil, nil},
		{outcome.Message{}, "Message", "Message", nil, nil},
		{outcome.Refused{}, "Refused", "Refused", nil, nil},
		{round{}, "Round", "Round", nil, nil},
		{outcome.ToolLog{}, "ToolLog", "", nil, nil},
		{outcome.Handle{}, "Blob", "", nil, nil},
	} {
		schema := doc.Components.Schemas[x.schema].Value
		require.NotNil(t, schema, x.schema)
		require.NotNil(t, schema.AdditionalProperties.Has, x.schema)
		require.False(t, *schema.AdditionalProperties.Has, "%s is closed", x.schema)
		var described, there []string
		for name := range schema.Properties {
			described = append(described, name)
		}
		for _, name := range members(reflect.TypeOf(x.of)) {
			if !slices.Contains(x.unserved, name) && !slices.Contains(there, name) {
				there = append(there, name)
			}
		}
		require.ElementsMatch(t, there, described, x.schema)
		if x.page == "" {
			continue
		}
		_, body, ok := strings.Cut(string(source), "export interface "+x.page+" {")
		require.True(t, ok, x.page)
		body, _, _ = strings.Cut(body, "\nexport ")
		for _, name := range there {
			known := regexp.MustCompile(`[{;\s]` + name + `\??:`).MatchString(" " + body)
			require.Equal(t, !slices.Contains(x.unseen, name), known, "%s.%s", x.page, name)
		}
	}
}
