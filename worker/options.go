package worker

import (
	"encoding/json"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

// Option sets one thing about one tool.
type Option func(*settings)

// settings is what options work on: the tool's definition and how it is hosted here.
type settings struct {
	def      tool.Definition
	slots    int
	together func(Info) string
	gate     *Gate
	mistake  error // of an option
}

// apply sets what options say. Errors are those of options.
func (s *settings) apply(options []Option) error {
	for _, o := range options {
		o(s)
	}
	return s.mistake
}

// DefinedBy hosts the tool under the definition of its name in a list, such as tool.ParseDefinitions reads from a file.
// What the definition leaves out is inferred from the function's types. A list without one of that name is an error of
// code invalid_tool.
func DefinedBy(list ...*tool.Definition) Option {
	return func(s *settings) {
		for _, d := range list {
			if d.Name == s.def.Name {
				s.def = *d
				return
			}
		}
		s.mistake = fault.New(fault.InvalidTool, "tool %q is not among the definitions that it is to be hosted under",
			s.def.Name)
	}
}

// Title names the tool for people.
func Title(text string) Option { return func(s *settings) { s.def.Title = text } }

// Description says what the tool does; models read it.
func Description(text string) Option { return func(s *settings) { s.def.Description = text } }

// Annotations returns the hints of MCP. Retries and the fan-out limit follow from them where no contract says
// otherwise.
func Annotations(a tool.Annotations) Option { return func(s *settings) { s.def.Annotations = &a } }

// Contract says how Stepjet may call the tool: mode, limit, retry, backoff, timeout, delivery.
func Contract(o tool.Orchestration) Option { return func(s *settings) { s.def.Orchestration = &o } }

// Tenants names those who may use the tool; none means all.
func Tenants(tenants ...string) Option { return func(s *settings) { s.def.Tenants = tenants } }

// InputSchema replaces the inferred JSON Schema of the arguments, for types whose JSON form does not follow from their
// fields (recursive ones, or those with a MarshalJSON of their own).
func InputSchema(schema json.RawMessage) Option {
	return func(s *settings) { s.def.InputSchema = schema }
}

// OutputSchema replaces the inferred JSON Schema of the result.
func OutputSchema(schema json.RawMessage) Option {
	return func(s *settings) { s.def.OutputSchema = schema }
}

// Slots overrides Config.Slots for this tool.
func Slots(n int) Option { return func(s *settings) { s.slots = n } }

// Together lets only those steps into one batch for which key gives the same, besides what must be equal in any case.
// It is for handlers that use one thing of the steps for the whole call: a credential of their context, their tenant.
// It must be quick.
func Together(key func(Info) string) Option {
	return func(s *settings) { s.together = key }
}

// Gated takes a tool's steps only while a gate is open. The tool must not have a batch.
func Gated(g *Gate) Option { return func(s *settings) { s.gate = g } }
