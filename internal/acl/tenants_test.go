package acl_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
)

// bucketOf returns every request by which a bucket of large values is looked at, read or written; "" is the one that is
// shared.
func bucketOf(bucket string) []string {
	stream := subjects.BlobsStream(bucket)
	all := []string{
		subjects.DirectRead(stream), subjects.DirectGet(stream, subjects.BlobMetaOf(bucket, "other/r/1/a/1/x")), subjects.DirectGet(stream, subjects.BlobChunksOf(bucket, "x")),
		subjects.DirectGet(stream, ">"), subjects.BlobChunksOf(bucket, "x"), subjects.BlobMetaOf(bucket, "x"),
		subjects.ConsumersRequest("CREATE", stream), subjects.ConsumersRequest("NAMES", stream), subjects.ConsumersRequest("LIST", stream),
		subjects.ConsumerRequest("CREATE", stream, "x"), subjects.ConsumerRequest("DURABLE.CREATE", stream, "x"), subjects.ConsumerRequest("MSG.NEXT", stream, "x"),
	}
	for _, verb := range []string{"INFO", "MSG.GET", "MSG.DELETE", "CREATE", "UPDATE", "DELETE", "PURGE", "SNAPSHOT"} {
		all = append(all, subjects.StreamRequest(verb, stream))
	}
	return all
}

// TestABucketIsClosedToAllButItsOwnTenant: another tenant's, and the one that all tenants share which have none.
func TestABucketIsClosedToAllButItsOwnTenant(t *testing.T) {
	t.Parallel()
	inEach(t, map[string]shape{"accounts": {declared: true}, "one account": {oneAccount: true, declared: true}}, func(t *testing.T, s *system) {
		s.orchestrate(1)
		s.host("worker-crm_2Fget-fetch", "crm/get", "fetch")
		theirs := s.client("agent-other", "other")
		o, err := theirs.Run(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"fetch","arguments":{"size":700000}}]}`), client.SubmitOptions{Run: "r"})
		require.NoError(t, err)
		require.Equal(t, outcome.Succeeded, o.Status, "%.500s", o.JSON())
		for _, user := range []string{"agent-acme", "viewer-acme", "approver-acme", "operator-acme", "operator", "worker-search"} {
			store, err := kv.Open(s.ctx(), s.trespass(user))
			require.NoError(t, err)
			for _, subject := range append(bucketOf("blobs-other"), bucketOf("")...) {
				if user == "worker-search" && strings.Contains(subject, ".MSG.NEXT.") { // of a consumer that is called as its tool: there is none
					continue
				}
				s.refuses(store, user, subject)
			}
			_, err = store.Archive.Blob(s.ctx(), &outcome.Handle{Name: "other/r/1/a/1/x", Size: 1, NUID: "x", Chunks: 1, Bucket: "blobs-other"})
			require.Equal(t, fault.Permission, fault.CodeOf(err), "%v", err)
			_, err = store.Archive.Tenants(s.ctx())
			require.Equal(t, fault.Permission, fault.CodeOf(err), "the names of tenants: %v", err)
			s.stockIsRefused(user, store.Conn(), "blobs-other")
			s.stockIsRefused(user, store.Conn(), subjects.BlobsBucket)
			store.Close()
		}
		require.Zero(t, s.holdsBlobs(""), "nothing lies where it is not closed")
		require.NotZero(t, s.holdsBlobs("blobs-other"))
	})
}

// stockIsRefused tries a client library's object store. It isn't told of a refusal, and waits for its answer until its
// time is over.
func (s *system) stockIsRefused(user string, nc *nats.Conn, bucket string) {
	s.t.Helper()
	js, err := nc.JetStream(nats.MaxWait(100 * time.Millisecond))
	require.NoError(s.t, err)
	_, err = js.ObjectStore(bucket)
	require.Error(s.t, err, "%s opens %s", user, bucket)
}

// holdsBlobs counts the messages of a bucket.
func (s *system) holdsBlobs(bucket string) uint64 {
	s.t.Helper()
	m, err := s.connect("doctor").Request(subjects.StreamRequest("INFO", subjects.BlobsStream(bucket)), nil, time.Minute)
	require.NoError(s.t, err)
	var info struct {
		State struct {
			Messages uint64 `json:"messages"`
		} `json:"state"`
	}
	require.NoError(s.t, json.Unmarshal(m.Data, &info))
	return info.State.Messages
}

// TestAStockClientReadsALargeOutcome with bare nats.go, as docs/protocol.md says, step by step; with a bucket of its
// own and without.
func TestAStockClientReadsALargeOutcome(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]shape{
		"accounts": {}, "accounts, declared": {declared: true}, "one account, declared": {oneAccount: true, declared: true}, "three servers, declared": {cluster: true, declared: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t, of)
			s.orchestrate(1)
			s.host("worker-crm_2Fget-fetch", "crm/get", "fetch")
			o, err := s.client("agent-acme", "acme").Run(s.ctx(), []byte(`{"steps":[{"id":"a","tool":"fetch","arguments":{"size":1000000}}]}`), client.SubmitOptions{Run: "large"})
			require.NoError(t, err)
			require.Equal(t, outcome.Succeeded, o.Status, "%.500s", o.JSON())
			for _, user := range []string{"agent-acme", "viewer-acme", "approver-acme"} {
				var doc struct {
					Outcome struct {
						Results map[string]struct{ Text string }
					}
				}
				require.NoError(t, json.Unmarshal(s.readsByDirectGets(s.connect(user), "acme.large"), &doc), user)
				require.Len(t, doc.Outcome.Results["a"].Text, 1000000, user)
			}
			s.opensTheStore(of.declared)
		})
	}
}

// readsByDirectGets is written from docs/protocol.md alone.
func (s *system) readsByDirectGets(nc *nats.Conn, key string) []byte {
	t := s.t
	t.Helper()
	m, err := nc.Request("$JS.API.DIRECT.GET.KV_history.$KV.history."+key, nil, time.Minute) // 1.
	require.NoError(t, err)
	require.Empty(t, m.Header.Get("Status"))
	var head struct {
		Blob struct {
			Bucket, NUID, SHA256 string
			Size, Chunks         int
		}
	}
	require.NoError(t, json.Unmarshal(m.Data, &head)) // 2.
	bucket := head.Blob.Bucket
	if bucket == "" {
		bucket = "blobs"
	}
	inbox := nc.NewInbox()
	answers, err := nc.SubscribeSync(inbox)
	require.NoError(t, err)
	var doc []byte
	for seq, left := "1", head.Blob.Chunks; left > 0; { // 3.
		ask := fmt.Sprintf(`{"seq":%s,"next_by_subj":"$O.%s.C.%s","batch":%d}`, seq, bucket, head.Blob.NUID, left)
		require.NoError(t, nc.PublishRequest("$JS.API.DIRECT.GET.OBJ_"+bucket, inbox, []byte(ask)))
		for {
			m, err := answers.NextMsg(time.Minute)
			require.NoError(t, err)
			if status := m.Header.Get("Status"); status != "" {
				require.Contains(t, []string{"204", "404"}, status) // 404: a replica lags behind
				break
			}
			var last uint64
			_, err = fmt.Sscan(m.Header.Get("Nats-Sequence"), &last)
			require.NoError(t, err)
			seq = fmt.Sprint(last + 1)
			doc, left = append(doc, m.Data...), left-1
		}
	}
	require.Len(t, doc, head.Blob.Size) // 4.
	sum := sha256.Sum256(doc)
	require.Equal(t, head.Blob.SHA256, hex.EncodeToString(sum[:]))
	return doc
}

// opensTheStore has a client library open the tenant's bucket and look an object up, which needs no consumer. Reading
// one does.
func (s *system) opensTheStore(declared bool) {
	t := s.t
	t.Helper()
	bucket := subjects.BlobsBucket
	if declared {
		bucket = subjects.BlobsOf("acme")
	}
	doc, err := s.client("agent-acme", "acme").Get(s.ctx(), "large")
	require.NoError(t, err)
	require.Len(t, doc.Steps, 1)
	head, err := kv.Open(s.ctx(), s.connect("agent-acme"))
	require.NoError(t, err)
	defer head.Close()
	run, err := head.Archive.HistoryHead(s.ctx(), subjects.NewRun("acme", "large"))
	require.NoError(t, err)
	nc := s.trespass("viewer-acme")
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	objects, err := js.ObjectStore(s.ctx(), bucket)
	require.NoError(t, err)
	info, err := objects.GetInfo(s.ctx(), run.Blob.Name)
	require.NoError(t, err)
	require.EqualValues(t, run.Blob.Size, info.Size)
	require.Equal(t, bucket, info.Bucket)
	old, err := nc.JetStream(nats.MaxWait(100 * time.Millisecond))
	require.NoError(t, err)
	same, err := old.ObjectStore(bucket)
	if err == nil { // on a busy machine not even this may have been answered in time
		_, err = same.GetBytes(run.Blob.Name)
	}
	require.Error(t, err, "a consumer is made by nobody but orchestrators")
}

// TestAWorkerThatIsClosedToATenantsBucketSaysWhatToDo: its step fails, once, instead of waiting for ever.
func TestAWorkerThatIsClosedToATenantsBucketSaysWhatToDo(t *testing.T) {
	t.Parallel()
	s := start(t, shape{declared: true})
	s.orchestrate(1)
	w := s.trespass("worker-search") // it serves acme alone
	s.hosts(w, "search")
	s.host("worker-crm_2Fget-fetch", "crm/get", "fetch")
	c := s.client("agent-other", "other")
	o, err := c.Run(s.ctx(), []byte(`{"steps":[{"id":"small","tool":"search"},{"id":"a","tool":"search","arguments":{"size":700000}}]}`), client.SubmitOptions{Run: "result"})
	require.NoError(t, err)
	require.Equal(t, outcome.Partial, o.Status, "%.2000s", o.JSON())
	closed(t, o, "may not write into the bucket blobs-other")
	o, err = c.Run(s.ctx(), []byte(`{"steps":[{"id":"big","tool":"fetch","arguments":{"size":700000}},{"id":"a","tool":"search","arguments":{"text":"$ref:big.text"}}]}`),
		client.SubmitOptions{Run: "arguments"})
	require.NoError(t, err)
	closed(t, o, "kept apart for their size, can't be read")
}

func closed(t *testing.T, o *outcome.Outcome, says string) {
	t.Helper()
	require.Len(t, o.Errors, 1, "%.2000s", o.JSON())
	require.Equal(t, fault.ToolTerminal, o.Errors[0].Code)
	require.Contains(t, o.Errors[0].Message, says)
	require.Contains(t, o.Errors[0].Hint, "--declared other")
}

// TestATenantIsDeclaredOnlyByWhoMayMakeItsBucket: without the new permissions the command says which ones to print.
func TestATenantIsDeclaredOnlyByWhoMayMakeItsBucket(t *testing.T) {
	t.Parallel()
	s := start(t, shape{declared: true})
	s.orchestrate(1)
	for user, tenant := range map[string]string{"doctor": "third", "operator": "acme2"} {
		said, code := s.types(user, "", "tenant add "+tenant)
		require.NotZero(t, code, said)
		require.Contains(t, said, "permission")
		require.Contains(t, said, "--declared "+tenant)
	}
	said, code := s.types("doctor", "", "tenant list")
	require.Zero(t, code, said)
	require.Regexp(t, `(?s)acme +blobs-acme .*other +blobs-other `, said)
	said, code = s.types("doctor", "", "doctor")
	require.Zero(t, code, said)
	require.Contains(t, said, "2 tenants with a bucket of its own")
	said, code = s.types("doctor", "", "tenant remove other")
	require.Zero(t, code, said)
	said, code = s.types("doctor", "", "tenant list -o json")
	require.Zero(t, code, said)
	require.NotContains(t, said, "other")
}
