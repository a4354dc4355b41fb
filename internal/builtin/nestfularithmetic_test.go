package builtin

import (
	"context"
	"math"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/stepjet/stepjet/fault"
)

// nestfulTool returns a tool of the data set; several bear the name of one with other arguments.
func nestfulTool(name string) (Tool, bool) {
	for _, t := range Group("nestful") {
		if t.Definition.Name == name {
			return t, true
		}
	}
	return Tool{}, false
}

// calc runs a tool of the data set on literals and gives the literal that comes out.
func calc(name string, args ...string) (string, error) {
	tool, _ := nestfulTool(name)
	var b strings.Builder
	for i, a := range args {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"arg_` + strconv.Itoa(i) + `":` + a)
	}
	out, err := tool.Run(context.Background(), Call{Args: []byte("{" + b.String() + "}")})
	return strings.TrimSuffix(strings.TrimPrefix(string(out), `{"result":`), "}"), err
}

// The expected values are what Python 3 prints for the same expression.
func TestArithmetic(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ call, want string }{
		{"add 2 3", "5"}, {"add 0.1 0.2", "0.30000000000000004"}, {"add 1 2.0", "3.0"},
		{"add 99999999999999999999 1", "100000000000000000000"}, {"add 1e2 1", "101.0"}, {"add -0 0", "0"}, {"add -0.0 0.0", "0.0"},
		{"subtract 2 5", "-3"}, {"subtract 1.5 1", "0.5"}, {"subtract 100000000000000000000 1", "99999999999999999999"},
		{"multiply 6 7", "42"}, {"multiply 1.1 3", "3.3000000000000003"}, {"multiply 123456789012345678901234567890 10", "1234567890123456789012345678900"},
		{"multiply 1e8 1e8", "1e+16"}, {"multiply 1e7 1e8", "1000000000000000.0"}, {"multiply 0.001 0.01", "1e-05"}, {"multiply 0.01 0.01", "0.0001"},
		{"divide 6 3", "2.0"}, {"divide 1 3", "0.3333333333333333"}, {"divide 7 2", "3.5"}, {"divide -7 2.0", "-3.5"}, {"divide 0 -5.0", "-0.0"},
		{"divide 100000000000000000000000000000000 3", "3.3333333333333334e+31"}, {"divide 9007199254740993 1", "9007199254740992.0"},
		{"inverse 4", "0.25"}, {"inverse 0.1", "10.0"}, {"inverse -3", "-0.3333333333333333"},
		{"negate 5", "-5"}, {"negate 0", "0"}, {"negate 0.0", "-0.0"}, {"negate -2.50", "2.5"},
		{"power 2 10", "1024"}, {"power 2 100", "1267650600228229401496703205376"}, {"power 2 -1", "0.5"}, {"power -8 -1", "-0.125"}, {"power 0 0", "1"},
		{"power -1 3", "-1"}, {"power -1 100000000000000000000", "1"}, {"power -1 100000000000000000001", "-1"}, {"power 0 5", "0"}, {"power 1 99999999999999999999999", "1"},
		{"power 1.2 2", "1.44"}, {"power 1.05 10", "1.628894626777442"}, {"power 1.1 30", "17.44940226888645"}, {"power 99.3 29", "8.156957628603176e+57"}, {"power 2.5 -3", "0.064"},
		{"power 2 0.5", "1.4142135623730951"}, {"power 9 0.5", "3.0"}, {"power -2.0 3", "-8.0"}, {"power 10.0 -400", "0.0"}, {"power 0.0 2", "0.0"},
		{"power 1.0000001 1e6", "1.1051709126143208"},
		{"sqrt 225", "15"}, {"sqrt 537", "23"}, {"sqrt 0", "0"}, {"sqrt 24.99", "4"}, {"sqrt 25.0", "5"}, {"sqrt 0.5", "0"},
		{"sqrt 152415787532388367501905199875019052099", "12345678901234567889"}, {"sqrt 152415787532388367501905199875019052100", "12345678901234567890"},
		{"floor 2.7", "2"}, {"floor -2.1", "-3"}, {"floor 5", "5"}, {"floor 1e20", "100000000000000000000"}, {"floor -0.5", "-1"}, {"floor 0.5", "0"},
		{"reminder 7 3", "1"}, {"reminder -7 3", "2"}, {"reminder 7 -3", "-2"}, {"reminder -7 -3", "-1"}, {"reminder 5 -3", "-1"}, {"reminder 6 -3", "0"},
		{"reminder -5.5 3", "0.5"}, {"reminder 5.5 -3", "-0.5"}, {"reminder 5.0 -5", "-0.0"}, {"reminder 100000000000000000001 10", "1"},
		{"gcd 12 18", "6"}, {"gcd -12 18", "6"}, {"gcd 12.9 18.2", "6"}, {"gcd -12.9 18", "6"}, {"gcd 0 7", "7"}, {"gcd 0 0", "0"},
		{"lcm 4 6", "12"}, {"lcm -4 6", "12"}, {"lcm 4.0 6", "12.0"}, {"lcm 4.5 3", "13.0"}, {"lcm 0 5", "0"}, {"lcm 100000000000000000000 3", "300000000000000000000"},
		{"factorial 0", "1"}, {"factorial 5", "120"}, {"factorial 5.0", "120"}, {"factorial 25", "15511210043330985984000000"},
		{"choose 5 2", "10"}, {"choose 5 5", "1"}, {"choose 5 6", "0"}, {"choose 6.0 2", "15"}, {"choose 100 50", "100891344545564193334812497256"},
		{"choose 0 0", "1"}, {"choose 100000000000000000000 2", "4999999999999999999950000000000000000000"}, {"choose 100000000000000000000 99999999999999999999", "100000000000000000000"},
		{"rectangle_area 3 4", "12"}, {"rectangle_area 2.5 4", "10.0"}, {"speed 100 8", "12.5"}, {"speed 10 5", "2.0"},
		{"volume_cylinder 3 10", "282.7433388230814"}, {"volume_cylinder 1.5 2", "14.137166941154069"}, {"volume_cylinder 0 1", "0.0"},
	} {
		words := strings.Fields(c.call)
		got, err := calc(words[0], words[1:]...)
		require.NoError(t, err, c.call)
		require.Equal(t, c.want, got, c.call)
	}
}

func TestArithmeticThatCannotBe(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("9", 19_999)
	for call, part := range map[string]string{
		"divide 1 0": "division by zero", "divide 1.5 0.0": "division by zero", "inverse 0": "division by zero", "speed 3 0": "division by zero",
		"reminder 3 0": "division by zero", "reminder 3.5 0": "division by zero", "power 0 -1": "division by zero", "power 0.0 -0.5": "division by zero",
		"power -2 0.5": "not a real number", "sqrt -1": "negative number", "sqrt -0.1": "negative number", "factorial -1": "must not be negative",
		"factorial 2.5": "whole number", "choose 5.5 2": "whole number", "choose -5 2": "must not be negative", "choose 5 -2": "must not be negative",
		"lcm 0 0": "not defined", "lcm 0.5 0.2": "not defined",
		"add 1e308 1e308": "largest float", "multiply 1e200 -1e200": "largest float", "divide 1e300 1e-300": "largest float", "power 10.0 400": "largest float",
		"add " + huge + " 0.5": "largest float", "divide " + huge + " 3": "largest float", "volume_cylinder 1e200 1": "largest float", "add 1e400 1": "largest float",
		"factorial 100000000000000": "20000 digits", "factorial 1e300": "20000 digits", "choose 1000000 500000": "20000 digits", "choose " + huge + " 70000": "20000 digits",
		"power 10 20001": "20000 digits", "power 2 100000000000000000000": "20000 digits", "power -7 9000000": "20000 digits",
		"multiply " + huge + " 100000": "20000 digits", "add 1 " + huge + "99999": "20000 digits", "lcm " + huge + " 1000000007": "20000 digits",
	} {
		words := strings.Fields(call)
		begin := time.Now()
		_, err := calc(words[0], words[1:]...)
		require.Error(t, err, clip([]byte(call)))
		e := fault.As(err)
		require.Equal(t, fault.ToolTerminal, e.Code, "%s", err)
		require.False(t, e.Retryable)
		require.Contains(t, e.Message, part)
		require.NotEmpty(t, e.Hint, e.Message)
		require.Less(t, len(e.Error()), 400)
		require.Less(t, time.Since(begin), 20*time.Second, clip([]byte(call)))
	}
}

func TestWrongArithmeticArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{`"5"`, "1"}, {"null", "1"}, {"true", "1"}, {"[1]", "1"}, {"1"}} {
		_, err := calc("add", args...)
		require.Equal(t, fault.InvalidArguments, fault.CodeOf(err), "%v", args)
	}
	tool, _ := nestfulTool("add")
	_, err := tool.Run(context.Background(), Call{Args: []byte(`[]`)})
	require.Equal(t, fault.InvalidArguments, fault.CodeOf(err))
}

func TestLargestIntegers(t *testing.T) {
	t.Parallel()
	got, err := calc("power", "10", "19999")
	require.NoError(t, err)
	require.Equal(t, "1"+strings.Repeat("0", 19_999), got)
	back, err := calc("subtract", got, got)
	require.NoError(t, err)
	require.Equal(t, "0", back)
}

// Python's choose and factorial by another way: Pascal's rule, and the gamma function for the size.
func TestChooseAgainstPascal(t *testing.T) {
	t.Parallel()
	row := []*big.Int{big.NewInt(1)}
	for n := 0; n < 60; n++ {
		for r, want := range row {
			got, err := calc("choose", strconv.Itoa(n), strconv.Itoa(r))
			require.NoError(t, err)
			require.Equal(t, want.String(), got, "choose %d %d", n, r)
		}
		next := []*big.Int{big.NewInt(1)}
		for i := 1; i < len(row); i++ {
			next = append(next, new(big.Int).Add(row[i-1], row[i]))
		}
		row = append(next, big.NewInt(1))
	}
}

func TestFloatPowerAgainstProducts(t *testing.T) {
	t.Parallel()
	for _, x := range []float64{2, -3, 0.5, 10, -0.25} { // powers that are exact
		want := 1.0
		for n := 0; n < 15; n++ {
			require.Equal(t, want, floatPower(x, float64(n)))
			if x == 2 || x == 0.5 {
				require.Equal(t, 1/want, floatPower(x, float64(-n)))
			}
			want *= x
		}
	}
	require.InEpsilon(t, math.Pow(1.37, 100_000.0/99_999), floatPower(1.37, 100_000.0/99_999), 1e-15)
}

func FuzzNumber(f *testing.F) {
	for _, s := range []string{"0", "-0", "-0.0", "1.5", "1e16", "1e-5", "123456789012345678901", "1e400", "5e-324", "1E+2", "--1", "0x10", "01", "1.", " 1", "NaN", "1_0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		n, err := parseNumber([]byte(s))
		if err != nil {
			require.NotEqual(t, fault.Internal, fault.CodeOf(err))
			return
		}
		again, err := parseNumber([]byte(n.String())) // what is written is read back as the same
		require.NoError(t, err)
		require.Equal(t, n.String(), again.String())
		require.Equal(t, n.int == nil, again.int == nil)
		want, err := strconv.ParseFloat(s, 64)
		require.True(t, err == nil || n.int != nil)
		if got, err := n.approx(); err == nil {
			require.Equal(t, want+0, got+0)
		}
	})
}
