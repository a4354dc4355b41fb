package plan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/plan"
)

// The twin: references, read with regular expressions and resolved with encoding/json, slowly and by the letter of the
// plan language. It shares nothing with the package.
const (
	reKey    = `"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"`
	rePath   = `((?:\.[A-Za-z0-9_-]+|\[(?:0|[1-9][0-9]*)\]|\[` + reKey + `\]|\[\*\])*)`
	reRef    = `([A-Za-z0-9_-]{1,64})` + rePath
	reAny    = `\$(ref|error|status):`
	reSpaces = `[ \t\r\n]*`
	reStep   = `[as]` // there are no others, and neither is a number
	// A reference that other languages' marks may stand around, and a right one.
	reForeign = reSpaces + `(?:steps\.)?` + reStep + rePath + reSpaces
	reMarked  = reSpaces + `\$ref:` + reStep + rePath + reSpaces
)

var (
	twinAlternatives = regexp.MustCompile(`^` + reAny + reRef + reSpaces + `\|\|`)
	twinNext         = regexp.MustCompile(`^` + reSpaces + `\|\|` + reSpaces + reAny + reRef)
	twinLast         = regexp.MustCompile(`^` + reSpaces + `\|\|` + reSpaces + `([^ \t\r\n\[{](?s:.*))$`)
	twinFirst        = regexp.MustCompile(`^` + reAny + reRef)
	twinWhole        = regexp.MustCompile(`^` + reAny + reRef + `$`)
	twinBegins       = regexp.MustCompile(`^\$(?:ref:|(?:error|status):[A-Za-z0-9_-])`)
	twinQuoted       = regexp.MustCompile(`"(?:[^"\\]|\\(?s:.))*(?:"|\\?$)`)
	twinMark         = regexp.MustCompile(`(\$+)(?:(\{?ref:|\{input\.)|(\{?(?:error|status):)[A-Za-z0-9_-])`)
	twinWord         = regexp.MustCompile(`^\$(?:(?:input|last)(?:$|[.\[])|index$)`)
	twinWordOr       = regexp.MustCompile(`^\$(?:(?:input|last)` + rePath + `|index)` + reSpaces + `\|\|`)
	twinBare         = regexp.MustCompile(`^` + reRef)
	twinBraced       = regexp.MustCompile(`^` + reRef + `\}`)
	twinBareEnd      = regexp.MustCompile(`^(?:$|[ \t\r\n]|[,;:!?)\]}"']|\.(?:$|[ \t\r\n]))`)
	twinElement      = regexp.MustCompile(`^(?:\.([A-Za-z0-9_-]+)|\[([0-9]+)\]|\[(` + reKey + `)\]|\[(\*)\])`)
	twinForeign      = regexp.MustCompile(`^(?:\{\{` + reForeign + `\}\}|\$\{\{` + reForeign + `\}\}|\$\{` + reForeign + `\}|\{` + reForeign + `\}|\[\[` + reForeign + `\]\]|<` + reForeign +
		`>|%` + reForeign + `%|\$` + reForeign + `\$|(?:\$\.?|#|@|(?i:ref:|\$ref[. ])|\$(?:R(?i:ef)|r(?:E(?i:f)|eF)):)` + reForeign + `)$`)
	twinMarked = regexp.MustCompile(`^(?:\{\{` + reMarked + `\}\}|\$\{\{` + reMarked + `\}\}|\$\{` + reMarked + `\}|\{` + reMarked + `\}|\[\[` + reMarked + `\]\]|<` + reMarked + `>|%` + reMarked + `%)$`)
	twinDigits = regexp.MustCompile(`^[^A-Za-z0-9]*[0-9]+(?:\.[0-9]+|\[[0-9]+\])*[^A-Za-z0-9]*$`)
)

// twinError is why a string comes to nothing.
type twinError string

func (e twinError) Error() string { return string(e) }

const (
	badRef     = twinError("invalid_ref")
	badStep    = twinError("unknown_ref")
	badValue   = twinError("unresolved_ref")
	noJSONText = twinError("lone surrogate")
)

// twin resolves references to one step, "a", which failed and yet has a result.
type twin struct{ result json.RawMessage }

const twinStatus, twinFault = `"failed"`, `{"code":"timeout","message":"late","details":null}`

// lookup returns the value of a reference; nil for a missing one. scalar says that the path goes into a scalar, which
// among alternatives counts as missing.
func (w twin) lookup(of, id, path string, among bool) (value json.RawMessage, scalar bool, err error) {
	in := map[string]json.RawMessage{"ref": w.result, "error": []byte(twinFault), "status": []byte(twinStatus)}[of]
	value, scalar, err = w.follow(in, path, among)
	if err == nil && id != "a" {
		err = badStep
	}
	return bytes.TrimSpace(value), scalar, err
}

func (w twin) follow(value json.RawMessage, path string, among bool) (_ json.RawMessage, scalar bool, err error) {
	for path != "" {
		m := twinElement.FindStringSubmatch(path)
		path = path[len(m[0]):]
		var object map[string]json.RawMessage
		var array []json.RawMessage
		key, isKey, isIndex := m[1], m[1]+m[3] != "" || m[0] == "[\"\"]", m[2] != "" || m[1] != "" && regexp.MustCompile(`^(0|[1-9][0-9]*)$`).MatchString(m[1])
		if m[3] != "" {
			if strings.Contains(strings.ToLower(m[3]), `\ud`) {
				return nil, false, noJSONText
			}
			if err := json.Unmarshal([]byte(m[3]), &key); err != nil {
				return nil, false, badRef
			}
		}
		every := m[4] != ""
		if every && !scalar && value != nil && json.Unmarshal(value, &array) == nil && array != nil {
			return w.every(array, path, among)
		}
		switch {
		case value == nil || string(value) == "null" || scalar:
			value = nil
		case !every && json.Unmarshal(value, &object) == nil:
			if value = object[key]; !isKey {
				value = nil
			}
		case !every && json.Unmarshal(value, &array) == nil:
			n, tooLarge := strconv.Atoi(m[1] + m[2])
			if value = nil; isIndex && tooLarge == nil && n < len(array) {
				value = array[n]
			}
		default:
			scalar = true
		}
	}
	return bytes.TrimSpace(value), scalar, nil
}

// every is what a path comes to that goes on with each item of an array.
func (w twin) every(array []json.RawMessage, path string, among bool) (_ json.RawMessage, scalar bool, err error) {
	var found []string
	for _, item := range append(array, nil) { // a broken path is one without items too
		v, into, err := w.follow(bytes.TrimSpace(item), path, among)
		if err != nil || into && !among {
			return nil, into, err
		}
		if strings.Contains(path, "[*]") && len(v) > 0 && !into {
			v = bytes.TrimSuffix(bytes.TrimPrefix(v, []byte("[")), []byte("]")) // a list in the list
		}
		if len(v) > 0 && !into {
			found = append(found, string(v))
		}
	}
	return json.RawMessage("[" + strings.Join(found, ",") + "]"), false, nil
}

// value returns what a string value comes to, as JSON.
func (w twin) value(s string) (json.RawMessage, error) {
	if trimmed := strings.Trim(s, " \t\r\n"); (twinForeign.MatchString(trimmed) || twinMarked.MatchString(trimmed)) && !twinDigits.MatchString(trimmed) {
		if strings.Contains(strings.ToLower(s), `\ud`) {
			return nil, noJSONText
		}
		return nil, badRef
	}
	if twinAlternatives.MatchString(s) {
		return w.alternatives(s)
	}
	if twinBegins.MatchString(s) && !strings.ContainsAny(twinQuoted.ReplaceAllString(s, ""), " \t\r\n") {
		m := twinWhole.FindStringSubmatch(s)
		if m == nil {
			return nil, badRef
		}
		v, scalar, err := w.lookup(m[1], m[2], m[3], false)
		switch {
		case err != nil:
			return nil, err
		case scalar:
			return nil, badValue
		case len(v) == 0:
			return json.RawMessage("null"), nil
		}
		return v, nil
	}
	switch word := "$" + strings.TrimLeft(s, "$"); {
	case twinWordOr.MatchString(word) && strings.Contains(strings.ToLower(s), `\ud`):
		return nil, noJSONText
	case s == word && twinReserved(word):
		return nil, badRef
	case len(s) > len(word) && twinReserved(word):
		s = s[1:]
	}
	text, err := w.template(s)
	if err != nil {
		return nil, err
	}
	return encode(text), nil
}

// twinReserved reports whether a string is a reference without a step.
func twinReserved(s string) bool {
	return twinWordOr.MatchString(s) || twinWord.MatchString(s) && !strings.ContainsAny(twinQuoted.ReplaceAllString(s[1:], ""), " \t\r\n$")
}

func encode(s string) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s)
	return bytes.TrimSpace(b.Bytes())
}

func (w twin) alternatives(s string) (json.RawMessage, error) {
	type alternative struct{ of, id, path string }
	m := twinFirst.FindStringSubmatch(s)
	all := []alternative{{m[1], m[2], m[3]}}
	s = s[len(m[0]):]
	var def json.RawMessage
	for s != "" {
		if m := twinNext.FindStringSubmatch(s); m != nil {
			all = append(all, alternative{m[1], m[2], m[3]})
			s = s[len(m[0]):]
			continue
		}
		m := twinLast.FindStringSubmatch(s)
		if m == nil || !json.Valid([]byte(m[1])) || strings.TrimRight(m[1], " \t\r\n") != m[1] {
			return nil, badRef
		}
		if strings.Contains(strings.ToLower(m[1]), `\ud`) {
			return nil, noJSONText
		}
		def, s = json.RawMessage(m[1]), ""
	}
	var found json.RawMessage
	for _, alt := range all {
		v, scalar, err := w.lookup(alt.of, alt.id, alt.path, true)
		if err != nil {
			return nil, err
		}
		if found == nil && !scalar && len(v) > 0 && string(v) != "null" {
			found = v
		}
	}
	if found == nil {
		found = def
	}
	if found == nil {
		found = json.RawMessage("null")
	}
	return found, nil
}

func (w twin) template(s string) (string, error) {
	var out strings.Builder
	var unknown, wrong error
	for {
		at := twinMark.FindStringSubmatchIndex(s)
		if at == nil {
			break
		}
		n, mark := at[3]-at[2], s[at[3]:max(at[5], at[7])]
		out.WriteString(s[:at[0]] + strings.Repeat("$", n/2))
		s = s[at[3]+len(mark):]
		if n%2 == 0 {
			out.WriteString(mark)
			continue
		}
		if mark == "{input." {
			return "", badRef
		}
		re, braced := twinBare, mark[0] == '{'
		if braced {
			re = twinBraced
		}
		m := re.FindStringSubmatch(s)
		if m == nil {
			return "", badRef
		}
		s = s[len(m[0]):]
		if !braced && !twinBareEnd.MatchString(s) && s[0] < 0x80 {
			return "", badRef
		}
		v, scalar, err := w.lookup(strings.Trim(mark, "{:"), m[1], m[2], false)
		var text string
		switch {
		case err != nil:
			unknown = err
		case scalar:
			wrong = badValue
		case len(v) == 0:
			out.WriteString("null")
		case json.Unmarshal(v, &text) == nil && v[0] == '"':
			out.WriteString(text)
		default:
			out.Write(v)
		}
	}
	if unknown != nil {
		return "", unknown
	}
	return out.String() + s, wrong
}

// FuzzRef holds the package against the twin: any text as a value of the arguments, any result.
func FuzzRef(f *testing.F) {
	for _, s := range []string{
		"$ref:a", "$ref:a.b.c[0]", `$ref:a["k e.y"][12].z`, "$ref:a.0.00.x-y", "$ref:a.x || $ref:a.y || \"none\"", "$ref:a||1e5", "$ref:a || nul",
		"It is $ref:a.temp degrees.", "${ref:a.x}${ref:a.y}", "$$ref:a", "$$$ref:a.x, b", "$$$${ref:a}", "$ref:a.", "$ref:b", "$ref:a.x.", "$ref:a\u00e9 b",
		"$ref:a x || $ref:a", `$ref:a["\u0041"]`, `$ref:a["x y`, `$ref:a.x "a b"`, "costs $5", "$ref:", "x $ref:a.x/y", `$ref:a[01]`, "$ref:a[*].x", "$ref:a.b.c[*]", "$ref:a[*][*] || 1", "t $ref:a[*].x!", "{{a.x}}", "$a.x$", "< $ref:a >", "$REF:a", "#s", "%steps.a%", "$ref:a.b\n||\t2", "$ref:a || $ref:a ",
		"${ref:a", "x ${ref:a }", `$ref:"a b"`, `$ref:a"\"`, `$ref:a"\ "`,
		"$error:a", "see $status:a.", "$$error:a ${ref:a}", "$error: no", "${input.x}", "$$${status:b}", "$input", "$input.x", "$$input", "$$$last[0]", "$index", "$index.html", "$inputs",
		"$input.x || 1", "$$input.x  || $ref:a", "$input.x $ref:a", `$last["$ref:a b"]`, "$last.${ref:a}", "$$index||1",
	} {
		f.Add(s, []byte(`{"b":{"c":[7]},"x":"t\"\n","y":1.50,"temp":null,"k e.y":[0],"0":{"00":3},"A":true}`))
		f.Add(s, []byte(`[{"x":1},[2,3],"4"]`))
		f.Add(s, []byte(`"scalar"`))
	}
	f.Fuzz(func(t *testing.T, s string, result []byte) {
		if !utf8.ValidString(s) || len(s) > 1000 {
			return
		}
		out, fail := plan.Output(result, false)
		if fail != nil {
			return
		}
		want, why := twin{out}.value(s)
		if errors.Is(why, noJSONText) {
			return // the twin doesn't tell surrogates apart
		}
		body := steps(`{"id":"a","tool":"t"},{"id":"s","tool":"t","arguments":{"v":` + string(encode(s)) + `}}`)
		p, r := plan.Parse([]byte(body), nil)
		if p == nil {
			if len(r.Problems) == 1 && r.Problems[0].Code == "limit_exceeded" {
				return
			}
			require.Error(t, why, "%q: %v", s, r.Problems)
			require.Contains(t, codes(r.Problems), why.Error(), "%q", s)
			return
		}
		ended := func(int) plan.Fate {
			return plan.Fate{Status: "failed", Error: &fault.Error{Code: fault.Timeout, Message: "late"}}
		}
		args, err := p.NewResolver().Fates(ended).Arguments(1, func(int) ([]byte, bool) { return out, true })
		if err != nil {
			require.ErrorIs(t, why, badValue, "%q: %v", s, err)
			return
		}
		require.NoError(t, why, "%q", s)
		require.True(t, json.Valid(args), "%s", args)
		var got struct{ V json.RawMessage }
		require.NoError(t, json.Unmarshal(args, &got))
		var a, b string // strings may be escaped otherwise; all else keeps its bytes
		if json.Unmarshal(want, &a) == nil && json.Unmarshal(got.V, &b) == nil {
			require.Equal(t, a, b, "%q", s)
			return
		}
		require.Equal(t, string(want), string(got.V), "%q", s)
		requireSameAsItem(t, s, out, args)
	})
}

// requireSameAsItem resolves references to "a" once more, where that is no step but the item of a for_each.
func requireSameAsItem(t *testing.T, s string, item, want []byte) {
	t.Helper()
	p, r := plan.Parse([]byte(steps(`{"id":"s","tool":"t","for_each":{"in":[0],"as":"a"},"arguments":{"v":`+string(encode(s))+`}}`)), nil)
	if p == nil && strings.Contains(strings.Join(codes(r.Problems), " "), "invalid_ref") {
		require.Regexp(t, `\$\{?(error|status):a`, s, "an item ends in no way")
		return
	}
	require.Empty(t, r.Problems, "%q", s)
	got, err := p.ItemArguments(0, item, func(int) ([]byte, bool) { panic("there are no other steps") })
	require.Nil(t, err, "%q", s)
	require.Equal(t, string(want), string(got), "%q", s)
}

// FuzzItems takes any list apart, and holds the items against encoding/json.
func FuzzItems(f *testing.F) {
	for _, s := range []string{`[]`, ` [ 1 ,"a,]\"",{"x":[2]} ,null]`, `{}`, `"[1]"`, `null`, `[[],[[]]]`, `[`, `[1e400,]`} {
		f.Add([]byte(s))
	}
	p, _ := plan.Parse([]byte(steps(`{"id":"a","tool":"t"},{"id":"s","tool":"t","for_each":{"in":"$ref:a"},"arguments":{"x":"$ref:item"}}`)), nil)
	f.Fuzz(func(t *testing.T, result []byte) {
		out, fail := plan.Output(result, false)
		if fail != nil {
			return
		}
		value := func(int) ([]byte, bool) { return out, true }
		got, err := p.Items(1, value)
		var want []json.RawMessage
		if out[0] != '[' {
			require.Equal(t, fault.UnresolvedRef, err.Code)
			return
		}
		require.NoError(t, json.Unmarshal(out, &want))
		if len(want) > plan.MaxItems {
			require.Equal(t, fault.InvalidArguments, err.Code)
			return
		}
		require.Nil(t, err)
		require.Len(t, got, len(want))
		entries := make([]plan.Item, len(want))
		for i := range want {
			require.Equal(t, string(want[i]), string(got[i]))
			args, err := p.ItemArguments(1, got[i], value)
			require.Nil(t, err)
			require.Equal(t, `{"x":`+string(want[i])+`}`, string(args))
			entries[i].Data = got[i]
		}
		all, err := plan.Entries(entries)
		require.Nil(t, err)
		require.True(t, json.Valid(plan.Envelope(all)))
	})
}

// FuzzParse: any bytes. A plan is refused with problems that point into it, or it is JSON and its arguments resolve to
// JSON.
func FuzzParse(f *testing.F) {
	f.Add([]byte(diamond))
	f.Add([]byte(`{"steps":[{"id":"a","tool":"add","arguments":"{\"a\":\"$ref:b\"}","retry":{"backoff":{"initial_ms":1}}},{"id":"b","tool":"echo","depends_on":["a"]}],"output_steps":["c"],"x":1}`))
	f.Add([]byte(`{"Steps":[{"ID":1,"args":{"$ref":"a","$$ref":2}},7],"timeout":"1s"}`))
	f.Add([]byte(`{"steps":[{"id":"a","tool":"get_weather","arguments":{"location":"x $ref:a y","z":{"$ref":"a.b"}}}]}`))
	for _, s := range []string{``, `{`, `[]`, `{"steps":[]}`, "{\"steps\":[\"\xff\"]}", `{"a":1,"a":2}`} {
		f.Add([]byte(s))
	}
	f.Add([]byte(each(`{"in":"$ref:list.items || $ref:list","as":"it"}`, `{"x":"$ref:it.a","y":"${ref:list}"}`)))
	f.Add([]byte(each(`{"in":[1,{"$ref":"list"},"x ${ref:list}"]}`, `"{\"$ref\":\"item\"}"`)))
	f.Add([]byte(`{"steps":[{"id":"s","tool":"find","for_each":{"in":"x","As":1}},{"id":"l","tool":"load","arguments":{"document_id":"$ref:s[0].data.hits[0].id"}},{"id":"b","Tool":"both","for_each":[]}]}`))
	f.Add([]byte(`{"steps":[{"id":"f","tool":"find"},{"id":"l","tool":"load","for_each":{"in":"$ref:f.hits"},"arguments":{"n":"$ref:item.document_id"}},{"id":"x","tool":"fetch"}]}`))
	tools := dependentTools(f)
	for name, s := range corpusTools(f) {
		tools[name] = plan.Tool{Input: s}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p, r := plan.Parse(body, tools)
		require.Equal(t, p == nil, len(r.Problems) > 0)
		if json.Valid(body) && !slices.Contains(codes(r.Problems), "duplicate_key") {
			for _, x := range r.Problems {
				require.True(t, x.Path == "" || strings.HasPrefix(x.Path, "/"))
				absent := strings.HasSuffix(x.Path, "/arguments") && x.Code == "invalid_arguments"
				if !absent && !bytes.Contains(body, []byte("$")) && !bytes.Contains(body, []byte(`\u`)) && utf8.Valid(body) {
					require.True(t, leadsSomewhere(body, x.Path), "%s: %v", body, x)
				}
			}
		}
		if p == nil {
			return
		}
		require.True(t, json.Valid(body))
		result := func(dep int) ([]byte, bool) { return []byte(sample), dep%3 != 2 }
		for i := range p.Steps {
			args, err := p.Arguments(i, result)
			if err == nil {
				require.True(t, json.Valid(args), "%s", args)
			}
			if p.Steps[i].ForEach == nil {
				continue
			}
			items, _ := p.Items(i, result)
			for _, item := range items[:min(len(items), 3)] {
				require.True(t, json.Valid(item), "%s", item)
				if args, err := p.ItemArguments(i, item, result); err == nil {
					require.True(t, json.Valid(args), "%s", args)
				}
			}
		}
	})
}

// leadsSomewhere follows a pointer, on into strings that hold JSON.
func leadsSomewhere(doc []byte, path string) bool {
	for path != "" {
		token, rest, _ := strings.Cut(path[1:], "/")
		if path = ""; rest != "" || strings.HasSuffix(token, "/") {
			path = "/" + rest
		}
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		var text string
		if json.Unmarshal(doc, &text) == nil && len(doc) > 0 && doc[0] != 'n' {
			doc = []byte(text)
		}
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch {
		case json.Unmarshal(doc, &object) == nil:
			v, ok := object[token]
			if !ok {
				return false
			}
			doc = v
		case json.Unmarshal(doc, &array) == nil:
			n, err := strconv.Atoi(token)
			if err != nil || n >= len(array) {
				return false
			}
			doc = array[n]
		default:
			return false
		}
	}
	return true
}
