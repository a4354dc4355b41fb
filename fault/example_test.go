package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/stepjet/stepjet/fault"
)

func ExampleError() {
	err := fault.New(fault.ToolFailed, "503 from %s", "upstream").WithHint("try later")
	envelope, _ := json.Marshal(err)
	fmt.Println(string(envelope))
	fmt.Println(errors.Is(fmt.Errorf("step a: %w", err), &fault.Error{Code: fault.ToolFailed}))
	// Output:
	// {"code":"tool_failed","message":"503 from upstream","hint":"try later","retryable":true}
	// true
}
