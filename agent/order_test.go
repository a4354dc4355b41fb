package agent

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheLastCallsObjectCounts: whichever object came first, behind a round that of the last call in the answer's order is the one of
// its type, and the one that chains act upon; what objects are called follows the order in which they came, and so does all in runs of
// before. Held against somebody who sorts all that came, for random rounds.
func TestTheLastCallsObjectCounts(t *testing.T) {
	t.Parallel()
	const members = `"capture_nested":true,"tools":["search",{"chain":"User","tools":["act"]},{"chain":%q,"tools":["report"]}]`
	type object struct {
		typ   string
		n     int
		place []int
	}
	types := []string{"User", "crm.User", "Order", "List"}
	for seed := range uint64(2_000) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		second := []string{"Order", "*"}[rnd.IntN(2)]
		d := define(t, fmt.Sprintf(members, second))
		before := rnd.IntN(8) == 0
		f, bad := d.Begin(nil, nil)
		require.Nil(t, bad)
		if before {
			OrderFormerly(f)
		}
		f.BeginRound(0, nil)
		want := map[string]int{} // by type, and by "chain " and its type
		n := 0
		counts := func(o object) {
			for _, typ := range []string{o.typ, simpleName(o.typ)} {
				want[typ] = o.n
			}
			if o.typ == "List" {
				return
			}
			if second == "*" {
				delete(want, "chain User")
				want["chain *"] = o.n
			}
			if simpleName(o.typ) == "User" {
				want["chain User"] = o.n
			}
			if o.typ == second {
				want["chain "+second] = o.n
			}
		}
		var names []string
		called := map[string]int{}
		for round := range 1 + rnd.IntN(3) {
			var came []object
			for range rnd.IntN(7) {
				n++
				o := object{types[rnd.IntN(len(types))], n, []int{round, rnd.IntN(3), rnd.IntN(3)}}
				value := json.RawMessage(fmt.Sprint(o.n))
				if o.typ == "List" {
					value = json.RawMessage(fmt.Sprintf("[%d]", o.n))
				}
				if rnd.IntN(3) == 0 { // of an agent below
					f.Add(Outcome{Entry: "search", Place: o.place[:2], Nested: []Artifact{{Type: o.typ, Value: value, place: o.place[2:]}}, Failed: true})
				} else {
					f.Add(Outcome{Entry: "search", Place: o.place, Type: o.typ, Result: value})
				}
				if rnd.IntN(4) == 0 {
					f = f.Clone()
				}
				came = append(came, o)
				name := simpleName(o.typ)
				if called[name]++; called[name] > 1 {
					name = fmt.Sprint(name, "_", called[name])
				}
				names = append(names, name)
			}
			if !before {
				slices.SortStableFunc(came, func(a, b object) int { return slices.Compare(a.place, b.place) })
			}
			for _, o := range came {
				counts(o)
			}
			f.BeginRound(round+1, nil)
		}
		got := map[string]int{}
		for _, typ := range types {
			if v, is := f.board.last(typ); is {
				got[typ] = number(t, v)
			}
		}
		for _, typ := range []string{"User", second} {
			if v, is := f.board.bound.get(typ); is {
				got["chain "+typ] = number(t, v)
			}
		}
		require.Equal(t, want, got, "seed %d", seed)
		require.Equal(t, names, f.board.names(), "seed %d", seed)
	}
}

func number(t *testing.T, raw json.RawMessage) (n int) {
	t.Helper()
	list := []int{0}
	if json.Unmarshal(raw, &n) != nil {
		require.NoError(t, json.Unmarshal(raw, &list))
		n = list[0]
	}
	return n
}
