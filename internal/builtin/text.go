package builtin

import (
	"encoding/json"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/stepjet/stepjet/fault"
)

const (
	stringResult  = `{"type":"object","properties":{"result":{"type":"string"}},"required":["result"],"additionalProperties":false}`
	stringsResult = `{"type":"object","properties":{"result":{"type":"array","items":{"type":"string"}}},"required":["result"],"additionalProperties":false}`
	countResult   = `{"type":"object","properties":{"result":{"type":"integer","minimum":0}},"required":["result"],"additionalProperties":false}`
	boolResult    = `{"type":"object","properties":{"result":{"type":"boolean"}},"required":["result"],"additionalProperties":false}`
	scalars       = `{"type":"array","items":{"type":["string","number","boolean","null"]}`
)

// textArgs are the arguments of all text tools; each schema says which of them a tool takes.
type textArgs struct {
	Text       *string           `json:"text"`
	Parts      []json.RawMessage `json:"parts"`
	Items      []json.RawMessage `json:"items"`
	Separator  *string           `json:"separator"`
	Search     string            `json:"search"`
	Old        string            `json:"old"`
	New        string            `json:"new"`
	Count      *int              `json:"count"`
	Cutset     string            `json:"characters"`
	Start      int               `json:"start"`
	End        *int              `json:"end"`
	IgnoreCase bool              `json:"ignore_case"`
}

func (a textArgs) separator(otherwise string) string {
	if a.Separator == nil {
		return otherwise
	}
	return *a.Separator
}

// object writes the schema of an object that takes these properties and no others.
func object(properties, required string) string {
	return `{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`
}

const textProperty = `"text":{"type":"string","description":"the text"}`

func textTools() []Tool {
	return []Tool{
		textTool("text_upper", "Returns the text in upper case.", object(textProperty, `"text"`), stringResult, textUpper),
		textTool("text_lower", "Returns the text in lower case.", object(textProperty, `"text"`), stringResult, textLower),
		textTool("text_trim", "Removes white space, or the given characters, from both ends of the text.",
			object(textProperty+`,"characters":{"type":"string","description":"characters to remove; white space by default"}`,
				`"text"`), stringResult, textTrim),
		textTool("text_length", "Counts the characters (Unicode code points) of the text.", object(textProperty, `"text"`),
			countResult, textLength),
		textTool("text_contains", "Says whether the text contains another.",
			object(textProperty+`,"search":{"type":"string","description":"text to look for"},"ignore_case":{"type":"boolean"}`,
				`"text","search"`), boolResult, textContains),
		textTool("text_slice", "Returns the characters of the text from start up to, but without, end. Both count from 0; negative ones count from the end.",
			object(textProperty+`,"start":{"type":"integer"},"end":{"type":"integer","description":"the end of the text by default"}`, `"text"`), stringResult, textSlice),
		textTool("text_replace", "Replaces one text by another, everywhere or the first count times.",
			object(textProperty+`,"old":{"type":"string","minLength":1},"new":{"type":"string"},"count":{"type":"integer","minimum":0,"description":"how often at most; everywhere by default"}`, `"text","old","new"`), stringResult, textReplace),
		textTool("text_split", "Splits the text at each separator, or at white space where no separator is given.",
			object(textProperty+`,"separator":{"type":"string","minLength":1}`, `"text"`), stringsResult, textSplit),
		textTool("text_concat", "Puts strings, numbers and booleans together into one text, in order.",
			object(`"parts":`+scalars+`,"description":"what to put together"}`, `"parts"`), stringResult, textConcat),
		textTool("text_join", "Joins strings, numbers and booleans with a separator in between.",
			object(`"items":`+scalars+
				`,"description":"what to join"},"separator":{"type":"string","description":"a comma and a space by default"}`,
				`"items"`), stringResult, textJoin),
	}
}

func textTool(name, description, input, output string, run func(a textArgs) (any, error)) Tool {
	needsText := gjson.Get(input, "properties.text").Exists()
	return define("text", name, description, input, output, func(c Call) ([]byte, error) {
		var a textArgs
		if err := decode(c.Args, &a); err != nil {
			return nil, err
		}
		if needsText && a.Text == nil {
			return nil, required("text")
		}
		v, err := run(a)
		if err != nil {
			return nil, err
		}
		return result(v)
	})
}

func textUpper(a textArgs) (any, error)  { return strings.ToUpper(*a.Text), nil }
func textLower(a textArgs) (any, error)  { return strings.ToLower(*a.Text), nil }
func textLength(a textArgs) (any, error) { return utf8.RuneCountInString(*a.Text), nil }

func textTrim(a textArgs) (any, error) {
	if a.Cutset == "" {
		return strings.TrimSpace(*a.Text), nil
	}
	return strings.Trim(*a.Text, a.Cutset), nil
}

// textContains ignores case by the simple folding of Unicode.
func textContains(a textArgs) (any, error) {
	if a.IgnoreCase {
		return strings.Contains(strings.Map(fold, *a.Text), strings.Map(fold, a.Search)), nil
	}
	return strings.Contains(*a.Text, a.Search), nil
}

// fold returns the smallest rune that differs from r in case alone.
func fold(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}

func textSlice(a textArgs) (any, error) {
	n := utf8.RuneCountInString(*a.Text)
	start, end := within(a.Start, n), n
	if a.End != nil {
		end = within(*a.End, n)
	}
	if start >= end {
		return "", nil
	}
	from := byteOffset(*a.Text, start)
	return (*a.Text)[from : from+byteOffset((*a.Text)[from:], end-start)], nil
}

// within maps a position that may count from the end into 0 … n.
func within(i, n int) int {
	if i < 0 {
		i += n
	}
	return min(max(i, 0), n)
}

// byteOffset returns where the n-th character of s begins.
func byteOffset(s string, n int) int {
	for at := range s {
		if n == 0 {
			return at
		}
		n--
	}
	return len(s)
}

func textReplace(a textArgs) (any, error) {
	if a.Old == "" {
		return nil, fault.New(fault.InvalidArguments, "the argument \"old\" is empty").WithHint("say which text to replace")
	}
	times := strings.Count(*a.Text, a.Old)
	if a.Count != nil {
		times = min(times, max(*a.Count, 0))
	}
	if len(*a.Text)+times*(len(a.New)-len(a.Old)) > MaxSize { // arguments are at most 64 MiB: no overflow
		return nil, outputTooLarge()
	}
	return strings.Replace(*a.Text, a.Old, a.New, times), nil
}

func textSplit(a textArgs) (any, error) {
	sep := a.separator("")
	parts := strings.Fields
	if sep != "" {
		if strings.Count(*a.Text, sep)*len(`"",`) > MaxSize {
			return nil, outputTooLarge()
		}
		parts = func(s string) []string { return strings.Split(s, sep) }
	}
	if out := parts(*a.Text); out != nil {
		return out, nil
	}
	return []string{}, nil
}

func textConcat(a textArgs) (any, error) { return join(a.Parts, "") }
func textJoin(a textArgs) (any, error)   { return join(a.Items, a.separator(", ")) }

func join(parts []json.RawMessage, separator string) (any, error) {
	var b strings.Builder
	for i, part := range parts {
		if i > 0 {
			b.WriteString(separator)
		}
		s, err := plainText(part)
		if err != nil {
			return nil, err
		}
		b.WriteString(s)
		if b.Len() > MaxSize {
			return nil, outputTooLarge()
		}
	}
	return b.String(), nil
}

// plainText returns a string bare and any other value as JSON, as a template of the plan language does.
func plainText(raw json.RawMessage) (string, error) {
	if len(raw) == 0 || raw[0] != '"' {
		return string(raw), nil
	}
	var s string
	err := decode(raw, &s)
	return s, err
}
