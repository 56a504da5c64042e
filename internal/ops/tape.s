//go:build !noasm && !cuda

// Without a file of assembly, a function without a body (runTape) would be an error.
