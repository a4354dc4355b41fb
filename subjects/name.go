package subjects

import "strconv"

// name is a subject, a key or an id being written. It begins on the stack of whoever builds it, so that a name of
// common length costs one allocation: several are made for each step.
type name []byte

// room is what most names fit into, in bytes.
const room = 192

func (n name) text(parts ...string) name {
	for _, s := range parts {
		n = append(n, s...)
	}
	return n
}

func (n name) int(i int) name { return strconv.AppendInt(n, int64(i), 10) }

func (n name) uint(i uint64) name { return strconv.AppendUint(n, i, 10) }

// token writes a string as Encode does.
func (n name) token(s string) name {
	for i := range len(s) {
		if c := s[i]; IsPlain(c) {
			n = append(n, c)
		} else {
			n = append(n, '=', upperHex[c>>4], upperHex[c&15])
		}
	}
	return n
}

// toolOf writes the tool of an attempt.
func (n name) toolOf(a *Attempt) name {
	if a.Tool == CompositeTool {
		return n.text(CompositeTool)
	}
	return n.token(a.Tool)
}

// run writes T.R.
func (n name) run(r Run) name { return n.text(r.Tenant, ".", r.ID) }

// attempt writes G.S.A, the end of an attempt's names.
func (n name) attempt(a *Attempt) name {
	return n.uint(a.Generation).text(".", a.Step, ".").int(a.Number)
}

// split cuts a subject at its dots, into at most len(into) tokens; it gives how many there are, which may be more.
func split(subject string, into []string) (tokens int) {
	start := 0
	for i := range len(subject) {
		if subject[i] != '.' {
			continue
		}
		if tokens < len(into) {
			into[tokens] = subject[start:i]
		}
		tokens++
		start = i + 1
	}
	if tokens < len(into) {
		into[tokens] = subject[start:]
	}
	return tokens + 1
}

// identity writes T/R/G.
func (n name) identity(r Run, g uint64) name { return n.text(r.Tenant, "/", r.ID, "/").uint(g) }

// hash returns the FNV-1a hash of a name, of 64 bits; 1 where that is 0. Package hash/fnv would allocate.
func (n name) hash() uint64 {
	h := uint64(14695981039346656037)
	for _, c := range n {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return max(h, 1)
}
