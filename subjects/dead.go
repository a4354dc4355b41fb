package subjects

import (
	"strconv"
	"strings"
)

// DeadKey returns the key of a step's dead letter in the bucket "dead": T.R.G.S.
func DeadKey(r Run, generation uint64, step string) string {
	return r.Key() + "." + strconv.FormatUint(generation, 10) + "." + step
}

// DeadFilter matches the dead letters of a tenant.
func DeadFilter(tenant string) string { return tenant + ".>" }

// DeadRunFilter matches the dead letters of a run, of all its generations.
func DeadRunFilter(r Run) string { return r.Key() + ".>" }

// DeadStepFilter matches the dead letters of a step, of all its run's generations.
func DeadStepFilter(r Run, step string) string { return r.Key() + ".*." + step }

// ParseDeadKey reads a key of DeadKey.
func ParseDeadKey(key string) (r Run, generation uint64, step string, ok bool) {
	t := strings.Split(key, ".")
	if len(t) != 4 {
		return r, 0, "", false
	}
	generation, err := strconv.ParseUint(t[2], 10, 64)
	if err != nil || t[0] == "" || t[1] == "" || t[3] == "" {
		return r, 0, "", false
	}
	return Run{t[0], t[1]}, generation, t[3], true
}
