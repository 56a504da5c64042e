//go:build !amd64 || noasm

package kernel

func gemmAsm32() []gemmBody[float32] { return nil }

func gemmAsm64() []gemmBody[float64] { return nil }
