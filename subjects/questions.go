package subjects

import (
	"strconv"
	"strings"
)

// QuestionKey returns the key of a step's question in the bucket "questions": T.R.G.S. The plan's own is that of
// RootScope.
func QuestionKey(r Run, generation uint64, step string) string {
	return r.Key() + "." + strconv.FormatUint(generation, 10) + "." + step
}

// QuestionsFilter matches the questions of a tenant's runs; "*" is all tenants.
func QuestionsFilter(tenant string) string { return tenant + ".>" }

// QuestionsRunFilter matches the questions of a run, of all its generations.
func QuestionsRunFilter(r Run) string { return r.Key() + ".>" }

// QuestionStepFilter matches the question of a step, of all its run's generations.
func QuestionStepFilter(r Run, step string) string { return r.Key() + ".*." + step }

// ParseQuestionKey reads a key of QuestionKey.
func ParseQuestionKey(key string) (r Run, generation uint64, step string, ok bool) {
	var t [4]string
	if split(key, t[:]) != 4 || t[0] == "" || t[1] == "" || t[3] == "" || !Literal(key) {
		return r, 0, "", false
	}
	generation, ok = canonical(t[2])
	return Run{t[0], t[1]}, generation, t[3], ok
}

// Imported reports whether a request's reply subject says that it came through an import of its account. No client can
// publish a request that names such a subject.
func Imported(reply string) bool { return strings.HasPrefix(reply, "_R_.") }
