package builtin

import (
	"context"
	"encoding/json"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

func TestCalculations(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tool, args, want string }{
		{"add", `{"a":0.1,"b":0.2}`, "0.3"}, {"add", `{"a":1,"b":2.0}`, "3"}, {"add", `{"a":1e2,"b":1}`, "101"}, {"add", `{"a":99999999999999999999,"b":1}`, "100000000000000000000"},
		{"add", `{"a":-0.0,"b":0}`, "0"}, {"add", `{"a":1e300,"b":1}`, "1" + strings.Repeat("0", 299) + "1"},
		{"subtract", `{"a":1,"b":0.9}`, "0.1"}, {"multiply", `{"a":1.1,"b":1.1}`, "1.21"}, {"multiply", `{"a":19.50,"b":4}`, "78"},
		{"divide", `{"a":7,"b":2}`, "3.5"}, {"divide", `{"a":6,"b":3}`, "2"}, {"divide", `{"a":1,"b":3}`, "0.3333333333333333333333333333333333"},
		{"divide", `{"a":-2,"b":3}`, "-0.6666666666666666666666666666666667"}, {"divide", `{"a":1,"b":1024}`, "0.0009765625"}, {"divide", `{"a":1,"b":9007199254740993}`, "0.0000000000000001110223024625156417164115227307739"},
		{"remainder", `{"a":17,"b":5}`, "2"}, {"remainder", `{"a":-7,"b":3}`, "2"}, {"remainder", `{"a":7,"b":-3}`, "-2"}, {"remainder", `{"a":5.5,"b":2}`, "1.5"},
		{"power", `{"base":1.05,"exponent":10}`, "1.62889462677744140625"}, {"power", `{"base":2,"exponent":-2}`, "0.25"}, {"power", `{"base":2,"exponent":0.5}`, "1.414213562373095048801688724209698"},
		{"power", `{"base":0,"exponent":0}`, "1"}, {"power", `{"base":-2,"exponent":3}`, "-8"}, {"power", `{"base":8,"exponent":0.25}`, "1.681792830507429"},
		{"sqrt", `{"x":225}`, "15"}, {"sqrt", `{"x":2.25}`, "1.5"}, {"sqrt", `{"x":2}`, "1.414213562373095048801688724209698"}, {"sqrt", `{"x":0}`, "0"},
		{"isqrt", `{"x":24}`, "4"}, {"isqrt", `{"x":25.9}`, "5"}, {"isqrt", `{"x":152415787532388367501905199875019052099}`, "12345678901234567889"},
		{"round", `{"x":2.5}`, "3"}, {"round", `{"x":-2.5}`, "-3"}, {"round", `{"x":2.345,"digits":2}`, "2.35"}, {"round", `{"x":1234,"digits":-2}`, "1200"}, {"round", `{"x":-0.4}`, "0"}, {"round", `{"x":1.005,"digits":2}`, "1.01"},
		{"floor", `{"x":-2.1}`, "-3"}, {"floor", `{"x":2.9}`, "2"}, {"ceil", `{"x":2.1}`, "3"}, {"ceil", `{"x":-2.9}`, "-2"}, {"abs", `{"x":-1.5}`, "1.5"}, {"negate", `{"x":2.50}`, "-2.5"},
		{"min", `{"numbers":[3,-1.5,2]}`, "-1.5"}, {"max", `{"numbers":[3,1e1,2]}`, "10"}, {"sum", `{"numbers":[0.1,0.2,0.3]}`, "0.6"}, {"average", `{"numbers":[1,2,2]}`, "1.666666666666666666666666666666667"},
		{"gcd", `{"a":12,"b":-18}`, "6"}, {"lcm", `{"a":4,"b":6}`, "12"}, {"lcm", `{"a":0,"b":6}`, "0"}, {"factorial", `{"n":25}`, "15511210043330985984000000"}, {"choose", `{"n":5,"k":2}`, "10"},
	} {
		got, err := run(t, c.tool, c.args)
		require.NoError(t, err, "%s %s", c.tool, c.args)
		require.Equal(t, `{"result":`+c.want+`}`, got, "%s %s", c.tool, c.args)
	}
}

func TestCalculationsThatCannotBe(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("9", 19_999)
	for _, c := range []struct{ tool, args, says string }{
		{"divide", `{"a":1,"b":0}`, "division by zero"}, {"remainder", `{"a":1,"b":0.0}`, "division by zero"}, {"power", `{"base":0,"exponent":-1}`, "division by zero"},
		{"power", `{"base":-2,"exponent":0.5}`, "not a real number"}, {"sqrt", `{"x":-1}`, "negative number"}, {"isqrt", `{"x":-0.1}`, "negative number"},
		{"factorial", `{"n":-1}`, "n must not be negative"}, {"factorial", `{"n":2.5}`, "n must be a whole number"}, {"choose", `{"n":5,"k":-2}`, "k must not be negative"}, {"gcd", `{"a":1.5,"b":2}`, "a must be a whole number"},
		{"multiply", `{"a":` + huge + `,"b":100000}`, "20000 digits"}, {"power", `{"base":10,"exponent":20001}`, "20000 digits"}, {"power", `{"base":1.1,"exponent":9000000}`, "20000 digits"},
		{"add", `{"a":1e400000,"b":1}`, "20000 digits"}, {"add", `{"a":1e-99999999999999999999,"b":1}`, "20000 digits"}, {"factorial", `{"n":100000000000000}`, "20000 digits"},
		{"power", `{"base":1e300,"exponent":1.5}`, "largest float"}, {"round", `{"x":1,"digits":99999999999}`, "20000 digits"},
	} {
		begin := time.Now()
		_, err := run(t, c.tool, c.args)
		require.Error(t, err, "%s %.80s", c.tool, c.args)
		e := fault.As(err)
		require.Equal(t, fault.ToolTerminal, e.Code, "%s", err)
		require.Contains(t, e.Message, c.says, "%s %.80s", c.tool, c.args)
		require.NotEmpty(t, e.Hint)
		require.NotContains(t, e.Error(), "arg_")
		require.Less(t, time.Since(begin), 20*time.Second)
	}
	for _, c := range []struct{ tool, args string }{{"add", `{"a":"1","b":2}`}, {"add", `{"a":1}`}, {"sum", `{"numbers":[]}`}, {"sum", `{"numbers":3}`}, {"max", `{"numbers":[null]}`}} {
		found, _ := Lookup(c.tool)
		_, err := found.Run(context.Background(), Call{Args: json.RawMessage(c.args)})
		require.Equal(t, fault.InvalidArguments, fault.CodeOf(err), "%s %s", c.tool, c.args)
	}
}

// What is written is read back as the same number, and a sum of decimals is the one of their fractions.
func TestExactNumbersAgainstFractions(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	lit := func() string {
		s := big.NewInt(r.Int64N(1_000_000) - 500_000).String()
		if r.IntN(2) == 0 {
			s += "." + big.NewInt(r.Int64N(1_000_000)).String()
		}
		return s
	}
	for range 2000 {
		a, b := lit(), lit()
		x, err := parseExact([]byte(a))
		require.NoError(t, err)
		y, err := parseExact([]byte(b))
		require.NoError(t, err)
		for _, z := range []exact{{new(big.Rat).Add(x.Rat, y.Rat)}, {new(big.Rat).Mul(x.Rat, y.Rat)}, x} {
			back, ok := new(big.Rat).SetString(z.String())
			require.True(t, ok)
			require.Zero(t, back.Cmp(z.Rat), "%s %s", a, b)
		}
		if y.Sign() != 0 {
			q := exact{new(big.Rat).Quo(x.Rat, y.Rat)}
			back, _ := new(big.Rat).SetString(q.String())
			off := new(big.Rat).Sub(back, q.Rat)
			limit := new(big.Rat).Mul(new(big.Rat).Abs(q.Rat), big.NewRat(1, 1_000_000_000_000_000_000))
			require.LessOrEqual(t, off.Abs(off).Cmp(limit), 0, "%s / %s", a, b)
		}
	}
}
