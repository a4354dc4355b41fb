package wire

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/stepjet/stepjet/subjects"
)

// A need is the name of something that whoever goes on with a run has to know, such as a version of the plan
// language. A run's start says what the run needs, and who does not know all of it leaves the run alone, as one of a
// higher version. A version says the same of a whole form, and each one contains those before it; needs are
// independent of each other, so an orchestrator may know one and not the other.

// Knowledge is what a program knows of needs, by name.
type Knowledge map[string]Need

// Need is what a program knows of one.
type Need struct {
	// Records is the highest version that an attempt's record may have in a run with the need; 0 is 1.
	Records uint64
	// In reports whether a plan needs it.
	In func(plan []byte) bool
}

// LanguageTwo is the need of a plan in the plan language 2: conditions, and references to how a step ended.
const LanguageTwo = "language-2"

// StateSchema is the need of a plan of the state dialect whose state has a schema: to who does not know of it a result that
// breaks the schema is a success.
const StateSchema = "state-schema"

// Agents is the need of a plan that can reach an agent, and of an agent's entry in the registry.
const Agents = "agents"

// ApprovedRounds is the need of a plan that can reach an agent whose rounds a person approves of, and of such an agent's
// entry in the registry: who does not know of it would run what nobody approved of.
const ApprovedRounds = "approved-rounds"

// AgentState is the need of a run with an agent that declares a state, and of such an agent's entry: who does not know of it
// would not keep what calls write.
const AgentState = "agent-state"

// Guards is the need of a run with an agent that has guards, and of such an agent's entry: who does not know of it would let
// everything pass.
const Guards = "guards"

// AskingGuards is the need of a run with an agent that has guards which are tools or ask a person, and of such an agent's
// entry: who does not know of them would let everything pass that they are asked about.
const AskingGuards = "asking-guards"

// GuardUsage is the need of a run with an agent that has guards which are tools, and of such an agent's entry: what these say
// that they took counts in its budget, and the planner's call of a round that came to none takes nothing.
const GuardUsage = "guard-usage"

// EachGuard is the need of a run with an agent of whose guards a condition has a person asked about calls, and of such an
// agent's entry: who does not know of it asks because of the first of them alone, of what the planner wrote.
const EachGuard = "each-guard"

// BoundArguments is the need of a run with an agent that binds arguments of its calls, or has entries selected that may, and of
// such an agent's entry: who does not know of it would make a call twice that is to be made once, and with null for what is
// not there.
const BoundArguments = "bound-arguments"

// Sinks is the need of a run with an agent of whose entries one sends what it captures to a sink, and of such an agent's entry:
// who does not know of it would send nothing.
const Sinks = "sinks"

// ObjectConditions is the need of a run with an agent in which a condition about an object, of a chain or of what an entry
// captures, asks for more than the object, or which has entries selected that may, and of such an agent's entry: who does not
// know of it can't read the definition.
const ObjectConditions = "object-conditions"

// AnswerOrder is the need of a run with an agent in which it matters which object of a type is the last one, or which has entries
// selected, and of such an agent's entry: who does not know of it would act upon the object that came last, and not on that of the last
// call of the answer, and open a facade by a selection that can't be used.
const AnswerOrder = "answer-order"

// SharedBoards is the need of a run with an agent that calls another, which sees what is on the blackboard of its caller:
// without it, agents begin with an empty one.
const SharedBoards = "shared-boards"

// StreamedPlans is the need of a run with an agent that lets steps begin while its planner writes: to who does not know of it
// there is no such scope.
const StreamedPlans = "streamed-plans"

// AgentTime is the need of a run with an agent whose budget has a time: its planner's requests say what is left of it, in the
// place of what there was.
const AgentTime = "agent-time"

// RoundsAgain is the need of a run that takes over rounds of agents from the one that it tries again: who does not know of it
// would ask their planners anew, and make their calls.
const RoundsAgain = "rounds-again"

// AgentSummary is the need of a run with an agent that has summaries made, and of such an agent's entry: to who does not know
// of them their records are nobody's.
const AgentSummary = "agent-summary"

// InlineAgents is the need of a run whose plan, or a template that it calls, defines an agent itself, and of such a
// template's entry: who does not know of it can't read the plan.
const InlineAgents = "inline-agents"

// NeedsOfTemplate returns what has to be known to go on with a template of such a plan, beside its language; nil for nothing.
func NeedsOfTemplate(plan json.RawMessage) []string {
	type step struct {
		Agent json.RawMessage `json:"agent"`
		Plan  json.RawMessage `json:"plan"`
	}
	var p struct {
		Steps []step `json:"steps"`
	}
	if len(plan) == 0 || json.Unmarshal(plan, &p) != nil {
		return nil
	}
	for _, s := range p.Steps {
		if len(s.Agent) > 0 && s.Agent[0] == '{' {
			return []string{InlineAgents}
		}
		if needs := NeedsOfTemplate(s.Plan); needs != nil {
			return needs
		}
	}
	return nil
}

// ofAgents are the members of an agent's definition that need more than Agents.
var ofAgents = map[string]string{"budget.time": AgentTime, "state": AgentState, "approval": ApprovedRounds, "guards": Guards, "context.summary": AgentSummary, "stream_plan": StreamedPlans}

// OfAgents reports whether a need is that of something in an agent's definition.
func OfAgents(need string) bool {
	return need == Agents || need == InlineAgents || need == AskingGuards || need == EachGuard || need == GuardUsage || need == BoundArguments || need == Sinks || need == ObjectConditions || need == AnswerOrder || need == SharedBoards || slices.Contains(slices.Collect(maps.Values(ofAgents)), need)
}

// NeedsOfAgent returns what has to be known to go on with an agent of such a definition, sorted; nil for none.
func NeedsOfAgent(agent json.RawMessage) (needs []string) {
	var members map[string]json.RawMessage
	if len(agent) == 0 || json.Unmarshal(agent, &members) != nil {
		return nil
	}
	for _, path := range slices.Sorted(maps.Keys(ofAgents)) {
		within := members
		first, second, nested := strings.Cut(path, ".")
		if nested {
			within = nil
			_ = json.Unmarshal(members[first], &within)
			first = second
		}
		if v := within[first]; len(v) > 0 && string(v) != "null" && string(v) != "false" {
			needs = append(needs, ofAgents[path])
		}
	}
	if binds(members["tools"]) {
		needs = append(needs, BoundArguments)
	}
	if sends(members["tools"]) {
		needs = append(needs, Sinks)
	}
	if asksAroundObjects(members["tools"]) {
		needs = append(needs, ObjectConditions)
	}
	if string(members["capture_nested"]) == "true" || actsOnObjects(members["tools"]) || actsOnObjects(members["guards"]) {
		needs = append(needs, AnswerOrder)
	}
	return append(append(needs, ofGuards(members["guards"])...), Agents)
}

// binds reports whether one of some entries binds arguments, or has others selected.
func binds(entries json.RawMessage) bool {
	return hasWithin(entries, func(members map[string]any) bool { return members["bind"] != nil || members["select"] != nil })
}

// sends reports whether one of some entries says where an object goes.
func sends(entries json.RawMessage) bool {
	return hasWithin(entries, func(members map[string]any) bool {
		artifact, is := members["artifact"].(map[string]any)
		return is && artifact["sink"] != nil
	})
}

// asksAroundObjects reports whether a condition about an object in some entries asks for more than that, or others are selected.
func asksAroundObjects(entries json.RawMessage) bool {
	return hasWithin(entries, func(members map[string]any) bool {
		artifact, _ := members["artifact"].(map[string]any)
		return members["select"] != nil || asksMore(artifact["when"]) || members["chain"] != nil && asksMore(members["when"])
	})
}

// actsOnObjects reports whether some entries act upon objects of a type, or others are selected.
func actsOnObjects(entries json.RawMessage) bool {
	names := func(v any) bool {
		text, _ := v.(string)
		return strings.Contains(text, "artifact.")
	}
	return hasWithin(entries, func(members map[string]any) bool {
		bound, _ := members["bind"].(map[string]any)
		return members["select"] != nil || members["chain"] != nil || names(members["when"]) || slices.ContainsFunc(slices.Collect(maps.Values(bound)), names)
	})
}

// asksMore reports whether a condition refers to anything but "$artifact". One with such a text in quotes needs it in vain.
func asksMore(when any) bool {
	text, _ := when.(string)
	return slices.ContainsFunc(strings.Split(text, "$")[1:], func(behind string) bool {
		rest, own := strings.CutPrefix(behind, "artifact")
		return !own || rest != "" && strings.Trim(rest[:1], "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
	})
}

// hasWithin reports whether something holds of an object in a text, at any depth. A schema that has such members needs it in
// vain.
func hasWithin(text json.RawMessage, is func(members map[string]any) bool) bool {
	var all any
	if len(text) == 0 || json.Unmarshal(text, &all) != nil {
		return false
	}
	var within func(v any) bool
	within = func(v any) bool {
		switch v := v.(type) {
		case []any:
			return slices.ContainsFunc(v, within)
		case map[string]any:
			return is(v) || slices.ContainsFunc(slices.Collect(maps.Values(v)), within)
		}
		return false
	}
	return within(all)
}

// ofGuards returns what has to be known of guards that are tools, or ask a person.
func ofGuards(guards json.RawMessage) (needs []string) {
	type guard struct{ On, Tool, Else string }
	var all []guard
	if len(guards) == 0 || json.Unmarshal(guards, &all) != nil {
		return nil
	}
	switch {
	case slices.ContainsFunc(all, func(g guard) bool { return g.Tool != "" }):
		needs = []string{AskingGuards, GuardUsage}
	case slices.ContainsFunc(all, func(g guard) bool { return g.Else == "ask" }):
		needs = []string{AskingGuards}
	}
	if slices.ContainsFunc(all, func(g guard) bool { return g.On == "call" && g.Tool == "" && g.Else == "ask" }) {
		needs = append(needs, EachGuard)
	}
	return needs
}

// Replan is the need of a plan that can reach an agent: to who does not know of it, a call that asks for a new plan has
// failed as any other.
const Replan = "replan"

// AgentOrder is the need of a plan that can reach an agent: who does not know of it would let calls of plans within a round's
// steps pass gates together, and take a failure for handled by what merely stands behind it.
const AgentOrder = "agent-order"

// LockedWithin is the need of a plan that can reach an agent: who does not know of it would make a call of a plan within a round's
// step that was locked when the answer came, where something that it does not wait for happens to open it, beside calls that lock
// each other.
const LockedWithin = "locked-within"

// AgentEnds is the need of a plan that can reach an agent: to who does not know of it, the error of one that has used up its
// budget, or that the run has no room for, says nothing of its rounds, and what hangs upon it would come to something else; and he would ask planners without what their
// loops would have come to before something was said.
const AgentEnds = "agent-ends"

// Permissions is the need of a run that was submitted with permissions: who does not know of them would let it call every
// tool, in an amendment too.
const Permissions = "permissions"

// OnlyGroups is the need of a run that was submitted with groups among its permissions: who does not know of them would let
// an amendment of it call tools of others.
const OnlyGroups = "only-groups"

// Notes is the need of a run with a tool whose workers rely on notes (x-orchestration.note): to an orchestrator of before
// a note's record is nobody's.
const Notes = "note"

// Asking is the need of a run with a tool whose workers may ask a person (x-orchestration.asks): to an orchestrator of before
// such a record is one that failed.
const Asking = "asks"

// LargeRounds is the need of a round whose bytes lie in a blob: to who does not know of such, nothing of it runs.
const LargeRounds = "large-rounds"

// Ours is what this Stepjet knows.
func Ours() Knowledge {
	return Knowledge{
		LanguageTwo: {}, ApprovedAmendments: {}, StateSchema: {}, Agents: {}, AgentOrder: {}, AgentEnds: {}, LockedWithin: {}, AgentState: {}, AgentSummary: {}, InlineAgents: {}, ApprovedRounds: {}, Guards: {}, AskingGuards: {}, EachGuard: {}, GuardUsage: {}, BoundArguments: {}, Sinks: {}, ObjectConditions: {}, AnswerOrder: {}, SharedBoards: {}, AgentTime: {}, Replan: {}, Permissions: {},
		OnlyGroups: {}, Notes: {}, Asking: {}, EditedApprovals: {}, AmendedRounds: {}, DiscardedCalls: {}, RoundReferences: {}, StreamedPlans: {}, LargeRounds: {}, OwnClose: {}, RoundsAgain: {},
	}
}

// Of returns the needs of a plan, sorted; nil for none.
func (k Knowledge) Of(plan []byte) (needs []string) {
	for _, name := range slices.Sorted(maps.Keys(k)) {
		if k[name].In != nil && k[name].In(plan) {
			needs = append(needs, name)
		}
	}
	return needs
}

// Names returns the needs that are known, sorted.
func (k Knowledge) Names() []string { return slices.Sorted(maps.Keys(k)) }

// All reports whether all of some needs are known.
func (k Knowledge) All(needs []string) bool {
	return !slices.ContainsFunc(needs, func(name string) bool { _, known := k[name]; return !known })
}

// Records returns the highest version that the record of an attempt may have in a run with such needs.
func (k Knowledge) Records(needs []string) uint64 {
	most := uint64(unsaid)
	for _, name := range needs {
		most = max(most, k[name].Records)
	}
	return most
}

// Lacking returns those of some needs that are not among the known, in their order, separated by commas; empty: all
// are.
func Lacking(needs, known []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(needs), func(name string) bool { return slices.Contains(known, name) }), ",")
}

// maxNeed is the longest name of a need.
const maxNeed = 64

// ValidNeed reports whether a name may be a need's: 1 to 64 of [a-z0-9-].
func ValidNeed(name string) bool {
	return name != "" && len(name) <= maxNeed && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

// NeedMessage writes the record that some run of the ledger needs something; its key names what. A doctor that does
// not know of needs would take a version that it knows for a mistake.
func NeedMessage() (nats.Header, []byte) {
	return nats.Header{subjects.HeaderVersion: {subjects.NeedsVersion}}, []byte("{}")
}

// needsOf reads what an entry of the registry needs.
func needsOf(body []byte) []string {
	var in struct {
		Needs []string `json:"needs"`
	}
	if json.Unmarshal(body, &in) != nil {
		return nil // what it is then is its reader's to say
	}
	return in.Needs
}

// RecordNeeds returns what must be known to follow the record of an amendment or of a round; nil for nothing.
func RecordNeeds(h nats.Header, body []byte) []string {
	if n, err := Version(h); err != nil || n < ourNeeds {
		return nil
	}
	return needsOf(body)
}

// EntryHeader writes the headers of an entry of the registry, an override or a definition: its version says whether
// it needs anything.
func EntryHeader(body []byte) nats.Header {
	if len(needsOf(body)) == 0 {
		return Versioned()
	}
	return nats.Header{subjects.HeaderVersion: {subjects.NeedsVersion}}
}

// NeedingEntry returns the headers and the body of an entry of the registry, an override or a definition, a JSON object,
// which says that it needs something.
func NeedingEntry(body []byte, needs []string) (nats.Header, []byte) {
	if len(needs) > 0 {
		said, _ := json.Marshal(needs) // strings: it can't fail
		rest := bytes.TrimSpace(body[1:])
		if len(rest) > 1 {
			rest = append([]byte(","), rest...)
		}
		body = append([]byte(`{"`+needsField+`":`+string(said)), rest...)
	}
	return EntryHeader(body), body
}

// needsField is where an entry says what it needs.
const needsField = "needs"

// KnownEntry reports whether who knows so much can read an entry of the registry, an override or a definition: its
// version is known, and all that it needs.
func (k Knowledge) KnownEntry(h nats.Header, body []byte) bool {
	n, err := Version(h)
	switch {
	case err != nil || n > ourNeeds:
		return false
	case n <= ours:
		return true
	}
	needs := needsOf(body)
	return n == ourNeeds && len(needs) > 0 && k.All(needs)
}
