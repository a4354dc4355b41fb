package expression

import (
	"encoding/json"
	"errors"
	"math/big"
	"math/rand"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

// What follows is a second evaluator, with nothing but fractions of math/big, written from the doc of this package. It
// evaluates trees, which print themselves with no more brackets than the doc's table of operators asks for.

// tree is an expression. A leaf is a reference or a literal; text is how it is written.
type tree struct {
	op   string
	kids []*tree
	text string
	leaf any
}

// binds says how much an operator binds.
var binds = map[string]int{
	"?:": 1, "or": 2, "and": 3,
	"==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "in": 4, "contains": 4, "startsWith": 4, "endsWith": 4, "matches": 4, "not in": 4, "not contains": 4,
	"+": 5, "-": 5, "not": 6, "*": 7, "/": 7, "%": 7, "negative": 8, "??": 9,
}

func (x *tree) String() string {
	switch {
	case x.op == "":
		return x.text
	case x.op == "?:":
		return x.kid(0, 2) + " ? " + x.kid(1, 1) + " : " + x.kid(2, 1)
	case x.op == "not":
		return "not " + x.kid(0, 100)
	case x.op == "negative":
		return "-" + x.kid(0, 9)
	case x.op == "[]":
		return "[" + x.list() + "]"
	case binds[x.op] == 0:
		return x.op + "(" + x.list() + ")"
	case binds[x.op] == 4:
		return x.kid(0, 5) + " " + x.op + " " + x.kid(1, 5)
	}
	return x.kid(0, binds[x.op]) + " " + x.op + " " + x.kid(1, binds[x.op]+1)
}

// kid prints a child, in brackets where it binds less than it has to.
func (x *tree) kid(i, least int) string {
	k := x.kids[i]
	b, ok := binds[k.op]
	first := i == 0 && len(x.kids) == 2
	switch {
	case !ok:
	case b < least, k.op == "not" && x.op != "and" && x.op != "or", k.op == "??" && first && x.op != "??":
		return "(" + k.String() + ")"
	}
	return k.String()
}

func (x *tree) list() string {
	var all []string
	for _, k := range x.kids {
		all = append(all, k.String())
	}
	return strings.Join(all, ", ")
}

var errTwin = errors.New("condition_failed")

func (x *tree) eval() (any, error) {
	if x.op == "" {
		return x.leaf, nil
	}
	first, err := x.kids[0].eval()
	if err != nil {
		return nil, err
	}
	switch x.op {
	case "??":
		if first != nil {
			return first, nil
		}
		return x.kids[1].eval()
	case "?:":
		if b, ok := first.(bool); !ok && first != nil {
			return nil, errTwin
		} else if b {
			return x.kids[1].eval()
		}
		return x.kids[2].eval()
	case "and", "or":
		return x.logic(first)
	}
	all := []any{first}
	for _, k := range x.kids[1:] {
		v, err := k.eval()
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	switch x.op {
	case "[]":
		return all, nil
	case "sum", "product", "min", "max":
		return fold(x.op, all)
	case "not in", "not contains":
		v, err := apply(strings.TrimPrefix(x.op, "not "), all)
		if err != nil || v == nil {
			return nil, err
		}
		return !v.(bool), nil
	}
	return apply(x.op, all)
}

// logic is a table of three values.
func (x *tree) logic(first any) (any, error) {
	decides := x.op == "or"
	if b, ok := first.(bool); !ok && first != nil {
		return nil, errTwin
	} else if ok && b == decides {
		return decides, nil
	}
	second, err := x.kids[1].eval()
	if err != nil {
		return nil, err
	}
	b, ok := second.(bool)
	switch {
	case !ok && second != nil:
		return nil, errTwin
	case ok && b == decides:
		return decides, nil
	case first == nil || second == nil:
		return nil, nil
	}
	return !decides, nil
}

func fold(op string, args []any) (any, error) {
	var flat []any
	for _, a := range args {
		if list, ok := a.([]any); ok {
			flat = append(flat, list...)
		} else {
			flat = append(flat, a)
		}
	}
	var total any
	for _, v := range flat {
		n, ok := v.(*big.Rat)
		switch {
		case v == nil:
			continue
		case !ok:
			return nil, errTwin
		case op == "min" && (total == nil || n.Cmp(total.(*big.Rat)) < 0), op == "max" && (total == nil || n.Cmp(total.(*big.Rat)) > 0):
			total = n
		case op == "min" || op == "max":
		default:
			var err error
			if total == nil {
				total, err = rounded34(n)
			} else {
				total, err = apply(map[string]string{"sum": "+", "product": "*"}[op], []any{total, n})
			}
			if err != nil {
				return nil, err
			}
		}
	}
	if total == nil && op == "sum" {
		return new(big.Rat), nil
	}
	if total == nil && op == "product" {
		return big.NewRat(1, 1), nil
	}
	return total, nil
}

// apply is what an operator or function makes of values.
func apply(op string, all []any) (any, error) {
	switch op {
	case "==":
		return same(all[0], all[1]), nil
	case "!=":
		return !same(all[0], all[1]), nil
	case "in":
		return within(all[0], all[1])
	case "contains":
		if list, ok := all[0].([]any); ok {
			return within(all[1], list)
		}
	}
	kinds := takes[op]
	for _, v := range all {
		if v != nil && !slices.Contains(kinds, reflect.TypeOf(v)) {
			return nil, errTwin
		}
	}
	if len(all) == 2 && all[0] != nil && all[1] != nil && reflect.TypeOf(all[0]) != reflect.TypeOf(all[1]) || slices.Contains(all, nil) {
		if slices.Contains(all, nil) {
			return nil, nil
		}
		return nil, errTwin
	}
	switch v := all[0].(type) {
	case *big.Rat:
		return ofNumbers(op, all)
	case string:
		return ofTexts(op, all)
	case bool:
		return !v, nil
	case []any:
		return big.NewRat(int64(len(v)), 1), nil
	case map[string]any:
		return big.NewRat(int64(len(v)), 1), nil
	}
	return nil, errTwin
}

var aRat, aText, aBool, aList, aMap = reflect.TypeOf(new(big.Rat)), reflect.TypeOf(""), reflect.TypeOf(true), reflect.TypeOf([]any{}), reflect.TypeOf(map[string]any{})

// takes says of which kinds an operator's operands are.
var takes = map[string][]reflect.Type{
	"<": {aRat, aText}, "<=": {aRat, aText}, ">": {aRat, aText}, ">=": {aRat, aText},
	"+": {aRat}, "-": {aRat}, "*": {aRat}, "/": {aRat}, "%": {aRat}, "negative": {aRat}, "abs": {aRat}, "round": {aRat},
	"contains": {aText}, "startsWith": {aText}, "endsWith": {aText}, "matches": {aText}, "lower": {aText}, "upper": {aText}, "trim": {aText},
	"not": {aBool}, "len": {aText, aList, aMap},
}

func within(v, in any) (any, error) {
	switch in := in.(type) {
	case nil:
		return nil, nil
	case []any:
		return slices.ContainsFunc(in, func(x any) bool { return same(x, v) }), nil
	case map[string]any:
		key, ok := v.(string)
		if v == nil {
			return nil, nil
		}
		if !ok {
			return nil, errTwin
		}
		_, there := in[key]
		return there, nil
	}
	return nil, errTwin
}

func same(a, b any) bool {
	switch a := a.(type) {
	case *big.Rat:
		b, ok := b.(*big.Rat)
		return ok && a.Cmp(b) == 0
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k := range a {
			if other, there := b[k]; !there || !same(a[k], other) {
				return false
			}
		}
		return true
	}
	return reflect.TypeOf(b) != aList && reflect.TypeOf(b) != aMap && a == b
}

func ofTexts(op string, all []any) (any, error) {
	a := all[0].(string)
	var b string
	if len(all) > 1 {
		b = all[1].(string)
	}
	switch op {
	case "<", "<=", ">", ">=":
		return ordered(op, strings.Compare(a, b)), nil
	case "contains":
		return strings.Contains(a, b), nil
	case "startsWith":
		return len(a) >= len(b) && a[:len(b)] == b, nil
	case "endsWith":
		return len(a) >= len(b) && a[len(a)-len(b):] == b, nil
	case "matches":
		return regexp.MustCompile(b).MatchString(a), nil
	case "lower":
		return strings.ToLower(a), nil
	case "upper":
		return strings.ToUpper(a), nil
	case "trim":
		return strings.TrimSpace(a), nil
	case "len":
		return big.NewRat(int64(utf8.RuneCountInString(a)), 1), nil
	}
	return nil, errTwin
}

func ordered(op string, n int) bool {
	return n < 0 && op[0] == '<' || n > 0 && op[0] == '>' || n == 0 && len(op) == 2
}

func ofNumbers(op string, all []any) (any, error) {
	exactly := all[0].(*big.Rat)
	switch op {
	case "<", "<=", ">", ">=":
		return ordered(op, exactly.Cmp(all[1].(*big.Rat))), nil
	case "abs":
		return new(big.Rat).Abs(exactly), nil
	case "negative":
		return new(big.Rat).Neg(exactly), nil
	}
	if op == "round" {
		digits := new(big.Rat)
		if len(all) > 1 {
			digits = all[1].(*big.Rat)
		}
		return roundedTo(exactly, digits)
	}
	a, err := rounded34(exactly)
	if err != nil {
		return nil, err
	}
	b := new(big.Rat)
	if len(all) > 1 {
		if b, err = rounded34(all[1].(*big.Rat)); err != nil {
			return nil, err
		}
	}
	r := new(big.Rat)
	switch op {
	case "+":
		return rounded34(r.Add(a, b))
	case "-":
		return rounded34(r.Sub(a, b))
	case "*":
		return rounded34(r.Mul(a, b))
	}
	if b.Sign() == 0 {
		return nil, errTwin
	}
	quotient := r.Quo(a, b)
	if op == "/" {
		return rounded34(quotient)
	}
	if power(a)-power(b) > 100 {
		return nil, errTwin
	}
	whole := new(big.Int).Div(quotient.Num(), quotient.Denom()) // Euclid: the denominator is positive
	return rounded34(new(big.Rat).Sub(a, new(big.Rat).Mul(b, new(big.Rat).SetInt(whole))))
}

// power returns the power of ten of a number's first digit.
func power(r *big.Rat) int {
	if r.Sign() == 0 {
		return -100_000
	}
	x := new(big.Rat).Abs(r)
	n := len(x.Num().String()) - len(x.Denom().String())
	for ; x.Cmp(ten(n)) < 0; n-- {
	}
	for ; x.Cmp(ten(n+1)) >= 0; n++ {
	}
	return n
}

func ten(n int) *big.Rat {
	r := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n))), nil))
	if n < 0 {
		r.Inv(r)
	}
	return r
}

// atUnit rounds to a multiple of a unit, a half away from zero.
func atUnit(r, unit *big.Rat) *big.Rat {
	x := new(big.Rat).Quo(new(big.Rat).Abs(r), unit)
	x.Add(x, big.NewRat(1, 2))
	x.SetInt(new(big.Int).Quo(x.Num(), x.Denom()))
	if x.Mul(x, unit); r.Sign() < 0 {
		x.Neg(x)
	}
	return x
}

func rounded34(r *big.Rat) (*big.Rat, error) {
	if r.Sign() == 0 {
		return r, nil
	}
	x := atUnit(r, ten(power(r)-33))
	if n := power(x); n > 6144 || n < -6144 {
		return nil, errTwin
	}
	return x, nil
}

func roundedTo(r, digits *big.Rat) (any, error) {
	if !digits.IsInt() || !digits.Num().IsInt64() || digits.Num().Int64() > 6144 || digits.Num().Int64() < -6144 {
		return nil, errTwin
	}
	return rounded34(atUnit(r, ten(-int(digits.Num().Int64()))))
}

// TestTwin evaluates random expressions twice.
func TestTwin(t *testing.T) {
	g := newGenerator(rand.New(rand.NewSource(*seed)))
	failures, conditions := 0, map[bool]int{}
	for range *rounds {
		x, want := g.expression()
		text := x.String()
		e := compiled(t, text)
		v := values(g.text)
		got, err := e.Value(v.of(e), ValueLimits)
		about := []any{"%s with %v", text, v}
		if want.err != nil {
			failures++
			require.NotNil(t, err, about...)
			require.Equal(t, "condition_failed", string(err.Code), about...)
			continue
		}
		require.Nil(t, err, about...)
		back := ofJSON(t, string(got))
		require.True(t, same(want.value, back), "%s with %v is %s", text, v, got)
		if b, ok := want.value.(bool); ok || want.value == nil {
			yes, err := e.True(v.of(e), ConditionLimits)
			require.Nil(t, err, about...)
			require.Equal(t, b, yes, about...)
			conditions[yes]++
		}
	}
	require.Greater(t, failures, *rounds/50, "some fail")
	require.Less(t, failures, *rounds/2, "most do not")
	require.Greater(t, conditions[true], *rounds/20)
	require.Greater(t, conditions[false], *rounds/20)
}

// ofJSON returns JSON as the twin has it.
func ofJSON(t testing.TB, text string) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v), "%s", text)
	return asTwin(v)
}

func asTwin(v any) any {
	switch v := v.(type) {
	case json.Number:
		r, _ := new(big.Rat).SetString(v.String())
		return r
	case []any:
		for i := range v {
			v[i] = asTwin(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = asTwin(v[k])
		}
	}
	return v
}
