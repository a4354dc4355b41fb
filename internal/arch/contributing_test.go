package arch_test

import (
	"flag"
	"go/scanner"
	"go/token"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// examples are what each row of "Where to add" is measured by: the code that knows the example in its second cell.
var examples = []struct {
	row  string
	code *regexp.Regexp
}{
	{"a form of reference", regexp.MustCompile(`\[\*\]|everyItem|isEvery`)},
	{"an option of a plan", regexp.MustCompile(`OnFailure|on_failure`)},
	{"a kind of record", regexp.MustCompile(`StopKind|StopRecord|ParseStop|wire\.Stop\b|machine\.Stop\b|type Stop\b`)},
	{"a field of a contract", regexp.MustCompile(`WaitTimeout|wait_timeout_ms`)},
	{"a header", regexp.MustCompile(`HeaderDefinition\b`)},
	{"a verb of `stepjet`", regexp.MustCompile(`graphCommand`)},
	{"a program that serves", regexp.MustCompile(`serve\.Worker\b|func Worker\(`)},
	{"a check of the doctor", regexp.MustCompile(`orphanRecords|"orphan-records"`)},
	{"what a metric or a span is made of", regexp.MustCompile(`OnExecute\b|observe\.Execute\b|tell\.execute\(`)},
	{"a built-in tool", regexp.MustCompile(`"text_join"`)},
	{"a form of tools for a model's API", regexp.MustCompile(`"openai-responses"|OpenAIResponses`)},
}

var update = flag.Bool("update", false, "write the table of CONTRIBUTING.md and docs/api instead of comparing them; then look at the diff")

// uncommented returns a file's code without its comments, a space between any two words of a line.
func uncommented(code []byte) string {
	var b strings.Builder
	set := token.NewFileSet()
	file := set.AddFile("", set.Base(), len(code))
	var s scanner.Scanner
	s.Init(file, code, nil, 0)
	for end := 0; ; {
		pos, kind, text := s.Scan()
		switch {
		case kind == token.EOF:
			return b.String()
		case kind == token.SEMICOLON && text == "\n":
			b.WriteByte('\n')
			continue
		case kind.IsKeyword() || text == "":
			if text == "" {
				text = kind.String()
			}
		}
		if at := file.Offset(pos); at > end {
			b.WriteByte(' ')
		}
		b.WriteString(text)
		end = file.Offset(pos) + len(text)
	}
}

// TestWhereToAddIsComplete: each row of the table in CONTRIBUTING.md names the files that know its example, and no
// others.
func TestWhereToAddIsComplete(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../CONTRIBUTING.md")
	require.NoError(t, err)
	code := map[string]string{}
	for _, s := range sources(t) {
		if !s.test && !match("internal/lab/*", s.pkg) && !match("examples/*", s.pkg) && s.pkg != "cmd/lab" {
			raw, err := os.ReadFile(path.Join("../..", s.pkg, s.name))
			require.NoError(t, err)
			code[path.Join(s.pkg, s.name)] = uncommented(raw)
		}
	}
	for _, x := range examples {
		var know []string
		for file, text := range code {
			if x.code.MatchString(text) {
				know = append(know, "`"+file+"`")
			}
		}
		slices.Sort(know)
		row := regexp.MustCompile(`(?m)^(\| ` + regexp.QuoteMeta(x.row) + ` \| [^|]+ \| )(.*)( \|)$`)
		there := row.FindStringSubmatch(string(page))
		if !assert.NotNil(t, there, x.row) {
			continue
		}
		if *update {
			page = row.ReplaceAll(page, []byte("${1}"+strings.Join(know, ", ")+"${3}"))
			continue
		}
		assert.Equal(t, strings.Join(know, ", "), there[2], "CONTRIBUTING.md, %s; go test ./internal/arch -run WhereToAdd -update writes it", x.row)
	}
	if *update {
		require.NoError(t, os.WriteFile("../../CONTRIBUTING.md", page, 0o644))
	}
}

func TestCommentsAreNoCode(t *testing.T) {
	t.Parallel()
	require.Equal(t, " package a\n var x = f.g(\"//h\")\n", uncommented([]byte("// c\npackage a\nvar x = f.g(\"//h\") // d\n")))
}
