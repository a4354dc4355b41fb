package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/stepjet/stepjet/internal/lab/vt"
	"github.com/stepjet/stepjet/internal/text"
)

// seat is a person at a terminal, and the command that runs on it.
type seat struct {
	*testing.T
	screen shared
	mu     sync.Mutex
	on     *vt.Terminal // what stands on it
	hands  *os.File
	cmd    *exec.Cmd
	ended  chan struct{}
}

// plainly is the environment of a terminal that isn't redrawn.
var plainly = []string{"NO_COLOR=1", "TERM=xterm"}

// sit runs the command on a pseudo terminal, which the keys go to, with variables besides those that it needs.
func sit(t *testing.T, data string, env []string, args ...string) *seat {
	t.Helper()
	hands, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(int(hands.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetInt(int(hands.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	s := &seat{T: t, hands: hands, cmd: exec.Command(binary, args...), ended: make(chan struct{}), on: vt.New(80)}
	s.resize(80, 24)
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = tty, tty, tty
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s.cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(data), "STEPJET_DATA=" + data, "TMPDIR=" + os.TempDir(), "USER=ann",
		"STEPJET_TOOLS=" + examples + "../tools.json"}, env...)
	require.NoError(t, s.cmd.Start())
	require.NoError(t, tty.Close())
	go func() {
		defer close(s.ended)
		_ = s.cmd.Wait() // its exit code says it
	}()
	read := make(chan struct{})
	go func() {
		defer close(read)
		buf := make([]byte, 4096)
		for {
			n, err := hands.Read(buf)
			s.mu.Lock()
			_, _ = s.screen.Write(buf[:n])
			_, _ = s.on.Write(buf[:n])
			s.mu.Unlock()
			if err != nil { // the command has ended
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended by itself
		<-s.ended
		<-read
		_ = hands.Close()
	})
	return s
}

// resize makes the terminal as large as that.
func (s *seat) resize(columns, rows uint16) {
	s.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.on.Resize(int(columns))
	require.NoError(s.T, unix.IoctlSetWinsize(int(s.hands.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}))
}

// sees waits until something stands on the screen.
func (s *seat) sees(what string) {
	s.Helper()
	require.Eventually(s.T, func() bool { return strings.Contains(s.screen.String(), what) }, patience, 10*time.Millisecond, "%s: %s", what, &s.screen)
}

// shows returns the rows that stand on the terminal.
func (s *seat) shows() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.on.Rows()
}

// seesRow waits for a row that an expression finds.
func (s *seat) seesRow(form string) {
	s.Helper()
	is := regexp.MustCompile(form)
	if !assert.Eventually(s.T, func() bool { return slices.ContainsFunc(s.shows(), is.MatchString) }, patience, 10*time.Millisecond, form) {
		require.FailNow(s.T, "it is not seen", "%q", s.shows())
	}
}

// seesAfter waits until something stands behind something else.
func (s *seat) seesAfter(first, what string) {
	s.Helper()
	require.Eventually(s.T, func() bool {
		_, after, found := strings.Cut(s.screen.String(), first)
		return found && strings.Contains(after, what)
	}, patience, 10*time.Millisecond, "%s after %s: %s", what, first, &s.screen)
}

func (s *seat) types(keys string) {
	s.Helper()
	_, err := s.hands.WriteString(keys)
	require.NoError(s.T, err)
}

func (s *seat) interrupts() {
	s.Helper()
	s.types("\x03")
}

// asksForKeys reports whether the terminal hands over each key just now.
func (s *seat) asksForKeys() bool {
	s.Helper()
	mode, err := unix.IoctlGetTermios(int(s.hands.Fd()), unix.TCGETS)
	require.NoError(s.T, err)
	return mode.Lflag&(unix.ICANON|unix.ECHO) == 0
}

// ends waits for the command, and returns its exit code.
func (s *seat) ends() int {
	s.Helper()
	select {
	case <-s.ended:
	case <-time.After(patience):
		require.FailNow(s.T, "it doesn't end", "%s", &s.screen)
	}
	require.False(s.T, s.asksForKeys(), "the terminal is in order again")
	return s.cmd.ProcessState.ExitCode()
}

// The first interrupt leaves an agent's run and says how to come back; a second one cancels it.
func TestAnInterruptLeavesAnAgentAndAnotherCancelsIt(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	hold := holding{asked: make(chan struct{}), goesOn: make(chan struct{})}
	planning(t, url, hold)
	defer close(hold.goesOn)
	_, stderr, code := execute(t, data, "", "agents", "apply", agentFiles+"helper.json")
	require.Zero(t, code, stderr)
	first := sit(t, data, plainly, "agents", "run", "helper", "--run", "r", "--input", `{"by": 0}`)
	<-hold.asked
	first.sees("failed     first  divide")
	first.interrupts()
	first.sees("stepjet watch r")
	require.Equal(t, ExitInterrupt, first.ends(), "it was left alone")
	first.sees("stepjet get r")
	stdout, stderr, code := execute(t, data, "", "get", "r")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "r  running")

	second := sit(t, data, plainly, "agents", "run", "helper", "--run", "r", "--input", `{"by": 0}`)
	second.sees("the run was there before")
	second.interrupts()
	second.sees("press Ctrl-C again")
	second.interrupts()
	second.sees("cancelled: r")
	require.Equal(t, ExitInterrupt, second.ends())
	_, stderr, code = execute(t, data, "", "get", "r", "--wait", "1m", "--outcome")
	require.Equal(t, exitFailed, code, stderr)
	require.Contains(t, stderr, "cancelled")
}

// asksTwo asks for a value, and then for an approval.
const asksTwo = `{"steps":[
	{"id":"who","tool":"ask","arguments":{"question":"Who is it?","choices":["Ada","Bob"]}},
	{"id":"pay","tool":"echo","arguments":{"to":"$ref:who"},"approval":{"ask":"Write to them?"}}],"output_steps":["who","pay"]}`

// written is a file with a plan.
func written(t *testing.T, plan string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "plan.json")
	require.NoError(t, os.WriteFile(file, []byte(plan), 0o600))
	return file
}

// What a run asks of people is asked at the terminal: what was typed before is no answer, one that is refused is asked for
// again, and the terminal is in order afterwards.
func TestQuestionsAreAskedAtTheTerminal(t *testing.T) {
	t.Parallel()
	for name, env := range map[string][]string{"lines": plainly, "redrawn": {"TERM=xterm"}, "dumb": {"TERM=dumb"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := folder(t)
			developing(t, data)
			s := sit(t, data, env, "run", "--run", "r", "-o", "json", written(t, asksTwo))
			s.types("Ada\n")
			s.sees("Who is it?")
			s.sees("answer; Enter leaves it open: ")
			require.True(t, s.asksForKeys())
			s.types("Evf\x7fe\n")
			s.seesAfter("choose one of", "answer; Enter leaves it open: ")
			s.types("nobody\x15Ada\n")
			s.sees("answered by ann")
			s.seesAfter("Write to them?", "approve? y or n; Enter leaves it open: ")
			s.types("perhaps\n")
			s.seesAfter("y or n\r", "approve? y or n; Enter leaves it open: ")
			s.types("y as agreed\n")
			s.sees("approved by ann")
			require.Zero(t, s.ends(), "%s", &s.screen)
			s.sees(`"results":{"who":"Ada","pay":{"to":"Ada"}}`)
			if name != "redrawn" {
				require.NotContains(t, s.screen.String(), "\x1b")
			}
			stdout, stderr, code := execute(t, data, "", "get", "r")
			require.Zero(t, code, stderr)
			require.Contains(t, stdout, "as agreed")
		})
	}
}

// A question that others answer is withdrawn, and what somebody had begun to type is no answer to the next; one that is
// left open waits for others.
func TestAQuestionIsWithdrawn(t *testing.T) {
	t.Parallel()
	data := folder(t)
	developing(t, data)
	s := sit(t, data, []string{"TERM=xterm"}, "run", "--run", "r", written(t, asksTwo))
	s.sees("answer; Enter leaves it open: ")
	s.types("A")
	s.sees("open: A")
	_, stderr, code := execute(t, data, "", "questions", "answer", "r", "who", "Bob", "--by", "bob")
	require.Zero(t, code, stderr)
	s.sees("withdrawn: the step who was answered by bob")
	s.seesAfter("withdrawn", "Enter to go on: ")
	require.NotContains(t, s.screen.String(), "approve? y or n", "what stands in its row is not asked yet")
	s.types("da\n")
	s.seesAfter("Write to them?", "approve? y or n; Enter leaves it open: ")
	s.types("\n")
	s.sees("left open; to answer: stepjet approve r pay")
	require.Eventually(t, func() bool { return !s.asksForKeys() }, patience, 10*time.Millisecond)
	_, stderr, code = execute(t, data, "", "approve", "r")
	require.Zero(t, code, stderr)
	require.Zero(t, s.ends(), "%s", &s.screen)
}

// An interrupt ends a command that asks.
func TestAnInterruptWhileAQuestionIsOpen(t *testing.T) {
	t.Parallel()
	data := folder(t)
	developing(t, data)
	file := written(t, asksTwo)
	s := sit(t, data, []string{"TERM=xterm"}, "run", "--run", "r", file)
	s.sees("answer; Enter leaves it open: ")
	s.types("A")
	s.interrupts()
	require.Equal(t, ExitInterrupt, s.ends(), "%s", &s.screen)
	s.sees("stepjet get r")
	stdout, stderr, code := execute(t, data, "", "get", "r")
	require.Zero(t, code, stderr)
	require.Contains(t, stdout, "r  running")
}

// guide is an agent that may ask.
const guide = `{"name":"guide","description":"Asks.","inputSchema":{"type":"object"},
	"agent":{"planner":{"tool":"planner","mode":"plan"},"instructions":"Ask.","tools":["divide","add","ask"],"max_rounds":5}}`

// asksInRounds are answers of a planner that asks for a value in round 0, and for an approval in round 1, with texts that
// would steer a terminal.
var asksInRounds = []string{
	`{"steps":[{"id":"first","tool":"divide","arguments":{"a":1,"b":0}},
		{"id":"who","tool":"ask","arguments":{"question":"Who\u001b[2J is\u009b1A it?\u0007","choices":["Ada","\u001b]0;mine\u0007","東京"]}}],
		"usage":{"input_tokens":900,"output_tokens":40,"cost_usd":0.001}}`,
	`{"steps":[{"id":"go","tool":"add","arguments":{"a":1,"b":1},"approval":{"ask":"Write to \u001b[31mthem?"}},
		{"id":"then","tool":"add","arguments":{"a":"$ref:go.result","b":1}}],
		"usage":{"input_tokens":1100,"output_tokens":60,"cost_usd":0.002},"output":{"n":"$ref:then.result"}}`,
}

// While an agent runs, the terminal shows its rounds as they form and what they took, and what it asks; narrower and wider
// while somebody types, and whatever strangers wrote.
func TestAnAgentIsSeenAndAnswered(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	planning(t, url, holding{answers: asksInRounds})
	_, stderr, code := execute(t, data, guide, "agents", "apply", "-")
	require.Zero(t, code, stderr)
	s := sit(t, data, []string{"TERM=xterm-256color"}, "agents", "run", "guide", "--run", "r")
	s.seesRow(`^r  round 0  1 of 2 calls over  900 tokens in, 40 out  \$0.001  `)
	s.seesRow(`^  round 0  ✓ planner  .* 900 tokens in, 40 out, \$0.001$`)
	s.seesRow(`^    ✗  first  divide  failed  tool_terminal: divide: division`)
	s.seesRow(`^    \?  who    ask  asking  `)
	s.seesRow(`^  Who \[2J is 1A it\?`)
	s.seesRow(`^answer; Enter leaves it open: $`)
	s.types("Ad")
	s.seesRow(`^answer; Enter leaves it open: Ad$`)
	s.resize(40, 12)
	s.seesRow(`^r  round 0  1 of 2 calls over  900 tok…$`)
	s.types("a")
	s.seesRow(`Ada$`)
	for _, row := range s.shows() {
		require.LessOrEqual(t, text.Columns(row), 40)
	}
	s.resize(100, 30)
	s.types("\n")
	s.sees("answered by ann")
	s.seesRow(`^r  round 1  0 of 2 calls over  2000 tokens in, 100 out  \$0.003  `)
	s.seesRow(`^  Write to  \[31mthem\?`)
	s.seesRow(`^    ·  then  add  waiting`)
	s.seesRow(`^approve\? y or n; Enter leaves it open: $`)
	s.types("y\n")
	require.Zero(t, s.ends(), "%q", s.shows())
	s.seesRow(`^r  round 1  2 of 2 calls over  `)
	s.seesRow(`^0 +succeeded +\S+ +900 +40 +\$0\.001 +2 \(1 did not succeed\)$`)
	require.Empty(t, s.on.Odd())
}

// While a question is open, one interrupt leaves an agent's run, and a second one cancels it.
func TestInterruptsWhileAnAgentAsks(t *testing.T) {
	t.Parallel()
	data := folder(t)
	_, url := developing(t, data)
	planning(t, url, holding{answers: asksInRounds})
	_, stderr, code := execute(t, data, guide, "agents", "apply", "-")
	require.Zero(t, code, stderr)
	s := sit(t, data, []string{"TERM=xterm"}, "agents", "run", "guide", "--run", "r")
	s.sees("answer; Enter leaves it open: ")
	s.types("Ad")
	s.interrupts()
	s.sees("press Ctrl-C again")
	require.False(t, s.asksForKeys(), "the terminal is in order while a second one is waited for")
	s.interrupts()
	s.sees("cancelled: r")
	require.Equal(t, ExitInterrupt, s.ends())
	_, stderr, code = execute(t, data, "", "get", "r", "--wait", "1m", "--outcome")
	require.Equal(t, exitFailed, code, stderr)
	require.Contains(t, stderr, "cancelled")
}
