package tally

import (
	"encoding/binary"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/outcome"
)

const (
	lengths   = 128 // that outcome.Spans tells apart
	mostCodes = 256
)

// sums is what calls came to, as it is added up. Packed, it is the three counts, and behind them of codes, executions and
// waits how many kinds there were, and of each its number and how many: all as varints, so that what is rare, as most is,
// takes two bytes or nothing.
type sums struct {
	counts [3]uint64 // calls, failed, asked
	codes  [mostCodes]uint64
	ran    [lengths]uint64
	waited [lengths]uint64
	kinds  [3][]uint64 // the last three
	made   []byte
}

func newSums() *sums {
	s := &sums{}
	s.kinds = [3][]uint64{s.codes[:], s.ran[:], s.waited[:]}
	return s
}

func (s *sums) reset() {
	clear(s.counts[:])
	for _, of := range s.kinds {
		clear(of)
	}
}

// count is a number that anybody has written.
func count(n int) uint64 { return uint64(min(max(n, 0), 1<<40)) }

// add adds what a run says of a tool. It is anybody's: what is no count is left out.
func (s *sums) add(c *outcome.Calls, known *codes) {
	for i, n := range [3]int{c.Calls, c.Failed, c.Asked} {
		s.counts[i] += count(n)
	}
	for code, n := range c.Codes {
		s.codes[known.number(code)] += count(n)
	}
	addSpans(s.ran[:], c.Ran)
	addSpans(s.waited[:], c.Waited)
}

func addSpans(into []uint64, spans outcome.Spans) {
	for b, n := range spans {
		if b >= 0 && b < lengths {
			into[b] += count(n)
		}
	}
}

// unpack adds what was packed.
func (s *sums) unpack(from []byte) {
	if len(from) == 0 {
		return
	}
	next := func() uint64 {
		n, size := binary.Uvarint(from)
		from = from[size:]
		return n
	}
	for i := range s.counts {
		s.counts[i] += next()
	}
	for i := range s.kinds {
		for range next() {
			at := next()
			s.kinds[i][at] += next()
		}
	}
}

// pack writes the sums, in the place of what there was where they fit.
func (s *sums) pack(into []byte) []byte {
	made := s.made[:0]
	for _, n := range s.counts {
		made = binary.AppendUvarint(made, n)
	}
	for _, of := range s.kinds {
		kinds := 0
		for _, n := range of {
			if n > 0 {
				kinds++
			}
		}
		made = binary.AppendUvarint(made, uint64(kinds))
		for at, n := range of {
			if n > 0 {
				made = binary.AppendUvarint(binary.AppendUvarint(made, uint64(at)), n)
			}
		}
	}
	s.made = made
	if cap(into) < len(made) {
		into = make([]byte, 0, len(made))
	}
	return append(into[:0], made...)
}

// calls returns the sums as they are told; nil where there are none.
func (s *sums) calls(known *codes) *outcome.Calls {
	if s.counts == [3]uint64{} {
		return nil
	}
	c := &outcome.Calls{Calls: int(s.counts[0]), Failed: int(s.counts[1]), Asked: int(s.counts[2])}
	for i, n := range s.codes {
		if n > 0 {
			if c.Codes == nil {
				c.Codes = map[fault.Code]int{}
			}
			c.Codes[known.name(i)] = int(n)
		}
	}
	c.Ran, c.Waited = spans(s.ran[:]), spans(s.waited[:])
	return c
}

func spans(counts []uint64) (out outcome.Spans) {
	for b, n := range counts {
		if n > 0 {
			if out == nil {
				out = outcome.Spans{}
			}
			out[b] = int(n)
		}
	}
	return out
}
