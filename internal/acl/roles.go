package acl

import (
	"slices"
	"strings"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/subjects"
)

// open is what every program needs in order to find Stepjet: its own permissions, how many ledger shards there are, and
// the registry of tools.
func (g *Grant) open() {
	tools := subjects.BucketStream(subjects.ToolsBucket)
	g.request(One,
		subjects.UserInfo,
		subjects.StreamRequest("INFO", subjects.LedgerStream(0)),
		subjects.StreamRequest("INFO", tools), subjects.DirectGet(tools, subjects.BucketSubject(subjects.ToolsBucket, "*")))
}

// groups is reading the groups of tools.
func (g *Grant) groups() {
	groups := subjects.BucketStream(subjects.GroupsBucket)
	g.request(One, subjects.StreamRequest("INFO", groups),
		subjects.DirectGet(groups, subjects.BucketSubject(subjects.GroupsBucket, "*.*")))
}

// blobs is reading from a bucket of large values. What a blob belongs to can't be told from its subjects, so it is the
// whole bucket. Stock clients look for the stream before they read.
func (g *Grant) blobs(bucket string) {
	g.request(One, subjects.StreamRequest("INFO", subjects.BlobsStream(bucket)),
		subjects.DirectGet(subjects.BlobsStream(bucket), subjects.BlobMetas(bucket)))
	g.request(Many, subjects.DirectRead(subjects.BlobsStream(bucket)))
}

// bucketOf returns the bucket of a tenant; none is that of all tenants that are not declared.
func (s Spec) bucketOf(tenant string) string {
	if slices.Contains(s.Declared, tenant) {
		return subjects.BlobsOf(tenant)
	}
	return ""
}

// buckets returns those of the tenants that a worker serves.
func (s Spec) buckets() (all []string) {
	if s.Shared || len(s.Declared) == 0 {
		all = append(all, "")
	}
	for _, tenant := range s.Declared {
		all = append(all, subjects.BlobsOf(tenant))
	}
	return all
}

// look is reading the runs of one tenant. A whole stream may not be read, only what has the tenant in its subject; the
// names of what there is come from the stream's state.
func (g *Grant) look(s Spec) {
	g.open()
	g.groups()
	g.blobs(s.bucketOf(s.Tenant))
	history, dead := subjects.BucketStream(subjects.HistoryBucket), subjects.BucketStream(subjects.DeadBucket)
	questions := subjects.BucketStream(subjects.QuestionsBucket)
	g.request(One, bound(s.Shards,
		func(i int) string {
			return subjects.DirectGet(subjects.LedgerStream(i), subjects.ActiveFilter(i, s.Tenant))
		})...)
	for i := 1; i < s.Shards; i++ { // that of the first is asked for by everybody
		g.request(One, subjects.StreamRequest("INFO", subjects.LedgerStream(i)))
	}
	g.request(One,
		subjects.StreamRequest("INFO", history), subjects.StreamRequest("INFO", dead),
		subjects.DirectGet(history, subjects.BucketSubject(subjects.HistoryBucket, s.Tenant+".*")),
		subjects.DirectGet(dead, subjects.BucketSubject(subjects.DeadBucket, subjects.DeadFilter(s.Tenant))),
		subjects.StreamRequest("INFO", questions),
		subjects.DirectGet(questions, subjects.BucketSubject(subjects.QuestionsBucket, subjects.QuestionsFilter(s.Tenant))),
		subjects.TenantAPIFilter(s.Tenant, subjects.VerbGet), subjects.PingSubject, tenantOverrides(s.Tenant))
	g.request(One, subjects.QueuesSubject)
	g.request(Many, subjects.DemandSubject)
	g.request(One, subjects.DirectGet(subjects.BucketStream(subjects.SinksBucket), subjects.TenantSinksKeys(s.Tenant)))
	g.listen(subjects.TenantEventFilter(s.Tenant), subjects.TenantNotifyFilter(s.Tenant))
	g.listen(subjects.TenantSinksFilter(s.Tenant))
}

// hearBeats is hearing which workers live. It is for those in the streams' account alone: what a worker publishes comes
// there by an import of a service, and a server exports such a message as a stream to nobody. It tells of the load of
// all tenants besides, and of hosts, which is no tenant's business.
func (g *Grant) hearBeats() {
	g.request(None, subjects.AskBeats)
	g.listen(subjects.AllBeats)
}

// submit is what an agent does besides looking.
func (g *Grant) submit(s Spec) {
	g.request(One, subjects.TenantSubmitFilter(s.Tenant))
	if s.Shards > 1 {
		g.request(One, subjects.TenantIntakeFilter(s.Tenant))
	}
	g.request(One, subjects.TenantAPIFilter(s.Tenant, subjects.VerbCancel),
		subjects.TenantAPIFilter(s.Tenant, subjects.VerbAnswer), subjects.TenantAPIFilter(s.Tenant, subjects.VerbAmend),
		subjects.TenantAPIFilter(s.Tenant, subjects.VerbSay),
		// the mark of a letter that was dealt with
		subjects.BucketSubject(subjects.DeadBucket, subjects.DeadFilter(s.Tenant)))
}

// administer is what an operator of the cluster does. It looks at no runs.
func (g *Grant) administer() {
	g.open()
	g.groups()
	g.request(Many, subjects.DemandSubject)
	g.request(One, subjects.RegisterFilter, subjects.ApplyTemplateFilter, subjects.ApplyGroupFilter,
		subjects.OverrideFilter,
		subjects.TenantOverrideFilter, subjects.RemoveFilter,
		subjects.PingSubject, subjects.QueuesSubject,
		tenantOverrides("*"))
}

// tenantOverrides is reading what a tenant overrides.
func tenantOverrides(tenant string) string {
	key := subjects.BucketSubject(subjects.ToolsBucket, subjects.TenantOverrideKey(tenant, ""))
	return subjects.DirectGet(subjects.BucketStream(subjects.ToolsBucket), key+"*")
}

// work is hosting tools.
func (g *Grant) work(s Spec) error {
	if len(s.Tools) == 0 {
		return fault.New(fault.InvalidConfig, "a worker hosts tools, and none is named").
			WithHint("--tool NAME, as often as there are tools")
	}
	g.open()
	var names []string
	for _, tool := range sorted(s.Tools) {
		if !subjects.ValidTool(tool) {
			return fault.New(fault.InvalidConfig, "%q is no name of a tool", tool).
				WithHint("1 to %d of A-Z a-z 0-9 _ . : / -", subjects.MaxToolName)
		}
		names = append(names, subjects.Encode(tool))
		g.host(tool, s)
	}
	for _, bucket := range s.buckets() {
		g.blobs(bucket)
		g.request(One, subjects.BlobChunks(bucket), subjects.BlobMetas(bucket))
	}
	// what results are held against where a run started with another definition
	tools := subjects.BucketStream(subjects.ToolsBucket)
	g.request(One, subjects.DirectGet(tools, subjects.BucketSubject(subjects.ToolsBucket, subjects.DefinitionFilter)))
	g.User = g.within(userOf(names))
	// That it lives it says under its user's name alone, so that it can't speak for the workers of others.
	g.request(None, subjects.BeatsOf(g.User))
	g.listen(subjects.AskBeats)
	return nil
}

// host is hosting one tool: register it, take its steps, record their results.
func (g *Grant) host(tool string, s Spec) {
	g.request(One, subjects.Register(tool))
	// Only a step stream has a consumer of this name: all others are made by orchestrators for themselves, with names
	// that nobody chose. So the tool's shard, which it gets when it is registered, need not be known.
	g.request(Many, subjects.ConsumerRequest("MSG.NEXT", "*", subjects.Durable(tool)))
	g.request(One, subjects.ConsumerRequest("INFO", "*", subjects.Durable(tool))) // stock clients look before they pull
	g.request(None, subjects.ToolAcks(tool)...)
	g.request(None, subjects.ProgressFilter(tool))
	g.request(One, subjects.TokenFilter(tool))
	g.request(One, subjects.StreamFilter(tool))
	for i := range s.Shards {
		for _, record := range []string{
			subjects.ToolRecordFilter(tool, i), subjects.ToolClaimFilter(tool, i), subjects.ToolNoteFilter(tool, i),
		} {
			g.request(One, record, subjects.DirectGet(subjects.LedgerStream(i), record))
		}
	}
	lease := subjects.Gather(tool)
	g.request(One, lease, subjects.DirectGet(subjects.BucketStream(subjects.GatherBucket), lease))
	rates := subjects.Rate(tool, "*") // where the tool is a language model
	g.request(One, rates, subjects.DirectGet(subjects.BucketStream(subjects.RatesBucket), rates))
	g.listen(subjects.CancelFilter(tool), lease)
}

// userOf names the user of a worker: worker-search, worker-search-fetch, worker-search-and-7-more.
func userOf(tools []string) string {
	const longest = 40
	name := "worker-" + strings.Join(tools, "-")
	name = strings.ReplaceAll(name, "=", "_")
	if len(name) > longest {
		name = name[:longest]
	}
	return name
}
