package manifest_test

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/stepjet/stepjet/client"
	"github.com/stepjet/stepjet/internal/doctor"
	"github.com/stepjet/stepjet/internal/lab/manifest"
	"github.com/stepjet/stepjet/internal/lab/natstest"
	"github.com/stepjet/stepjet/kv"
	"github.com/stepjet/stepjet/orchestrator"
	"github.com/stepjet/stepjet/outcome"
	"github.com/stepjet/stepjet/subjects"
	"github.com/stepjet/stepjet/worker"
)

var update = flag.Bool("update", false, "write the objects of deploy/nack anew")

const (
	objectsFile     = "../../../deploy/nack/stepjet.yaml"
	definitionsFile = "../../../deploy/nack/definitions.yaml"
)

// declared is an object of NACK's. Its fields are those that Stepjet's streams need.
type declared struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name string `yaml:"name"`
	} `yaml:"metadata"`
	Spec spec `yaml:"spec"`
}

type spec struct {
	Name                   string            `yaml:"name,omitempty"`
	StreamName             string            `yaml:"streamName,omitempty"`
	DurableName            string            `yaml:"durableName,omitempty"`
	Description            string            `yaml:"description"`
	Subjects               []string          `yaml:"subjects,omitempty"`
	SubjectTransform       *transform        `yaml:"subjectTransform,omitempty"`
	Retention              string            `yaml:"retention,omitempty"`
	Storage                string            `yaml:"storage,omitempty"`
	Replicas               int               `yaml:"replicas,omitempty"`
	Discard                string            `yaml:"discard,omitempty"`
	DiscardPerSubject      bool              `yaml:"discardPerSubject,omitempty"`
	MaxMsgsPerSubject      int64             `yaml:"maxMsgsPerSubject,omitempty"`
	MaxMsgSize             int32             `yaml:"maxMsgSize,omitempty"`
	MaxAge                 string            `yaml:"maxAge,omitempty"`
	DuplicateWindow        string            `yaml:"duplicateWindow,omitempty"`
	AllowDirect            bool              `yaml:"allowDirect,omitempty"`
	DenyDelete             bool              `yaml:"denyDelete,omitempty"`
	AllowRollup            bool              `yaml:"allowRollup,omitempty"`
	AllowMsgTTL            bool              `yaml:"allowMsgTtl,omitempty"`
	AllowMsgSchedules      bool              `yaml:"allowMsgSchedules,omitempty"`
	SubjectDeleteMarkerTTL string            `yaml:"subjectDeleteMarkerTtl,omitempty"`
	Metadata               map[string]string `yaml:"metadata,omitempty"`
	AckPolicy              string            `yaml:"ackPolicy,omitempty"`
	AckWait                string            `yaml:"ackWait,omitempty"`
	DeliverPolicy          string            `yaml:"deliverPolicy,omitempty"`
	ReplayPolicy           string            `yaml:"replayPolicy,omitempty"`
	MaxDeliver             int               `yaml:"maxDeliver,omitempty"`
	MaxAckPending          int               `yaml:"maxAckPending,omitempty"`
	MaxWaiting             int               `yaml:"maxWaiting,omitempty"`
	FilterSubjects         []string          `yaml:"filterSubjects,omitempty"`
	PreventDelete          bool              `yaml:"preventDelete"`
}

type transform struct {
	Source string `yaml:"source"`
	Dest   string `yaml:"dest"`
}

var (
	retentions = map[jetstream.RetentionPolicy]string{jetstream.LimitsPolicy: "limits", jetstream.WorkQueuePolicy: "workqueue"}
	storages   = map[jetstream.StorageType]string{jetstream.FileStorage: "file", jetstream.MemoryStorage: "memory"}
	discards   = map[jetstream.DiscardPolicy]string{jetstream.DiscardOld: "old", jetstream.DiscardNew: "new"}
)

func keyOf[K comparable](of map[K]string, value string) (k K) {
	for key, v := range of {
		if v == value {
			return key
		}
	}
	return k
}

func span(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// streamObject declares a stream with the settings that it has.
func streamObject(c jetstream.StreamConfig) declared {
	o := declared{APIVersion: "jetstream.nats.io/v1beta2", Kind: "Stream"}
	o.Metadata.Name = objectName(c.Name)
	o.Spec = spec{
		Name: c.Name, Description: c.Description, Subjects: c.Subjects, Retention: retentions[c.Retention], Storage: storages[c.Storage],
		Replicas: c.Replicas, Discard: discards[c.Discard], DiscardPerSubject: c.DiscardNewPerSubject, MaxMsgsPerSubject: max(0, c.MaxMsgsPerSubject),
		MaxMsgSize: max(0, c.MaxMsgSize), MaxAge: span(c.MaxAge), DuplicateWindow: span(c.Duplicates), AllowDirect: c.AllowDirect, DenyDelete: c.DenyDelete,
		AllowRollup: c.AllowRollup, AllowMsgTTL: c.AllowMsgTTL, AllowMsgSchedules: c.AllowMsgSchedules,
		SubjectDeleteMarkerTTL: span(c.SubjectDeleteMarkerTTL), PreventDelete: true,
	}
	if t := c.SubjectTransform; t != nil {
		o.Spec.SubjectTransform = &transform{t.Source, t.Destination}
	}
	for key, value := range c.Metadata {
		if !strings.HasPrefix(key, "_nats.") { // the server's own
			if o.Spec.Metadata == nil {
				o.Spec.Metadata = map[string]string{}
			}
			o.Spec.Metadata[key] = value
		}
	}
	return o
}

// stream returns the settings that the controller makes a stream with.
func (o declared) stream(t *testing.T) jetstream.StreamConfig {
	t.Helper()
	s := o.Spec
	c := jetstream.StreamConfig{
		Name: s.Name, Description: s.Description, Subjects: s.Subjects, Retention: keyOf(retentions, s.Retention), Storage: keyOf(storages, s.Storage),
		Replicas: s.Replicas, Discard: keyOf(discards, s.Discard), DiscardNewPerSubject: s.DiscardPerSubject, MaxMsgsPerSubject: s.MaxMsgsPerSubject,
		MaxMsgSize: cmp.Or(s.MaxMsgSize, -1), MaxBytes: -1, MaxMsgs: -1, MaxConsumers: -1, MaxAge: parsed(t, s.MaxAge), Duplicates: parsed(t, s.DuplicateWindow),
		AllowDirect: s.AllowDirect, DenyDelete: s.DenyDelete, AllowRollup: s.AllowRollup, AllowMsgTTL: s.AllowMsgTTL, AllowMsgSchedules: s.AllowMsgSchedules,
		SubjectDeleteMarkerTTL: parsed(t, s.SubjectDeleteMarkerTTL), Metadata: s.Metadata,
	}
	if s.SubjectTransform != nil {
		c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: s.SubjectTransform.Source, Destination: s.SubjectTransform.Dest}
	}
	return c
}

func parsed(t *testing.T, text string) time.Duration {
	t.Helper()
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	require.NoError(t, err)
	return d
}

// keeperObject declares the one consumer that is no tool's.
func keeperObject(c jetstream.ConsumerConfig) declared {
	o := declared{APIVersion: "jetstream.nats.io/v1beta2", Kind: "Consumer"}
	o.Metadata.Name = objectName(subjects.StepsStream(0) + "-" + c.Durable)
	o.Spec = spec{
		StreamName: subjects.StepsStream(0), DurableName: c.Durable, Description: c.Description, AckPolicy: "explicit", AckWait: span(c.AckWait),
		DeliverPolicy: "all", ReplayPolicy: "instant", MaxDeliver: c.MaxDeliver, MaxAckPending: c.MaxAckPending, MaxWaiting: c.MaxWaiting,
		FilterSubjects: c.FilterSubjects, PreventDelete: true,
	}
	return o
}

// objectName is what Kubernetes takes for a name.
func objectName(name string) string {
	return "stepjet-" + strings.NewReplacer("kv-", "", "obj-", "").Replace(strings.ReplaceAll(strings.ToLower(name), "_", "-"))
}

const head = `# Stepjet's streams, for the controller NACK, with three copies. deploy/README.md says what it may not own. Written by
# "go test ./internal/lab/manifest -run NACK -update" out of what orchestrators make; a test makes the streams of it.
`

// TestNACKIsToldWhatOrchestratorsMake: the objects have all streams as Stepjet makes them, and are as their definitions say.
func TestNACKIsToldWhatOrchestratorsMake(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.StartCluster(t, 3)[0])
	s, err := kv.Setup(within(t), nc, kv.Config{Replicas: 3})
	require.NoError(t, err)
	t.Cleanup(s.Close)
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	var objects []declared
	list := js.ListStreams(within(t))
	for info := range list.Info() {
		objects = append(objects, streamObject(info.Config))
	}
	require.NoError(t, list.Err())
	keeper, err := js.Consumer(within(t), subjects.StepsStream(0), subjects.Keeper)
	require.NoError(t, err)
	objects = append(objects, keeperObject(keeper.CachedInfo().Config))
	slices.SortFunc(objects, func(a, b declared) int { return cmp.Compare(a.Metadata.Name, b.Metadata.Name) })
	text := bytes.NewBufferString(head)
	for _, o := range objects {
		raw, err := yaml.Marshal(o)
		require.NoError(t, err)
		fmt.Fprintf(text, "---\n%s", raw)
	}
	if *update {
		require.NoError(t, os.WriteFile(objectsFile, text.Bytes(), 0o600))
	}
	there := read(t, objectsFile)
	require.Equal(t, text.String(), string(there), "-update writes it anew")
	n, err := manifest.CheckAll(read(t, definitionsFile), there)
	require.NoError(t, err)
	require.Equal(t, len(objects), n)
	for _, change := range [][2]string{
		{"discardPerSubject:", "discardNewPerSubject:"}, {"storage: file", "storage: File"}, {"denyDelete: true", `denyDelete: "true"`}, {"preventDelete:", "preventDeletion:"},
		{"v1beta2", "v1beta1"}, {"kind: Consumer", "kind: Consumers"}, {"dest:", "destination:"}, {"durableName:", "durable:"},
	} {
		require.Contains(t, string(there), change[0])
		_, err := manifest.CheckAll(read(t, definitionsFile), []byte(strings.Replace(string(there), change[0], change[1], 1)))
		require.Error(t, err, "%v", change)
	}
}

// TestStreamsThatNACKMakesAreWell: with what is made of the objects nothing is wrong, and a plan runs.
func TestStreamsThatNACKMakesAreWell(t *testing.T) {
	t.Parallel()
	nc := natstest.Connect(t, natstest.StartCluster(t, 3)[0])
	js, err := jetstream.New(nc)
	require.NoError(t, err)
	for d := yaml.NewDecoder(bytes.NewReader(read(t, objectsFile))); ; {
		var o declared
		if d.Decode(&o) != nil {
			break
		}
		if o.Kind != "Stream" {
			continue
		}
		require.True(t, o.Spec.PreventDelete, "whoever removes the object would remove the runs")
		require.Eventually(t, func() bool {
			_, err := js.CreateStream(within(t), o.stream(t))
			return err == nil
		}, time.Minute, 100*time.Millisecond, o.Spec.Name)
	}
	r, err := doctor.Examine(within(t), nc, doctor.Options{Want: kv.Config{Replicas: 3}, SetUp: true})
	require.NoError(t, err)
	for _, f := range r.Problems() {
		require.NotEqual(t, "stream", f.Check, "%+v", f)
	}
	o, err := orchestrator.New(nc, orchestrator.Config{Store: kv.Config{Replicas: 3}})
	require.NoError(t, err)
	run(t, o)
	w, err := worker.New(nc, worker.Config{})
	require.NoError(t, err)
	worker.Handle(w, "echo", func(_ context.Context, in struct{ Text string }) (string, error) { return in.Text, nil })
	run(t, w)
	c, err := client.New(within(t), nc, client.Config{})
	require.NoError(t, err)
	t.Cleanup(c.Close)
	out, err := c.Run(within(t), []byte(`{"steps":[{"id":"a","tool":"echo","arguments":{"Text":"there"}}]}`), client.SubmitOptions{})
	require.NoError(t, err)
	require.Equal(t, outcome.Succeeded, out.Status, "%s", out.JSON())
}

func run(t *testing.T, p interface {
	Run(context.Context) error
	Ready() <-chan struct{}
}) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	select {
	case <-p.Ready():
	case <-within(t).Done():
		require.FailNow(t, "it never began")
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	raw, err := os.ReadFile(file)
	require.NoError(t, err)
	return raw
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}
