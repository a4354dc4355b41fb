package subjects_test

import (
	"fmt"

	"github.com/stepjet/stepjet/subjects"
)

func ExampleEncode() {
	token := subjects.Encode("order #42")
	plain, ok := subjects.Decode(token)
	fmt.Println(token, plain, ok)
	// Output: order=20=2342 order #42 true
}

func ExampleStep() {
	a := subjects.Attempt{Run: subjects.NewRun("acme", "order-42"), Generation: 17, Tool: "crm/get", Step: "user", Number: 1}
	fmt.Println(subjects.Step(a, 0))
	fmt.Println(subjects.StepRecord(a, 1))
	fmt.Println(a.Key())
	// Output:
	// step.0.crm=2Fget.52.acme.order-42.17.user.1
	// $KV.runs_0.52.acme.order-42.17.step.crm=2Fget.user.1
	// acme/order-42/17/user
}
