package tool_test

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/tool"
)

func contractOf(t *testing.T, raw string) tool.Contract {
	t.Helper()
	c, err := parse(t, raw).Contract()
	require.NoError(t, err)
	return c
}

func TestContractDefaults(t *testing.T) {
	t.Parallel()
	c := contractOf(t, `{"name":"a"}`)
	require.Equal(t, tool.Contract{
		Mode: tool.FanOutBounded, Limit: 64, MaxAttempts: 1, Timeout: 5 * time.Minute, ErrorPropagation: tool.FailFast,
		Backoff: tool.Backoff{Strategy: tool.Exponential, Initial: 250 * time.Millisecond, Max: 30 * time.Second},
	}, c)
}

func TestModeLimitAndAttempts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		raw      string
		mode     tool.Mode
		limit    int
		attempts int
	}{
		"nothing":                    {`{"name":"a"}`, tool.FanOutBounded, 64, 1},
		"read-only":                  {`{"name":"a","annotations":{"readOnlyHint":true}}`, tool.ParallelSafe, 4096, 3},
		"not read-only":              {`{"name":"a","annotations":{"readOnlyHint":false}}`, tool.FanOutBounded, 64, 1},
		"destructive":                {`{"name":"a","annotations":{"destructiveHint":true}}`, tool.SequentialOnly, 1, 1},
		"destructive, idempotent":    {`{"name":"a","annotations":{"destructiveHint":true,"idempotentHint":true}}`, tool.SequentialOnly, 1, 3},
		"read-only and destructive":  {`{"name":"a","annotations":{"readOnlyHint":true,"destructiveHint":true}}`, tool.ParallelSafe, 4096, 3},
		"idempotent":                 {`{"name":"a","annotations":{"idempotentHint":true}}`, tool.FanOutBounded, 64, 3},
		"parallel-safe":              {`{"name":"a","x-orchestration":{"mode":"parallel-safe"}}`, tool.ParallelSafe, 4096, 1},
		"parallel-safe with limit":   {`{"name":"a","x-orchestration":{"mode":"parallel-safe","max_concurrency":9}}`, tool.ParallelSafe, 9, 1},
		"sequential":                 {`{"name":"a","x-orchestration":{"mode":"sequential-only"}}`, tool.SequentialOnly, 1, 1},
		"sequential, limit 1":        {`{"name":"a","x-orchestration":{"mode":"sequential-only","max_concurrency":1}}`, tool.SequentialOnly, 1, 1},
		"mode goes before hint":      {`{"name":"a","annotations":{"readOnlyHint":true},"x-orchestration":{"mode":"sequential-only"}}`, tool.SequentialOnly, 1, 3},
		"bounded":                    {`{"name":"a","x-orchestration":{"mode":"fan-out-bounded"}}`, tool.FanOutBounded, 64, 1},
		"bounded by 5":               {`{"name":"a","x-orchestration":{"mode":"fan-out-bounded","max_concurrency":5}}`, tool.FanOutBounded, 5, 1},
		"limit alone":                {`{"name":"a","x-orchestration":{"max_concurrency":5}}`, tool.FanOutBounded, 5, 1},
		"limit with destructive":     {`{"name":"a","annotations":{"destructiveHint":true},"x-orchestration":{"max_concurrency":5}}`, tool.FanOutBounded, 5, 1},
		"dependent":                  {`{"name":"a","x-orchestration":{"mode":"dependent","depends_on":[{"tool":"b","required_fields":["id"]}]}}`, tool.Dependent, 64, 1},
		"dependent by depends_on":    {`{"name":"a","x-orchestration":{"depends_on":["b"],"max_concurrency":3}}`, tool.Dependent, 3, 1},
		"attempts":                   {`{"name":"a","x-orchestration":{"retry":{"max_attempts":20}}}`, tool.FanOutBounded, 64, 20},
		"attempts go before hint":    {`{"name":"a","annotations":{"readOnlyHint":true},"x-orchestration":{"retry":{"max_attempts":1}}}`, tool.ParallelSafe, 4096, 1},
		"at most once":               {`{"name":"a","annotations":{"idempotentHint":true},"x-orchestration":{"delivery":"at_most_once"}}`, tool.FanOutBounded, 64, 1},
		"at most once, said twice":   {`{"name":"a","x-orchestration":{"delivery":"at_most_once","retry":{"max_attempts":1}}}`, tool.FanOutBounded, 64, 1},
		"null fields":                {`{"name":"a","x-orchestration":{"mode":null,"retry":null,"max_concurrency":null}}`, tool.FanOutBounded, 64, 1},
		"unknown field is tolerated": {`{"name":"a","x-orchestration":{"cost":3,"owner":"me"}}`, tool.FanOutBounded, 64, 1},
		"whole number as float":      {`{"name":"a","x-orchestration":{"max_concurrency":5.0}}`, tool.FanOutBounded, 5, 1},
	} {
		t.Run(name, func(t *testing.T) {
			got := contractOf(t, c.raw)
			require.Equal(t, c.mode, got.Mode)
			require.Equal(t, c.limit, got.Limit)
			require.Equal(t, c.attempts, got.MaxAttempts)
		})
	}
}

func TestContractFields(t *testing.T) {
	t.Parallel()
	c := contractOf(t, `{"name":"a","inputSchema":{"type":"object","properties":{"items":{"type":"array"}}},
		"annotations":{"readOnlyHint":true},"x-orchestration":{
		"timeout_ms":30000,"delivery":"at_least_once","error_propagation":"partial-success",
		"batch":{"argument":"items","max_items":50},"depends_on":[{"tool":"s","required_fields":["id"]}],
		"backoff":{"strategy":"linear","initial_ms":300,"max_ms":900,"jitter":0.5}}}`)
	require.Equal(t, 30*time.Second, c.Timeout)
	require.Zero(t, c.WaitTimeout)
	require.False(t, c.AtMostOnce)
	require.Equal(t, tool.PartialSuccess, c.ErrorPropagation)
	require.Equal(t, &tool.Batch{Argument: "items", MaxItems: 50}, c.Batch)
	require.Equal(t, []tool.Dependency{{Tool: "s", RequiredFields: []string{"id"}}}, c.DependsOn)
	require.Equal(t, tool.Backoff{Strategy: "linear", Initial: 300 * time.Millisecond, Max: 900 * time.Millisecond, Jitter: 0.5}, c.Backoff)
	require.Equal(t, tool.PartialSuccess, contractOf(t, `{"name":"a","annotations":{"readOnlyHint":true}}`).ErrorPropagation)

	inRetry := contractOf(t, `{"name":"a","x-orchestration":{"retry":{"max_attempts":4,"backoff":{"strategy":"none"}}}}`)
	require.Equal(t, tool.None, inRetry.Backoff.Strategy)
	require.Equal(t, 4, inRetry.MaxAttempts)
}

func TestContractRoundTrip(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"name":"a"}`,
		`{"name":"a","x-orchestration":{"delivery":"at_most_once","timeout_ms":1}}`,
		`{"name":"a","x-orchestration":{"mode":"dependent","depends_on":[{"tool":"b","required_fields":["x","y"]}],
		  "batch":{"argument":"i","max_items":2,"max_wait_ms":7},"backoff":{"jitter":0.25,"max_ms":100},"wait_timeout_ms":1500}}`,
		`{"name":"a","x-orchestration":{"request":"whole"}}`,
		`{"name":"a","x-orchestration":{"note":true}}`,
		`{"name":"a","x-orchestration":{"part_content":true}}`,
		`{"name":"a","x-orchestration":{"asks":true}}`,
	} {
		c := contractOf(t, raw)
		c.Context = tool.ContextFilter{Filter: tool.AllowKeys, Keys: []string{"tenantId"}}
		b, err := json.Marshal(c)
		require.NoError(t, err)
		var again tool.Contract
		require.NoError(t, json.Unmarshal(b, &again))
		require.Equal(t, c, again)
	}
}

func TestContradictions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ x, says string }{
		"not an object":         {`"parallel-safe"`, "x-orchestration: must be an object"},
		"unknown mode":          {`{"mode":"parallel"}`, `mode: "parallel" is none of parallel-safe, sequential-only, fan-out-bounded and dependent`},
		"mode is a number":      {`{"mode":1}`, "mode: must be a string"},
		"sequential of five":    {`{"mode":"sequential-only","max_concurrency":5}`, "contradicts mode sequential-only"},
		"dependent on nothing":  {`{"mode":"dependent"}`, "dependent needs depends_on"},
		"depends on itself":     {`{"depends_on":[{"tool":"a"}]}`, "depend on itself"},
		"depends twice":         {`{"depends_on":["b",{"tool":"b"}]}`, "twice"},
		"depends on no name":    {`{"depends_on":[{"tool":"b c"}]}`, "no tool name"},
		"depends_on is a map":   {`{"depends_on":{"tool":"b"}}`, "must be an array"},
		"empty required field":  {`{"depends_on":[{"tool":"b","required_fields":[""]}]}`, "empty name"},
		"limit zero":            {`{"max_concurrency":0}`, "max_concurrency: must be a whole number from 1 to 65536"},
		"limit negative":        {`{"max_concurrency":-1}`, "max_concurrency: must be"},
		"limit huge":            {`{"max_concurrency":1e9}`, "max_concurrency: must be"},
		"limit broken":          {`{"max_concurrency":1.5}`, "max_concurrency: must be"},
		"limit string":          {`{"max_concurrency":"5"}`, "max_concurrency: must be"},
		"once and again":        {`{"delivery":"at_most_once","retry":{"max_attempts":2}}`, "allows one attempt only"},
		"unknown delivery":      {`{"delivery":"exactly_once"}`, "exactly_once"},
		"attempts zero":         {`{"retry":{"max_attempts":0}}`, "retry.max_attempts: must be a whole number from 1 to 20"},
		"attempts 21":           {`{"retry":{"max_attempts":21}}`, "from 1 to 20"},
		"two backoffs":          {`{"backoff":{"initial_ms":1},"retry":{"backoff":{"initial_ms":2}}}`, "give one of the two"},
		"backoff upside down":   {`{"backoff":{"initial_ms":2000,"max_ms":1000}}`, "backoff.max_ms: 1000 is less than initial_ms 2000"},
		"backoff strategy":      {`{"backoff":{"strategy":"fibonacci"}}`, "fibonacci"},
		"backoff negative":      {`{"backoff":{"initial_ms":-1}}`, "backoff.initial_ms"},
		"backoff max zero":      {`{"backoff":{"max_ms":0}}`, "backoff.max_ms"},
		"jitter over one":       {`{"backoff":{"jitter":1.5}}`, "backoff.jitter: must be 0 to 1"},
		"timeout zero":          {`{"timeout_ms":0}`, "timeout_ms: must be"},
		"timeout over a week":   {`{"timeout_ms":604800001}`, "timeout_ms: must be"},
		"propagation":           {`{"error_propagation":"ignore"}`, "fail-fast and partial-success"},
		"batch without name":    {`{"batch":{"max_items":5}}`, "batch.argument: is missing"},
		"batch without count":   {`{"batch":{"argument":"items"}}`, "batch.max_items: must be 1 to 10000"},
		"batch misspelt":        {`{"batch":{"argument":"item","max_items":5}}`, `no property of the input schema; did you mean "items"?`},
		"batch of a string":     {`{"batch":{"argument":"name","max_items":5}}`, "of type string"},
		"near miss":             {`{"maxConcurrency":5}`, `maxConcurrency: no such field; did you mean "max_concurrency"?`},
		"near miss by a letter": {`{"timeout_m":5}`, `did you mean "timeout_ms"`},
		"near miss in backoff":  {`{"backoff":{"initialMs":5}}`, `backoff.initialMs: no such field; did you mean "initial_ms"?`},
		"near miss in retry":    {`{"retry":{"maxAttempts":5}}`, `retry.maxAttempts: no such field`},
		"near miss in batch":    {`{"batch":{"argument":"items","maxitems":5}}`, `did you mean "max_items"`},
		"near miss in depends":  {`{"depends_on":[{"tool":"b","requiredFields":[]}]}`, `did you mean "required_fields"`},
	} {
		t.Run(name, func(t *testing.T) {
			says := refused(t, `{"name":"a","x-orchestration":`+c.x+`,
				"inputSchema":{"type":"object","properties":{"items":{"type":"array"},"name":{"type":"string"}}}}`)
			require.Contains(t, says, c.says)
			require.Contains(t, says, "x-orchestration")
		})
	}
	require.Contains(t, refused(t, `{"name":"a","annotations":{"destructiveHint":true},"x-orchestration":{"mode":"parallel-safe"}}`),
		"contradicts destructiveHint")
}

func TestContradictionsHaveHints(t *testing.T) {
	t.Parallel()
	const batch = `"batch":{"argument":"items","max_items":100`
	for name, c := range map[string]struct{ x, says, hint string }{
		"batch over the default limit": {`{` + batch + `}}`,
			"batch.max_items: a batch takes a lease for each of its calls, so max_items 100 needs max_concurrency of at least 100; it is 64", "raise max_concurrency"},
		"batch over its limit":        {`{"max_concurrency":99,` + batch + `}}`, "it is 99", "lower batch.max_items"},
		"batch of a sequential tool":  {`{"mode":"sequential-only",` + batch + `}}`, "needs max_concurrency of at least 100; it is 1", "the mode is sequential-only"},
		"batch wait too long":         {`{"batch":{"argument":"items","max_items":5,"max_wait_ms":60001}}`, "batch.max_wait_ms: must be a whole number from 0 to 60000", ""},
		"wait over a week":            {`{"wait_timeout_ms":604800001}`, "wait_timeout_ms: must be a whole number from 1 to 604800000", ""},
		"request in halves":           {`{"request":"half"}`, `request: "half" is none of whole`, ""},
		"note of a yes":               {`{"note":"yes"}`, "note: must be true or false", ""},
		"asks of a yes":               {`{"asks":"yes"}`, "asks: must be true or false", ""},
		"asks of a batch":             {`{"asks":true,"batch":{"argument":"items","max_items":5}}`, "asks: a call in a batch can't wait", "leave asks out"},
		"content of a yes":            {`{"part_content":"yes"}`, "part_content: must be true or false", ""},
		"notes of a batch":            {`{"note":true,"batch":{"argument":"items","max_items":5}}`, "note: a call in a batch has no note", "leave note out"},
		"wait of nothing":             {`{"wait_timeout_ms":0}`, "wait_timeout_ms: must be", ""},
		"waits less than its batch":   {`{"wait_timeout_ms":20,"batch":{"argument":"items","max_items":5,"max_wait_ms":50}}`, "wait_timeout_ms: 20 is less than the 50 ms", "lower batch.max_wait_ms"},
		"waits less than the default": {`{"wait_timeout_ms":4,"batch":{"argument":"items","max_items":5}}`, "less than the 5 ms", "raise wait_timeout_ms"},
		"sequential with a limit":     {`{"mode":"sequential-only","max_concurrency":2}`, "contradicts mode sequential-only", "declare fan-out-bounded"},
		"dependent on nothing":        {`{"mode":"dependent"}`, "dependent needs depends_on", `"depends_on": [{"tool"`},
		"field twice":                 {`{"depends_on":[{"tool":"b","required_fields":["id","x","id"]}]}`, `required_fields of "b" names "id" twice`, "once"},
		"tries of at_most_once":       {`{"delivery":"at_most_once","retry":{"max_attempts":2}}`, "contradicts delivery at_most_once", "at_least_once"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := tool.ParseDefinition([]byte(`{"name":"a","x-orchestration":` + c.x + `}`))
			require.Equal(t, fault.InvalidTool, fault.CodeOf(err))
			require.Contains(t, fault.As(err).Message, c.says)
			require.Contains(t, fault.As(err).Hint, c.hint)
		})
	}
}

// What looks odd but contradicts nothing is taken.
func TestWhatIsNoContradiction(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]string{
		"batch as large as its limit":      `{"max_concurrency":100,"batch":{"argument":"items","max_items":100}}`,
		"batch of one, one at a time":      `{"mode":"sequential-only","batch":{"argument":"items","max_items":1}}`,
		"backoff that never comes to bear": `{"delivery":"at_most_once","backoff":{"initial_ms":500}}`,
		"dependent by its fields alone":    `{"depends_on":[{"tool":"b","required_fields":["id"]}]}`,
		"bounded and dependent":            `{"mode":"fan-out-bounded","max_concurrency":3,"depends_on":["b"]}`,
		"full jitter":                      `{"backoff":{"jitter":1}}`,
		"waits as long as its batch":       `{"wait_timeout_ms":50,"batch":{"argument":"items","max_items":5,"max_wait_ms":50}}`,
	} {
		_, err := tool.ParseDefinition([]byte(`{"name":"a","annotations":{"idempotentHint":false},"x-orchestration":` + x + `}`))
		require.NoError(t, err, name)
	}
}

// A contract built in Go never was parsed, so Contract itself has to check it.
func TestContractBuiltInGoIsChecked(t *testing.T) {
	t.Parallel()
	for _, o := range []tool.Orchestration{
		{Mode: "x"}, {Request: "x"}, {MaxConcurrency: -1}, {TimeoutMS: -1}, {Delivery: "x"}, {ErrorPropagation: "x"},
		{Retry: &tool.Retry{MaxAttempts: 99}}, {Backoff: &tool.Backoff{Jitter: math.NaN()}},
		{Backoff: &tool.Backoff{Initial: -1}}, {Retry: &tool.Retry{Backoff: &tool.Backoff{Strategy: "x"}}},
		{Batch: &tool.Batch{}}, {DependsOn: []tool.Dependency{{}}}, {WaitTimeoutMS: -1}, {WaitTimeoutMS: tool.MaxDuration.Milliseconds() + 1},
		{Batch: &tool.Batch{Argument: "i", MaxItems: 2, MaxWaitMS: -1}}, {Batch: &tool.Batch{Argument: "i", MaxItems: 2, MaxWaitMS: 60_001}},
	} {
		_, err := (&tool.Definition{Name: "a", Orchestration: &o}).Contract()
		require.Error(t, err, "%+v", o)
	}
}

// The form of a frozen contract is kept in runs, so it is pinned down.
func TestContractForm(t *testing.T) {
	t.Parallel()
	c := contractOf(t, `{"name":"a","x-orchestration":{"wait_timeout_ms":1500,"batch":{"argument":"i","max_items":2,"max_wait_ms":7}}}`)
	require.Equal(t, 1500*time.Millisecond, c.WaitTimeout)
	require.Equal(t, 7*time.Millisecond, c.Batch.Wait())
	require.Equal(t, tool.DefaultBatchWait, tool.Batch{}.Wait())
	c.Context = tool.ContextFilter{Filter: tool.DenyKeys, Keys: []string{"token"}}
	b, err := json.Marshal(c)
	require.NoError(t, err)
	require.JSONEq(t, `{"mode":"fan-out-bounded","limit":64,"max_attempts":1,"timeout_ms":300000,"wait_timeout_ms":1500,
		"backoff":{"strategy":"exponential","initial_ms":250,"max_ms":30000},"error_propagation":"fail-fast",
		"batch":{"argument":"i","max_items":2,"max_wait_ms":7},"context":{"filter":"deny-keys","keys":["token"]}}`, string(b))
	plain, err := json.Marshal(contractOf(t, `{"name":"a"}`))
	require.NoError(t, err)
	require.NotContains(t, string(plain), "context")
	require.NotContains(t, string(plain), "wait_timeout_ms")
	require.NotContains(t, string(plain), "request")
	require.NotContains(t, string(plain), "part_content")
	require.NotContains(t, string(plain), "note")
	require.NotContains(t, string(plain), "asks")
	whole, err := json.Marshal(contractOf(t, `{"name":"a","x-orchestration":{"request":"whole"}}`))
	require.NoError(t, err)
	require.Contains(t, string(whole), `"request":"whole"`)
}

func TestPolicy(t *testing.T) {
	t.Parallel()
	c := contractOf(t, `{"name":"a","annotations":{"readOnlyHint":true}}`)
	n, b := c.Policy(nil)
	require.Equal(t, 3, n)
	require.Equal(t, c.Backoff, b)
	n, b = c.Policy(&tool.Retry{MaxAttempts: 7})
	require.Equal(t, 7, n)
	require.Equal(t, c.Backoff, b)
	n, b = c.Policy(&tool.Retry{Backoff: &tool.Backoff{Strategy: tool.Constant, Initial: time.Second}})
	require.Equal(t, 3, n)
	require.Equal(t, tool.Backoff{Strategy: tool.Constant, Initial: time.Second, Max: 30 * time.Second}, b)

	once := contractOf(t, `{"name":"a","x-orchestration":{"delivery":"at_most_once"}}`)
	n, _ = once.Policy(&tool.Retry{MaxAttempts: 7})
	require.Equal(t, 1, n, "an at_most_once tool has one attempt whatever the plan says")
}

func TestDelay(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		b    tool.Backoff
		want []time.Duration
	}{
		"default":        {tool.Backoff{}, []time.Duration{250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 16000 * ms, 30000 * ms, 30000 * ms}},
		"floor":          {tool.Backoff{Initial: 100 * ms}, []time.Duration{250 * ms, 250 * ms, 400 * ms, 800 * ms}},
		"linear":         {tool.Backoff{Strategy: tool.Linear, Initial: 300 * ms, Max: time.Second}, []time.Duration{300 * ms, 600 * ms, 900 * ms, 1000 * ms}},
		"constant":       {tool.Backoff{Strategy: tool.Constant, Initial: 700 * ms}, []time.Duration{700 * ms, 700 * ms}},
		"none":           {tool.Backoff{Strategy: tool.None, Initial: 700 * ms}, []time.Duration{250 * ms, 250 * ms}},
		"max under":      {tool.Backoff{Max: 10 * ms}, []time.Duration{250 * ms, 250 * ms}},
		"initial beyond": {tool.Backoff{Initial: time.Minute}, []time.Duration{time.Minute, time.Minute}},
	} {
		for i, want := range c.want {
			require.Equal(t, want, c.b.Delay(i+1, 42), "%s, attempt %d", name, i+1)
		}
	}
	require.Equal(t, 30*time.Second, tool.Backoff{}.Delay(1000, 0), "no overflow")
	require.Equal(t, 250*ms, tool.Backoff{}.Delay(-5, 0))
	require.Equal(t, tool.MaxDuration, tool.Backoff{Strategy: tool.Linear, Initial: tool.MaxDuration, Max: tool.MaxDuration}.Delay(math.MaxInt, 0))
}

func TestJitterIsDeterministicAndSpread(t *testing.T) {
	t.Parallel()
	b := tool.Backoff{Strategy: tool.Constant, Initial: 10 * time.Second, Jitter: 0.2}
	low, high := time.Hour, time.Duration(0)
	for seed := range uint64(1000) {
		d := b.Delay(1, seed)
		require.Equal(t, d, b.Delay(1, seed))
		low, high = min(low, d), max(high, d)
	}
	require.InDelta(t, 8, low.Seconds(), 0.1)
	require.InDelta(t, 10, high.Seconds(), 0.1)
	require.LessOrEqual(t, high, 10*time.Second, "jitter shortens only")
	full := tool.Backoff{Strategy: tool.Constant, Initial: 10 * time.Second, Jitter: 1}
	var sum time.Duration
	for seed := range uint64(1000) {
		d := full.Delay(1, seed)
		require.GreaterOrEqual(t, d, tool.MinDelay)
		require.LessOrEqual(t, d, 10*time.Second)
		sum += d
	}
	require.InDelta(t, 5, (sum / 1000).Seconds(), 0.3, "full jitter is spread evenly over all of the delay")
	capped := tool.Backoff{Strategy: tool.Constant, Initial: time.Second, Max: time.Second, Jitter: 1}
	for seed := range uint64(100) {
		d := capped.Delay(1, seed)
		require.LessOrEqual(t, d, time.Second)
		require.GreaterOrEqual(t, d, tool.MinDelay)
	}
}

// Where the schema has nothing but an array of another name, it is hardly that of one item.
func TestAStrayBatchArgumentIsWarnedOf(t *testing.T) {
	t.Parallel()
	of := func(properties string) []fault.Problem {
		d, err := tool.ParseDefinition([]byte(`{"name":"a","x-orchestration":{"batch":{"argument":"records","max_items":5}},"inputSchema":{"type":"object","properties":` + properties + `}}`))
		require.NoError(t, err)
		return d.Warnings()
	}
	w := of(`{"contacts":{"type":"array"}}`)
	require.Len(t, w, 1)
	require.Equal(t, "/x-orchestration/batch/argument", w[0].Path)
	require.Contains(t, w[0].Message, `"records" is no property of the input schema`)
	require.Equal(t, `did you mean "contacts"?`, w[0].Hint)
	for _, fine := range []string{`{"records":{"type":"array"}}`, `{"email":{"type":"string"}}`, `{"email":{"type":"string"},"tags":{"type":"array"}}`, `{}`} {
		require.Empty(t, of(fine), fine)
	}
}
