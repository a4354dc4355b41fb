package subjects

import "hash/fnv"

// Span returns the id of the attempt's span in traces: the FNV-1a hash, of 64 bits, of MessageID; 1 where that is 0,
// which is no id. Whoever knows the attempt knows its span, so nobody has to keep one.
func (a Attempt) Span() uint64 { return make(name, 0, room).key(&a).text("/").int(a.Number).hash() }

// Span returns the id of the span of one generation of the run, as that of an attempt is made, from T/R/G.
func (r Run) Span(generation uint64) uint64 {
	return make(name, 0, room).identity(r, generation).hash()
}

// Trace returns the id of the trace of one generation of the run, where its plan came without one: the FNV-1a hash, of
// 128 bits, of T/R/G.
func (r Run) Trace(generation uint64) (id [16]byte) {
	h := fnv.New128a()
	_, _ = h.Write(make(name, 0, room).identity(r, generation)) // it never fails
	h.Sum(id[:0])
	return id
}
