package plan_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/plan"
)

// diamond is a plan of seven steps: one, three, two, one.
const diamond = `{"steps":[
 {"id":"tokyo","tool":"get_weather","arguments":{"location":"Tokyo"}},
 {"id":"a","tool":"echo","arguments":{"x":"$ref:tokyo.temp","unit":"C"}},
 {"id":"b","tool":"echo","arguments":{"x":"$ref:tokyo.humidity"}},
 {"id":"c","tool":"add","arguments":{"a":"$ref:tokyo.temp","b":1}},
 {"id":"d","tool":"echo","arguments":{"text":"It is $ref:a.x degrees, ${ref:b.x}% humid."}},
 {"id":"e","tool":"echo","arguments":{"list":["$ref:c.sum","$ref:b.x || 0"]}},
 {"id":"f","tool":"echo","arguments":{"d":"$ref:d","e":"$ref:e"},"depends_on":["c"]}],
 "output_steps":["f"],"timeout":"5m"}`

// large returns a plan of n steps, each but the first referring to the one before it and to the first.
func large(n int) []byte {
	var b bytes.Buffer
	b.WriteString(`{"steps":[{"id":"s0","tool":"get_weather","arguments":{"location":"Tokyo"}}`)
	for i := 1; i < n; i++ {
		fmt.Fprintf(&b, `,{"id":"s%d","tool":"add","arguments":{"a":"$ref:s%d.sum","b":%d}}`, i, i-1, i)
	}
	b.WriteString(`]}`)
	return b.Bytes()
}

func benchmarkParse(b *testing.B, body []byte) {
	tools := corpusTools(b)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if p, r := plan.Parse(body, tools); p == nil {
			b.Fatal(r.Problems)
		}
	}
}

func BenchmarkParse7(b *testing.B)     { benchmarkParse(b, []byte(diamond)) }
func BenchmarkParse10000(b *testing.B) { benchmarkParse(b, large(10_000)) }

// BenchmarkParseCycle10000 refuses a plan whose steps all wait for each other.
func BenchmarkParseCycle10000(b *testing.B) {
	body := bytes.Replace(large(10_000), []byte(`"location":"Tokyo"`), []byte(`"location":"$ref:s9999"`), 1)
	tools := corpusTools(b)
	for b.Loop() {
		if p, _ := plan.Parse(body, tools); p != nil {
			b.Fatal("accepted")
		}
	}
}

func parsed(b testing.TB, body string) *plan.Plan {
	b.Helper()
	p, r := plan.Parse([]byte(body), nil)
	require.Empty(b, r.Problems)
	return p
}

func BenchmarkArguments(b *testing.B) {
	p := parsed(b, diamond)
	tokyo := []byte(`{"city":"Tokyo","wind":{"speed":3.5,"from":"NNE"},"temp":21.5,"humidity":60}`)
	result := func(int) ([]byte, bool) { return tokyo, true }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Arguments(1, result); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkArgumentsTemplate(b *testing.B) {
	p := parsed(b, diamond)
	result := func(int) ([]byte, bool) { return []byte(`{"unit":"C","x":21.5}`), true }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Arguments(4, result); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkArgumentsLarge picks one of the last of 10,000 items, a megabyte.
func BenchmarkArgumentsLarge(b *testing.B) {
	p := parsed(b, `{"steps":[{"id":"a","tool":"t"},{"id":"b","tool":"t","arguments":{"x":"$ref:a.items[9990].name"}}]}`)
	list := []byte(`{"items":[` + strings.Repeat(`{"id":1,"name":"a name of some length","tags":["x","y"],"text":"`+strings.Repeat("y", 30)+`"},`, 9999) + `{}]}`)
	result := func(int) ([]byte, bool) { return list, true }
	b.SetBytes(int64(len(list)))
	for b.Loop() {
		if _, err := p.Arguments(1, result); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkOutput(b *testing.B, body []byte) {
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := plan.Output(body, false); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOutput(b *testing.B) {
	benchmarkOutput(b, []byte(`{"city":"Tokyo","wind":{"speed":3.5,"from":"NNE"},"temp":21.5,"humidity":60}`))
}

func BenchmarkOutputLarge(b *testing.B) {
	benchmarkOutput(b, []byte(`[`+strings.Repeat(`{"id":1,"name":"a name of some length","tags":["x","y"],"text":"`+strings.Repeat("y", 300)+`"},`, 5000)+`{}]`))
}
