package orchestrator

// fifo is a queue that reuses its memory.
type fifo[T any] struct {
	items []T
	head  int
}

func (f *fifo[T]) len() int { return len(f.items) - f.head }

func (f *fifo[T]) push(x T) {
	if f.head > 32 && f.head > len(f.items)/2 {
		n := copy(f.items, f.items[f.head:])
		clear(f.items[n:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, x)
}

func (f *fifo[T]) front() T { return f.items[f.head] }

func (f *fifo[T]) pop() T {
	var none T
	x := f.items[f.head]
	f.items[f.head] = none
	f.head++
	return x
}
