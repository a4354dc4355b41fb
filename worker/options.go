package worker

import (
	"encoding/json"

	"github.com/stepjet/stepjet/tool"
)

// Option sets one thing about one tool.
type Option func(*settings)

// settings is what options work on: the tool's definition and how it is hosted here.
type settings struct {
	def      tool.Definition
	slots    int
	together func(Info) string
}

// Title names the tool for people.
func Title(text string) Option { return func(s *settings) { s.def.Title = text } }

// Description says what the tool does; models read it.
func Description(text string) Option { return func(s *settings) { s.def.Description = text } }

// Annotations gives the hints of MCP. Retries and the fan-out limit follow from them where no contract says otherwise.
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

// Together lets only those steps into one batch for which key gives the same, besides what must be equal in any case. It
// is for handlers that use one thing of the steps for the whole call: a credential of their context, their tenant. It
// must be quick.
func Together(key func(Info) string) Option {
	return func(s *settings) { s.together = key }
}
