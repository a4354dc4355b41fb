package subjects

import (
	"encoding/base64"
	"strings"
)

// What a program may publish and subscribe to is decided by the NATS server, by subjects. The filters here are those
// that a role needs beyond what other files of this package build for one run, tool or step.

// InboxPrefix returns the prefix of the inboxes of one user, so that no other user hears the answers to its requests.
func InboxPrefix(user string) string { return inboxes + Encode(user) }

const (
	inboxes = "_INBOX."
	// Inboxes matches the inboxes of all users.
	Inboxes = inboxes + ">"
	// ImportedReplies matches the subjects that the server gives requests from another account to be answered on. No
	// client can publish a request that names one.
	ImportedReplies = "_R_.>"
	// HeaderRequestInfo is where a server says who made a request that came through an import: the account, and the
	// user where the import shares it.
	HeaderRequestInfo = "Nats-Request-Info"
	// UserInfo is where a server tells a user its own permissions.
	UserInfo = "$SYS.REQ.USER.INFO"
)

// ReplyAllowed reports whether a request's reply subject is one that only somebody who waits for an answer listens to.
// Whoever answers publishes with its own rights on a subject that the asker chose; so it answers on no other.
func ReplyAllowed(subject string) bool { return len(subject) > 0 && subject[0] == '_' }

// TenantSubmitFilter matches the intake subjects of a tenant's plans, TenantIntakeFilter those that Go clients publish
// to where there is more than one ledger shard.
func TenantSubmitFilter(tenant string) string { return Submit(tenant, "*") }

// TenantIntakeFilter is described at TenantSubmitFilter.
func TenantIntakeFilter(tenant string) string { return "plan.in.*." + tenant + ".*" }

// TenantAPIFilter matches the requests about a tenant's runs with one verb.
func TenantAPIFilter(tenant, verb string) string { return "api.*." + verb + "." + tenant + ".*" }

// TenantEventFilter matches all events of a tenant's runs.
func TenantEventFilter(tenant string) string { return Event(Run{tenant, "*"}, "*") }

// TenantNotifyFilter matches all notices to clients of a tenant.
func TenantNotifyFilter(tenant string) string { return NotifyFilter(tenant, "*") }

// ToolRecordFilter matches the records that decide attempts of a tool, in one ledger shard; ToolClaimFilter their
// claims.
func ToolRecordFilter(tool string, shard int) string {
	return LedgerPrefix(shard) + "*.*.*.*.step." + Encode(tool) + ".*.*"
}

// ToolClaimFilter is described at ToolRecordFilter.
func ToolClaimFilter(tool string, shard int) string {
	return ToolRecordFilter(tool, shard) + "." + claim
}

// ToolNoteFilter matches what workers of a tool noted of its attempts, in one ledger shard.
func ToolNoteFilter(tool string, shard int) string { return ToolRecordFilter(tool, shard) + "." + note }

// BlobChunks and BlobMetas match what a bucket of large values holds.
func BlobChunks(bucket string) string { return blobs(bucket) + ".C.>" }

// BlobMetas is described at BlobChunks.
func BlobMetas(bucket string) string { return blobs(bucket) + ".M.*" }

// BlobChunksOf matches the chunks of the blob that an object's nuid names.
func BlobChunksOf(bucket, nuid string) string { return blobs(bucket) + ".C." + nuid }

// BlobMetaOf returns the subject of what the object store says of a name.
func BlobMetaOf(bucket, name string) string {
	return blobs(bucket) + ".M." + base64.URLEncoding.EncodeToString([]byte(name))
}

// ValidObject reports whether a word names the chunks of an object, so that it matches those of no other.
func ValidObject(nuid string) bool { return word(nuid, 64) }

// Everything that only an orchestrator publishes or listens to.
const (
	AllEvents  = "event.>"
	AllNotices = "notify.>"
	AllCancels = "cancel.>"
	// AllProgress is what workers say of how far their steps are.
	AllProgress = "progress.>"
	// AllStreams is what planners hand over of their answers before these are whole.
	AllStreams = "stream.>"
	// AllTokens is what workers tell of what their handlers are writing.
	AllTokens = "token.>"
)

// The requests of JetStream's API. stream and consumer may be "*" in permissions.
const jetStreamAPI = "$JS.API."

// StreamRequest returns the subject of a request about a stream: INFO, CREATE, UPDATE, PURGE, MSG.GET.
func StreamRequest(verb, stream string) string { return jetStreamAPI + "STREAM." + verb + "." + stream }

// Abroad returns the name under which an account reaches a request to the JetStream API of the orchestrators' account,
// and false where it is the same name. For the server makes every account import the API for itself, and where two
// imports have one name both are answered; of this the requests that messages come back for are excepted.
func Abroad(request string) (local string, ok bool) {
	for _, kind := range []string{"STREAM.", "CONSUMER.INFO."} {
		if rest, ok := strings.CutPrefix(request, jetStreamAPI+kind); ok {
			return "STEPJET." + kind + rest, true
		}
	}
	return "", false
}

// ConsumerRequest returns the subject of a request about a consumer, or several where consumer is ">" or "*": INFO,
// DELETE, MSG.NEXT, CREATE, DURABLE.CREATE.
func ConsumerRequest(verb, stream, consumer string) string {
	return jetStreamAPI + "CONSUMER." + verb + "." + stream + "." + consumer
}

// ConsumersRequest returns the subject of a request about all consumers of a stream: NAMES, LIST.
func ConsumersRequest(verb, stream string) string {
	return jetStreamAPI + "CONSUMER." + verb + "." + stream
}

// AccountRequest asks what JetStream holds for the account, StreamNames for the names of its streams.
const (
	AccountRequest = jetStreamAPI + "INFO"
	StreamNames    = jetStreamAPI + "STREAM.NAMES"
)

// DirectGet returns the subject of a request for the last message on a subject, which may be a filter. Unlike the other
// requests that read, it names what is read, so that permissions can tell.
func DirectGet(stream, subject string) string {
	return jetStreamAPI + "DIRECT.GET." + stream + "." + subject
}

// DirectRead returns the subject of a request for messages of a whole stream that the request's body describes.
func DirectRead(stream string) string { return jetStreamAPI + "DIRECT.GET." + stream }

// ToolAcks returns what matches the acknowledgements and heartbeats of a tool's steps. The server has two forms of
// these subjects, of different lengths: with domain and account, and without.
func ToolAcks(tool string) []string {
	rest := "." + Durable(tool) + ".*.*.*.*.*"
	return []string{"$JS.ACK.*" + rest, "$JS.ACK.*.*.*" + rest}
}

// FlowControl matches the answers to JetStream's flow control.
const FlowControl = "$JS.FC.>"

// LeaderElected returns where a cluster tells that a stream has another leader.
func LeaderElected(stream string) string { return "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED." + stream }
