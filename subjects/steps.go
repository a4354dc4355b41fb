package subjects

import (
	"strconv"
	"strings"
)

// StepsStream returns the work-queue stream of a tool shard.
func StepsStream(shard int) string { return "STEPS_" + strconv.Itoa(shard) }

// StepsSubjects returns all subjects that a step stream takes.
func StepsSubjects(shard int) []string {
	s := strconv.Itoa(shard)
	return []string{"step." + s + ".>", "sched." + s + ".>", Sentinel(shard)}
}

// StepTemplate is the form of what Step returns, for people and telemetry.
const StepTemplate = "step.{shard}.{tool}.{partition}.{tenant}.{run}.{generation}.{step}.{attempt}"

// Keeper names the consumer of a step stream that nobody pulls from: what it is interested in, no acknowledgement of
// another consumer's removes. It is no name of a tool's durable.
const Keeper = "=keeper"

// KeeperFilters returns what the keeper of a step stream is interested in: all that no tool's consumer takes.
func KeeperFilters(shard int) []string {
	return []string{"sched." + strconv.Itoa(shard) + ".>", Sentinel(shard)}
}

// Sentinel returns the subject of the message that keeps a step stream from ever being empty. No consumer takes it.
func Sentinel(shard int) string { return "sentinel." + strconv.Itoa(shard) }

// tool writes what the subjects of a tool's steps begin with.
func (n name) tool(kind string, shard int, tool string) name {
	return n.text(kind, ".").int(shard).text(".").token(tool).text(".")
}

// step writes the subject of an attempt in a step stream.
func (n name) step(kind string, a *Attempt, shard int) name {
	return n.tool(kind, shard, a.Tool).int(a.Partition()).text(".").run(a.Run).text(".").attempt(a)
}

// Step returns the subject that an attempt is dispatched to.
func Step(a Attempt, shard int) string {
	return string(make(name, 0, room).step("step", &a, shard))
}

// Scheduled returns the subject under which an attempt waits for its time.
func Scheduled(a Attempt, shard int) string {
	return string(make(name, 0, room).step("sched", &a, shard))
}

// PendingFilter matches an attempt whether it is dispatched or scheduled.
func PendingFilter(a Attempt, shard int) string {
	return string(make(name, 0, room).step("*", &a, shard))
}

// ToolFilter matches every dispatched step of a tool.
func ToolFilter(tool string, shard int) string {
	return string(make(name, 0, room).tool("step", shard, tool).text(">"))
}

// ToolPendingFilter matches every step of a tool, dispatched or scheduled.
func ToolPendingFilter(tool string, shard int) string {
	return string(make(name, 0, room).tool("*", shard, tool).text(">"))
}

// RunToolFilter matches what one generation of a run has waiting for one tool; kind is "step" or "sched".
func RunToolFilter(kind string, r Run, generation uint64, tool string, shard int) string {
	return string(make(name, 0, room).tool(kind, shard,
		tool).int(r.Partition()).text(".").run(r).text(".").uint(generation).text(".>"))
}

// PartitionPendingFilter matches what a partition has in a step stream, dispatched or scheduled.
func PartitionPendingFilter(partition, shard int) string {
	return "*." + strconv.Itoa(shard) + ".*." + strconv.Itoa(partition) + ".>"
}

// ParseStep reads a subject of a step stream: step or sched.
func ParseStep(subject string) (a Attempt, shard int, ok bool) {
	var t [9]string // kind shard tool P T R G S A
	if split(subject, t[:]) != 9 || t[0] != "step" && t[0] != "sched" {
		return a, 0, false
	}
	shard, err := strconv.Atoi(t[1])
	if err != nil {
		return a, 0, false
	}
	g, ok := canonical(t[6])
	if !ok {
		return a, 0, false
	}
	a, ok = parseAttempt(Run{t[4], t[5]}, g, t[2], t[7], t[8])
	return a, shard, ok
}

// Cancel returns the subject that tells workers to stop an attempt; CancelFilter matches all of a tool.
func Cancel(a Attempt) string { return toldOf("cancel.", &a) }

// toldOf writes the subject of what is told of an attempt: kind, tool T R G S A.
func toldOf(kind string, a *Attempt) string {
	return string(make(name, 0, room).text(kind).token(a.Tool).text(".").run(a.Run).text(".").attempt(a))
}

// CancelFilter matches the cancellations of a tool.
func CancelFilter(tool string) string { return "cancel." + Encode(tool) + ".>" }

// ParseCancel reads a subject of Cancel.
func ParseCancel(subject string) (Attempt, bool) { return parseTold("cancel", subject) }

// Progress returns the subject on which a worker says how far an attempt is; ProgressFilter matches all of a tool.
func Progress(a Attempt) string { return toldOf("progress.", &a) }

// ProgressFilter matches what workers say of how far the attempts of a tool are.
func ProgressFilter(tool string) string { return "progress." + Encode(tool) + ".>" }

// ParseProgress reads a subject of Progress.
func ParseProgress(subject string) (Attempt, bool) { return parseTold("progress", subject) }

// Token returns the subject on which a worker tells what its handler is writing; TokenFilter matches all of a tool.
func Token(a Attempt) string { return toldOf("token.", &a) }

// TokenFilter matches what the attempts of a tool are writing.
func TokenFilter(tool string) string { return "token." + Encode(tool) + ".>" }

// ParseToken reads a subject of Token.
func ParseToken(subject string) (Attempt, bool) { return parseTold("token", subject) }

// Stream returns the subject on which a planner hands over steps of its answer before that is whole; StreamFilter matches all
// of a tool.
func Stream(a Attempt) string { return toldOf("stream.", &a) }

// StreamFilter matches what the attempts of a tool hand over.
func StreamFilter(tool string) string { return "stream." + Encode(tool) + ".>" }

// ParseStream reads a subject of Stream.
func ParseStream(subject string) (Attempt, bool) { return parseTold("stream", subject) }

func parseTold(kind, subject string) (Attempt, bool) {
	var t [7]string // kind tool T R G S A
	if split(subject, t[:]) != 7 || t[0] != kind {
		return Attempt{}, false
	}
	g, ok := canonical(t[4])
	if !ok {
		return Attempt{}, false
	}
	return parseAttempt(Run{t[2], t[3]}, g, t[1], t[5], t[6])
}

// The kinds of events, the last token of Event.
const (
	EventStart    = "start"    // the plan was accepted; body: the number of steps
	EventStep     = "step"     // a step was decided or is to be tried again
	EventEnd      = "end"      // the run is over; body: the outcome
	EventConflict = "conflict" // the run id was used for another plan; body: the problem
	EventQuestion = "question" // a step waits for a person; body: what is asked
	EventAmend    = "amend"    // the plan was amended; body: what it is at now
	EventProgress = "progress" // a worker says how far a step is; body: what it says
	EventMessage  = "message"  // an agent tells people something that stays; body: what
	EventToken    = "token"    // a language model, or another handler, writes; body: what has come of it
)

// Event returns the subject of an event of a run. Events are core NATS, at most once, for watching only.
func Event(r Run, kind string) string { return "event." + r.Tenant + "." + r.ID + "." + kind }

// EventFilter matches all events of a run.
func EventFilter(r Run) string { return Event(r, "*") }

// ParseEvent reads a subject of Event.
func ParseEvent(subject string) (r Run, kind string, ok bool) {
	var t [4]string
	if split(subject, t[:]) != 4 || t[0] != "event" {
		return r, "", false
	}
	return Run{t[1], t[2]}, t[3], true
}

// Notify returns the subject on which a client learns that a run of its own is over; client is the token it sent along.
func Notify(r Run, client string) string { return "notify." + r.Tenant + "." + client + "." + r.ID }

// NotifyFilter matches all notices to one client.
func NotifyFilter(tenant, client string) string { return "notify." + tenant + "." + client + ".*" }

// ParseNotify reads a subject of Notify.
func ParseNotify(subject string) (r Run, ok bool) {
	var t [4]string
	if split(subject, t[:]) != 4 || t[0] != "notify" {
		return r, false
	}
	return Run{t[1], t[3]}, true
}

// The verbs of the control API.
const (
	VerbGet     = "get"
	VerbHead    = "head" // what a list shows of a run that goes on
	VerbCancel  = "cancel"
	VerbApprove = "approve" // answers approvals
	VerbAnswer  = "answer"  // answers what plans ask by the tool "ask", and no approval
	VerbAmend   = "amend"   // changes the plan of a run that goes on
	VerbSay     = "say"     // says something to an agent of a run that goes on
	// VerbAmendApproved is VerbAmend for who may approve: a plan that was submitted for an approval is changed at once.
	VerbAmendApproved = "amend-approved"
)

// API returns the subject of a request about a run, answered by the owner of its partition.
func API(r Run, verb string) string {
	return "api." + strconv.Itoa(r.Partition()) + "." + verb + "." + r.Tenant + "." + r.ID
}

// APIAll matches all requests about runs.
const APIAll = "api.*.*.*.*"

// ParseAPI reads a subject of API.
func ParseAPI(subject string) (r Run, verb string, ok bool) {
	var t [5]string
	if split(subject, t[:]) != 5 || t[0] != "api" {
		return r, "", false
	}
	r = Run{t[3], t[4]}
	return r, t[2], t[1] == strconv.Itoa(r.Partition())
}

// Register returns the subject of a request that registers a tool; any orchestrator answers. The definition is the
// body.
func Register(tool string) string { return "api.tools.register." + Encode(tool) }

// ParseRegister returns the tool of a registration's subject.
func ParseRegister(subject string) (tool string, ok bool) {
	token, ok := strings.CutPrefix(subject, "api.tools.register.")
	if !ok {
		return "", false
	}
	tool, ok = Decode(token)
	return tool, ok && ValidTool(tool)
}

// RegisterFilter matches all registrations.
const RegisterFilter = "api.tools.register.*"

// ApplyTemplate returns the subject of a request that registers a tool which is a plan; any orchestrator answers. The
// definition is the body. It is another than Register's, since what plans call is for operators to say.
func ApplyTemplate(tool string) string { return "api.tools.template." + Encode(tool) }

// ApplyTemplateFilter matches all requests of ApplyTemplate.
const ApplyTemplateFilter = "api.tools.template.*"

// OverrideKey returns the registry key of an operator's override of a tool's contract.
func OverrideKey(tool string) string { return "override." + Encode(tool) }

// Gather returns the subject of the lease of the worker that gathers a tool's batches.
func Gather(tool string) string { return BucketSubject(GatherBucket, Encode(tool)) }

// Rate returns the subject of the rate of a model of a tool; both may be wildcards of a filter. A model's name is
// [A-Za-z0-9_-]{1,64}.
func Rate(tool, model string) string { return BucketSubject(RatesBucket, Encode(tool)+"."+model) }

// Override returns the subject of a request that sets or clears an operator's override of a tool's contract; any
// orchestrator answers.
func Override(tool string) string { return "api.tools.override." + Encode(tool) }

// OverrideFilter matches all requests of Override.
const OverrideFilter = "api.tools.override.*"

// TenantOverrideKey returns the registry key of what a tenant overrides of a tool for its own runs, TenantOverrideKeys
// matches all of them.
func TenantOverrideKey(tenant, tool string) string { return "override." + tenant + "." + Encode(tool) }

// TenantOverrideKeys is described at TenantOverrideKey.
const TenantOverrideKeys = "override.*.*"

// ParseTenantOverrideKey reads a key of TenantOverrideKey.
func ParseTenantOverrideKey(key string) (tenant, tool string, ok bool) {
	rest, ok := strings.CutPrefix(key, "override.")
	if !ok {
		return "", "", false
	}
	if tenant, rest, ok = strings.Cut(rest, "."); !ok || !ValidTenant(tenant) {
		return "", "", false
	}
	tool, ok = Decode(rest)
	return tenant, tool, ok
}

// TenantOverride returns the subject of a request that sets or clears what a tenant overrides of a tool for its own
// runs; tool may be "*". Any orchestrator answers.
func TenantOverride(tenant, tool string) string {
	if tool != "*" {
		tool = Encode(tool)
	}
	return "api.tools.tenant." + tenant + ".override." + tool
}

// TenantOverrideFilter matches all requests of TenantOverride.
const TenantOverrideFilter = "api.tools.tenant.*.override.*"

// ParseTenantOverride reads a subject of TenantOverride.
func ParseTenantOverride(subject string) (tenant, tool string, ok bool) {
	t := strings.Split(subject, ".")
	if len(t) != 6 || !ValidTenant(t[3]) {
		return "", "", false
	}
	tool, ok = Decode(t[5])
	return t[3], tool, ok
}

// Remove returns the subject of a request that removes a tool from the registry; any orchestrator answers.
func Remove(tool string) string { return "api.tools.remove." + Encode(tool) }

// RemoveFilter matches all requests of Remove.
const RemoveFilter = "api.tools.remove.*"

// GroupKey returns the key of a group of tools in its bucket. Names of roles and providers are those of tenants.
func GroupKey(role, provider string) string { return role + "." + provider }

// ApplyGroup returns the subject of a request that sets what a provider has for a role, or takes it away where there is no
// body; any orchestrator answers.
func ApplyGroup(role, provider string) string { return "api.tools.group." + role + "." + provider }

// ApplyGroupFilter matches all requests of ApplyGroup.
const ApplyGroupFilter = "api.tools.group.*.*"

// ParseApplyGroup reads a subject of ApplyGroup.
func ParseApplyGroup(subject string) (role, provider string, ok bool) {
	rest, ok := strings.CutPrefix(subject, "api.tools.group.")
	role, provider, two := strings.Cut(rest, ".")
	return role, provider, ok && two && ValidTenant(role) && ValidTenant(provider)
}

// PingSubject is answered by any orchestrator; it shows that one is alive.
const PingSubject = "api.ping"

// DemandSubject is answered by every orchestrator, for the partitions whose runs it has at hand: what it holds back of
// some tools.
const DemandSubject = "api.demand"

// WaitingSubject is answered by every orchestrator as DemandSubject is, with the runs that wait for a worker of some tools.
// It tells of runs of all tenants.
const WaitingSubject = "api.demand.waiting"

// QueuesSubject is answered by any orchestrator: what lies in the streams of some tools.
const QueuesSubject = "api.demand.queues"

// ToolKey returns a tool's key in the registry bucket.
func ToolKey(tool string) string { return Encode(tool) }

// DefinitionKey returns the registry key under which a definition is kept by its digest, create-once. Encoded tool
// names hold no dot, so the two kinds of keys can't meet.
func DefinitionKey(digest string) string { return "def." + digest }

// DefinitionFilter matches the keys of all definitions.
const DefinitionFilter = "def.*"

// ValidDigest reports whether s is the digest of a definition: a SHA-256 in lower-case hex.
func ValidDigest(s string) bool {
	if len(s) != 64 {
		return false
	}
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
