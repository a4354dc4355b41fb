package wire_test

import (
	"fmt"

	"github.com/stepjet/stepjet/fault"
	"github.com/stepjet/stepjet/wire"
)

func ExampleResult_Message() {
	header, body := wire.Result{Worker: "w1", Error: fault.New(fault.ToolFailed, "503 from upstream")}.Message()
	fmt.Println(header["Stepjet-Status"], string(body))
	fmt.Println(wire.ParseResult(header, body).Error.Retryable)
	// Output:
	// [error] {"code":"tool_failed","message":"503 from upstream","retryable":true}
	// true
}
