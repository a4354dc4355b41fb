package subjects_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/quick"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/subjects"
)

func TestEncodeIsOneSafeTokenAndReversible(t *testing.T) {
	t.Parallel()
	check := func(s string) bool {
		if s == "" {
			return true
		}
		token := subjects.Encode(s)
		back, ok := subjects.Decode(token)
		return ok && back == s && !strings.ContainsAny(token, ".*> \t\r\n")
	}
	require.NoError(t, quick.Check(check, &quick.Config{MaxCount: 20_000}))
	require.Equal(t, "order=2342", subjects.Encode("order#42"))
	require.Equal(t, "a=2Eb=2A=3E=0D=0A", subjects.Encode("a.b*>\r\n"))
}

func TestDecodeTakesOnlyTheCanonicalForm(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "a.b", "=", "=2", "=2e", "=41", "a=", "=GG", "é", "a b", "=5F"} {
		_, ok := subjects.Decode(bad)
		require.False(t, ok, "%q", bad)
	}
}

// FuzzDecode: whatever decodes encodes to the very same token.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{"order-42", "=2E", "a=20b", "=41", "", "=", "===", "=FF=00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if s, ok := subjects.Decode(token); ok {
			require.Equal(t, token, subjects.Encode(s))
		}
	})
}

func attempt() subjects.Attempt {
	return subjects.Attempt{Run: subjects.NewRun("acme", "order #42"), Generation: 17, Tool: "crm/get.user", Step: "fetch-1", Number: 3}
}

func TestEveryNameParsesBack(t *testing.T) {
	t.Parallel()
	a := attempt()
	for _, shards := range []int{1, 8} {
		rec, ok := subjects.ParseRecord(subjects.PlanRecord(a.Run, shards))
		require.True(t, ok)
		require.Equal(t, subjects.Record{Kind: subjects.PlanKind, Run: a.Run}, rec)
		for subject, kind := range map[string]subjects.RecordKind{
			subjects.StartRecord(a.Run, 17, shards): subjects.StartKind, subjects.StopRecord(a.Run, 17, shards): subjects.StopKind,
			subjects.StepRecord(a, shards): subjects.StepKind, subjects.ClaimRecord(a, shards): subjects.ClaimKind,
			subjects.NoteRecord(a, shards): subjects.NoteKind,
		} {
			rec, ok := subjects.ParseRecord(subject)
			require.True(t, ok, subject)
			require.Equal(t, kind, rec.Kind, subject)
			require.Equal(t, uint64(17), rec.Generation)
			if kind >= subjects.StepKind {
				require.Equal(t, a, rec.Attempt)
			}
		}
	}
	for _, subject := range []string{subjects.Step(a, 2), subjects.Scheduled(a, 2)} {
		back, shard, ok := subjects.ParseStep(subject)
		require.True(t, ok, subject)
		require.Equal(t, a, back)
		require.Equal(t, 2, shard)
	}
	said, ok := subjects.ParseProgress(subjects.Progress(a))
	require.True(t, ok)
	require.Equal(t, a, said)
	_, ok = subjects.ParseProgress(subjects.Cancel(a))
	require.False(t, ok)
	back, ok := subjects.ParseCancel(subjects.Cancel(a))
	require.True(t, ok)
	require.Equal(t, a, back)

	run, kind, ok := subjects.ParseEvent(subjects.Event(a.Run, subjects.EventEnd))
	require.True(t, ok)
	require.Equal(t, a.Run, run)
	require.Equal(t, subjects.EventEnd, kind)
	run, ok = subjects.ParseNotify(subjects.Notify(a.Run, "c1"))
	require.True(t, ok)
	require.Equal(t, a.Run, run)
	run, verb, ok := subjects.ParseAPI(subjects.API(a.Run, subjects.VerbCancel))
	require.True(t, ok)
	require.Equal(t, a.Run, run)
	require.Equal(t, subjects.VerbCancel, verb)
	run, ok = subjects.ParseSubmit(subjects.Submit(a.Tenant, a.ID))
	require.True(t, ok)
	require.Equal(t, a.Run, run)
	run, ok = subjects.ParseHistoryKey(a.Run.Key())
	require.True(t, ok)
	require.Equal(t, a.Run, run)
	require.Equal(t, "order #42", run.Plain())
}

func TestWhatIsNotOursDoesNotParse(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "plan", "$KV.tools.x", "$KV.runs_0", "$KV.runs_0.1.t.r", "$KV.history.t.r"} {
		_, ok := subjects.ParseRecord(s)
		require.False(t, ok, s)
	}
	place := "$KV.runs_0." + strconv.Itoa(subjects.Partition("r")) + ".t.r."
	for s, kind := range map[string]subjects.RecordKind{
		"x": subjects.UnknownRecord, "5.later": subjects.UnknownRecord, "5.later.step.a.b.1": subjects.UnknownRecord, "07.start": subjects.UnknownRecord,
		"5.step": subjects.StrayRecord, "5.step.a.b.0": subjects.StrayRecord, "5.step.a.b.1.other": subjects.StrayRecord, "5.step.=41.b.1": subjects.StrayRecord,
		"5.step.a.b.01": subjects.StrayRecord, "5.step.a.b.+1": subjects.StrayRecord, "5.step.a.b.99999999999999999999": subjects.StrayRecord,
		"5.step.a.b.1.claim.x": subjects.StrayRecord, "5.step.a.b.1.claim": subjects.ClaimKind, "5.step.a.b.1.note": subjects.NoteKind, "5.step.a.b.1": subjects.StepKind,
	} {
		rec, ok := subjects.ParseRecord(place + s)
		require.True(t, ok, s)
		require.Equal(t, kind, rec.Kind, s)
	}
	for _, s := range []string{
		place + "05.step.a.b.1", place + "0.step.a.b.1", place + "x.step.a.b.1", place + "+5.step.a.b.1", place + "99999999999999999999.step.a.b.1",
		place + "5.step.a.*.1", place + "5.step.a.b.>", place + "5.step.a..1", place + "5.step.a.b.", "$KV.runs_0.64.t.r.5.step.a.b.1", "$KV.runs_0.x.t.r.5.start", "$KV.runs_0.0" + strings.TrimPrefix(place, "$KV.runs_0.") + "plan",
		"$KV.runs_0." + strconv.Itoa((subjects.Partition("r")+1)%subjects.Partitions) + ".t.r.5.step.a.b.1",
	} {
		rec, ok := subjects.ParseRecord(s)
		require.False(t, ok, s)
		require.Equal(t, subjects.MisplacedRecord, rec.Kind, s)
	}
	_, _, ok := subjects.ParseAPI("api.63.get.t.order-42") // another run's partition
	require.Equal(t, subjects.Partition("order-42") == 63, ok)
	for _, s := range []string{"step.0.t.1.a.b.c.d.e", "step.x.t.1.a.b.3.d.1", "other.0.t.1.a.b.3.d.1", "step.0.t.1.a.b.3.d"} {
		_, _, ok := subjects.ParseStep(s)
		require.False(t, ok, s)
	}
}

func TestDurableNamesFitTheServer(t *testing.T) {
	t.Parallel()
	require.Equal(t, "get_weather", subjects.Durable("get_weather"))
	require.Equal(t, "crm=2Fget", subjects.Durable("crm/get"))
	long := strings.Repeat("/", subjects.MaxToolName)
	require.LessOrEqual(t, len(subjects.Durable(long)), 200)
	require.NotEqual(t, subjects.Durable(long), subjects.Durable(long[1:]))
	require.NotContains(t, subjects.Durable(long), ".")
}

func TestGrammars(t *testing.T) {
	t.Parallel()
	require.True(t, subjects.ValidTool("crm/v2:get.user-x_1"))
	require.False(t, subjects.ValidTool("get weather"))
	require.False(t, subjects.ValidTool(strings.Repeat("a", 129)))
	require.True(t, subjects.ValidStepID(strings.Repeat("a", 64)))
	require.False(t, subjects.ValidStepID("a=1"))
	require.True(t, subjects.ValidRun(strings.Repeat("é", 64)))
	require.False(t, subjects.ValidRun(strings.Repeat("é", 65)))
	require.False(t, subjects.NewRun("a.b", "x").Valid())
	require.False(t, subjects.Run{Tenant: "a", ID: "=41"}.Valid())
	require.True(t, subjects.NewRun("a", "any thing").Valid())
}

func TestPartName(t *testing.T) {
	t.Parallel()
	r := subjects.Run{Tenant: "acme", ID: "order-1"}
	require.Equal(t, "acme/order-1/77/=part.research.0", subjects.PartName(r, 77, "research", 0))
	require.Equal(t, "acme/order-1/77/=part.a.=3.b.12", subjects.PartName(r, 77, "a/=3/b", 12), "nothing behind T/R/G has a slash")
}
