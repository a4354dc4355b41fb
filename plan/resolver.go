package plan

import (
	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/internal/jsontape"
)

// Resolver resolves the arguments of one run's steps, and remembers its way around large results: a fan-out over a list
// of ten thousand items would otherwise read the list ten thousand times. It is what Plan.Arguments is, faster: the
// answers are the same.
//
// It belongs to one goroutine, and to one set of results: for each dependency, result must give the same bytes on every
// call.
type Resolver struct {
	plan  *Plan
	most  int64             // bytes of arguments or of the value in hand; 0 for MaxArguments
	ways  map[way]int32     // where a member's value begins; -1 where there is none
	items map[way][]int32   // of an array: where each stride-th item begins, as far as it was read
	lists map[string][]byte // of a projection, by the reference as written: what it comes to
	kept  int               // bytes of lists
	left  int64             // bytes that the references of the step in hand may still go through
	work  int               // of calculations that is left for the step in hand
	// deriving says that the step in hand is a value.
	deriving bool
	fates    func(step int) Fate
	input    func() (json []byte, ok bool)
	turn     Turn
	// lenient lets what is missing be null, whatever the plan says.
	lenient bool
}

// way is a member of an object, or an array, in a result.
type way struct {
	dep int
	at  int32  // where the object or array begins
	key string // of the member
}

const (
	// worthIt is the number of bytes from which on it is cheaper to remember than to skip them again.
	worthIt = 8 << 10
	// stride is the number of items between two places that are remembered.
	stride = 32
)

// NewResolver returns a resolver for one run of the plan.
func (p *Plan) NewResolver() *Resolver { return &Resolver{plan: p} }

// For makes the resolver one for another plan, or for other results of the same: it remembers nothing of those before.
// Who tells it of fates and of the input goes on to do so.
func (r *Resolver) For(p *Plan) *Resolver {
	r.plan, r.most, r.kept, r.ways, r.items, r.lists = p, 0, 0, nil, nil, nil
	return r
}

// Fates tells how steps ended, for references to their error and status; without it there is nothing to find there. It
// must return the same for a step each time.
func (r *Resolver) Fates(of func(step int) Fate) *Resolver {
	r.fates = of
	return r
}

// Input tells the input of the plan, as result does for a step's; without it there is none.
func (r *Resolver) Input(of func() (json []byte, ok bool)) *Resolver {
	r.input = of
	return r
}

// In tells in which iteration of a loop the arguments are; nil: in none.
func (r *Resolver) In(turn Turn) *Resolver {
	r.turn = turn
	return r
}

// Limit has the resolver answer too_large for more than so many bytes, before anything is built: for a caller that has
// another place for what is large.
func (r *Resolver) Limit(bytes int64) *Resolver {
	r.most = bytes
	return r
}

// Arguments is Plan.Arguments.
func (r *Resolver) Arguments(step int, result func(dep int) (json []byte, ok bool)) ([]byte, *fault.Error) {
	r.left = maxGoneThrough
	return r.arguments(step, nil, result)
}

// Items is Plan.Items.
func (r *Resolver) Items(step int, result func(dep int) (json []byte, ok bool)) ([][]byte, *fault.Error) {
	r.left = maxGoneThrough
	return r.list(step, result)
}

// ItemArguments is Plan.ItemArguments.
func (r *Resolver) ItemArguments(step int, item []byte, result func(dep int) (json []byte, ok bool)) ([]byte, *fault.Error) {
	r.left = maxGoneThrough
	return r.arguments(step, item, result)
}

// member is member with a memory; of items, which are others each time, it has none.
func (r *Resolver) member(dep int, b []byte, i int, key string) int {
	if dep == theItem || len(b)-i < worthIt {
		return jsontape.Member(b, i, key)
	}
	w := way{dep, int32(i), key}
	if at, ok := r.ways[w]; ok && int(at) < len(b) {
		return int(at)
	}
	at := jsontape.Member(b, i, key)
	if at < 0 || at-i >= worthIt {
		if r.ways == nil {
			r.ways = map[way]int32{}
		}
		r.ways[w] = int32(at)
	}
	return at
}

// item is item with a memory.
func (r *Resolver) item(dep int, b []byte, i, n int) int {
	if dep == theItem || len(b)-i < worthIt || n < stride {
		return jsontape.Item(b, i, n)
	}
	w := way{dep: dep, at: int32(i)}
	known := r.items[w]
	if known == nil {
		first := jsontape.Item(b, i, 0)
		if first < 0 {
			return -1
		}
		known = []int32{int32(first)}
	}
	have := len(known)
	for len(known) <= n/stride {
		at := jsontape.Ahead(b, int(known[len(known)-1]), stride)
		if at < 0 {
			break
		}
		known = append(known, int32(at))
	}
	if len(known) > have {
		if r.items == nil {
			r.items = map[way][]int32{}
		}
		r.items[w] = known
	}
	if len(known) <= n/stride {
		return -1
	}
	return jsontape.Ahead(b, int(known[n/stride]), n%stride)
}
