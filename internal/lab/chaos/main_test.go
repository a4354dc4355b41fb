package chaos

import (
	"os"
	"testing"
)

// TestMain lets the test binary play the roles of the worlds that the tests start.
func TestMain(m *testing.M) {
	if !Main() {
		os.Exit(m.Run())
	}
}
