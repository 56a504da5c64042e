// Package kernel is the arithmetic under Heed's operations: plain functions on slices of float32 or float64. It knows
// no tensors and no graphs, and it checks no shapes: its callers have.
//
// Work that is worth it is spread over processors in pieces whose bounds depend on the work alone, so that results are
// the same bits for every GOMAXPROCS.
package kernel

//go:generate go run -C gen ./gemm -out ../gemm_amd64.s
//go:generate go run -C gen ./vector -out ../vector_amd64.s -table ../vector_table.go -tables ../vector_table_amd64.go
