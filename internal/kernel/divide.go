package kernel

// divide runs body over [0, n) in pieces of fixed size, the last one shorter, in parallel if there are several. The whole
// costs as much as so many cheap elements. It is spread for work whose operands aren't a vectorWork's.
func divide(n, size, cost int, body func(lo, hi int)) {
	if n <= size {
		body(0, n)
		return
	}
	pieces := parallelFunc(func(i int) { body(i*size, min((i+1)*size, n)) })
	parallelRun((n+size-1)/size, pieces, cost >= vectorWakeWork)
}
