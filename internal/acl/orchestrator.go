package acl

import "github.com/stepjet/stepjet/subjects"

// orchestrate is everything of Stepjet: all of its streams, all that it tells, all that it is asked.
//
// It may publish answers on inboxes alone, so that a request that names another subject is answered nowhere; and no
// plans, since no orchestrator submits one.
func (g *Grant) orchestrate(s Spec) {
	g.request(None, subjects.Inboxes, subjects.ImportedReplies, subjects.AllEvents, subjects.AllNotices,
		subjects.AllCancels, subjects.FlowControl)
	g.request(One, bound(s.Shards, subjects.LedgerFilter)...)
	for _, bucket := range buckets {
		if bucket != subjects.GatherBucket && bucket != subjects.RatesBucket { // workers alone write these
			g.request(One, subjects.BucketSubject(bucket, ">"))
		}
	}
	// where others have made streams and the bucket
	g.request(One, subjects.AllSinks, subjects.BucketSubject(subjects.SinksBucket, ">"))
	for _, bucket := range s.allBuckets() {
		g.request(One, subjects.BlobsSubjects(bucket)...)
		g.request(One, subjects.DirectGet(subjects.BlobsStream(bucket), ">"))
		g.request(Many, subjects.DirectRead(subjects.BlobsStream(bucket)))
	}
	for i := range s.ToolShards {
		g.request(One, subjects.StepsSubjects(i)...)
	}
	for _, stream := range streams(s) {
		for _, verb := range []string{"INFO", "CREATE", "UPDATE", "PURGE", "MSG.GET"} { // UPDATE: stepjet doctor --fix
			g.request(One, subjects.StreamRequest(verb, stream))
		}
		for _, verb := range []string{"INFO", "CREATE", "DELETE"} {
			g.request(One, subjects.ConsumerRequest(verb, stream, ">"))
		}
		g.listen(subjects.LeaderElected(stream))
	}
	for i := range s.ToolShards {
		steps := subjects.StepsStream(i)
		g.request(One, subjects.StreamRequest("MSG.DELETE", steps))       // what a stop takes back
		g.request(One, subjects.ConsumerRequest("PAUSE", steps, "*"))     // while it does
		g.request(Many, subjects.ConsumerRequest("MSG.NEXT", steps, "*")) // a nudge after a purge
		g.request(One, subjects.ConsumersRequest("NAMES", steps), subjects.ConsumersRequest("LIST", steps))
	}
	g.request(One, subjects.AccountRequest, subjects.StreamNames, subjects.UserInfo)
	g.listen(subjects.IntakeFilter, subjects.IntakeShardsFilter, subjects.PingSubject, subjects.DemandSubject,
		subjects.WaitingSubject, subjects.QueuesSubject, subjects.RegisterFilter,
		subjects.ApplyTemplateFilter, subjects.ApplyGroupFilter, subjects.OverrideFilter,
		subjects.TenantOverrideFilter, subjects.RemoveFilter,
		subjects.APIAll, subjects.AllProgress, subjects.AllTokens, subjects.AllStreams)
	g.hearBeats() // to say why nobody takes a step
}

// observe is reading what there is of all runs, and publishing nothing that is stored.
func (g *Grant) observe(s Spec) {
	read := append(bound(s.Shards, subjects.LedgerStream), subjects.BucketStream(subjects.HistoryBucket),
		subjects.BucketStream(subjects.DeadBucket), subjects.BucketStream(subjects.ToolsBucket),
		subjects.BucketStream(subjects.MembersBucket), subjects.BucketStream(subjects.QuestionsBucket))
	for _, stream := range read {
		g.request(One, subjects.StreamRequest("INFO", stream), subjects.StreamRequest("MSG.GET", stream))
		for _, verb := range []string{"INFO", "CREATE", "DELETE"} {
			g.request(One, subjects.ConsumerRequest(verb, stream, ">"))
		}
		g.listen(subjects.LeaderElected(stream))
	}
	for _, bucket := range s.allBuckets() {
		g.request(Many, subjects.DirectRead(subjects.BlobsStream(bucket)))
	}
	g.request(None, subjects.FlowControl)
	g.request(Many, subjects.DemandSubject, subjects.WaitingSubject)
	g.request(One, subjects.UserInfo, subjects.QueuesSubject, subjects.TenantAPIFilter("*", subjects.VerbGet),
		subjects.TenantAPIFilter("*", subjects.VerbHead))
	g.listen(subjects.AllEvents, subjects.AllNotices)
	g.hearBeats()
}

// buckets are those that orchestrators set up.
var buckets = []string{subjects.HistoryBucket, subjects.DeadBucket, subjects.ToolsBucket, subjects.MembersBucket,
	subjects.GatherBucket, subjects.QuestionsBucket, subjects.RatesBucket, subjects.GroupsBucket}

// streams returns all streams of Stepjet.
func streams(s Spec) []string {
	all := append(bound(s.Shards, subjects.LedgerStream), bound(s.ToolShards, subjects.StepsStream)...)
	for _, bucket := range buckets {
		all = append(all, subjects.BucketStream(bucket))
	}
	for _, bucket := range s.allBuckets() {
		all = append(all, subjects.BlobsStream(bucket))
	}
	return all
}

// allBuckets returns those of all declared tenants, and the one of all others.
func (s Spec) allBuckets() []string {
	s.Shared = true
	return s.buckets()
}
