// Package kernel is the arithmetic under Heed's operations: plain functions on slices of float32 or float64. It knows
// no tensors and no graphs, and it checks no shapes: its callers have.
//
// A function that divides its work takes first the number of cores that it may use at once, GOMAXPROCS if it is 0. The
// results are the same bits for every number.
package kernel

//go:generate go run -C gen ./gemm -out ../gemm_amd64.s
//go:generate go run -C gen ./vector -out ../vector_amd64.s -table ../vector_table.go -tables ../vector_table_amd64.go
