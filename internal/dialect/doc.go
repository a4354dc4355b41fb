// Package dialect compiles plans of the state dialect to plans: calls that write to paths of a state and read them.
//
//	{"calls": [
//	   {"_tool": "processPayment", "amount": "†input.amount", "_outputPath": "†state.receipt || †state.error"},
//	   {"_tool": "confirmOrder", "receipt": "†state.receipt"},
//	   {"_tool": "reportFailure", "error": "†state.error"}],
//	 "input": {"amount": 50}}
//
// There is no state while a plan runs. Who writes what, and who reads it, is known from the text, so each reading becomes
// references to the steps that write there (package plan), and nothing below plan knows of the dialect.
//
// # What a reading comes to
//
// Of all calls that write at its path, above it or below it, a reading sees those that stand before it in the list. Where
// there are none, and the initial state has nothing there, it sees all others. It waits for all that it sees.
//
//   - A call that writes at the path or above it wrote there if it succeeded and its result has something behind the rest
//     of the path. null is nothing. The last in the list that wrote counts, then the initial state.
//   - What a call returns as a whole is written even if it is null, but null takes no value's place.
//   - An error is written where a call failed; not where it was skipped, not taken or cancelled.
//   - A call one of whose readings comes to nothing is not taken. In a condition nothing is null.
//   - A failure skips those that read what the call would have written, unless another wrote there too.
//
// testdata/cases.txt has the dialect's cases and what each is compiled to: another answer there is another language,
// since every owner of a run compiles what was submitted and has to come to the same.
package dialect
